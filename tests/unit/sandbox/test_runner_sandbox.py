"""The service's side of a sandbox, against a runner in memory that speaks, falls silent, lies or dies."""

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.contracts.tools import Language
from proofbox.service.errors import StoreFailedError
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import (
    ExpectedFile,
    FileState,
    InputFile,
    Job,
    OutputPiece,
    OutputSpec,
    SandboxLostError,
)
from proofbox.service.sandbox.runner.file_frames import PIECE_BYTES
from proofbox.service.sandbox.runner.frames import NO_NONCE, Frame, encode
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from tests.support.memory_runner import HUNG_UP, MemoryRunner
from tests.support.staging import MadeFolder

LIMITS = CallLimits(
    wall_s=0.05,
    cpus=1,
    memory_bytes=1 << 30,
    pids=64,
    out_dir_bytes=1_000,
    out_dir_inodes=100,
    file_bytes=1_000,
    files=10,
    depth=4,
    output_bytes=1_000,
    artifact_bytes=1_000,
)
INFO = SandboxInfo(engine="memory", runtime="none", image_digest="sha256:0", acquired="cold")
JOB = Job(Language.PYTHON, b"print(1)", "main", "turn_1", LIMITS)
WANTED = OutputSpec(
    "turn_1", (ExpectedFile("a.csv", is_glob=False, matches_max=1, checks={"min_rows": 2}),), 50, LIMITS
)
MUCH_WANTED = replace(WANTED, limits=replace(LIMITS, out_dir_bytes=1 << 30))


def patience_s(why):
    """How long an answer is waited for: a moment only where none comes, as a busy machine delays the others."""
    return 0.05 if "did not answer" in why else 30.0


async def opened(runner, *, died_of_memory=False, grace_s=30.0, collect_s=30.0):
    async def died():
        return died_of_memory

    inspector = InspectorBounds(0, 1, 2, 3, 4)
    sandbox = RunnerSandbox(runner, INFO, StreamBounds(100, grace_s, collect_s), inspector, died_of_memory=died)
    await sandbox.wait_ready()
    return sandbox


def exit_of(**more):
    return (Frame.EXIT, {"exit_code": 0, "output": [], **more})


def found(**more):
    row = {"promise": 0, "rel": "a.csv", "state": "file", "size": 3, "keep": True, "same_as": None}
    return (
        Frame.FOUND,
        {**row, "inspection": {"ok": True, "mime": "text/csv", "problem": None, "facts": {}}, **more},
    )


DONE = (Frame.COLLECTED, {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False})


def printed_of(*pieces):
    return (Frame.PRINTED, {"output": pieces})


def outputs():
    said = []
    return said, lambda *piece: said.append(piece)


async def run(answers, **more):
    sandbox = await opened(MemoryRunner({Frame.JOB: answers}), **more)
    return await sandbox.run(JOB, on_output=lambda *_: None)


async def collect(tmp_path, *answers, wanted=WANTED, **more):
    sandbox = await opened(MemoryRunner({Frame.COLLECT: answers}), **more)
    return await sandbox.collect(wanted, MadeFolder(tmp_path))


# ---- the good ways ----


async def test_a_shorter_way_is_taken_before_the_first_word_as_the_runner_stays_where_it_hears_that():
    runner = MemoryRunner({})
    await opened(runner)
    assert (runner.direct_socket_after, runner.received[0][0]) == ([], Frame.LAUNCH)


async def test_output_that_filled_its_room_to_the_last_byte_is_told_to_go_on():
    runner = MemoryRunner({Frame.JOB: [(Frame.STDOUT, b"\0hel"), (Frame.STDOUT, b"\1"), exit_of()]})
    sandbox = await opened(runner)
    said, on_output = outputs()
    outcome = await sandbox.run(Job(Language.BASH, b"", "p", "turn_1", LIMITS), on_output=on_output)
    assert (said, outcome.lost) == ([("stdout", b"hel", False), ("stdout", b"", True)], None)


