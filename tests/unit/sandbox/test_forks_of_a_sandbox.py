"""What a sandbox does with processes that are forked into it, and without them, against a runner in memory."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.tool_call_response import SandboxInfo
from contracts.tools import Language
from service.sandbox.containers import NotForkedError
from service.sandbox.inspectors import OF_LIBRARIES
from service.sandbox.limits import CallLimits
from service.sandbox.port import ExpectedFile, Job, OutputSpec, SandboxLostError
from service.sandbox.preload import PreloadSet
from service.sandbox.runner.frames import Frame
from service.sandbox.runner.requests import InspectorBounds
from service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from tests.support.memory_runner import HUNG_UP, MemoryRunner

ROOT = Path(__file__).parents[3]
INFO = SandboxInfo(engine="memory", runtime="none", image_digest="sha256:0", acquired="cold")
LIMITS = CallLimits(
    wall_s=1,
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
JOB = Job(Language.PYTHON, b"print(1)", "main", "turn_1", LIMITS)
WANTED = OutputSpec("turn_1", (), 50, LIMITS)
PROMISED = OutputSpec("turn_1", (ExpectedFile("a.csv", is_glob=False, matches_max=1, checks={}),), 50, LIMITS)
COMES = {Frame.ADOPT: [(Frame.LAUNCHED, b"")], Frame.LAUNCH: []}
DOES_NOT = {Frame.ADOPT: []}
EXIT = (Frame.EXIT, {"exit_code": 0, "output": []})
INSPECTOR, PLAIN_INSPECTOR = (Frame.INSPECTOR, b"\0"), (Frame.INSPECTOR, b"\1")
DONE = (Frame.COLLECTED, {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False})


class Forks:
    """Of some flavours; those in ``failing`` cannot be forked."""

    def __init__(self, has, failing=()):
        self._has = has
        self._failing = failing
        self.made = []
        self.waiting = None
        self.ahead = []

    def has(self, flavour):
        return flavour in self._has

    async def interpreter(self, flavour, *, ahead):
        if flavour in self._failing:
            raise NotForkedError("the zygote has died")
        self.made.append(flavour.value)
        self.ahead.append(ahead)

    async def inspector(self, *, of_plain_files):
        if "inspector" in self._failing:
            raise NotForkedError("the zygote has died")
        self.made.append("plain inspector" if of_plain_files else "inspector")

    async def waiting_inspector(self, extensions, *, of_plain_files):
        if "waiting" in self._failing:
            raise NotForkedError("enough wait")
        if "everything" in self._failing:
            raise MemoryError
        self.waiting = Waiting(self, extensions, of_plain_files, fails="letting in" in self._failing)
        return self.waiting


class Waiting:
    """An inspector that waits."""

    def __init__(self, forks, extensions, of_plain_files, fails):
        self.extensions, self.of_plain_files = extensions, of_plain_files
        self.closed = 0
        self._forks, self._fails = forks, fails

    async def let_in(self):
        if self._fails:
            raise NotForkedError("it was killed")
        self._forks.made.append("waiting plain inspector" if self.of_plain_files else "waiting inspector")

    def close(self):
        self.closed += 1


async def opened(runner, forks, flavour=PreloadSet.BARE):
    async def died():
        return False

    inspector = InspectorBounds(0, 1, 2, 3, 4)
    bounds = StreamBounds(100, 0.05, 0.3)
    sandbox = RunnerSandbox(runner, INFO, bounds, inspector, died_of_memory=died, forks=forks)
    await sandbox.wait_ready(flavour)
    return sandbox


def kinds_of(runner):
    return [kind for kind, _ in runner.received]


async def test_a_bare_interpreter_is_forked_into_a_sandbox_before_it_waits():
    runner, forks = MemoryRunner(COMES), Forks(set(PreloadSet))
    await opened(runner, forks)
    assert (forks.made, kinds_of(runner)) == (["bare"], [Frame.ADOPT])


async def test_what_is_forked_ahead_is_what_the_call_needs():
    runner, forks = MemoryRunner(COMES), Forks(set(PreloadSet))
    sandbox = await opened(runner, forks, PreloadSet.DATA)
    assert await sandbox.become(PreloadSet.DATA) is True
    assert (forks.made, kinds_of(runner), sandbox.flavour) == (["data"], [Frame.ADOPT], PreloadSet.DATA)


async def test_a_bare_interpreter_waits_until_one_of_the_flavour_can_be_had():
    runner, forks = MemoryRunner(COMES), Forks({PreloadSet.BARE})
    sandbox = await opened(runner, forks, PreloadSet.DATA)
    waiting = sandbox.flavour
    forks._has.add(PreloadSet.DATA)
    assert await sandbox.become(PreloadSet.DATA) is True
    assert (waiting, forks.made, sandbox.flavour) == (PreloadSet.BARE, ["bare", "data"], PreloadSet.DATA)
    assert forks.ahead == [True, False]  # the call of the second one waits


async def test_where_nothing_is_forked_a_container_has_what_it_was_started_with():
    runner = MemoryRunner(DOES_NOT)
    sandbox = await opened(runner, None, PreloadSet.DATA)
    assert (sandbox.flavour, kinds_of(runner)) == (PreloadSet.DATA, [Frame.LAUNCH])


async def test_where_none_can_be_forked_the_runner_launches_its_own():
    runner, forks = MemoryRunner(DOES_NOT), Forks(set())
    await opened(runner, forks)
    assert (forks.made, kinds_of(runner)) == ([], [Frame.LAUNCH])


async def test_a_fork_that_fails_leaves_a_sandbox_whose_runner_launches_its_own_and_forks_no_more():
    runner, forks = MemoryRunner(DOES_NOT), Forks(set(PreloadSet), failing={PreloadSet.BARE})
    sandbox = await opened(runner, forks)
    assert await sandbox.become(PreloadSet.DATA) is False
    assert (forks.made, kinds_of(runner)) == ([], [Frame.ADOPT, Frame.LAUNCH])


async def test_a_sandbox_becomes_the_flavour_of_its_call():
    runner, forks = MemoryRunner(COMES), Forks(set(PreloadSet))
    sandbox = await opened(runner, forks)
    assert await sandbox.become(PreloadSet.DATA) is True
    assert (forks.made, kinds_of(runner)) == (["bare", "data"], [Frame.ADOPT, Frame.ADOPT])


async def test_a_flavour_that_is_not_ready_leaves_the_interpreter_that_waits():
    runner, forks = MemoryRunner(COMES), Forks({PreloadSet.BARE})
    sandbox = await opened(runner, forks)
    assert await sandbox.become(PreloadSet.DATA) is False
    assert (forks.made, kinds_of(runner)) == (["bare"], [Frame.ADOPT])


async def test_a_bare_call_takes_the_interpreter_that_waits():
    runner, forks = MemoryRunner(COMES), Forks(set(PreloadSet))
    sandbox = await opened(runner, forks)
    assert await sandbox.become(PreloadSet.BARE) is True
    assert forks.made == ["bare"]


async def test_a_sandbox_that_dies_while_it_becomes_a_flavour_is_lost():
    answers = [[(Frame.LAUNCHED, b"")], [HUNG_UP]]
    runner, forks = MemoryRunner({}), Forks(set(PreloadSet))
    runner._answers[Frame.ADOPT] = answers[0]
    sandbox = await opened(runner, forks)
    runner._answers[Frame.ADOPT] = answers[1]
    with pytest.raises(SandboxLostError, match="the sandbox ended by itself"):
        await sandbox.become(PreloadSet.DOCUMENTS)


async def test_a_runner_that_does_not_adopt_in_time_is_lost():
    runner, forks = MemoryRunner({Frame.ADOPT: [], Frame.LAUNCH: []}), Forks(set(PreloadSet))
    with pytest.raises(SandboxLostError, match="did not answer within"):
        await opened(runner, forks)


@pytest.mark.parametrize(("said", "made"), [(b"\0", "inspector"), (b"\1", "plain inspector")])
async def test_an_inspector_is_forked_when_the_runner_asks_for_one(tmp_path, said, made):
    runner, forks = MemoryRunner({**COMES, Frame.COLLECT: [(Frame.INSPECTOR, said), DONE]}), Forks(set(PreloadSet))
    sandbox = await opened(runner, forks)
    await sandbox.collect(OutputSpec("turn_1", (), 50, LIMITS), tmp_path)
    assert await forked_in(sandbox, forks) == [made]


async def test_an_inspector_that_cannot_be_forked_is_launched_by_the_runner(tmp_path):
    answers = {**COMES, Frame.COLLECT: [(Frame.INSPECTOR, b"")], Frame.LAUNCH: [DONE]}
    runner, forks = MemoryRunner(answers), Forks(set(PreloadSet), failing={"inspector"})
    sandbox = await opened(runner, forks)
    await sandbox.collect(OutputSpec("turn_1", (), 50, LIMITS), tmp_path)
    assert kinds_of(runner) == [Frame.ADOPT, Frame.COLLECT, Frame.LAUNCH]


async def ran(runner, forks, wanted=WANTED):
    """A sandbox in which a program has run, and its outcome."""
    sandbox = await opened(runner, forks)
    return sandbox, await sandbox.run(JOB, on_output=lambda *_: None, wanted=wanted)


async def forked_in(sandbox, forks):
    """What was forked after the interpreter, once all of it has come."""
    await asyncio.sleep(0)
    if (coming := sandbox._inspectors._coming) is not None:
        await coming
    return forks.made[1:]


async def test_an_inspector_is_forked_before_a_program_is_gone_whose_outcome_comes_then():
    said = [PLAIN_INSPECTOR, (Frame.STDOUT, b"\0its last words"), EXIT]
    runner, forks = MemoryRunner({**COMES, Frame.JOB: said}), Forks(set(PreloadSet))
    sandbox, outcome = await ran(runner, forks)
    assert (outcome.exit_code, outcome.lost) == (0, None)
    assert await forked_in(sandbox, forks) == ["plain inspector"]


@pytest.mark.parametrize(
    ("running", "collecting"),
    [([PLAIN_INSPECTOR], [INSPECTOR]), ([PLAIN_INSPECTOR, INSPECTOR], []), ([], [PLAIN_INSPECTOR, INSPECTOR])],
)
async def test_a_second_inspector_is_forked_for_what_ended_the_first(tmp_path, running, collecting):
    answers = {**COMES, Frame.JOB: [*running, EXIT], Frame.COLLECT: [*collecting, DONE]}
    forks = Forks(set(PreloadSet))
    sandbox, outcome = await ran(MemoryRunner(answers), forks)
    await sandbox.collect(WANTED, tmp_path)
    assert (outcome.exit_code, outcome.lost) == (0, None)
    assert await forked_in(sandbox, forks) == ["plain inspector", "inspector"]


@pytest.mark.parametrize("running", range(3))
async def test_a_runner_that_asks_for_a_third_inspector_while_it_collects_is_lost(tmp_path, running):
    collecting = [INSPECTOR] * (3 - running)
    answers = {**COMES, Frame.JOB: [*[INSPECTOR] * running, EXIT], Frame.COLLECT: [*collecting, DONE]}
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner(answers), forks)
    with pytest.raises(SandboxLostError, match="the runner sent INSPECTOR while it collected"):
        await sandbox.collect(WANTED, tmp_path)
    assert await forked_in(sandbox, forks) == ["inspector"] * 2


async def test_a_runner_that_asks_for_a_third_inspector_while_the_program_ends_is_lost():
    forks = Forks(set(PreloadSet))
    sandbox, outcome = await ran(MemoryRunner({**COMES, Frame.JOB: [*[INSPECTOR] * 3, EXIT]}), forks)
    assert (outcome.exit_code, outcome.lost) == (None, "the runner sent INSPECTOR while the program ran")
    assert await forked_in(sandbox, forks) == ["inspector"] * 2


async def test_a_runner_that_asks_for_an_inspector_where_nothing_is_to_be_collected_is_lost():
    forks = Forks(set(PreloadSet))
    sandbox, outcome = await ran(MemoryRunner({**COMES, Frame.JOB: [INSPECTOR, EXIT]}), forks, wanted=None)
    assert (outcome.exit_code, outcome.lost) == (None, "the runner sent INSPECTOR while the program ran")
    assert await forked_in(sandbox, forks) == []


def wanted(*files):
    """Promises by name; those that end in a question mark need not be kept."""
    promised = (
        ExpectedFile(
            name.rstrip("?"), is_glob="*" in name, matches_max=9, checks={}, required=not name.endswith("?")
        )
        for name in files
    )
    return OutputSpec("turn_1", tuple(promised), 50, LIMITS)


@pytest.mark.parametrize(
    ("promised", "extensions", "is_plain"),
    [
        (["a.csv", "b/notes.MD", "c.csv"], ["csv", "md"], True),
        (["a.csv", "b.pdf"], ["csv", "pdf"], False),
        (["*.html"], ["html"], False),
        (["data.odd", "README"], [], True),
        (["a.tar.gz"], ["gz"], False),
        (["a.csv", "b.pdf?"], ["csv"], True),
    ],
)
async def test_an_inspector_waits_while_a_program_runs_that_promises_files(promised, extensions, is_plain):
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [EXIT]}), forks, wanted(*promised))
    assert await forked_in(sandbox, forks) == []
    assert (forks.waiting.extensions, forks.waiting.of_plain_files) == (extensions, is_plain)


@pytest.mark.parametrize("promised", [[], ["a.csv?", "*.pdf?"]])
async def test_none_waits_where_a_run_may_leave_no_file(promised):
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [EXIT]}), forks, wanted(*promised))
    assert (await forked_in(sandbox, forks), forks.waiting) == ([], None)


@pytest.mark.parametrize(
    ("promised", "called", "made"),
    [
        ("a.csv", PLAIN_INSPECTOR, "waiting plain inspector"),
        ("a.pdf", INSPECTOR, "waiting inspector"),
        # A pattern may match files of any kind.
        ("*.pdf", PLAIN_INSPECTOR, "waiting inspector"),
        ("result", INSPECTOR, "inspector"),
    ],
)
async def test_the_one_that_waits_is_let_in_if_it_can_open_the_files(promised, called, made):
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [called, EXIT]}), forks, wanted(promised))
    assert await forked_in(sandbox, forks) == [made]
    assert forks.waiting.closed == 1


@pytest.mark.parametrize("failing", ["waiting", "letting in", "everything"])
async def test_an_inspector_is_forked_where_the_one_that_waits_is_of_no_use(failing):
    forks = Forks(set(PreloadSet), failing={failing})
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [PLAIN_INSPECTOR, EXIT]}), forks, PROMISED)
    assert await forked_in(sandbox, forks) == ["plain inspector"]


async def test_none_waits_in_a_sandbox_with_little_memory():
    forks = Forks(set(PreloadSet))
    little = replace(PROMISED, limits=replace(LIMITS, memory_bytes=511 << 20))
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [EXIT]}), forks, little)
    assert (await forked_in(sandbox, forks), forks.waiting) == ([], None)


async def test_a_second_inspector_is_none_that_has_waited():
    said = [PLAIN_INSPECTOR, PLAIN_INSPECTOR, EXIT]
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: said}), forks, PROMISED)
    assert sorted(await forked_in(sandbox, forks)) == ["plain inspector", "waiting plain inspector"]


@pytest.mark.parametrize("failing", [(), {"waiting"}])
async def test_one_that_nobody_has_called_ends_with_the_sandbox(failing):
    forks = Forks(set(PreloadSet), failing)
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [EXIT]}), forks, PROMISED)
    sandbox.close()
    sandbox.close()
    for _ in range(3):
        await asyncio.sleep(0)
    assert failing or forks.waiting.closed == 1


async def test_one_that_is_still_being_forked_ends_with_the_sandbox():
    forks, go_on = Forks(set(PreloadSet)), asyncio.Event()
    at_once = forks.waiting_inspector

    async def late(extensions, *, of_plain_files):
        await go_on.wait()
        return await at_once(extensions, of_plain_files=of_plain_files)

    forks.waiting_inspector = late
    sandbox, _ = await ran(MemoryRunner({**COMES, Frame.JOB: [EXIT]}), forks, PROMISED)
    sandbox.close()
    go_on.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (forks.waiting.closed, forks.made) == (1, ["bare"])


def test_service_and_runner_agree_on_what_libraries_open():
    source = (ROOT / "sandbox_images" / "runner" / "collect.py").read_text()
    [told] = re.findall(r"^_OF_LIBRARIES = frozenset\(\n(.*?)\n\)$", source, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r'"(\w+)"', told)) == OF_LIBRARIES
