"""The engine over containers of any kind: which container a call gets, with which limits, and how it goes."""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.contracts.tools import Language
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import Container, OrphanContainer
from proofbox.service.sandbox.engine import PooledEngine, PooledEngineSettings
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.pool_sizing import PoolPolicy
from proofbox.service.sandbox.port import Job, OutputSpec, SandboxSpec
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.frames import Frame
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import StreamBounds
from proofbox.service.sandbox.sandbox_users import SandboxUsers
from tests.support.clock import FakeClock
from tests.support.memory_runner import MemoryRunner

MIB = 1024 * 1024
BARE, DATA = PreloadSet.BARE, PreloadSet.DATA
LIMITS = CallLimits(600, 2.0, 1024 * MIB, 256, 256 * MIB, 20_000, 256 * MIB, 5_000, 32, 256 * MIB, 100 * MIB)
ANSWERS = {
    Frame.ADOPT: [(Frame.LAUNCHED, b"")],
    Frame.PING: [(Frame.PONG, b"")],
    Frame.JOB: [(Frame.EXIT, {"exit_code": 0, "output": []})],
    Frame.COLLECT: [(Frame.COLLECTED, {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False})],
}


class Transport(MemoryRunner):
    """The stream to a runner in memory, which the service can close."""

    is_open = True
    stderr_tail = b""

    async def close(self):
        self.is_open = False


class FakeContainers:
    """The port ``Containers``; nothing is started.

    Attributes:
        there: what was started and not removed: name, limits and flavour by id.
        log: what was done to containers, in order.
        deadlines: until when each may exist, in seconds since 1970.
        listing: set while `left` may answer with what it saw.
        died: those that the kernel killed for memory.
    """

    def __init__(self):
        self.there = {}
        self.boot_ids = {}
        self.log = []
        self.deadlines = {}
        self.died = set()
        self.users = {}
        self.listing = asyncio.Event()
        self.listing.set()
        self.updates_limits = True
        self.refuses_updates = False
        self.removes = True
        self.is_down = False
        self.fails = None
        self.free_bytes = 8000 * MIB
        self.unprepared = set()
        self.forks = None

    async def connect(self):
        return SandboxInfo(engine="none", runtime="none", image_digest="sha256:0", acquired="cold")

    async def close(self):
        self.log.append("closed")

    async def ping(self):
        pass

    async def memory_bytes(self):
        return self.free_bytes

    async def prepare(self, flavour):
        self.log.append(("prepared", flavour))
        return flavour not in self.unprepared

    async def start(self, name, limits, deadline_epoch_s, flavour, user_id):
        if self.fails is not None:
            raise self.fails
        container_id = f"id-{name.rpartition('-')[2]}"
        self.there[container_id] = (name, limits, flavour)
        self.deadlines[container_id] = deadline_epoch_s
        self.users[container_id] = user_id

        async def attach():
            return Transport(ANSWERS)

        return Container(container_id, attach, self.forks)

    async def begin_waiting(self, container_id, flavour):
        self.log.append(("waits", container_id, flavour))

    async def set_limits(self, container_id, limits):
        if self.refuses_updates:
            raise EngineUnavailableError("no")
        name, _, flavour = self.there[container_id]
        self.there[container_id] = (name, limits, flavour)

    async def name_after(self, container_id, name, call_name):
        self.log.append(("named", container_id, name, call_name))

    async def remove(self, container_id):
        if self.removes:
            self.there.pop(container_id, None)

    async def died_of_memory(self, container_id):
        return container_id in self.died

    async def list_orphans(self):
        if self.is_down:
            raise EngineUnavailableError("it answered 500")
        found = list(self.there.items())
        await self.listing.wait()
        boot_ids = self.boot_ids
        return [OrphanContainer(each, name, boot_ids.get(each, "boot")) for each, (name, *_) in found]


def settings(**pool):
    policy = PoolPolicy(size=1, most=8, memory_bytes=0, starts_max=2, age_max_s=1000, unused_s=600)
    return PooledEngineSettings(
        boot_id="boot",
        default_limits=LIMITS,
        pool=replace(policy, **pool),
        ready_s=5,
        call_lifetime_s=700,
        sweep_every_s=1000,
        stream=StreamBounds(100, 5, 5),
        inspector=InspectorBounds(0, 1, 2, 3, 4),
        users=SandboxUsers(20_000, 4),
    )


async def settled():
    """Lets everything happen that needs no time to pass."""
    for _ in range(30):
        await asyncio.sleep(0)