async def test_output_may_come_in_parts_before_the_end():
    parts = [printed_of([1, 0, "a"], [2, 0, "\xe9"]), printed_of([1, 4, "b" * 900_000])]
    outcome = await run([*parts, exit_of(output=[[2, 0, "c"]])])
    assert outcome.output == (
        OutputPiece("stdout", b"a"),
        OutputPiece("stderr", b"\xe9"),
        OutputPiece("stdout", b"b" * 900_000, 4),
        OutputPiece("stderr", b"c"),
    )


async def test_a_job_is_sent_whole_and_its_end_is_told():
    code = bytes(range(256)) * 3_000
    runner = MemoryRunner(
        {Frame.JOB: [(Frame.STDOUT, b"\0hel"), (Frame.STDERR, b"\1x"), exit_of(output=[[2, 7, "\xff"]])]}
    )
    sandbox = await opened(runner)
    said, on_output = outputs()
    given = {"args": ("-v", "ü"), "env": {"MODE": "fast"}, "stdin": b"in\n", "cwd": "turn_1/files/work"}
    outcome = await sandbox.run(Job(Language.BASH, code, "p", "turn_1", LIMITS, **given), on_output=on_output)
    assert said == [("stdout", b"hel", False), ("stderr", b"x", True)]
    assert (outcome.exit_code, outcome.output, outcome.lost) == (0, (OutputPiece("stderr", b"\xff", 7),), None)
    kinds = [kind for kind, _ in runner.received]
    assert kinds == [Frame.LAUNCH, Frame.JOB, Frame.DATA, Frame.DATA, Frame.DATA, Frame.DATA]
    assert b"".join(payload for kind, payload in runner.received if kind is Frame.DATA) == code + b"in\n"
    assert json.loads(runner.received[1][1]) == {
        "language": "bash",
        "code_bytes": len(code),
        "stdin_bytes": 3,
        "prog_name": "p",
        "args": ["-v", "ü"],
        "env": {"MODE": "fast"},
        "cwd": "turn_1/files/work",
        "turn_id": "turn_1",
        "wall_s": 0.05,
        "cpus": 1,
        "memory_bytes": 1 << 30,
        "file_bytes": 1_000,
        "output_bytes": 1_000,
        "pass_on_bytes": 100,
        "collects": False,
        "packages": "",
        "network": None,
    }


async def test_what_is_wanted_is_told_with_the_job_and_not_asked_for_again(tmp_path):
    runner = MemoryRunner({Frame.JOB: [exit_of()], Frame.COLLECT: [DONE]})
    sandbox = await opened(runner)
    await sandbox.run(JOB, on_output=lambda *_: None, wanted=WANTED)
    assert [kind for kind, _ in runner.received][-1] is Frame.COLLECT  # before anything of it was waited for
    assert json.loads(dict(runner.received)[Frame.JOB])["collects"] is True
    sent = len(runner.received)
    collected = await sandbox.collect(WANTED, tmp_path)
    assert (collected.extras_total, len(runner.received)) == (0, sent)


async def test_nothing_else_is_collected_than_what_was_told_with_the_job(tmp_path):
    sandbox = await opened(MemoryRunner({Frame.JOB: [exit_of()], Frame.COLLECT: [DONE]}))
    await sandbox.run(JOB, on_output=lambda *_: None, wanted=WANTED)
    with pytest.raises(AssertionError):
        await sandbox.collect(replace(WANTED), tmp_path)


async def test_every_sandbox_has_a_nonce_of_its_own():
    nonces = set()
    for _ in range(5):
        runner = MemoryRunner({Frame.PUT: [(Frame.PUT_DONE, b"")]})
        await (await opened(runner)).put("turn_1", [])
        nonces.add(runner.nonce)
    assert len(nonces) == 5
    assert NO_NONCE not in nonces


async def test_a_runner_that_waits_answers_and_can_be_asked_again():
    sandbox = await opened(MemoryRunner({Frame.PING: [(Frame.PONG, b"")]}))
    assert [await sandbox.answers(), await sandbox.answers()] == [True, True]


