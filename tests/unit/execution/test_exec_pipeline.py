"""A whole call on real stores, with a runner in memory: what it stores of what it is told, and what it looks up."""

import asyncio
import hashlib
import json
import time
import tracemalloc
from contextlib import asynccontextmanager

import pytest

from contracts.paths import FilePath
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import SandboxInfo, Timings
from service.artifacts.conversation_files import ConversationFiles
from service.artifacts.port import NewArtifact
from service.calls.admission import Admission
from service.execution.tool import ExecTool
from service.file_content import FileContent
from service.identity import ConversationKey, Principal
from service.jobs.input_resolver import InputResolver, WorkspaceBounds
from service.jobs.runner import JobRunner
from service.sandbox.limits import CallLimits, CallPolicy
from service.sandbox.runner.frames import Frame
from service.sandbox.runner.requests import InspectorBounds
from service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from service.storage.artifacts.local_blobs import LocalBlobStore
from service.storage.artifacts.store import SqlArtifactStore
from service.storage.asset_folders import AssetFolders
from service.storage.database import Database
from service.storage.sources import SqlSourcePool
from service.storage.timelines import SqlTimelineStore
from service.timeline.bpe_tokens import BpeTokenCounter
from tests.support.memory_runner import MemoryRunner

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
LIMITS = CallLimits(5, 1, 1 << 30, 64, 1_000_000, 100, 1_000, 10, 4, 1_000, 1_000)
INFO = SandboxInfo(engine="memory", runtime="none", image_digest="sha256:0", acquired="cold")
FINE = {"ok": True, "mime": "text/csv", "problem": None, "facts": {}}


class MemoryEngine:
    """The port ``SandboxEngine`` as far as a call goes: each sandbox is a runner with the same script."""

    def __init__(self, answers):
        self._answers = answers

    @asynccontextmanager
    async def open(self, spec):
        async def never():
            return False

        sandbox = RunnerSandbox(
            MemoryRunner(self._answers),
            INFO,
            StreamBounds(100, 5, 5),
            InspectorBounds(1, 1, 1, 1, 1),
            died_of_memory=never,
        )
        assert spec.limits == LIMITS
        await sandbox.wait_ready()
        yield sandbox


class Silent:
    """A watcher that nobody asks."""

    owner = "tenant acme"

    def queued(self, position): ...

    def started(self, sandbox): ...

    def output(self, stream, piece, truncated): ...


@pytest.fixture
async def stores(tmp_path):
    database = Database(tmp_path / "data")
    await database.open()
    artifacts = SqlArtifactStore(database, LocalBlobStore(tmp_path / "data"))
    await artifacts.open()
    try:
        yield artifacts, SqlSourcePool(database), SqlTimelineStore(database), tmp_path, database
    finally:
        await artifacts.close()
        await database.close()


async def executed(stores, contract, rows):
    return await opened(stores, contract, rows, Admission(running_max=1, queue_max=0)).tell(Silent())


EXIT = (Frame.EXIT, {"exit_code": 0, "output": []})


def opened(stores, contract, rows, admission, *, on_job=(EXIT,), **asked):
    artifacts, sources, timelines, folder, _ = stores
    engine = MemoryEngine(
        {
            Frame.PUT: [(Frame.PUT_DONE, b"")],
            Frame.JOB: on_job,
            Frame.COLLECT: [
                *rows,
                (Frame.COLLECTED, {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False}),
            ],
        }
    )
    files = ConversationFiles(artifacts, timelines, AssetFolders((folder,)))
    rehosting = InputResolver(files, sources, WorkspaceBounds(1_000, 10))
    runs = JobRunner(admission, rehosting, engine, artifacts, sources)
    policy = CallPolicy(LIMITS, queue_s=5, overhead_s=10, inline_bytes_max=1_000)
    execution = ExecTool(runs, policy, BpeTokenCounter())
    request = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": "call_1",
        "conversation_id": "conv-1",
        "turn_id": "turn_1",
        "params": {"contract": contract},
        "code": "print(1)",
    }
    return execution.open(SCOPE, ToolCallRequest.model_validate({**request, **asked}))


