"""What a sandbox does with processes that are forked into it, and without them, against a runner in memory."""

import asyncio

import pytest

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.contracts.tools import Language
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Job, OutputSpec, SandboxLostError
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.frames import Frame
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from tests.support.memory_runner import HUNG_UP, MemoryRunner

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

    def has(self, flavour):
        return flavour in self._has

    async def interpreter(self, flavour):
        if flavour in self._failing:
            raise NotForkedError("the zygote has died")
        self.made.append(flavour.value)

    async def inspector(self, *, of_plain_files):
        if "inspector" in self._failing:
            raise NotForkedError("the zygote has died")
        self.made.append("plain inspector" if of_plain_files else "inspector")


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


async def test_what_was_forked_for_a_call_of_its_flavour_is_what_the_call_needs():
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
    if sandbox._inspector_fork is not None:
        await sandbox._inspector_fork
    return forks.made[1:]


@pytest.mark.parametrize("wanted", [WANTED, None])
async def test_a_runner_that_asks_for_an_inspector_before_the_program_has_ended_is_lost(wanted):
    forks = Forks(set(PreloadSet))
    sandbox, outcome = await ran(MemoryRunner({**COMES, Frame.JOB: [INSPECTOR, EXIT]}), forks, wanted)
    assert (outcome.exit_code, outcome.lost) == (None, "the runner sent INSPECTOR while the program ran")
    assert await forked_in(sandbox, forks) == []


async def test_a_runner_that_asks_for_a_second_inspector_is_lost(tmp_path):
    answers = {**COMES, Frame.JOB: [EXIT], Frame.COLLECT: [PLAIN_INSPECTOR, INSPECTOR, DONE]}
    forks = Forks(set(PreloadSet))
    sandbox, _ = await ran(MemoryRunner(answers), forks)
    with pytest.raises(SandboxLostError, match="the runner sent INSPECTOR while it collected"):
        await sandbox.collect(WANTED, tmp_path)
    assert await forked_in(sandbox, forks) == ["plain inspector"]