@pytest.mark.parametrize(
    "answer",
    [[], [HUNG_UP], [OSError("reset")], [(Frame.PUT_DONE, b"")], [b"\xff" * 40]],
    ids=["silence", "hung up", "broken", "another frame", "no frame"],
)
async def test_a_runner_that_gives_no_such_answer_cannot_be_used(answer):
    bounds = StreamBounds(100, 30.0, 30.0, answers_s=30.0 if answer else 0.05)
    runner = MemoryRunner({Frame.PING: answer})

    async def died():
        return False

    sandbox = RunnerSandbox(runner, INFO, bounds, InspectorBounds(0, 1, 2, 3, 4), died_of_memory=died)
    await sandbox.wait_ready()
    assert await sandbox.answers() is False


async def test_a_call_is_over_once_its_files_were_collected_and_not_before(tmp_path):
    sandbox = await opened(MemoryRunner({Frame.JOB: [exit_of()], Frame.COLLECT: [DONE]}))
    await sandbox.run(JOB, on_output=lambda *_: None)
    before = sandbox.is_over
    await sandbox.collect(WANTED, tmp_path)
    assert (before, sandbox.is_over) == (False, True)


def input_file(tmp_path, content, size=None):
    source = tmp_path / "source"
    source.write_bytes(content)
    path = FilePath("turn_0", Namespace.FILES, "x/a.bin")
    return InputFile(path, FileContent(source), len(content) if size is None else size, writable=False)


async def test_files_are_put_with_their_bytes(tmp_path):
    content = bytes(range(256)) * 2_000
    runner = MemoryRunner({Frame.PUT: [(Frame.PUT_DONE, b"")]})
    sandbox = await opened(runner)
    await sandbox.put("turn_1", [input_file(tmp_path, content)])
    assert json.loads(runner.received[1][1]) == {
        "turn_id": "turn_1",
        "files": [
            {
                "path": "turn_0/files/x/a.bin",
                "size": len(content),
                "writable": False,
                "links": [],
                "copies": [],
                "yields": False,
                "made_ns": None,
            }
        ],
    }
    assert b"".join(payload for kind, payload in runner.received if kind is Frame.DATA) == content


@pytest.mark.parametrize("size", [10, 3])
async def test_exactly_the_recorded_bytes_of_a_file_are_sent(tmp_path, size):
    sandbox = await opened(MemoryRunner({Frame.PUT: [(Frame.PUT_DONE, b"")]}))
    file = input_file(tmp_path, b"12345", size)
    if size == 3:
        await sandbox.put("turn_1", [file])
    else:
        with pytest.raises(StoreFailedError, match="is shorter in the store than its record says"):
            await sandbox.put("turn_1", [file])


async def test_an_input_that_is_gone_is_a_failure_of_the_store(tmp_path):
    sandbox = await opened(MemoryRunner({}))
    file = InputFile(FilePath("turn_0", Namespace.FILES, "a"), FileContent(tmp_path / "gone"), 1, writable=False)
    with pytest.raises(StoreFailedError, match="turn_0/files/a cannot be read from the store"):
        await sandbox.put("turn_1", [file])


async def test_what_is_collected_is_told_by_its_path_with_its_bytes_and_their_hash(tmp_path):
    collected = await collect(
        tmp_path,
        found(),
        (Frame.DATA, b"ab"),
        (Frame.DATA, b"c"),
        found(promise=None, rel="b.csv", same_as=0, inspection=None),
        found(promise=None, rel="../attachments/x", size=0),
        found(promise=None, rel="c.csv", state="too_large", size=5_000, keep=False, inspection=None),
        (Frame.COLLECTED, {"extras_total": 72, "files_exceeded": True, "depth_exceeded": False}),
    )
    shown = [
        (f.path.physical, f.promise, f.state, f.size_bytes, f.source and f.source.data) for f in collected.found
    ]
    assert shown == [
        ("turn_1/files/a.csv", 0, FileState.FILE, 3, b"abc"),
        ("turn_1/files/b.csv", None, FileState.FILE, 3, b"abc"),
        ("turn_1/attachments/x", None, FileState.FILE, 0, b""),
        ("turn_1/files/c.csv", None, FileState.TOO_LARGE, 5_000, None),
    ]
    assert [f.sha256 for f in collected.found] == [
        hashlib.sha256(b"abc").hexdigest(),
        hashlib.sha256(b"abc").hexdigest(),
        hashlib.sha256(b"").hexdigest(),
        None,
    ]
    assert (collected.extras_total, collected.files_exceeded, collected.depth_exceeded) == (72, True, False)


