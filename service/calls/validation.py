"""Refusals that name the field: pydantic's errors as ours, wherever a model is validated."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from proofbox.contracts.problems import FieldError
from proofbox.service.errors import CallerError, InvalidRequestError

# A body can be wrong in a million places; a program fixes the first few.
ERRORS_MAX = 50
FIELD_PART_CHARS_MAX = 100
_Refused = TypeVar("_Refused", bound=CallerError)


def invalid_model(exc: ValidationError, *above: str) -> InvalidRequestError:
    """The error of a value that is not what its schema asks for; ``above`` is where it stands in the request."""
    errors = exc.errors(include_url=False, include_context=False, include_input=False)
    return refusal(InvalidRequestError, [{**error, "loc": (*above, *error["loc"])} for error in errors])


def invalid_value(field: str, message: str) -> InvalidRequestError:
    """The error of one field that its schema allows and the call does not."""
    return refusal(InvalidRequestError, [{"loc": (field,), "type": "value_error", "msg": message}])


def refusal(kind: type[_Refused], errors: Sequence[Mapping[str, Any]]) -> _Refused:
    """An error of ``kind`` that lists pydantic's ``errors`` (``loc``, ``type``, ``msg``) by field."""
    listed = [
        FieldError(
            field=field_name(error["loc"]),
            code=error["type"],
            message=error["msg"].removeprefix("Value error, "),
        )
        for error in errors[:ERRORS_MAX]
    ]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
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