async def saved(stores, physical, data=b"some bytes"):
    new = NewArtifact(
        FilePath.from_physical(physical),
        FileContent(data),
        len(data),
        hashlib.sha256(data).hexdigest(),
        "text/plain",
        "internal",
        "d",
        "call_0",
    )
    await stores[0].save(SCOPE, [new])


def found(promise, same_as=None):
    row = {"promise": promise, "rel": "a.csv", "state": "file", "size": 3, "keep": True, "same_as": same_as}
    return (Frame.FOUND, {**row, "inspection": FINE})


async def test_a_file_that_a_name_and_a_pattern_promise_is_one_version(stores):
    contract = [{"filename": "a.csv", "description": "named"}, {"glob": "*.csv", "description": "matched"}]
    response = await executed(stores, contract, [found(0), (Frame.DATA, b"a,b"), found(1, same_as=0)])
    assert response.ok
    assert [(a.physical_path, a.verdict.value) for a in response.artifacts] == [
        ("turn_1/files/a.csv", "produced")
    ] * 2
    metas = [json.loads(block.meta["digest"]) for block in response.blocks if "digest" in block.meta]
    assert [(meta["description"], meta.get("edited")) for meta in metas] == [("named", None)]
    stored = await stores[0].latest(SCOPE, FilePath.from_physical("turn_1/files/a.csv"))
    assert (stored.version, stored.description) == (1, "named")


async def test_a_second_run_that_writes_the_file_again_is_an_edit(stores):
    contract = [{"filename": "a.csv", "description": "named"}]
    edits = []
    for content in (b"a,b", b"c,d"):
        response = await executed(stores, contract, [found(0), (Frame.DATA, content)])
        [content_block] = [block for block in response.blocks if "digest" in block.meta]
        edits.append((content_block.text, json.loads(content_block.meta["digest"]).get("edited")))
    assert edits == [("a,b", None), ("c,d", True)]


async def test_an_answer_times_each_of_its_phases(stores):
    response = await executed(stores, [{"filename": "a.csv", "description": "d"}], [found(0), (Frame.DATA, b"a,b")])
    timings = vars(response.timings_ms)
    assert set(timings) == set(vars(Timings()))
    phases = {name: ms for name, ms in timings.items() if name != "total"}
    assert all(ms >= 0 for ms in phases.values())
    assert sum(phases.values()) <= timings["total"]


CSV = [{"filename": "a.csv", "description": "d"}]


async def test_a_call_that_had_to_wait_finds_what_was_stored_meanwhile(stores):
    admission = Admission(running_max=1, queue_max=1)
    call = opened(stores, CSV, [found(0), (Frame.DATA, b"a,b")], admission)
    with await admission.enter(time.monotonic() + 5, lambda _: None):  # somebody was quicker
        telling = asyncio.create_task(call.tell(Silent()))
        await asyncio.sleep(0)
        assert admission.queued == 1
        await saved(stores, "turn_1/files/meanwhile.txt")
    response = await telling
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/meanwhile.txt"]


ASSET = {"physical_path": "turn_1/attachments/a.txt", "text": "a"}
ROW = {"sid": 1, "title": "A page", "url": "https://example.com", "source_type": "web"}


class Held:
    """The answer to a job; notes how much memory is held when it is asked for."""

    def __init__(self):
        self.bytes = 0

    def __iter__(self):
        self.bytes, _ = tracemalloc.get_traced_memory()
        yield EXIT


async def test_what_was_read_into_memory_is_let_go_before_the_program_runs(stores):
    sizes, held = (100_000, 200_000), Held()
    for size in sizes:
        await saved(stores, f"turn_0/files/{size}.txt", b"x" * size)
    code = " ".join(f"turn_0/files/{size}.txt" for size in sizes)
    call = opened(
        stores, CSV, [found(0), (Frame.DATA, b"a,b")], Admission(running_max=1, queue_max=0), code=code, on_job=held
    )
    tracemalloc.start()
    try:
        response = await call.tell(Silent())
    finally:
        tracemalloc.stop()
    assert [line.size_bytes for line in response.rehosted] == list(sizes)
    assert held.bytes < 2 * sum(sizes)  # this runner keeps what it is sent