async def received(tmp_path, *contents, piece_bytes=PIECE_BYTES):
    """Where files are that come in pieces, once their bytes and hashes are seen to be right."""
    answers = []
    for number, content in enumerate(contents):
        pieces = [content[at : at + piece_bytes] for at in range(0, len(content), piece_bytes)]
        answers.append(found(promise=None, rel=f"{number}.bin", size=len(content), inspection=None))
        answers += [(Frame.DATA, piece) for piece in pieces]
    collected = await collect(tmp_path, *answers, DONE, wanted=MUCH_WANTED)
    assert [f.sha256 for f in collected.found] == [hashlib.sha256(content).hexdigest() for content in contents]
    assert [f.source.read() for f in collected.found] == [*contents]
    return [f.source.source for f in collected.found]


def made(folder):
    """What is in a staging folder."""
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("size", [0, 1, 32 * 1024, 32 * 1024 + 1, PIECE_BYTES])
async def test_a_file_of_one_piece_stays_in_memory_and_nothing_is_made_for_it(tmp_path, size):
    content = os.urandom(size)
    assert (await received(tmp_path, content), made(tmp_path)) == ([content], [])


@pytest.mark.parametrize(("size", "piece_bytes"), [(500, 1), (PIECE_BYTES, 1_000), (3 * PIECE_BYTES, 1_000)])
async def test_a_file_that_comes_in_many_small_pieces_is_whole(tmp_path, size, piece_bytes):
    await received(tmp_path, os.urandom(size), piece_bytes=piece_bytes)


async def test_a_larger_file_is_written_under_a_name_of_ours_with_small_ones_before_and_after_it(tmp_path):
    small, large = [os.urandom(10 + n) for n in range(4)], [os.urandom(PIECE_BYTES + 1), os.urandom(2_000_000)]
    sources = await received(tmp_path, *small[:2], large[0], b"", small[2], large[1], small[3])
    assert sources == [*small[:2], tmp_path / "0", b"", small[2], tmp_path / "1", small[3]]
    assert made(tmp_path) == ["0", "1"]


async def test_beyond_4_mib_of_a_call_small_files_are_written_too(tmp_path):
    contents = [os.urandom(PIECE_BYTES) for _ in range(16)] + [b"one more", b"", b"and another"]
    sources = await received(tmp_path, *contents)
    assert sources == [*contents[:16], tmp_path / "0", b"", tmp_path / "1"]
    assert made(tmp_path) == ["0", "1"]


async def test_names_that_the_protocol_refuses_are_shown_escaped_short_and_few(tmp_path):
    rows = [found(promise=None, rel=f"bad\n{n}\udc80" + "\\" * 500, state="symlink", keep=False) for n in range(60)]
    collected = await collect(tmp_path, *rows, DONE, wanted=replace(WANTED, extras_max=60))
    assert (collected.found, len(collected.odd_names)) == ((), 50)
    assert collected.odd_names[0].startswith("bad\\n0\\udc80\\\\")
    assert {len(name) for name in collected.odd_names} == {300}


# ---- lost while it ran: an outcome ----

GONE = "the sandbox ended by itself"


