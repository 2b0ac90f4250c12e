"""Calls as model APIs write them: a function name in place of the tool's id, the program among the arguments."""

from proofbox.contracts.bounded_text import limit_utf8
from proofbox.contracts.function_names import tool_id_of
from proofbox.contracts.tool_call_request import CODE_BYTES_MAX, ToolCallRequest
from proofbox.contracts.tools import exec_language
from proofbox.service.calls.validation import invalid_value

_bounded = limit_utf8(CODE_BYTES_MAX)


def canonical_call(request: ToolCallRequest) -> ToolCallRequest:
    """The call with the id of its tool, and with the program of an exec tool in ``code``, not in ``params.code``.

    Raises:
        InvalidRequestError: ``code`` and ``params.code`` differ, or ``params.code`` is too long.
    """
    tool_id = tool_id_of(request.tool_id)
    code = request.params.get("code")
    if exec_language(tool_id) is None or not isinstance(code, str):
        return request if tool_id == request.tool_id else request.model_copy(update={"tool_id": tool_id})
    if request.code is not None and request.code != code:
        raise invalid_value("params.code", "differs from code; give the program in one of the two places")
    try:
        _bounded(code)
    except ValueError as exc:
        raise invalid_value("params.code", str(exc)) from exc
    params = {name: value for name, value in request.params.items() if name != "code"}
    return request.model_copy(update={"tool_id": tool_id, "code": code, "params": params})
