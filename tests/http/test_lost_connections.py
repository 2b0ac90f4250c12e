"""A client loses its connection, or a call is cancelled: real sockets and stores; the test holds the programs."""

import asyncio
import json
from urllib.parse import urlsplit

import httpx
import pytest

from proofbox.contracts.react_tools import FileParams
from proofbox.contracts.render_tools import OutputFormat
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.execution.tool import ExecTool
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.rendering.tool import RenderPolicy, RenderTool
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.http.test_call_events import frames
from tests.support.held_engine import HeldEngine
from tests.support.program_proxy import no_network
from tests.support.waiting import until

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1, 512 * MIB, 64, 128 * MIB, 1000, 64 * MIB, 100, 8, MIB, 64 * MIB)
POLICY = CallPolicy(LIMITS, 60, 10, MIB)
ROUTE = "/v1/tool-calls"
C1 = {"conversation_id": "c1"}
LONG_S, SHORT_S = 3600.0, 0.05
BODIES = {
    "exec": {
        "tool_id": "exec_tools.execute_code_python",
        "params": {"contract": [{"filename": "a.txt", "description": "a text"}]},
        "code": "print('step 1')\n",
    },
    "render": {"tool_id": "rendering_tools.write_pdf", "params": {"path": "a.pdf", "content": "# A"}},
    "react": {"tool_id": "react.file", "params": {"path": "a.txt", "content": "x"}},
}


@pytest.fixture
def grace_s():
    return LONG_S


@pytest.fixture
def engine():
    return HeldEngine()


@pytest.fixture
def admission():
    return Admission(running_max=1, queue_max=5)


@pytest.fixture
async def calls(stores, engine, admission, grace_s):
    files = ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(()))
    rehosting = InputResolver(files, stores.sources, WorkspaceBounds(MIB, 10))
    jobs = JobRunner(admission, rehosting, engine, stores.artifacts, stores.sources)

    async def written(call):
        await engine.begin()
        return call.build_response([], report="written")

    store = SqlCallStore(stores.database)
    tools = {
        "exec_tools.execute_code_python": ExecTool(
            Language.PYTHON,
            jobs,
            POLICY,
            BpeTokenCounter(),
            calls=store,
            network=no_network(),
        ),
        "rendering_tools.write_pdf": RenderTool(OutputFormat.PDF, jobs, RenderPolicy(POLICY, 60)),
        "react.file": DirectTool(FileParams, written),
    }
    settings = CallSettings(MIB, "boot-1", lost_connection_grace_s=grace_s)
    calls = Calls(tools, admission, store, settings)
    yield calls
    await calls.close(grace_s=0)


def body_of(kind="exec", **more):
    return {
        "tool_call_id": "t1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "notes": "I look.",
        **BODIES[kind],
        **more,
    }


class Lossy:
    """A client over a connection of its own, which it loses."""

    def __init__(self, server, calls):
        self._server = urlsplit(server)
        self._calls = calls

    async def post(self, body):
        content = json.dumps(body).encode()
        return await self._sent(
            f"POST {ROUTE} HTTP/1.1", b"Content-Type: application/json", f"Content-Length: {len(content)}", content
        )

    async def watch(self, call_id):
        return await self._sent(f"GET {ROUTE}/{call_id}/events?conversation_id=c1 HTTP/1.1", "Accept: */*", "", b"")

    async def lose(self, writer):
        """Closes the connection, and waits until the service has noticed."""
        [running] = self._calls._running.values()
        before = running.clients._connected
        writer.close()
        await until(lambda: running.clients._connected != before or running.answer.done())

    async def _sent(self, *parts):
        *head, content = [part.encode() if isinstance(part, str) else part for part in parts]
        _, writer = await asyncio.open_connection(self._server.hostname, self._server.port)
        writer.write(b"\r\n".join([head[0], b"Host: proofbox", *(line for line in head[1:] if line), b"", content]))
        await writer.drain()
        return writer


@pytest.fixture
def lossy(server, calls):
    return Lossy(server, calls)


async def status_of(web, call_id="t1"):
    return (await web.get(f"{ROUTE}/{call_id}", params=C1)).json()


async def timeline_of(web):
    return (await web.get("/v1/conversations/c1/timeline", params={"view": "blocks"})).json()["blocks"]


async def ended(calls):
    """Waits until no call runs, without asking for any."""
    await until(lambda: not calls._running)


# ---- within the grace time