@pytest.mark.parametrize(
    ("answers", "lost"),
    [
        ([HUNG_UP], GONE),
        ([ConnectionResetError()], GONE),
        ([(Frame.STDOUT, b"\0some"), HUNG_UP], GONE),
        ([], "the sandbox did not answer within 0 s"),
        ([(Frame.STDOUT, b"\0some")], "the sandbox did not answer within 0 s"),
        ([b"written by the program, which has no nonce"], "the stream of the sandbox is broken: "),
        ([encode(Frame.EXIT, NO_NONCE, b"{}")], "the stream of the sandbox is broken: a frame without the nonce"),
        ([(Frame.COLLECTED, {})], "the runner sent COLLECTED while the program ran"),
        ([(Frame.INSPECTOR, b"\1"), exit_of()], "the runner sent INSPECTOR while the program ran"),
        ([(Frame.EXIT, b"no json")], "the runner sent an answer that cannot be read"),
        ([(Frame.EXIT, {})], "the runner sent an answer that cannot be read"),
        ([(Frame.EXIT, [])], "the runner sent an answer that cannot be read"),
        ([exit_of(unknown=1)], "the runner sent an answer that cannot be read"),
        *(
            ([exit_of(output=output)], "the runner sent an answer that cannot be read")
            for output in (
                "text",
                [[1, 0]],
                [[1, 0, "日"]],
                [[3, 0, "a"]],
                [[1, -1, "a"]],
                [["stdout", 0, "a"]],
                [[1, 0, ""]] * 32_101,
            )
        ),
        ([*[printed_of([1, 0, "a" * 600_000])] * 4, exit_of()], "the runner sent an answer that cannot be read"),
        (
            [*[printed_of(*[[2, 0, ""]] * 9_000)] * 3, exit_of(output=[[2, 0, "b"]] * 9_000)],
            "the runner sent an answer",
        ),
        ([(Frame.PRINTED, {})], "the runner sent an answer that cannot be read"),
        ([exit_of(rooms=[["/etc", 1, False]])], "the runner sent an answer that cannot be read"),
        ([exit_of(rooms=[["/tmp", 1, False]] * 4)], "the runner sent an answer that cannot be read"),
    ],
)
async def test_a_sandbox_that_is_lost_while_it_runs_is_an_outcome(answers, lost):
    outcome = await run(answers, grace_s=patience_s(lost))
    assert (outcome.exit_code, outcome.lost_to_memory) == (None, False)
    assert outcome.lost.startswith(lost)


async def test_a_sandbox_that_memory_ended_says_so():
    outcome = await run([HUNG_UP], died_of_memory=True)
    assert (outcome.lost, outcome.lost_to_memory) == ("the sandbox was killed for memory", True)


async def test_a_stream_that_breaks_while_the_job_is_sent_is_an_outcome():
    runner = MemoryRunner({})
    sandbox = await opened(runner)
    runner.breaks_writing = True
    outcome = await sandbox.run(JOB, on_output=lambda *_: None)
    assert outcome.lost == GONE


# ---- lost before and after: an exception ----


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ([HUNG_UP], GONE),
        ([OSError()], GONE),
        ([(Frame.EXIT, {})], "the runner began with EXIT"),
        ([b"bash: python: not found, and more words"], "the stream of the sandbox is broken"),
    ],
)
async def test_a_sandbox_that_never_gets_ready_is_lost(first, why):
    with pytest.raises(SandboxLostError, match=why):
        await opened(MemoryRunner({}, first=first))


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([HUNG_UP], GONE),
        ([OSError()], GONE),
        (
            [(Frame.FAILED, {"reason": "OUT_DIR cannot hold the files of the call: No space left on device"})],
            "OUT_DIR",
        ),
        ([(Frame.FAILED, {})], "an answer that cannot be read"),
        ([(Frame.EXIT, {})], "the runner sent EXIT in place of PUT_DONE"),
        ([], "the sandbox did not answer within 0 s"),
    ],
)
async def test_a_sandbox_that_is_lost_while_files_are_put_raises(tmp_path, answers, why):
    sandbox = await opened(MemoryRunner({Frame.PUT: answers}), collect_s=patience_s(why))
    with pytest.raises(SandboxLostError, match=why):
        await sandbox.put("turn_1", [input_file(tmp_path, b"abc")])


