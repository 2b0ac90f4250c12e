"""Plans of the methods that do more than one request, or answer for an error."""

from collections.abc import Callable, Mapping
from typing import Any

from proofbox.client.api import Api
from proofbox.client.call_bodies import OnEvent, PreparedRun, prepare_call
from proofbox.client.calls import Deadline, make_call
from proofbox.client.errors import ProblemError, ProofboxError
from proofbox.client.exchange import Plan, Request, TransportFailure, send
from proofbox.client.files import upload_files
from proofbox.client.results import File, FileFacts, Health, RunResult, build_result
from proofbox.contracts.tool_call_response import ToolCallResponse

_OK = 200


def call_tool(
    api: Api, tool_id: str, params: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Plan[ToolCallResponse], OnEvent | None]:
    """The plan of `Client.call`, and who gets the events.

    Raises:
        ArgumentError: an option is unknown or wrong.
    """
    given = dict(options)
    wait_s: float | None = given.pop("wait_s", None)
    on_event: OnEvent | None = given.pop("on_event", None)
    call = prepare_call(tool_id, params, given)
    is_detached = wait_s is not None or on_event is not None
    return make_call(api, call, is_detached=is_detached, deadline=Deadline.after(wait_s)), on_event


def run_program(
    api: Api, prepared: PreparedRun, on_event: OnEvent | None, make_file: Callable[[FileFacts], File]
) -> Plan[RunResult[File]]:
    """Store the files of a call, make it, and build its result."""
    call = prepared.call
    yield from upload_files(api, call.conversation, call.turn, prepared.sources)
    response = yield from make_call(api, call, is_detached=on_event is not None, deadline=None)
    return build_result(call, response, make_file)


def read_health(api: Api) -> Plan[Health]:
    """Ask once whether the service can take a call.

    Raises:
        UnreachableError: there was no answer.
        UnexpectedResponseError: the answer is not one of Proofbox.
    """
    try:
        reply = yield from send(Request("GET", "/readyz"))
    except TransportFailure as exc:
        raise api.unreachable(exc) from None
    if reply.status == _OK:
        return Health(is_ready=True)
    error: ProofboxError = api.error(reply)
    if isinstance(error, ProblemError):
        return Health(is_ready=False, problem=error.problem)
    raise error
