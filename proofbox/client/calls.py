"""Plans of calls: send one until it is answered, follow its events, ask for it, cancel it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from proofbox.client.api import Api, now_s, target
from proofbox.client.errors import CallLostError, NotFoundError, ProofboxError, StillRunningError, problem_error
from proofbox.client.event_stream import CallEvent, build_call_event
from proofbox.client.exchange import Plan, Request, Silence
from proofbox.client.followed_stream import FollowedStream
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse

A = TypeVar("A")
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

    Raises:
        StillRunningError, CallLostError, ProofboxError: see `settle_call`.
    """

    def send() -> Plan[ToolCallResponse | None]:
        if is_detached:
            yield from start_call(api, call)
            return None
        request = Request("POST", target("tool-calls"), _JSON, call.body)
        try:
            return api.parse(ToolCallResponse, (yield from api.request(request, is_silence_raised=True)))
        except Silence:
            return None

    return settle_call(api, CallStream(api, call.call_id, call.conversation, deadline=deadline), send)


def settle_call(api: Api, stream: "CallStream", send: Callable[[], Plan[A | None]]) -> Plan[A | ToolCallResponse]:
    """Send a call until it has an answer.

    A call that runs for longer than the service may be silent is followed by its events, whose stream shows whether
    the connection is alive.

    Args:
        api: the service.
        stream: the events of the call. If it ends with `waiting`, the call is sent again.
        send: sends the call, each time with the same bytes; None if its events show the answer.

    Raises:
        StillRunningError: the deadline has passed; the call continues if it is detached.
        CallLostError: the call had started and is unknown now.
        ProofboxError: see `Api.request`.
    """
    attempts = api.attempts()
    while True:
        answer = yield from send()
        if answer is not None:
            return answer
        try:
            last = yield from stream.follow_anew()
        except NotFoundError as exc:
            # The call was deleted before it ran: its grace time had ended. The same body can run.
            if exc.code != _UNKNOWN_CALL or isinstance(exc, CallLostError):
                raise
            yield from attempts.repeat(exc)
            continue
        if isinstance(last.data, ToolCallResponse):
            return last.data
        if isinstance(last.data, Problem):
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
        ProofboxError: see `FollowedStream.follow`.
    """
    return CallStream(api, call_id, conversation, deadline=deadline).follow_anew(after)


class CallStream(FollowedStream[CallEvent]):
    """The events of a call.

    Args:
        api: the service.
        call_id: the call.
        conversation: its conversation, if its id is not unique.
        deadline: until when it is followed.
        is_left_waiting: whether ``waiting`` is the last event too.
    """

    def __init__(
        self,
        api: Api,
        call_id: str,
        conversation: str | None,
        *,
        deadline: Deadline | None = None,
        is_left_waiting: bool = False,
    ) -> None:
        super().__init__(api, target("tool-calls", call_id, "events", conversation_id=conversation), 0)
        self._call_id = call_id
        self._conversation = conversation
        self._deadline = deadline
        self._is_left_waiting = is_left_waiting
        self._has_started = False
        self._opened_s = api.timeout_s  # how long the open stream may be silent

    def follow_anew(self, after: int = 0) -> Plan[CallEvent]:
        """As `follow`, after any event; the last one is the end of the call, or the event ``waiting``."""
        self.after, self._has_started = after, False
        last = yield from self.follow()
        assert last is not None  # `has_ended` is never true
        return last

    def build(self, fields: dict[str, list[str]]) -> CallEvent | None:
        """See `FollowedStream`."""
        return build_call_event(fields)

    def take(self, event: CallEvent) -> bool:
        """See `FollowedStream`."""
        # The last one may have a smaller id: of a call that ended before, only this one may be left.
        if event.id <= self.after and not event.is_last:
            return False
        self.after = event.id
        self._has_started = self._has_started or event.name != "queued"
        return True

    def is_last(self, event: CallEvent) -> bool:
        """See `FollowedStream`."""
        return event.is_last or (self._is_left_waiting and event.name == "waiting")

    def refine(self, error: ProofboxError) -> ProofboxError:
        """The error of a call that had started, if this one means that the service does not know it."""
        if self._has_started and isinstance(error, NotFoundError) and error.code == _UNKNOWN_CALL:
            return CallLostError(error.problem, error.retry_after_s, self._call_id, self._conversation)
        return error

    def silence_s(self) -> float:
        """See `FollowedStream`."""
        if self._deadline is not None:
            left_s = self._deadline.left_s()
            if left_s <= 0:
                raise StillRunningError(self._call_id, self._conversation or "", self._deadline.wait_s)
            self._opened_s = min(self.api.timeout_s, left_s)
        return self._opened_s

    def is_stale(self) -> bool:
        """See `FollowedStream`."""
        return self._deadline is not None and self._deadline.left_s() < self._opened_s * _STALE_PART


def ask_for_call(api: Api, call_id: str, conversation: str | None) -> Plan[CallStatus]:
    """Ask how a call stands."""
    where = target("tool-calls", call_id, conversation_id=conversation)
    return api.parse(CallStatus, (yield from api.request(Request("GET", where))))


def cancel_call(api: Api, call_id: str, conversation: str | None) -> Plan[CallStatus]:
    """Cancel a call; one that has ended stays as it is."""
    where = target("tool-calls", call_id, conversation_id=conversation)
    return api.parse(CallStatus, (yield from api.request(Request("DELETE", where))))
