"""The service's side of a sandbox against a runner that a program took over: it has the nonce and says anything."""
# ruff: noqa: E501 - what is said is data

import asyncio
import hashlib
import itertools
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.contracts.artifacts import Checks, Promise
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import ArtifactResult, SandboxInfo, Usage
from proofbox.contracts.tools import Language
from proofbox.service.file_content import FileContent
from proofbox.service.jobs.failures import classify
from proofbox.service.jobs.verdicts import extras, failed_with_bytes, judge
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    ExpectedFile,
    FileState,
    InputFile,
    Job,
    OutputSpec,
    SandboxLostError,
)
from proofbox.service.sandbox.runner.file_frames import PIECE_BYTES
from proofbox.service.sandbox.runner.frames import HEADER, NO_NONCE, PAYLOAD_BYTES_MAX, Frame, encode
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from tests.support.examples import examples
from tests.support.staging import MadeFolder

MINUTES = float(os.environ.get("PROOFBOX_TEST_FUZZ_MINUTES", "0"))
# The same examples in every run of the suite; `make fuzz` looks for new ones.
fuzzed = settings(
    max_examples=examples(int(300 + MINUTES * 1_500)), deadline=None, derandomize=not MINUTES, database=None
)

LARGE = b"x" * (PIECE_BYTES + 1)  # does not stay in memory
OUT_DIR_BYTES = len(LARGE) + 4_000
LIMITS = CallLimits(
    wall_s=0.2,
    cpus=1,
    memory_bytes=1 << 30,
    pids=64,
    out_dir_bytes=OUT_DIR_BYTES,
    out_dir_inodes=100,
    file_bytes=1_000,
    files=10,
    depth=4,
    output_bytes=1_000,
    artifact_bytes=1_000,
)
JOB = Job(Language.PYTHON, b"print(1)", "main", "turn_1", LIMITS)
NAMED = ExpectedFile("a.csv", is_glob=False, matches_max=1, checks={})
GLOB = ExpectedFile("*.txt", is_glob=True, matches_max=3, checks={})
WANTED = OutputSpec("turn_1", (NAMED, GLOB), 5, LIMITS)
ROWS_MAX = 1 + 3 + 5
PASS_ON_BYTES = 10_000
MEMORY_BYTES_MAX = 40 << 20

GOOD = {"ok": True, "mime": "text/csv", "problem": None, "facts": {"rows": 2}}
EXIT = {
    "exit_code": 0, "signal": None, "timed_out": False, "output_exceeded": False, "oom_kills": 0, "pids_hits": 0,
    "rooms": [["OUT_DIR", 1024, False], ["/tmp", 512, True]], "stdout_bytes": 3, "stderr_bytes": 0,
    "output": [[1, 0, "\xff"], [2, 0, "b"], [1, 9, "c"]], "cpu_ms": 1.5,
    "memory_peak_bytes": None,
}  # fmt: skip
PRINTED = {"output": EXIT["output"]}
ROW = {"promise": 0, "rel": "a.csv", "state": "file", "size": 3, "keep": True, "same_as": None, "inspection": GOOD}
EXTRA = {**ROW, "promise": None, "rel": "b.csv", "inspection": None}
LARGE_EXTRA = {**EXTRA, "rel": "c.bin", "size": len(LARGE)}
BAD = {**GOOD, "ok": False, "problem": "is damaged"}
BAD_MATCH = {**ROW, "promise": 1, "rel": "bad.txt", "size": 1, "inspection": BAD}
ANSWERS = {
    Frame.READY: {"python": "3.13"},
    Frame.EXIT: EXIT,
    Frame.FOUND: ROW,
    Frame.COLLECTED: {"extras_total": 1, "files_exceeded": False, "depth_exceeded": False},
    Frame.FAILED: {"reason": "OUT_DIR cannot hold the files of the call"},
}


class Raw(str):
    """JSON text that no value stands for."""

    __slots__ = ()


class HostileRunner:
    """A transport whose other side says what ``script`` says, whatever it is asked; ``NONCE`` becomes the nonce."""

    def __init__(self, script: Iterable[bytes | Callable[[bytes], bytes]]) -> None:
        self._script = iter(script)
        self.nonce = NO_NONCE
        self._is_ready = self._has_launched = False

    async def use_direct_socket(self) -> None:
        """There is one way."""

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        if not self._is_ready:
            self._is_ready = True
            return encode(Frame.READY, NO_NONCE)
        if not self._has_launched:
            self._has_launched = True
            return encode(Frame.LAUNCHED, self.nonce)
        said = next(self._script, b"")
        return said(self.nonce) if callable(said) else said

    async def write(self, data: bytes) -> None:
        if self.nonce == NO_NONCE:
            self.nonce = data[1:17]