async def test_the_same_body_joins_a_call_whose_connection_was_lost(lossy, web, engine):
    writer = await lossy.post(body_of())
    await engine.until_running(1)
    await lossy.lose(writer)
    assert (await status_of(web))["status"] == "running"
    joined = asyncio.create_task(web.post(ROUTE, json=body_of()))
    await asyncio.sleep(0)
    engine.let_end.set()
    answer = await joined
    again = await web.post(ROUTE, json=body_of())
    assert (answer.status_code, answer.json()["ok"]) == (200, True)
    assert (again.content, again.headers["idempotent-replayed"]) == (answer.content, "true")
    assert engine.runs == 1


async def test_a_call_that_ends_within_the_grace_time_stores_its_answer(lossy, web, calls, engine, admission):
    writer = await lossy.post(body_of())
    await engine.until_running(1)
    await lossy.lose(writer)
    engine.let_end.set()
    await ended(calls)
    answer = await web.post(ROUTE, json=body_of())
    assert (answer.json()["ok"], answer.headers["idempotent-replayed"]) == (True, "true")
    assert (engine.runs, admission.running, engine.open_sandboxes) == (1, 0, 0)
    assert [block["type"] for block in await timeline_of(web)].count("react.tool.call") == 1


async def test_a_queued_call_whose_connection_was_lost_is_run_when_its_turn_comes(lossy, web, calls, engine):
    holding = asyncio.create_task(web.post(ROUTE, json=body_of(tool_call_id="t0")))
    await engine.until_running(1)
    writer = await lossy.post(body_of())
    await until(lambda: len(calls._running) == 2)
    writer.close()
    engine.let_end.set()
    assert (await holding).json()["ok"] is True
    answer = await web.post(ROUTE, json=body_of())
    assert (answer.json()["ok"], engine.runs) == (True, 2)


async def test_a_stream_of_events_goes_on_after_a_reconnect_and_the_call_with_it(lossy, web, calls, engine):
    writer = await lossy.post(body_of())
    await engine.until_running(1)
    watching = await lossy.watch("t1")
    await until(lambda: [running.clients._connected for running in calls._running.values()] == [2])
    await lossy.lose(writer)
    await lossy.lose(watching)
    engine.let_end.set()
    answer = await web.get(f"{ROUTE}/t1/events", params=C1, headers={"Last-Event-ID": "2"})
    names = [(frame["id"], frame["event"]) for frame in frames(answer.text)]
    assert names == [("3", "stdout"), ("4", "stderr"), ("5", "stdout"), ("6", "result")]


@pytest.mark.parametrize("grace_s", [0.0])
async def test_who_follows_the_events_alone_keeps_the_call_going(lossy, web, calls, engine):
    writer = await lossy.post(body_of())
    await engine.until_running(1)
    watching = await lossy.watch("t1")
    await until(lambda: [running.clients._connected for running in calls._running.values()] == [2])
    await lossy.lose(writer)
    assert (await status_of(web))["status"] == "running"
    await lossy.lose(watching)
    await ended(calls)
    assert (await status_of(web))["status"] == "cancelled"


async def test_a_call_of_respond_async_outlives_every_connection(web, calls, engine):
    answer = await web.post(ROUTE, json=body_of(), headers={"Prefer": "respond-async"})
    assert answer.status_code == 202
    [running] = calls._running.values()
    running.clients.join()
    running.clients.leave()
    await engine.until_running(1)
    engine.let_end.set()
    await ended(calls)
    assert (await status_of(web))["status"] == "done"


# ---- after it


@pytest.mark.parametrize("grace_s", [0.0, SHORT_S])
async def test_a_call_that_nobody_asks_for_is_cancelled_and_its_slot_is_free(lossy, web, calls, engine, admission):
    writer = await lossy.post(body_of())
    await engine.until_running(1)
    await lossy.lose(writer)
    await ended(calls)
    assert (admission.running, engine.open_sandboxes) == (0, 0)
    status, again = await status_of(web), await web.post(ROUTE, json=body_of())
    assert (status["status"], status["problem"]["code"]) == ("cancelled", "cancelled")
    assert "its connection was lost" in status["problem"]["detail"]
    assert (again.status_code, again.json()) == (409, status["problem"])
    assert "new id" in again.json()["detail"]
    assert engine.runs == 1