class Rig:
    """An engine, its containers and its clock."""

    def __init__(self, **pool):
        self.containers = FakeContainers()
        self.clock = FakeClock()
        self.load = 0.0
        self.engine = PooledEngine(self.containers, settings(**pool), lambda: self.load, self.clock)
        self._open = AsyncExitStack()

    async def passes(self, seconds):
        for _ in range(max(1, round(seconds / 0.05))):
            self.clock.advance(0.05)
            await settled()

    async def started(self):
        await self.engine.start()
        await self.passes(0.5)
        return self

    def spec(self, flavour=BARE, call_name="call_1", **limits):
        return SandboxSpec(call_name, replace(LIMITS, **limits), 700, flavour)

    async def opened(self, spec):
        """A sandbox that stays open, and what is known of its container."""
        before = dict(self.containers.there)
        sandbox = await self._open.enter_async_context(self.engine.open(spec))
        changed = {key: value for key, value in self.containers.there.items() if before.get(key) != value}
        return sandbox, changed

    async def stop(self):
        await self._open.aclose()
        await self.engine.stop()


@pytest.fixture
async def rig():
    rig = await Rig().started()
    yield rig
    await rig.stop()


async def test_waiting_containers_have_the_operators_limits_and_are_told_that_they_wait(rig):
    assert rig.containers.there == {"id-1": ("proofbox-boot-1", LIMITS, BARE)}
    assert rig.containers.log == [("prepared", BARE), ("waits", "id-1", BARE)]


async def test_a_waiting_container_may_exist_as_long_as_it_may_wait_and_the_longest_call_takes(rig):
    assert rig.containers.deadlines["id-1"] == pytest.approx(time.time() + 1000 + 700 + 5, abs=60)


async def test_without_a_number_of_the_operator_waiting_containers_may_take_an_eighth_of_the_memory(rig):
    assert rig.engine.pool.policy.memory_bytes == 1000 * MIB


async def test_the_operators_number_is_kept():
    rig = await Rig(memory_bytes=77).started()
    assert (rig.engine.pool.policy.memory_bytes, rig.containers.there) == (77, {})
    await rig.stop()


@pytest.mark.parametrize("limits", [{"memory_bytes": 600 * MIB}, {"cpus": 0.5}, {"pids": 32}])
async def test_limits_of_a_control_group_are_set_on_a_container_that_waited(rig, limits):
    sandbox, changed = await rig.opened(rig.spec(**limits))
    assert sandbox.info.acquired == "warm"
    assert changed == {"id-1": ("proofbox-boot-1", replace(LIMITS, **limits), BARE)}


async def test_limits_that_only_the_runner_keeps_change_no_container(rig):
    sandbox, changed = await rig.opened(rig.spec(wall_s=5, files=7, output_bytes=10))
    assert (sandbox.info.acquired, changed) == ("warm", {})


@pytest.mark.parametrize("limits", [{"out_dir_bytes": MIB}, {"out_dir_inodes": 99}])
async def test_a_smaller_file_system_needs_a_container_of_its_own(rig, limits):
    sandbox, changed = await rig.opened(rig.spec(DATA, **limits))
    assert sandbox.info.acquired == "cold"
    assert list(changed.values()) == [("proofbox-boot-2", replace(LIMITS, **limits), BARE)]
    assert (rig.engine.pool.ready, dict(rig.engine.pool.counts.taken)) == (1, {(DATA, "own"): 1})


async def test_where_limits_cannot_be_changed_later_they_need_a_container_of_its_own(rig):
    rig.containers.updates_limits = False
    sandbox, changed = await rig.opened(rig.spec(pids=32))
    assert (sandbox.info.acquired, rig.engine.pool.ready) == ("cold", 1)
    assert list(changed.values()) == [("proofbox-boot-2", replace(LIMITS, pids=32), BARE)]


async def test_a_container_whose_limits_could_not_be_changed_is_removed_and_another_is_started(rig):
    rig.containers.refuses_updates = True
    sandbox, changed = await rig.opened(rig.spec(pids=32))
    await rig.passes(0.1)
    assert sandbox.info.acquired == "cold"
    assert list(changed.values()) == [("proofbox-boot-2", replace(LIMITS, pids=32), BARE)]
    assert "id-1" not in rig.containers.there