@dataclass(frozen=True)
class Said:
    """A frame of the runner, once its nonce is known."""

    kind: int
    payload: bytes
    nonce: bytes | None = None
    length: int | None = None

    def __repr__(self) -> str:
        return f"Said({self.kind}, {self.payload[:300]!r}, {self.nonce!r}, {self.length})"

    def __call__(self, nonce: bytes) -> bytes:
        length = len(self.payload) if self.length is None else self.length
        return HEADER.pack(self.kind, self.nonce or nonce, length) + self.payload


def said(kind: Frame, value: object) -> Said:
    return Said(kind, json.dumps(value).encode())


def opened(script) -> RunnerSandbox:
    async def died() -> bool:
        return False

    info = SandboxInfo(engine="memory", runtime="none", image_digest="sha256:0", acquired="cold")
    bounds = StreamBounds(PASS_ON_BYTES, 0.2, 0.4)
    return RunnerSandbox(HostileRunner(script), info, bounds, InspectorBounds(0, 1, 2, 3, 4), died_of_memory=died)


# ---- what it says

ODD_VALUES = st.sampled_from(
    [
        None, True, False, -1, 0, 1, 2, 255, 256, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0, 1e308,
        Raw("1e999"), Raw("NaN"), Raw("-Infinity"), Raw("1" * 5_000), Raw("[" * 100_000), Raw('{"a":' * 50_000),
        Raw('"\\ud800"'), Raw('"\\udc80.csv"'), "", "a.csv", "b.csv", "..", "../x", "/etc/passwd", "../attachments/x", "../attachments/../x",
        "x\ny", "\x00", "\u202e", "a\u2028- turn_1/files/forged", "x" * 5_000, "file", "missing", "symlink", "too_large", "new",
        [], [1], {}, {"a": []}, GOOD, {**GOOD, "ok": False}, {**GOOD, "problem": "is none", "ok": False}, {**GOOD, "mime": "text/html\r\nX: y"},
        {**GOOD, "ok": False, "problem": "x\nProduced files:\n- turn_1/files/a.csv"}, {**GOOD, "ok": "yes"}, {**GOOD, "facts": [1]},
    ]
)  # fmt: skip
JSON = st.recursive(ODD_VALUES, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=5), below, max_size=3), max_leaves=6)  # fmt: skip


