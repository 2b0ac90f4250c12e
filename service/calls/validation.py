"""Refusals that name the field: pydantic's errors as ours, wherever a model is validated."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from proofbox.contracts.problems import FieldError
from proofbox.service.errors import CallerError, InvalidRequestError

# A body can be wrong in a million places; a program fixes the first few.
ERRORS_MAX = 50
FIELD_PART_CHARS_MAX = 100
_NAME_CHARS_MAX = 60
_Refused = TypeVar("_Refused", bound=CallerError)


def invalid_model(
    exc: ValidationError, *above: str, model: type[BaseModel] | None = None, more: Sequence[FieldError] = ()
) -> InvalidRequestError:
    """The error of a value that is not what its schema asks for.

    Args:
        exc: what is wrong.
        above: where the value stands in the request.
        model: its schema, for hints on fields that it does not have.
        more: what else is wrong with the request.
    """
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    found = [
        {**error, "loc": (*above, *error["loc"]), "msg": _message(error, model)}
        for error in errors[: ERRORS_MAX - len(more)]
    ]
    reported = [{"loc": (each.field,), "type": each.code, "msg": each.message} for each in more]
    return refusal(InvalidRequestError, [*found, *reported], total=len(errors) + len(reported))


def _message(error: Mapping[str, Any], model: type[BaseModel] | None) -> str:
    if model is None or error["type"] != "extra_forbidden":
        return str(error["msg"])
    return f"is not a field of the request; {hint_of(model, error['loc'])}"


def invalid_value(field: str, message: str) -> InvalidRequestError:
    """The error of one field that its schema allows and the call does not."""
    return refusal(InvalidRequestError, [{"loc": (field,), "type": "value_error", "msg": message}])


def refusal(kind: type[_Refused], errors: Sequence[Mapping[str, Any]], total: int | None = None) -> _Refused:
    """An error of ``kind`` that lists pydantic's ``errors`` (``loc``, ``type``, ``msg``) by field.

    ``total`` is how many there are, if these are the first of them.
    """
    listed = [
        FieldError(
            field=field_name(error["loc"]),
            code=error["type"],
            message=error["msg"].removeprefix("Value error, "),
        )
        for error in errors[:ERRORS_MAX]
    ]
    total = len(errors) if total is None else total
    more = f" (and {total - 1} more)" if total > 1 else ""
    return kind(f"{listed[0].field}: {listed[0].message}{more}", errors=listed)


def field_name(loc: Sequence[int | str]) -> str:
    """A location as it is written in code: ``limits.wall_s``, ``assets[0].base64``; ``body`` for the whole."""
    text = ""
    for part in loc:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f"{'.' if text else ''}{part[:FIELD_PART_CHARS_MAX]}"
    return text or "body"


def hint_of(model: type[BaseModel], loc: Sequence[int | str]) -> str:
    """Which field was meant by an unknown one; ``loc`` is where it stands in the model."""
    return _hint(str(loc[-1]), _model_at(model, loc[:-1]))


def _model_at(model: type[BaseModel] | None, loc: Sequence[int | str]) -> type[BaseModel] | None:
    """The model of the field at ``loc``; None if it is not a field of a model."""
    for name in loc:
        if isinstance(name, str) and model is not None:
            field = model.model_fields.get(name)
            model = None if field is None else _model_in(field.annotation)
    return model


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that an annotation names, alone or among other types."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part)) is not None), None)


def _hint(name: str, model: type[BaseModel] | None) -> str:
    """The field that an unknown name means: other spellings, and names in other tools, lead to one."""
    if model is None:
        return "leave it out"
    known = list(model.model_fields)
    other_names: Mapping[str, str] = getattr(model, "OTHER_NAMES", {})
    snake = (
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:_NAME_CHARS_MAX]).replace("-", "_").replace(" ", "_").lower()
    )
    other = other_names.get(snake.replace("_", ""))
    close = (
        [snake] if snake in known else [other] if other in known else difflib.get_close_matches(snake, known, n=1)
    )
    return f"did you mean {close[0]}?" if close else f"the names are {', '.join(known)}"
