"""Calls of runs that are silent for long or wait, claims that are held, and quiet spaces."""

import json
from typing import Any

import pytest

from proofbox.client import NotFoundError, UnexpectedResponseError, UnreachableError
from proofbox.client.api import Api
from proofbox.client.exchange import ConnectionCut, Open, Read, Reply, Request, Silence, Sleep
from proofbox.client.gateway_events import watch_run, watch_space
from proofbox.client.run_requests import RunRequests
from proofbox.contracts.gateway.runs import Run, RunEvent
from proofbox.contracts.gateway.space_events import ResetEvent
from proofbox.contracts.gateway.waits import Wait
from tests.support.client_answers import accepted, answer, ended, event, failed, refusal, response, started, stream
from tests.support.scripted_service import Scripted

SENT = "POST /v1/tool-calls"
EVENTS = "GET /v1/tool-calls/t1/events?conversation_id=c1"
SILENT = Scripted(is_silent=True)
STREAM = Reply(200, {"content-type": "text/event-stream; charset=utf-8"})
HEARTBEAT = b": keep-alive\n\n"
CALL = {"call_id": "t1", "settings": {"timeout_s": 0.5, "retries": 1}}


def run(status: str = "running", lease: int | None = 3) -> Run:
    fields = dict.fromkeys(("active_space_id", "started", "ended", "summary", "error"))
    return Run(
        run_id="r1",
        agent_id="clerk",
        agent_version=1,
        conversation_id="c1",
        status=status,
        trigger={"type": "manual"},
        chain_depth=0,
        lease=None if lease is None else {"number": lease, "until": None},
        attempt=1,
        waiting_for=[],
        warnings=[],
        created="now",
        **fields,
    )


def waits(number: int) -> bytes:
    return event(number, "waiting", Wait(wait_id="w1", kind="space", expires="later"))


def reset(number: int) -> bytes:
    return event(number, "reset", ResetEvent(last=number))


class Steps:
    """Carries out a plan without a network; the clock goes on as the test says."""

    def __init__(self, plan: Any, *answers: Reply | Exception | bytes) -> None:
        self.opened: list[Request] = []
        self.slept: list[float] = []
        self.delivered: list[Any] = []
        self.result: Any = None
        pending = list(answers)
        step, given = next(plan), None
        try:
            while pending or not isinstance(step, Open | Read):
                if isinstance(step, Open | Read):
                    if isinstance(step, Open):
                        self.opened.append(step.request)
                    given = pending.pop(0)
                    if isinstance(given, Exception):
                        step = plan.throw(given)
                        continue
                else:
                    given = None
                    if isinstance(step, Sleep):
                        self.slept.append(step.seconds)
                    else:
                        self.delivered.append(step.item)
                step = plan.send(given)
        except StopIteration as end:
            self.result = end.value


def api(timeout_s: float = 60, retries: int = 4) -> Api:
    return Api.create("http://h", "", timeout_s, retries)


def test_a_call_that_is_silent_is_followed_to_its_end(use, service) -> None:
    quiet = [stream(started(), is_silent=True)] + [stream(HEARTBEAT, is_silent=True)] * 3
    service.answers(SILENT, *quiet, stream(ended(2, response(ret=5))))
    found = use(service, "gateway.call_tool", run(), "look", {"a": 1}, **CALL)
    assert (found.ret, service.lines) == (5, [SENT, *[EVENTS] * 5])
    sent = service.requests[0]
    assert (sent.headers["run-lease"], sent.json["run_id"], sent.json["params"]) == ("3", "r1", {"a": 1})


def test_a_call_that_waits_after_its_silence_is_asked_for_and_left(use, service) -> None:
    service.answers(SILENT, stream(started(), waits(2), is_silent=True), accepted("waiting"))
    found = use(service, "gateway.call_tool", run(), "look", {}, **CALL)
    assert (found.status, service.lines) == ("waiting", [SENT, EVENTS, SENT])
    assert service.requests[0].body == service.requests[2].body


def test_a_call_that_was_deleted_before_it_ran_is_sent_again_with_its_lease(use, service) -> None:
    service.answers(SILENT, refusal("unknown_call", 404), answer(response(ret=1)))
    assert use(service, "gateway.call_tool", run(), "look", {}, **CALL).ret == 1
    assert [request.headers.get("run-lease") for request in service.requests] == ["3", None, "3"]


def test_the_problem_of_a_followed_call_is_raised(use, service) -> None:
    service.answers(SILENT, stream(started(), failed(2, "unknown_tool", 404)))
    with pytest.raises(NotFoundError, match="unknown_tool"):
        use(service, "gateway.call_tool", run(), "look", {}, **CALL)


