"""Wrong ``params`` of any tool: the model's mistake, answered with every error, a notice and nothing run."""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.codes import ContractCode, NoticeCode, ProblemCode
from proofbox.contracts.problems import FieldError
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, ToolCallResponse
from proofbox.contracts.tools import exec_language
from proofbox.service.calls.function_calls import canonical_call
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.param_references import find_reference
from proofbox.service.calls.tool import PreparedCall, Tool, Tools
from proofbox.service.calls.validation import field_name, hint_of, refusal
from proofbox.service.errors import CallerError, NetworkNotAllowedError, PackagesNotAllowedError
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_writer import BlockWriter, Notice, bounded_params, now_text, text_head
from proofbox.service.visible_text import visible_text

ERRORS_MAX = 20
"""How many errors one answer lists; a model corrects the first few."""
_NAMES_MAX = 100
_SHOWN_CHARS = 60
_UNKNOWN_TOOL = "there is no such tool; GET /v1/tools lists them"
_NO_TURN = "is required; give the current turn's id, such as turn_1"
_PLACES: Mapping[ContractCode, str] = {
    ContractCode.MISSING_TURN_ID: "turn_id",
    ContractCode.MISSING_CODE: "code",
    ContractCode.CODE_CONTAMINATED: "code",
}
"""Where a mistake stands in a request, if not in its params."""
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


class Refusals:
    """Collects why a call is refused, to report all of it at once."""

    def __init__(self) -> None:
        self._of_caller: list[CallerError] = []
        self._of_params: list[InvalidParamsError] = []

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keeps a refusal that the block raises; what comes after it is checked all the same."""
        try:
            yield
        except CallerError as exc:
            self._of_caller.append(exc)
        except InvalidParamsError as exc:
            self._of_params.append(exc)

    def names(self, field: str) -> bool:
        """Whether a refusal names a field."""
        errors = [error.field for exc in self._of_caller for error in exc.errors or ()]
        return field in errors or any(error["field"] == field for exc in self._of_params for error in exc.errors)

    def raise_any(self, also: Callable[[], object] = lambda: None) -> None:
        """Raises what was kept as one error.

        Args:
            also: raises a ContractError for what is wrong with contract, code or turn; called if anything was kept,
                for a call that has these mistakes alone is refused when it runs.

        Raises:
            CallerError: a mistake of the caller's program; it lists those of the params as well.
            InvalidParamsError: the params are wrong.
        """
        if not self._of_caller and not self._of_params:
            return
        params = [error for exc in self._of_params for error in exc.errors]
        total = sum(exc.total for exc in self._of_params)
        try:
            also()
        except ContractError as exc:
            parts = exc.parts[:ERRORS_MAX]
            params += [{"field": _PLACES.get(part.code, "params"), "message": part.message} for part in parts]
            total += len(exc.parts)
        if not self._of_caller:
            raise InvalidParamsError(params, total)
        if len(self._of_caller) == 1 and not params:
            raise self._of_caller[0]
        errors = [
            {"loc": (error.field,), "type": error.code, "msg": error.message}
            for exc in self._of_caller
            for error in exc.errors or [FieldError(field=exc.where, code=str(exc.code), message=exc.message)]
        ]
        errors += [
            {"loc": (error["field"],), "type": str(ContractCode.INVALID_PARAMS), "msg": error["message"]}
            for error in params
        ]
        raise refusal(type(self._of_caller[0]), errors)


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
    try:
        return _prepare(tool, scope, request)
    except InvalidParamsError as exc:
        response = _build_refusal(request, exc)

    async def run(_: CallObserver) -> ToolCallResponse:
        return response

    return PreparedCall(run, lambda _why: response)


def _prepare(tool: Tool, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
    """Prepares a call. Raises as `prepare_call`, and InvalidParamsError."""
    found = Refusals()
    if exec_language(request.tool_id) is None:
        message = f"{request.tool_id} runs no program of yours; leave the field out"
        given = (
            ("network", request.network is not None, NetworkNotAllowedError),
            ("packages", bool(request.packages), PackagesNotAllowedError),
        )
        for name, is_given, kind in given:
            if is_given:
                with found.collecting():
                    raise refusal(kind, [{"loc": (name,), "type": f"{name}_not_allowed", "msg": message}])
    call: PreparedCall | None = None
    with found.collecting():
        call = tool.prepare(scope, request)
    found.raise_any(partial(_require_turn, found, request))
    if call is None:
        raise AssertionError("a call that is not refused is prepared")
    return call


def _require_turn(found: Refusals, request: ToolCallRequest) -> None:
    if not (request.turn_id or request.run_id or found.names("turn_id")):
        raise ContractError(ContractCode.MISSING_TURN_ID, _NO_TURN)


def find_mistakes(tools: Tools, scope: ConversationKey, body: Any, refused: ValidationError) -> list[FieldError]:
    """What is wrong with a request whose envelope was refused, beyond that: its turn, params, contract and limits.

    Args:
        tools: the tools by their ids.
        scope: whose call it is; in any conversation.
        body: the request as JSON.
        refused: what is wrong with its envelope.
    """
    if not isinstance(body, dict):
        return []
    wrong = {error["loc"][0] for error in refused.errors(include_url=False, include_input=False) if error["loc"]}
    known = ToolCallRequest.model_fields
    right = {name: value for name, value in body.items() if name in known and name not in wrong}
    found: list[FieldError] = []
    if not ({"turn_id", "run_id"} & wrong or right.get("turn_id") or right.get("run_id")):
        found = [FieldError(field="turn_id", code=str(ContractCode.MISSING_TURN_ID), message=_NO_TURN)]
    if {"tool_id", "params"} & wrong or right.get("run_id"):
        return found
    more: Sequence[FieldError] = ()
    try:
        named = {"tool_call_id": "any", "conversation_id": "any"}
        request = canonical_call(ToolCallRequest.model_validate({**named, **right}))
        if (tool := tools.get(request.tool_id)) is None:
            more = [FieldError(field="tool_id", code=str(ProblemCode.UNKNOWN_TOOL), message=_UNKNOWN_TOOL)]
        else:
            _prepare(tool, scope, request).check()
    except ContractError as exc:
        more = [_as_field(each) for each in exc.parts]
    except CallerError as exc:
        more = exc.errors or ()
    except InvalidParamsError as exc:
        more = [FieldError(code=str(ContractCode.INVALID_PARAMS), **error) for error in exc.errors]
    except ValidationError:
        return found
    return [*found, *(each for each in more if each.field != "turn_id")]


def _as_field(error: ContractError) -> FieldError:
    return FieldError(field=_PLACES.get(error.code, "params"), code=str(error.code), message=error.message)


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
        write = BlockWriter(request.turn_id, request.tool_call_id, request.tool_id, now_text())
        more = {"errors_total": error.total} if error.total > len(error.errors) else {}
        text = "the params do not fit the tool; nothing was done"
        notice = Notice(NoticeCode.INVALID_PARAMS, text, {"errors": error.errors, **more})
        program = None
        if language is not None and request.code and find_reference("code", request.code) is None:
            program = request.code, language
        blocks = write.opening(_shown(request.params), [notice], notes=request.notes, code=program)
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
        message = f"is not {what}; {hint_of(model, loc)}"
    elif isinstance(error["input"], str | int | float | bool | None):
        message += f", got {_short(error['input'])}"
    return {"field": field_name(("params", *loc)), "message": message}


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
