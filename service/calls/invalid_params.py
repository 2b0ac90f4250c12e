"""Wrong ``params`` of any tool: the model's mistake, answered with every error, a notice and nothing run."""

import difflib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.codes import ContractCode, NoticeCode
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, ToolCallResponse
from proofbox.contracts.tools import exec_language
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.param_references import find_reference
from proofbox.service.calls.tool import PreparedCall, Tools
from proofbox.service.calls.validation import field_name, refusal
from proofbox.service.errors import NetworkNotAllowedError, PackagesNotAllowedError
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_writer import BlockWriter, Notice, bounded_params, now_text, text_head
from proofbox.service.visible_text import visible_text

ERRORS_MAX = 20
"""How many errors one answer lists; a model corrects the first few."""
_NAMES_MAX = 100
_SHOWN_CHARS = 60
P = TypeVar("P", bound=BaseModel)


class InvalidParamsError(Exception):
    """The params do not fit the tool.

    Attributes:
        errors: the first errors, each with ``field`` and ``message``.
        total: how many there are.
    """

    def __init__(self, errors: list[dict[str, str]], total: int) -> None:
        listed = "; ".join(f"{error['field']}: {error['message']}" for error in errors)
        more = f"; and {total - len(errors)} more" if total > len(errors) else ""
        super().__init__(f"{listed}{more}")
        self.errors = errors
        self.total = total


def parse_params(model: type[P], params: Mapping[str, Any]) -> P:
    """Validates the params of a call; ``null`` for an optional parameter is its default.

    Raises:
        InvalidParamsError: they do not fit ``model``.
    """
    optional = {name for name, field in model.model_fields.items() if not field.is_required()}
    given = {name: value for name, value in params.items() if value is not None or name not in optional}
    try:
        return model.model_validate(given)
    except ValidationError as exc:
        found = exc.errors(include_url=False, include_context=False)
        errors = [_error(error, model) for error in found[:ERRORS_MAX]]
        raise InvalidParamsError(errors, len(found)) from exc


def prepare_call(tools: Tools, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall | None:
    """Prepares a call, or one that answers ``invalid_params``; returns None if there is no such tool.

    Raises:
        InvalidRequestError, LimitNotAllowedError, NetworkNotAllowedError, PackagesNotAllowedError: the envelope of
            the request is wrong.
    """
    tool = tools.get(request.tool_id)
    if tool is None:
        return None
    if request.network is not None and exec_language(request.tool_id) is None:
        message = f"{request.tool_id} runs no program of yours; leave the field out"
        raise refusal(
            NetworkNotAllowedError, [{"loc": ("network",), "type": "network_not_allowed", "msg": message}]
        )
    if request.packages and exec_language(request.tool_id) is None:
        message = f"{request.tool_id} runs no program of yours; leave the field out"
        raise refusal(
            PackagesNotAllowedError, [{"loc": ("packages",), "type": "packages_not_allowed", "msg": message}]
        )
    try:
        return tool.prepare(scope, request)
    except InvalidParamsError as exc:
        response = _build_refusal(request, exc)

    async def run(_: CallObserver) -> ToolCallResponse:
        return response

    return PreparedCall(run, lambda _why: response)


def _build_refusal(request: ToolCallRequest, error: InvalidParamsError) -> ToolCallResponse:
    language = exec_language(request.tool_id)
    listed = visible_text(str(error))
    done = "done" if language is None else "run"
    message = f"{listed}{'' if listed.endswith('?') else '.'} Nothing was {done}; correct this and call again"
    code = ContractCode.INVALID_PARAMS
    report = f"{request.tool_id} failed: {code} — {message}"
    if language is not None:
        report = f"Runtime error: {code} — {message}"
    blocks: list[Block] = []
    if request.turn_id is not None:  # every block path needs a turn
        write = BlockWriter(request.turn_id, request.tool_call_id, request.tool_id)
        more = {"errors_total": error.total} if error.total > len(error.errors) else {}
        text = "the params do not fit the tool; nothing was done"
        blocks = [write.notes(request.notes)] if request.notes else []
        blocks.append(write.notice(Notice(NoticeCode.INVALID_PARAMS, text, {"errors": error.errors, **more})))
        if language is not None and request.code and find_reference("code", request.code) is None:
            blocks.append(write.code(request.code, language))
        blocks.append(write.call(_shown(request.params)))
        payload = {
            "tool_id": request.tool_id,
            "tool_call_id": request.tool_call_id,
            "error": {"code": code, "message": message},
            "ts": now_text(),
        }
        blocks.append(write.report(report) if language is not None else write.result_json(payload))
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(code=code, message=message, where="params", managed=True),
        report=report,
        blocks=blocks,
    ).refused()


def _error(error: Mapping[str, Any], model: type[BaseModel]) -> dict[str, str]:
    loc: Sequence[int | str] = error["loc"]
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        message = "is required"
    elif error["type"] == "extra_forbidden":
        what = "a parameter of this tool" if len(loc) == 1 else f"a field of {field_name(loc[:-1])}"
        message = f"is not {what}; {_hint(str(loc[-1]), _model_at(model, loc[:-1]))}"
    elif isinstance(error["input"], str | int | float | bool | None):
        message += f", got {_short(error['input'])}"
    return {"field": field_name(("params", *loc)), "message": message}


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
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:_SHOWN_CHARS]).replace("-", "_").replace(" ", "_").lower()
    other = other_names.get(snake.replace("_", ""))
    close = (
        [snake] if snake in known else [other] if other in known else difflib.get_close_matches(snake, known, n=1)
    )
    return f"did you mean {close[0]}?" if close else f"the names are {', '.join(known)}"


def _short(value: Any) -> str:
    text = json.dumps(value[:_SHOWN_CHARS] if isinstance(value, str) else value, ensure_ascii=False)
    text = text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
    return text.encode(errors="replace").decode()


def _shown(params: Mapping[str, Any]) -> dict[str, Any]:
    """The params as the call block shows them: whatever a model put there, each value at most 20,480 bytes."""
    first = itertools.islice(params.items(), _NAMES_MAX)
    shown = bounded_params({_name(name): value for name, value in first})
    for name, value in shown.items():
        if isinstance(value, list | dict):
            text = json.dumps(value, ensure_ascii=False)
            shown[name] = text_head(text) if len(text) > TEXT_BYTES_MAX // 4 else value
    return shown


def _name(name: str) -> str:
    return name[:_SHOWN_CHARS].encode(errors="replace").decode()