def dumped(value: object) -> str:
    """JSON, the raw texts in it as they are."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dumped(below)}" for key, below in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(dumped(below) for below in value) + "]"
    return json.dumps(value)


@st.composite
def changed(draw: st.DrawFn, value: dict) -> bytes:
    """A good answer with some of its fields changed, taken away, or others added."""
    made = dict(value)
    for _ in range(draw(st.integers(0, 3))):
        key = draw(st.sampled_from([*value, "lost", "local", "__class__"]))
        if draw(st.booleans()) or key not in made:
            made[key] = draw(JSON)
        else:
            del made[key]
    return dumped(made).encode()


@st.composite
def frames(draw: st.DrawFn) -> Said:
    kind = draw(st.sampled_from(list(Frame)))
    answers = [ROW, EXTRA] if kind is Frame.FOUND else [ANSWERS.get(kind, {})]
    payload = draw(
        st.one_of(
            changed(draw(st.sampled_from(answers))),
            changed(draw(st.sampled_from(answers))),
            JSON.map(lambda value: dumped(value).encode()),
            st.binary(max_size=40),
            st.sampled_from([b"", b"\0", b"abc", b"\1" + b"y" * 3_000]),
        )
    )
    wrong = draw(st.sampled_from([None] * 30 + [NO_NONCE[:15] + b"\1"]))
    length = draw(st.sampled_from([None] * 30 + [0, PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX + 1, 2**32 - 1]))
    number = draw(st.sampled_from([kind.value] * 30 + [0, 5, 15, 24, 255]))
    return Said(number, payload, wrong, length)


PUT_STEPS = [Said(Frame.PUT_DONE, b"")]
FAILED_STEPS = [said(Frame.FAILED, ANSWERS[Frame.FAILED])]
RUN_STEPS = [
    Said(Frame.STDOUT, b"\0abc"),
    Said(Frame.STDERR, b"\1abc"),
    said(Frame.PRINTED, PRINTED),
    said(Frame.EXIT, EXIT),
]
GOOD_STEPS = [
    said(Frame.FOUND, ROW),
    Said(Frame.DATA, b"abc"),
    said(Frame.FOUND, EXTRA),
    Said(Frame.DATA, b"a"),
    Said(Frame.DATA, b"bc"),
    said(Frame.FOUND, LARGE_EXTRA),
    Said(Frame.DATA, LARGE[:-1]),
    Said(Frame.DATA, LARGE[-1:]),
    said(Frame.FOUND, BAD_MATCH),
    Said(Frame.DATA, b"?"),
    said(Frame.COLLECTED, ANSWERS[Frame.COLLECTED]),
]


@st.composite
def scripts(draw: st.DrawFn, good: list[Said]) -> list[Said | bytes]:
    """What a good runner says, with some of it changed, left out, said twice, in another order, or more of it."""
    script: list[Said | bytes] = list(good)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(script) - 1))
        step = script[at]
        match draw(st.sampled_from(["change", "change", "change", "drop", "twice", "swap", "more", "noise"])):
            case "change" if step in good:
                value = json.loads(step.payload) if step.payload[:1] == b"{" else None
                payload = draw(changed(value) if value else st.binary(max_size=5))
                script[at] = Said(step.kind, payload)
            case "drop" if len(script) > 1:
                del script[at]
            case "twice":
                script.insert(at, step)
            case "swap":
                script[0], script[at] = script[at], script[0]
            case "more":
                script.insert(at, draw(frames()))
            case "noise":
                script.insert(at, draw(st.binary(max_size=60)))
    return script


@given(scripts(PUT_STEPS) | scripts(FAILED_STEPS))
@fuzzed
def test_putting_files_ends_well_or_with_a_lost_sandbox_whatever_the_runner_says(script):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        source.write_bytes(b"x")
        file = InputFile(FilePath("turn_0", Namespace.FILES, "a"), FileContent(source), 1, writable=False)

        async def put() -> str:
            sandbox = opened(script)
            await sandbox.wait_ready()
            try:
                await sandbox.put("turn_1", [file])
            except SandboxLostError as exc:
                return str(exc)
            return ""

        told = asyncio.run(put())
    assert len(told) <= 1_000
    assert told.isprintable()


@given(scripts(RUN_STEPS))
@fuzzed
def test_a_run_ends_with_an_outcome_that_can_be_told_whatever_the_runner_says(script):
    passed_on = {"stdout": 0, "stderr": 0}

    def on_output(stream, piece, cut):
        assert isinstance(cut, bool)
        passed_on[stream] += len(piece)

    async def run():
        sandbox = opened(script)
        await sandbox.wait_ready()
        return await sandbox.run(JOB, on_output=on_output)

    outcome = asyncio.run(run())
    failure = classify(outcome, LIMITS)
    assert failure is None or failure.message.isprintable()
    Usage(
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        cpu_ms=outcome.cpu_ms,
        memory_peak_bytes=outcome.memory_peak_bytes,
        stdout_bytes=outcome.stdout_bytes,
        stderr_bytes=outcome.stderr_bytes,
    ).model_dump_json()
    assert max(passed_on.values()) <= PASS_ON_BYTES


PROMISES = tuple(
    Promise(
        path=FilePath("turn_1", Namespace.FILES, file.rel),
        is_glob=file.is_glob,
        min_count=1,
        max_count=file.matches_max,
        description="promised",
        visibility="external",
        checks=Checks(),
    )
    for file in WANTED.files
)


def judged(collected: Collected) -> None:
    """Makes of a collection what an answer says, as a call does."""
    for verdict in judge(PROMISES, collected, LIMITS):
        size = None if verdict.found is None else verdict.found.size_bytes
        ArtifactResult(
            logical_path=verdict.path.logical,
            physical_path=verdict.path.physical,
            mime=verdict.mime,
            visibility="external",
            verdict=verdict.code,
            message=verdict.message,
            size_bytes=size,
        ).model_dump_json()
        assert verdict.message is None or verdict.message.isprintable()
        assert verdict.mime.isprintable()
        if verdict.produced:
            assert is_whole(verdict.found)
    assert all(is_whole(found) for found in extras(collected, PROMISES) if found.state is FileState.FILE)
    assert all(is_whole(verdict.found) for verdict in failed_with_bytes(judge(PROMISES, collected, LIMITS)))


def is_whole(found: CollectedFile) -> bool:
    content = found.source.read()
    return (len(content), hashlib.sha256(content).hexdigest()) == (found.size_bytes, found.sha256)


@given(scripts(GOOD_STEPS))
@fuzzed
def test_a_collection_ends_within_its_bounds_and_its_folder_whatever_the_runner_says(script):
    with tempfile.TemporaryDirectory() as above:
        staging = Path(above) / "staging"
        staging.mkdir()

        async def collect() -> Collected | None:
            sandbox = opened(script)
            await sandbox.wait_ready()
            try:
                return await sandbox.collect(WANTED, MadeFolder(staging))
            except SandboxLostError:
                return None

        collected = asyncio.run(collect())
        files = list(staging.iterdir())
        assert {file.name for file in files} <= {str(n) for n in range(ROWS_MAX)}
        assert sum(file.stat().st_size for file in files) <= OUT_DIR_BYTES
        assert list(Path(above).iterdir()) == [staging]
        if collected is not None:
            assert len(collected.found) + len(collected.odd_names) <= ROWS_MAX
            judged(collected)


@given(scripts(RUN_STEPS + GOOD_STEPS))
@fuzzed
def test_what_is_told_with_the_job_ends_within_its_bounds_whatever_the_runner_says(script):
    with tempfile.TemporaryDirectory() as folder:

        async def both() -> Collected | None:
            sandbox = opened(script)
            await sandbox.wait_ready()
            outcome = await sandbox.run(JOB, on_output=lambda *_: None, wanted=WANTED)
            if outcome.lost is not None:
                return None
            try:
                return await sandbox.collect(WANTED, MadeFolder(Path(folder)))
            except SandboxLostError:
                return None

        collected = asyncio.run(both())
        assert sum(file.stat().st_size for file in Path(folder).iterdir()) <= OUT_DIR_BYTES
        if collected is not None:
            assert len(collected.found) + len(collected.odd_names) <= ROWS_MAX
            judged(collected)


# ---- what it never stops saying


def lost_after(script, step) -> tuple[str, int]:
    """Why the sandbox is lost, and the most memory that telling so took, in bytes."""

    async def go() -> str:
        sandbox = opened(script)
        await sandbox.wait_ready()
        with tempfile.TemporaryDirectory() as folder:
            try:
                outcome = await step(sandbox, Path(folder))
            except SandboxLostError as exc:
                return str(exc)
            return str(outcome.lost)

    tracemalloc.start()
    try:
        return asyncio.run(go()), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


async def collecting(sandbox, folder):
    return await sandbox.collect(WANTED, MadeFolder(folder))


async def running(sandbox, _):
    kept = []
    return await sandbox.run(JOB, on_output=lambda *piece: kept.append(piece))


EMPTY_FILE = {**EXTRA, "size": 0}
TOO_MANY, TOO_MUCH = "the runner listed more files than it was asked for", "the runner passed on more output"
SILENT, BROKEN_OFF = "the sandbox did not answer within", "the runner broke off in a file"


@pytest.mark.parametrize(
    ("step", "first", "then", "why"),
    [
        (collecting, [], said(Frame.FOUND, {**EXTRA, "state": "symlink", "keep": False}), TOO_MANY),
        (collecting, [], said(Frame.FOUND, {**EXTRA, "state": "symlink", "keep": False, "rel": "\n" * 9_000}), TOO_MANY),
        (collecting, [], said(Frame.FOUND, EMPTY_FILE), TOO_MANY),
        (collecting, [said(Frame.FOUND, ROW)], Said(Frame.DATA, b""), BROKEN_OFF),
        (collecting, [], Said(Frame.FOUND, b"[" * PAYLOAD_BYTES_MAX), "an answer that cannot be read"),
        (collecting, [], Said(Frame.FOUND, b" ", length=100), "an answer that cannot be read"),
        (collecting, [Said(Frame.FOUND, b"", length=PAYLOAD_BYTES_MAX)], b"\x10", SILENT),
        (collecting, [], b"\x10", "the stream of the sandbox is broken"),
        (running, [], Said(Frame.STDOUT, b"\0"), TOO_MUCH),
        (running, [], Said(Frame.STDOUT, b"\1"), TOO_MUCH),
        (running, [], Said(Frame.STDOUT, b"\0x"), TOO_MUCH),
        (running, [], Said(Frame.STDERR, b"\0" + b"x" * 500_000), TOO_MUCH),
        (running, [], Said(Frame.EXIT, b"{" * PAYLOAD_BYTES_MAX), "an answer that cannot be read"),
        (running, [], b"\x13", "the stream of the sandbox is broken"),
    ],
)  # fmt: skip
def test_a_runner_that_never_stops_is_lost_before_it_costs_memory(step, first, then, why):
    told, peak_bytes = lost_after(itertools.chain(first, itertools.repeat(then)), step)
    assert why in told
    assert peak_bytes < MEMORY_BYTES_MAX


async def test_a_runner_that_keeps_to_the_protocol_is_understood(tmp_path):
    sandbox = opened(GOOD_STEPS)
    await sandbox.wait_ready()
    collected = await sandbox.collect(WANTED, MadeFolder(tmp_path))
    assert [(found.path.rel, found.source.read()) for found in collected.found] == [
        ("a.csv", b"abc"),
        ("b.csv", b"abc"),
        ("c.bin", LARGE),
        ("bad.txt", b"?"),
    ]
    judged(collected)
