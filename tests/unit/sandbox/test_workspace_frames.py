"""The workspace on the stream to a runner: what is sent, what comes back, and what no runner of ours sends."""

import hashlib
import json
from dataclasses import replace

import pytest

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import OutputSpec, SandboxLostError
from proofbox.service.sandbox.runner.frames import Frame
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from proofbox.service.sandbox.workspace import ArchiveBounds, CollectedWorkspace, WorkspaceArchive
from tests.support.memory_runner import MemoryRunner
from tests.support.staging import MadeFolder

LIMITS = CallLimits(1, 1, 1 << 30, 64, 1_000, 100, 1_000, 10, 4, 1_000, 1_000)
WANTED = OutputSpec("turn_1", (), 50, LIMITS, ArchiveBounds(entries_max=10, bytes_max=1_000_000))
DONE = (Frame.COLLECTED, {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False})


async def opened(runner):
    async def died():
        return False

    info = SandboxInfo(engine="memory", runtime="none", image_digest="sha256:0", acquired="cold")
    bounds = InspectorBounds(0, 1, 2, 3, 4)
    sandbox = RunnerSandbox(runner, info, StreamBounds(100, 30.0, 30.0), bounds, died_of_memory=died)
    await sandbox.wait_ready()
    return sandbox


def facts(**more):
    return (
        Frame.WORKSPACE,
        {"entries": 2, "size": 0, "is_too_large": False, "left_out": 0, "is_same": False, **more},
    )


async def collect(tmp_path, *answers, wanted=WANTED):
    sandbox = await opened(MemoryRunner({Frame.COLLECT: [*answers, DONE]}))
    return (await sandbox.collect(wanted, MadeFolder(tmp_path))).workspace


@pytest.mark.parametrize("size", [0, 10, 700_000])
async def test_the_archive_is_restored_before_the_files_are_put(size):
    data = bytes(range(250)) * (size // 250 + 1)
    archive = WorkspaceArchive(FileContent(data[:size]), size)
    runner = MemoryRunner({Frame.RESTORE: [(Frame.PUT_DONE, b"")], Frame.PUT: [(Frame.PUT_DONE, b"")]})
    sandbox = await opened(runner)
    await sandbox.put("turn_1", [], archive)
    (kind, request), *pieces, (last, _) = runner.received[1:]
    assert (kind, json.loads(request), last) == (Frame.RESTORE, {"turn_id": "turn_1", "size": size}, Frame.PUT)
    assert b"".join(payload for _, payload in pieces) == data[:size]


async def test_an_archive_that_cannot_be_restored_is_a_lost_sandbox_with_its_reason():
    reason = "the stored workspace of the conversation is damaged"
    sandbox = await opened(MemoryRunner({Frame.RESTORE: [(Frame.FAILED, {"reason": reason})]}))
    with pytest.raises(SandboxLostError, match=reason):
        await sandbox.put("turn_1", [], WorkspaceArchive(FileContent(b"x"), 1))


@pytest.mark.parametrize("data", [b"", b"archive", b"x" * 600_000])
async def test_an_archive_comes_back_with_its_hash(tmp_path, data):
    pieces = [(Frame.DATA, data[at : at + 250_000]) for at in range(0, len(data), 250_000)]
    workspace = await collect(tmp_path, facts(size=len(data), left_out=3), *pieces)
    assert (workspace.entries, workspace.size_bytes, workspace.left_out) == (2, len(data), 3)
    assert workspace.source.read() == data
    assert workspace.sha256 == hashlib.sha256(data).hexdigest()


async def test_a_workspace_over_its_bounds_comes_without_its_archive(tmp_path):
    workspace = await collect(tmp_path, facts(entries=11, size=9, is_too_large=True))
    assert workspace == CollectedWorkspace(entries=11, size_bytes=9, is_too_large=True)


async def test_a_workspace_that_did_not_change_comes_without_its_archive(tmp_path):
    workspace = await collect(tmp_path, facts(size=9, is_same=True))
    assert (workspace.entries, workspace.source, workspace.is_too_large) == (2, None, False)


async def test_no_workspace_comes_where_all_files_are_stored_by_themselves(tmp_path):
    assert await collect(tmp_path) is None


async def test_the_bounds_are_asked_for_only_with_a_workspace(tmp_path):
    runner = MemoryRunner({Frame.COLLECT: [DONE]})
    sandbox = await opened(runner)
    assert (await sandbox.collect(replace(WANTED, workspace=None), tmp_path)).workspace is None
    assert json.loads(runner.received[-1][1])["workspace"] is None


@pytest.mark.parametrize(
    "answers",
    [
        [facts(), facts()],
        [facts(entries=11)],
        [facts(size=1_000_001)],
        [facts(size=2), (Frame.DATA, b"xyz")],
        [facts(size=2)],
        [facts(size=-1)],
        [facts(more=1)],
    ],
    ids=["two", "entries", "bytes", "more data", "no data", "negative", "a field more"],
)
async def test_what_no_runner_of_ours_sends_is_a_lost_sandbox(tmp_path, answers):
    with pytest.raises(SandboxLostError):
        await collect(tmp_path, *answers)


async def test_a_workspace_that_nobody_asked_for_is_a_lost_sandbox(tmp_path):
    with pytest.raises(SandboxLostError):
        await collect(tmp_path, facts(), wanted=replace(WANTED, workspace=None))
