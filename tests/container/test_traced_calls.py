"""The traces of calls that really ran, as a collector receives them."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from itertools import pairwise

import httpx
import pytest

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller
from tests.support.otlp_receiver import receiving

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

CODE = "open('files/a.csv', 'w').write('n\\n1\\n')\nprint('canary-in-code')"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CALL = "POST /v1/tool-calls"


@asynccontextmanager
async def traced(tmp_path, endpoint, **settings):
    """A service that sends its traces somewhere, its calls and its doors."""
    values = {
        "tenant": "canary-tenant",
        "project": "canary-project",
        "user": "canary-user",
        "pool_size": 1,
        **settings,
    }
    service = build(Settings(data_dir=tmp_path / "data", otlp_endpoint=endpoint, **values))
    async with running(service):
        transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            yield Caller(service), http


async def posted(http, body, **headers):
    answer = await http.post("/v1/tool-calls", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


async def test_the_spans_of_a_call_are_a_tree_of_all_its_phases_and_their_times_nest(tmp_path):
    with receiving() as receiver:
        async with traced(tmp_path, receiver.url) as (call, http):
            await call.attach("in.csv", b"canary-in-file")
            code = "open('turn_1/attachments/in.csv').read()\n" + CODE
            body = call.body(code, ["a.csv", "b.csv"], notes="canary-in-notes")
            said = (await posted(http, body, traceparent=PARENT)).json()
        [request] = receiver.named(CALL)
        assert (request.trace_id, request.parent_id) == (PARENT[3:35], PARENT[36:52])
        phases = {name: {} for name in ("queue", "rehost", "acquire", "run", "validate", "host", "finish")}
        assert receiver.tree(request) == {"call": phases}
        spans = {span.span_id: span for span in receiver.spans}
        mine = [span for span in receiver.spans if span.trace_id == request.trace_id]
        outside = [
            span.name
            for span in mine
            if (parent := spans.get(span.parent_id)) and not parent.start <= span.start <= span.end <= parent.end
        ]
        assert (len(mine), outside) == (9, [])
        in_order = sorted((span for span in mine if span.name in phases), key=lambda span: span.start)
        assert [span.name for span in in_order] == list(phases)
        assert all(one.end <= two.start for one, two in pairwise(in_order))

        [whole], [run] = receiver.named("call"), receiver.named("run")
        assert request.attributes == {
            "http.request.method": "POST",
            "http.route": "/v1/tool-calls",
            "http.response.status_code": 200,
        }
        assert whole.attributes == {
            "proofbox.tool": "exec_tools.execute_code_python",
            "proofbox.code": "execution_failed",
            "proofbox.ok": False,
            "proofbox.verdicts": "missing_file,produced",
            "proofbox.acquired": said["sandbox"]["acquired"],
        }
        assert run.attributes["process.exit.code"] == 0
        assert run.attributes["proofbox.cpu_ms"] == said["usage"]["cpu_ms"]
        assert run.attributes.get("proofbox.memory_peak_bytes") == said["usage"]["memory_peak_bytes"]
        assert "canary" not in json.dumps([[span.name, span.attributes, span.resource] for span in receiver.spans])


async def test_the_start_of_a_waiting_sandbox_is_a_trace_of_its_own_and_one_that_a_call_waits_for_is_its_part(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    with receiving() as receiver:
        async with traced(tmp_path, receiver.url) as (call, http):
            await posted(http, call.body(CODE, ["a.csv"]))
            await posted(http, call.body(CODE, ["a.csv"], limits={"out_dir_bytes": 1024 * 1024}))
            # What was started first, what replaces it, and what the second call had to wait for.
            assert len(await asyncio.to_thread(receiver.until, "sandbox.start", 3)) >= 3
        starts = receiver.named("sandbox.start")
        acquires = {span.span_id for span in receiver.named("acquire")}
        own = [span for span in starts if not span.parent_id]
        assert len(own) >= 2
        assert [span.parent_id in acquires for span in starts if span.parent_id] == [True]
        assert not {span.trace_id for span in own} & {span.trace_id for span in receiver.named("call")}


async def test_a_replayed_answer_points_to_the_call_that_it_comes_from(tmp_path):
    with receiving() as receiver:
        async with traced(tmp_path, receiver.url) as (call, http):
            body = call.body(CODE, ["a.csv"])
            await posted(http, body)
            assert (await posted(http, body)).headers["idempotent-replayed"] == "true"
        [whole] = receiver.named("call")
        first, second = sorted(receiver.named(CALL), key=lambda span: span.start)
        assert (first.links, second.links) == ([], [whole.span_id])
        assert receiver.tree(second) == {}


@pytest.mark.slow
async def test_a_call_that_fails_for_us_says_so_on_its_spans(tmp_path):
    with receiving() as receiver:
        async with traced(tmp_path, receiver.url) as (call, http):
            await call.service.artifacts.close()
            answer = await http.post("/v1/tool-calls", json=call.body(CODE, ["a.csv"]))
            assert answer.status_code == 503
        [request], [whole] = receiver.named(CALL), receiver.named("call")
        assert (request.is_error, request.attributes["http.response.status_code"]) == (True, 503)
        assert whole.attributes["proofbox.code"] == "store_failed"


@pytest.mark.slow
async def test_calls_are_answered_when_nobody_takes_their_traces(tmp_path):
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))
        async with traced(tmp_path, f"http://127.0.0.1:{refusing.getsockname()[1]}") as (call, http):
            for _ in range(3):
                assert (await posted(http, call.body(CODE, ["a.csv"]))).json()["ok"]


@pytest.mark.slow
async def test_calls_are_answered_while_the_receiver_keeps_all_that_asks_waiting(tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
    with receiving() as receiver:
        receiver.held.clear()
        async with traced(tmp_path, receiver.url) as (call, http):
            for _ in range(3):
                assert (await posted(http, call.body(CODE, ["a.csv"]))).json()["ok"]
            assert receiver.asked.wait(30)
            assert (await posted(http, call.body(CODE, ["a.csv"]))).json()["ok"]
