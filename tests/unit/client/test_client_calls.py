"""Long calls: events as they come, lost streams, waiting times, handles."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.client import (
    CallCancelledError,
    CallLostError,
    NotFoundError,
    StillRunningError,
    UnexpectedResponseError,
)
from proofbox.client.event_stream import EventParser, build_call_event
from proofbox.contracts.events import QueuedEvent
from tests.support.client_answers import (
    accepted,
    answer,
    ended,
    event,
    failed,
    printed,
    refusal,
    response,
    started,
    stream,
)
from tests.support.scripted_service import Scripted

EVENTS = "GET /v1/tool-calls/t1/events?conversation_id=c1"
WHOLE = b": keep-alive\n\n" + started() + b"id: 9\nevent: unknown\ndata: {}\n\n" + printed(2, "ü\n") + ended(3)


@given(st.lists(st.integers(0, len(WHOLE)), max_size=20), st.booleans())
def test_a_stream_can_be_cut_anywhere(cuts: list[int], has_returns: bool) -> None:
    whole = WHOLE.replace(b"\n", b"\r\n") if has_returns else WHOLE
    places = [0, *sorted(cuts), len(whole)]
    parser = EventParser(build_call_event)
    events = [event for a, b in pairwise(places) for event in parser.feed(whole[a:b])]
    assert [(event.id, event.name, event.text) for event in events] == [
        (1, "started", ""),
        (2, "stdout", "ü\n"),
        (3, "result", ""),
    ]
    assert [event.is_last for event in events] == [False, False, True]


def test_events_are_passed_on_while_the_call_runs(use, service) -> None:
    service.answers(accepted(), stream(started(), printed(2, "a"), printed(3, "b"), ended(4)))
    seen = []
    result = use(service, "run", "1", on_event=seen.append, conversation="c1", call_id="t1")
    assert [(event.name, event.text) for event in seen] == [
        ("started", ""),
        ("stdout", "a"),
        ("stdout", "b"),
        ("result", ""),
    ]
    assert (result.ok, service.lines) == (True, ["POST /v1/tool-calls", EVENTS])
    assert service.requests[0].headers["prefer"] == "respond-async"


def test_a_lost_stream_is_resumed_after_its_last_event_and_no_event_comes_twice(use, service) -> None:
    service.answers(
        stream(started(), printed(2, "a"), printed(3, "half")[:20], cut_at=0),
        Scripted(502, b"bad gateway"),
        stream(printed(2, "a"), printed(3, "b")),  # ends without the end of the call
        stream(ended(4)),
    )
    events = use(service, "events", "t1", "c1")
    assert [(event.id, event.text) for event in events] == [(1, ""), (2, "a"), (3, "b"), (4, "")]
    assert service.lines == [EVENTS] * 4
    assert [request.headers.get("last-event-id") for request in service.requests] == [None, "2", "2", "3"]


@pytest.mark.parametrize("last", [ended(1), failed(1, "shutting_down", 503)], ids=["result", "error"])
def test_the_end_of_a_call_arrives_also_with_a_smaller_id(use, service, last) -> None:
    """The service was restarted, or has dropped the log of the call: only the last event is left, as the first."""
    service.answers(stream(started(), printed(2, "a"), cut_at=0), stream(last))
    events = use(service, "events", "t1", "c1", settings={"retries": 1})
    assert ([event.id for event in events], events[-1].is_last) == ([1, 2, 1], True)
    assert [request.headers.get("last-event-id") for request in service.requests] == [None, "2"]


def test_the_end_of_a_call_arrives_after_any_event(use, service) -> None:
    service.answers(stream(ended(3)))
    assert [event.id for event in use(service, "events", "t1", "c1", after=7, settings={"retries": 0})] == [3]


def test_retries_are_counted_anew_after_each_event(use, service) -> None:
    service.answers(*[stream(printed(n, "x"), cut_at=0) for n in range(1, 8)] + [stream(ended(8))])
    assert len(use(service, "events", "t1", "c1", settings={"retries": 1})) == 8


def test_a_quiet_call_is_followed_however_often_its_stream_is_cut(use, service) -> None:
    cut = stream(b": keep-alive\n\n", cut_at=0)
    service.answers(*[cut] * 3, stream(ended(1)))
    assert len(use(service, "events", "t1", "c1", settings={"retries": 1})) == 1


def test_a_long_call_is_followed_by_its_events(use, service) -> None:
    service.answers(Scripted(is_silent=True), stream(started(), ended(2, response(ret=5))))
    found = use(service, "call", "t", {}, conversation="c1", call_id="t1", settings={"timeout_s": 1})
    assert (found.ret, service.lines) == (5, ["POST /v1/tool-calls", EVENTS])


def test_a_silent_stream_is_opened_again_and_is_no_failure(use, service) -> None:
    service.answers(*[stream(started(), is_silent=True)] + [stream(is_silent=True)] * 4 + [stream(ended(2))])
    events = use(service, "events", "t1", "c1", settings={"timeout_s": 0.3, "retries": 2})
    assert [event.id for event in events] == [1, 2]


def test_a_call_that_was_deleted_before_it_ran_is_sent_again(use, service) -> None:
    service.answers(Scripted(is_silent=True), refusal("unknown_call", 404), answer(response(ret=1)))
    found = use(service, "call", "t", {}, conversation="c1", call_id="t1", settings={"timeout_s": 1})
    assert (found.ret, service.lines) == (1, ["POST /v1/tool-calls", EVENTS, "POST /v1/tool-calls"])
    assert service.requests[0].body == service.requests[2].body


def test_a_call_that_was_deleted_while_it_waited_is_sent_again(use, service) -> None:
    waiting = stream(event(1, "queued", QueuedEvent(position=1)), cut_at=0)
    service.answers(accepted(), waiting, refusal("unknown_call", 404), accepted(), stream(ended(1)))
    assert use(service, "run", "1", on_event=lambda _: None).ok
    assert [line.partition(" ")[0] for line in service.lines] == ["POST", "GET", "GET", "POST", "GET"]


@pytest.mark.parametrize("seen", [started(), printed(2, "a")], ids=["started", "output"])
def test_a_call_that_started_and_is_unknown_is_not_sent_again(use, service, seen) -> None:
    service.answers(accepted(), stream(seen, cut_at=0), refusal("unknown_call", 404), answer())
    with pytest.raises(CallLostError, match=r"unknown_call: .*: the call t1 of c1 had started") as caught:
        use(service, "run", "1", conversation="c1", call_id="t1", on_event=lambda _: None)
    assert (caught.value.call_id, caught.value.conversation) == ("t1", "c1")
    assert service.lines == ["POST /v1/tool-calls", EVENTS, EVENTS]


def test_a_retryable_problem_of_a_followed_call_is_a_retry(use, service) -> None:
    lost = stream(failed(1, "queue_timeout", 503, retryable=True))
    service.answers(accepted(), lost, accepted(), stream(ended(1)))
    assert use(service, "run", "1", on_event=lambda _: None).ok
    assert [line.partition(" ")[0] for line in service.lines] == ["POST", "GET", "POST", "GET"]


def test_a_cancelled_call_is_an_error(use, service) -> None:
    service.answers(accepted(), stream(failed(1, "cancelled", 409)))
    with pytest.raises(CallCancelledError):
        use(service, "run", "1", on_event=lambda _: None)


def test_waiting_has_an_end_and_the_call_goes_on(use, service) -> None:
    service.answers(accepted(), stream(started(), is_silent=True))
    with pytest.raises(StillRunningError, match=r"the call t1 of c1 still runs after 1 s") as caught:
        use(service, "call", "t", {}, conversation="c1", call_id="t1", wait_s=1)
    assert (caught.value.handle.call_id, caught.value.handle.conversation) == ("t1", "c1")
    assert service.requests[0].headers["prefer"] == "respond-async"
    assert set(service.lines[1:]) == {EVENTS}


def test_a_started_call_is_asked_for_by_its_handle(use, service) -> None:
    service.answers(accepted("queued"))
    handle = use(service, "start", "t", {}, conversation="c1")
    sent = service.requests[0]
    assert (handle.call_id, handle.conversation) == (sent.json["tool_call_id"], "c1")
    assert sent.headers["prefer"] == "respond-async"
    service.answers(accepted("done"))
    assert use(service, "status", "t1", "c1").status == "done"
    assert use(service, "cancel", "t1").status == "done"
    assert service.lines[1:] == ["GET /v1/tool-calls/t1?conversation_id=c1", "DELETE /v1/tool-calls/t1"]


def test_an_unknown_call_has_no_events(use, service) -> None:
    service.answers(refusal("unknown_call", 404))
    with pytest.raises(NotFoundError):
        use(service, "events", "t1", "c1")
    assert len(service.requests) == 1


def test_a_stream_of_something_else_is_named(use, service) -> None:
    service.answers(stream(b"id: 1\nevent: result\ndata: {}\n\n"))
    with pytest.raises(UnexpectedResponseError, match="an event 'result' is not what this client knows"):
        use(service, "events", "t1", "c1")


def test_an_error_of_the_observer_ends_the_call_of_the_method(use, service) -> None:
    service.answers(accepted(), stream(started(), is_silent=True))

    def fail(_event: object) -> None:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        use(service, "run", "1", on_event=fail)