async def test_nobody_waits_for_the_folders_of_a_call_without_files_before_its_job_is_sent():
    runner = MemoryRunner({Frame.JOB: [(Frame.PUT_DONE, b""), exit_of()]})
    sandbox = await opened(runner)
    await sandbox.put("turn_1", [])
    outcome = await sandbox.run(JOB, on_output=lambda *_: None)
    assert [kind for kind, _ in runner.received] == [Frame.LAUNCH, Frame.PUT, Frame.JOB, Frame.DATA]
    assert (outcome.exit_code, outcome.lost) == (0, None)


async def test_folders_that_could_not_be_made_are_told_as_the_outcome_of_the_job():
    refused = (Frame.FAILED, {"reason": "OUT_DIR cannot hold the files of the call: No space left on device"})
    sandbox = await opened(MemoryRunner({Frame.PUT: [refused]}))
    await sandbox.put("turn_1", [])
    outcome = await sandbox.run(JOB, on_output=lambda *_: None)
    assert (outcome.exit_code, outcome.lost) == (None, refused[1]["reason"])


DATA = (Frame.DATA, b"abc")
UNREADABLE = "the runner sent an answer that cannot be read"


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([HUNG_UP], GONE),
        ([found(), HUNG_UP], GONE),
        ([found(), DATA], "the sandbox did not answer within 0 s"),
        ([], "the sandbox did not answer within 0 s"),
        ([found(), (Frame.DATA, b"abcd")], "the runner broke off in a file"),
        ([found(), DONE], "the runner broke off in a file"),
        ([(Frame.STDOUT, b"\0x")], "the runner sent STDOUT while it collected"),
        ([found(size=1_001)], "the runner sent more bytes than OUT_DIR can hold"),
        (
            [found(size=600), (Frame.DATA, b"x" * 600), found(size=600)],
            "the runner sent more bytes than OUT_DIR can",
        ),
        ([found(size=-1)], UNREADABLE),
        ([found(size="3")], UNREADABLE),
        ([found(state="new")], UNREADABLE),
        ([found(rel=5)], UNREADABLE),
        ([found(same_as=0)], UNREADABLE),
        ([found(same_as="x")], UNREADABLE),
        ([(Frame.FOUND, {})], UNREADABLE),
        ([(Frame.FOUND, b"[")], UNREADABLE),
        ([(Frame.COLLECTED, {})], UNREADABLE),
        ([b"\0" * 50], "the stream of the sandbox is broken"),
    ],
)
async def test_a_sandbox_that_is_lost_while_it_collects_raises(tmp_path, answers, why):
    first = [answer if answer != found(state="new") else found(state="new", size=0) for answer in answers]
    with pytest.raises(SandboxLostError, match=why):
        await collect(tmp_path, *first, collect_s=patience_s(why))


def open_files():
    """The names of what this process has open."""
    return [handle.readlink() for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink()]


async def test_a_sandbox_that_is_lost_after_a_large_file_leaves_no_file_open(tmp_path):
    size = 5 * PIECE_BYTES  # four pieces are written at once, the last one waits for more
    large = [found(size=size), *[(Frame.DATA, bytes(PIECE_BYTES))] * 5]
    with pytest.raises(SandboxLostError, match=GONE):
        await collect(tmp_path, *large, found(promise=None, rel="b.csv"), HUNG_UP, wanted=MUCH_WANTED)
    assert tmp_path / "0" not in open_files()


async def test_a_file_that_is_in_the_way_is_a_failure_of_the_staging_folder(tmp_path):
    (tmp_path / "0").write_bytes(b"")
    with pytest.raises(StoreFailedError, match="the staging folder of the artifact store cannot be written"):
        await received(tmp_path, bytes(PIECE_BYTES + 1))