async def test_a_call_with_little_memory_gets_no_container_that_holds_libraries(rig):
    small = replace(rig.spec(DATA), limits=replace(LIMITS, memory_bytes=200 * MIB))
    await rig.opened(small)
    assert dict(rig.engine.pool.counts.taken) == {(BARE, "warm"): 1}


async def ended(rig, spec, *, collects):
    async with rig.engine.open(spec) as sandbox:
        await sandbox.run(Job(Language.PYTHON, b"1", "main", "turn_1", LIMITS), on_output=lambda *_: None)
        if collects:
            await sandbox.collect(OutputSpec("turn_1", (), 0, LIMITS), None)


async def test_after_a_call_that_was_collected_the_container_goes_a_moment_later(rig):
    await ended(rig, rig.spec(), collects=True)
    assert "id-1" in rig.containers.there
    await rig.passes(0.1)
    assert "id-1" not in rig.containers.there


async def test_while_a_call_runs_removing_waits_but_not_for_long(rig):
    rig.load = 0.25
    await ended(rig, rig.spec(), collects=True)
    await rig.passes(0.2)
    assert "id-1" in rig.containers.there
    await rig.passes(0.4)
    assert "id-1" not in rig.containers.there


async def test_after_a_call_that_broke_off_the_container_goes_at_once(rig):
    await ended(rig, rig.spec(), collects=False)
    await rig.passes(0.05)
    assert "id-1" not in rig.containers.there


async def test_a_container_is_named_after_its_call_once_that_lasts(rig):
    await rig.opened(rig.spec(call_name="call ä/7\n" + "x" * 200))
    await rig.passes(0.9)
    named = [entry for entry in rig.containers.log if entry[0] == "named"]
    await rig.passes(0.2)
    assert named == []
    assert ("named", "id-1", "proofbox-boot-1", "call_7_" + "x" * 73) in rig.containers.log


async def test_a_short_call_costs_no_renaming(rig):
    await ended(rig, rig.spec(), collects=True)
    await rig.passes(2)
    assert [entry for entry in rig.containers.log if entry[0] == "named"] == []


async def test_a_container_that_outlives_its_call_is_removed_under_its_hands(rig):
    await rig.opened(rig.spec())
    await rig.passes(701)
    assert "id-1" not in rig.containers.there


async def test_a_container_that_is_removed_while_leftovers_are_listed_is_none(rig):
    rig.containers.listing.clear()
    sweeping = asyncio.create_task(rig.engine.sweep())
    await settled()
    await ended(rig, rig.spec(), collects=False)
    await rig.passes(0.1)
    rig.containers.listing.set()
    assert (await sweeping, "id-1" in rig.containers.there) == (0, False)


async def test_what_nobody_holds_is_swept(rig):
    rig.containers.there["lost"] = ("proofbox-boot-77", LIMITS, BARE)
    assert (await rig.engine.sweep(), list(rig.containers.there)) == (1, ["id-1"])


async def test_a_leftover_that_the_engine_is_slow_to_remove_is_counted_once(rig):
    rig.containers.there["lost"] = ("proofbox-boot-77", LIMITS, BARE)
    rig.containers.removes = False
    assert [await rig.engine.sweep() for _ in range(3)] == [1, 0, 0]
    rig.containers.removes = True
    await rig.engine.sweep()
    assert (rig.engine.swept, list(rig.containers.there)) == (1, ["id-1"])


async def test_stopping_waits_for_no_removal(rig):
    rig.load = 1.0
    await ended(rig, rig.spec(), collects=True)
    await rig.stop()
    assert rig.containers.there == {}


async def test_stopping_leaves_nothing(rig):
    await rig.opened(rig.spec(DATA))
    await rig.passes(1)
    assert sorted(flavour for _, _, flavour in rig.containers.there.values()) == [BARE, BARE, DATA]
    await rig.stop()
    assert (rig.containers.there, rig.containers.log[-1]) == ({}, "closed")


async def test_no_container_is_started_for_libraries_that_cannot_be_had_yet(rig):
    rig.containers.unprepared = {BARE, DATA}
    await rig.opened(rig.spec(DATA))
    await rig.passes(1)
    assert [flavour for _, _, flavour in rig.containers.there.values()] == [BARE, BARE]
    rig.containers.unprepared = set()
    await rig.passes(1)
    assert rig.engine.pool.waiting(DATA) == 1


class LostForks:
    """Of what could be forked from a moment ago, and cannot be any more."""

    def has(self, _flavour):
        return False