@pytest.mark.parametrize("grace_s", [SHORT_S])
async def test_a_call_that_only_waited_is_forgotten_and_the_same_body_runs_it(lossy, web, calls, engine, admission):
    holding = asyncio.create_task(
        web.post(ROUTE, json=body_of(tool_call_id="t0"), headers={"Prefer": "respond-async"})
    )
    await engine.until_running(1)
    await holding
    writer = await lossy.post(body_of())
    await until(lambda: admission.queued == 1)
    writer.close()
    await until(lambda: "t1" not in {key.tool_call_id for key in calls._running})
    gone = await web.get(f"{ROUTE}/t1", params=C1)
    engine.let_end.set()
    answer = await web.post(ROUTE, json=body_of())
    assert gone.json()["code"] == "unknown_call"
    assert (answer.status_code, answer.json()["ok"], engine.runs) == (200, True, 2)


# ---- what a cancelled call leaves


async def cancelled(web, calls, engine, kind):
    """The status of a call that was cancelled while it ran, and the blocks that it left."""
    made = await web.post(ROUTE, json=body_of(kind), headers={"Prefer": "respond-async"})
    assert made.status_code == 202, made.text
    await engine.until_running(1)
    answer = await web.delete(f"{ROUTE}/t1", params=C1)
    assert (answer.status_code, calls._running, engine.open_sandboxes) == (200, {}, 0)
    return answer.json(), await timeline_of(web)


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("exec", ["react.notes", "react.tool.code", "react.tool.call", "react.tool.result"]),
        ("render", ["react.notes", "react.tool.call", "react.notice", "react.tool.result"]),
        ("react", ["react.notes", "react.tool.call", "react.notice", "react.tool.result"]),
    ],
)
async def test_a_cancelled_call_leaves_its_blocks_with_the_reason(web, calls, engine, kind, types):
    status, blocks = await cancelled(web, calls, engine, kind)
    response = ToolCallResponse.model_validate(status["response"])
    assert (status["status"], status["problem"]["code"]) == ("cancelled", "cancelled")
    assert [block["type"] for block in blocks] == types
    assert [block.model_dump(mode="json") for block in response.blocks] == blocks
    assert (response.ok, response.error.code) == (False, "cancelled")
    assert "cancelled while it ran" in response.report
    assert "cancelled while it ran" in blocks[-1]["text"]


async def test_the_report_of_a_cancelled_program_has_what_it_had_printed_in_order(web, calls, engine):
    status, blocks = await cancelled(web, calls, engine, "exec")
    response = status["response"]
    assert "step 1\ncareful\nstep 2" in response["report"]
    assert blocks[-1]["text"] == response["report"]
    assert (response["usage"]["stdout_bytes"], response["usage"]["stderr_bytes"]) == (14, 8)
    assert response["sandbox"]["engine"] == "fake"


async def test_cancelling_again_or_asking_again_brings_the_same_and_adds_no_block(web, calls, engine):
    status, blocks = await cancelled(web, calls, engine, "exec")
    again = await web.delete(f"{ROUTE}/t1", params=C1)
    posted = await web.post(ROUTE, json=body_of())
    assert (again.json(), await status_of(web)) == (status, status)
    assert (posted.status_code, posted.json()["code"]) == (409, "cancelled")
    assert await timeline_of(web) == blocks


async def test_a_queued_call_that_is_cancelled_says_that_nothing_was_run(web, engine, admission):
    for call_id in ("t0", "t1"):
        await web.post(ROUTE, json=body_of(tool_call_id=call_id), headers={"Prefer": "respond-async"})
    await engine.until_running(1)
    status = (await web.delete(f"{ROUTE}/t1", params=C1)).json()
    posted = await web.post(ROUTE, json=body_of())
    assert "before it began: nothing was run" in status["response"]["report"]
    assert (status["status"], posted.status_code, posted.json()["code"]) == ("cancelled", 409, "cancelled")
    assert (admission.queued, engine.runs) == (0, 1)


async def test_the_audit_line_of_a_cancelled_call_names_its_sandbox_and_its_output(web, calls, engine):
    await cancelled(web, calls, engine, "exec")
    line = (await web.get(f"{ROUTE}/t1/provenance", params=C1)).json()
    assert (line["outcome"]["state"], line["outcome"]["code"]) == ("cancelled", "cancelled")
    assert (line["sandbox"]["engine"], line["usage"]["stdout_bytes"]) == ("fake", 14)


async def test_the_client_that_waits_for_a_cancelled_call_gets_the_problem(web, engine):
    waiting = asyncio.create_task(web.post(ROUTE, json=body_of()))
    await engine.until_running(1)
    await web.delete(f"{ROUTE}/t1", params=C1)
    answer: httpx.Response = await waiting
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
