"""Plans of calls: send one until it is answered, follow its events, ask for it, cancel it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from proofbox.client.api import Api, now_s, target
from proofbox.client.errors import CallLostError, NotFoundError, ProofboxError, StillRunningError, problem_error
from proofbox.client.event_stream import CallEvent, EventParser, EventStreamError, build_call_event
from proofbox.client.exchange import (
    ConnectionCut,
    Deliver,
    Open,
    Plan,
    Read,
    Reply,
    Request,
    Silence,
    TransportFailure,
    read_all,
)
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse

_OK = 200
_UNKNOWN_CALL = "unknown_call"
_JSON = {"Content-Type": "application/json"}
_DETACHED = {**_JSON, "Prefer": "respond-async"}
# A stream is opened again with a shorter timeout when so much of the waiting time has passed.
_STALE_PART = 0.5


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call as it is sent, each time with the same bytes, so that it runs once.

    Attributes:
        call_id: its id.
        conversation: its conversation.
        turn: its turn.
        body: the JSON of the request.
    """

    call_id: str
    conversation: str
    turn: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when a caller waits.

    Attributes:
        wait_s: how long in all.
        ends: the moment, by `now_s`.
    """

    wait_s: float
    ends: float

    @classmethod
    def after(cls, wait_s: float | None) -> "Deadline | None":
        """The deadline so many seconds from now; None for none."""
        return None if wait_s is None else cls(wait_s, now_s() + wait_s)

    def left_s(self) -> float:
        """How much is left; negative after the deadline."""
        return self.ends - now_s()


def make_call(
    api: Api, call: PreparedCall, *, is_detached: bool, deadline: Deadline | None
) -> Plan[ToolCallResponse]:
    """Send a call and wait for its answer; with ``is_detached`` its events are delivered.

    A call that runs for longer than the service may be silent is followed by its events, whose stream shows whether
    the connection is alive.

    Raises:
        StillRunningError: the deadline has passed; the call continues if it is detached.
        CallLostError: the call had started and is unknown now.
        ProofboxError: see `Api.request`.
    """
    attempts = api.attempts()
    while True:
        if is_detached:
            yield from start_call(api, call)
        else:
            try:
                request = Request("POST", target("tool-calls"), _JSON, call.body)
                reply = yield from api.request(request, is_silence_raised=True)
                return api.parse(ToolCallResponse, reply)
            except Silence:
                pass
        try:
            last = yield from follow_call(api, call.call_id, call.conversation, deadline=deadline)
        except NotFoundError as exc:
            # The call was deleted before it ran: its grace time had ended. The same body can run.
            if exc.code != _UNKNOWN_CALL or isinstance(exc, CallLostError):
                raise
            yield from attempts.repeat(exc)
            continue
        if isinstance(last.data, ToolCallResponse):
            return last.data
        assert isinstance(last.data, Problem)
        yield from attempts.wait(problem_error(last.data))


def start_call(api: Api, call: PreparedCall) -> Plan[CallStatus]:
    """Send a call that continues without a client."""
    reply = yield from api.request(Request("POST", target("tool-calls"), _DETACHED, call.body))
    return api.parse(CallStatus, reply)


def wait_for_call(api: Api, call_id: str, conversation: str, deadline: Deadline | None) -> Plan[ToolCallResponse]:
    """Follow a call to its end; its events are delivered.

    Raises:
        StillRunningError: the deadline has passed.
        ProblemError: the call has no answer.
    """
    last = yield from follow_call(api, call_id, conversation, deadline=deadline)
    if isinstance(last.data, ToolCallResponse):
        return last.data
    assert isinstance(last.data, Problem)
    raise problem_error(last.data)


def follow_call(
    api: Api, call_id: str, conversation: str | None, *, after: int = 0, deadline: Deadline | None = None
) -> Plan[CallEvent]:
    """Deliver the events of a call, each once; the result is the last one.

    Raises:
        StillRunningError: the deadline has passed.
        CallLostError: the call is unknown now, after it had started.
        ProofboxError: see `Api.request`.
    """
    attempts = api.attempts()
    has_started = False
    where = target("tool-calls", call_id, "events", conversation_id=conversation)
    while True:
        silence_s = _silence_s(api, deadline, call_id, conversation or "")
        resumed = {"Last-Event-ID": str(after)} if after else {}
        is_open = False
        try:
            reply: Reply = yield Open(Request("GET", where, resumed, silence_s=silence_s))
            if reply.status != _OK:
                error = api.error(replace(reply, body=(yield from read_all())))
                yield from attempts.wait(_lost(error, call_id, conversation) if has_started else error)
                continue
            is_open = True
            parser = EventParser(build_call_event)
            while piece := (yield Read()):
                for event in _parsed(api, parser, piece, reply):
                    # The last one may have a smaller id: of a call that ended before, only this one may be left.
                    if event.id <= after and not event.is_last:
                        continue
                    after = event.id
                    has_started = has_started or event.name != "queued"
                    attempts.reset()
                    yield Deliver(event)
                    if event.is_last:
                        return event
                if deadline is not None and deadline.left_s() < silence_s * _STALE_PART:
                    break
            else:
                raise ConnectionCut("the events ended before the call did")
        except TransportFailure as exc:
            # A stream that was opened and is silent is no failed attempt: the call may print nothing for long.
            if not (is_open and isinstance(exc, Silence)):
                yield from attempts.wait(api.unreachable(exc))


def ask_for_call(api: Api, call_id: str, conversation: str | None) -> Plan[CallStatus]:
    """Ask how a call stands."""
    where = target("tool-calls", call_id, conversation_id=conversation)
    return api.parse(CallStatus, (yield from api.request(Request("GET", where))))


def cancel_call(api: Api, call_id: str, conversation: str | None) -> Plan[CallStatus]:
    """Cancel a call; one that has ended stays as it is."""
    where = target("tool-calls", call_id, conversation_id=conversation)
    return api.parse(CallStatus, (yield from api.request(Request("DELETE", where))))


def _silence_s(api: Api, deadline: Deadline | None, call_id: str, conversation: str) -> float:
    if deadline is None:
        return api.timeout_s
    left_s = deadline.left_s()
    if left_s <= 0:
        raise StillRunningError(call_id, conversation, deadline.wait_s)
    return min(api.timeout_s, left_s)


def _lost(error: ProofboxError, call_id: str, conversation: str | None) -> ProofboxError:
    """The error of a call that had started, if this one means that the service does not know it."""
    if isinstance(error, NotFoundError) and error.code == _UNKNOWN_CALL:
        return CallLostError(error.problem, error.retry_after_s, call_id, conversation)
    return error


def _parsed(api: Api, parser: EventParser[CallEvent], piece: bytes, reply: Reply) -> Iterator[CallEvent]:
    try:
        yield from parser.feed(piece)
    except EventStreamError as exc:
        raise api.unexpected(reply, str(exc)) from None