def waiting() -> Reply:
    scripted = accepted("waiting")
    return Reply(202, {}, scripted.body)


@pytest.mark.parametrize("timeout_s", [0.5, 1, 60])
def test_a_call_that_waits_is_held_by_the_service_whatever_silence_is_allowed(timeout_s: float) -> None:
    plan = RunRequests(api(timeout_s)).call_tool(run(), "look", {}, wait_s=500, call_id="t1")
    [sent] = Steps(plan, waiting()).opened
    assert (sent.headers["Prefer"], sent.silence_s) == ("wait=30", timeout_s + 30)


def test_a_service_that_holds_nothing_is_not_asked_without_a_pause() -> None:
    plan = RunRequests(api()).call_tool(run(), "look", {}, wait_s=500, call_id="t1")
    steps = Steps(plan, *[part for _ in range(5) for part in (waiting(), waiting().body, b"")])
    assert len(steps.opened) == 5
    assert [0.5 < pause <= 1 for pause in steps.slept] == [True] * 5


def test_a_claim_may_be_silent_for_as_long_as_it_waits() -> None:
    body = run().model_dump_json().encode()
    plan = RunRequests(api(timeout_s=5)).claim_run(wait_s=20)
    steps = Steps(plan, Reply(200, {}), body, b"")
    assert (steps.opened[0].silence_s, json.loads(steps.opened[0].body)["wait_s"]) == (25, 20)
    assert steps.result.run_id == "r1"


def test_an_error_of_a_held_request_names_how_long_it_was_silent() -> None:
    plan = RunRequests(api(timeout_s=5, retries=0)).claim_run(wait_s=20)
    with pytest.raises(UnreachableError, match="no byte for 25 s"):
        Steps(plan, Silence("silent"))


def test_a_quiet_space_is_watched_however_often_its_stream_is_cut() -> None:
    cut = [STREAM, HEARTBEAT, ConnectionCut("cut")]
    steps = Steps(watch_space(api(retries=2), "s1", 7), *cut * 50, STREAM, reset(8))
    assert [found.id for found in steps.delivered] == [8]
    assert {request.headers["Last-Event-ID"] for request in steps.opened} == {"7"}
    assert len(steps.slept) == 50
    assert min(steps.slept[10:]) >= 2.5  # a server that cuts each stream at once is not flooded


@pytest.mark.parametrize("ends", [b"", ConnectionCut("cut")], ids=["ended", "cut"])
def test_a_run_that_waits_for_days_is_watched(ends) -> None:
    asked = [Reply(200, {}), run("waiting_tool").model_dump_json().encode(), b""] if ends == b"" else []
    done = event(9, "run.completed", RunEvent(run=run("completed", None)))
    steps = Steps(watch_run(api(retries=1), "r1", 8), *[STREAM, ends, *asked] * 20, STREAM, done, b"")
    assert [found.name for found in steps.delivered] == ["run.completed"]


def test_the_last_events_of_a_run_arrive_that_ended_while_its_service_was_restarted() -> None:
    asked = [Reply(200, {}), run("completed", None).model_dump_json().encode(), b""]
    done = event(9, "run.completed", RunEvent(run=run("completed", None)))
    steps = Steps(watch_run(api(retries=0), "r1", 8), STREAM, b"", *asked, STREAM, done, b"")
    assert ([found.id for found in steps.delivered], len(steps.opened)) == ([9], 3)
    nothing = Steps(watch_run(api(retries=0), "r1", 9), STREAM, b"", *asked, STREAM, b"")
    assert (nothing.delivered, len(nothing.opened)) == ([], 3)


def test_a_space_whose_service_is_gone_is_an_error(use, service) -> None:
    service.answers(stream(reset(1), cut_at=0), Scripted(502, b"bad gateway"))
    with pytest.raises(UnexpectedResponseError, match="HTTP 502"):
        use(service, "gateway.watch_space", "s1", settings={"retries": 2})
    assert len(service.requests) == 3


def test_a_page_is_no_stream_of_events(use, service) -> None:
    service.answers(Scripted(200, b"<html>log in", {"Content-Type": "text/html"}))
    with pytest.raises(UnexpectedResponseError, match=r"'text/html' is no stream of events.*log in"):
        use(service, "gateway.watch_run", "r1")
    with pytest.raises(UnexpectedResponseError, match="no stream of events"):
        use(service, "events", "t1", "c1")