async def test_a_container_whose_interpreter_has_no_libraries_does_not_count_as_one_that_has(rig):
    await rig.opened(rig.spec(DATA))
    rig.containers.forks = LostForks()
    await rig.passes(0.5)
    pool = rig.engine.pool
    assert (pool.waiting(DATA), pool.waiting(BARE)) == (0, 2)


class ReadyForks:
    """Of all flavours."""

    def __init__(self):
        self.made = []

    def has(self, _flavour):
        return True

    async def interpreter(self, flavour):
        self.made.append(flavour)


@pytest.mark.parametrize(("is_bare", "made"), [(True, [BARE]), (False, [BARE, DATA])])
async def test_a_call_with_another_version_of_a_library_gets_an_interpreter_without_libraries(is_bare, made):
    rig = Rig()
    forks = rig.containers.forks = ReadyForks()
    await rig.started()
    sandbox, _ = await rig.opened(replace(rig.spec(DATA), is_bare=is_bare))
    assert (sandbox.flavour, forks.made[: len(made)]) == (made[-1], made)
    await rig.stop()


@pytest.mark.parametrize(("is_only_call", "acquired"), [(True, "warm"), (False, "cold")])
async def test_what_is_reserved_is_open_to_a_spec_of_an_only_call_alone(is_only_call, acquired):
    rig = await Rig(reserve=1).started()
    await rig.opened(rig.spec())
    sandbox, _ = await rig.opened(replace(rig.spec(), is_only_call=is_only_call))
    assert sandbox.info.acquired == acquired
    await rig.stop()


async def test_the_log_tells_once_that_the_engine_is_away_and_once_that_it_is_back(caplog):
    rig = await Rig().started()
    with caplog.at_level(logging.WARNING, "proofbox.engine"):
        for rig.containers.is_down in (False, True, True, True, False, False):
            await rig.engine._sweep_and_log()
    assert [record.getMessage() for record in caplog.records] == [
        "the container engine does not answer, calls fail: it answered 500",
        "the container engine answers again",
    ]
    await rig.engine.stop()


# ---- the start ----


async def test_the_start_waits_for_no_sandbox_and_calls_wait_until_an_earlier_process_has_left_nothing():
    rig = Rig()
    rig.containers.there["id-9"] = ("proofbox-other-9", LIMITS, BARE)
    rig.containers.listing.clear()
    await rig.engine.start()
    call = asyncio.create_task(rig.opened(rig.spec()))
    await rig.passes(1)
    assert (call.done(), list(rig.containers.there)) == (False, ["id-9"])
    with pytest.raises(EngineUnavailableError, match="the first sandbox is being started"):
        await rig.engine.ping()
    rig.containers.boot_ids["id-9"] = "other"
    rig.containers.listing.set()
    await rig.passes(1)
    await call
    assert ("id-9" in rig.containers.there, rig.engine.swept) == (False, 1)
    await rig.engine.ping()
    await rig.stop()


async def test_an_engine_that_goes_away_after_it_was_connected_is_asked_again_and_fills_the_pool():
    rig = Rig()
    rig.containers.is_down = True
    await rig.engine.start()
    await rig.passes(3)
    assert rig.containers.there == {}
    rig.containers.is_down = False
    await rig.passes(2)
    assert list(rig.containers.there) == ["id-1"]
    await rig.stop()


async def test_without_a_pool_one_sandbox_is_tried_at_the_start_and_removed():
    rig = Rig(size=0)
    rig.containers.fails = EngineUnavailableError("no runtime")
    await rig.started()
    await rig.passes(9)
    with pytest.raises(EngineUnavailableError, match="no sandbox could be started yet: no runtime"):
        await rig.engine.ping()
    assert rig.engine.pool.counts.failed == 4  # after 0, 1, 3 and 7 s
    rig.containers.fails = None
    await rig.passes(30)
    await rig.engine.ping()
    assert (rig.containers.there, rig.engine._count) == ({}, 5)
    await rig.stop()


async def test_starts_with_limits_of_their_own_count_for_whether_sandboxes_start(rig):
    rig.containers.fails = EngineUnavailableError("no runtime")
    await rig.engine.ping()
    for _ in range(3):
        with pytest.raises(EngineUnavailableError):
            await rig.opened(rig.spec(out_dir_bytes=MIB))
    with pytest.raises(EngineUnavailableError, match="the last 3 starts of a sandbox failed: no runtime"):
        await rig.engine.ping()
    rig.containers.fails = None
    await rig.opened(rig.spec(out_dir_bytes=MIB))
    await rig.engine.ping()
