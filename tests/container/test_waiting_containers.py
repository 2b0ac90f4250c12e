"""Containers that wait for calls: flavours, limits set when one is taken, harm to them, what an operator sees."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import pytest
import pytest_asyncio

from proofbox.contracts.tools import Language
from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.sandbox_engine import service_name
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import ExpectedFile, Job, OutputSpec, SandboxSpec
from proofbox.service.sandbox.preload import PreloadSet
from tests.container.calling import Caller
from tests.support.staging import MadeFolder

pytestmark = [pytest.mark.docker, pytest.mark.of_docker, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
CHART = """
import sys
before = set(vars(sys)["modules"])
import pandas as pd
from matplotlib import pyplot as plt
pd.DataFrame({"a": [1, 2]}).plot()
plt.savefig("files/chart.png")
print("pandas" in before, plt.get_backend())
"""
HOG = "block = bytearray(%d); block[::4096] = b'x' * len(block[::4096])"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def waiting(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service whose pool is looked at."""
    service = build(Settings(data_dir=tmp_path_factory.mktemp("data"), pool_size=2, sweep_every_s=0.5))
    async with running(service):
        yield service


@pytest_asyncio.fixture(loop_scope="session")
async def unswept(tmp_path: Path) -> AsyncIterator[Service]:
    """A service that takes no container out of its pool, not even for the moment of asking whether it is well."""
    service = build(Settings(data_dir=tmp_path, pool_size=2, sweep_every_s=3_600))
    async with running(service):
        await until(lambda: filled(service))
        yield service


@pytest_asyncio.fixture(loop_scope="session")
async def call(waiting: Service) -> Caller:
    await until(lambda: filled(waiting))
    return Caller(waiting)


@pytest.fixture(scope="module")
def containers() -> Any:
    """The engine's own view, and its hands."""
    if os.environ.get("PROOFBOX_ENGINE", "docker") != "docker":
        pytest.skip("looks at the containers through Docker's API; the engine oci has none")
    return docker.from_env().containers


async def until(holds: Callable[[], bool]) -> None:
    """Waits for something that will be; the test's own time limit ends it."""
    while not holds():  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.02)


def filled(service: Service) -> bool:
    pool = service.engine.pool
    return all(pool.waiting(flavour) >= wanted for flavour, wanted in pool.wanted().items())


def waiting_ids(service: Service) -> list[str]:
    return [box.container_id for box in service.engine.pool._ready[PreloadSet.BARE]]


def samples(service: Service) -> dict[str, float]:
    lines = service.meter.text().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def grown(service: Service, before: dict[str, float], name: str) -> dict[str, float]:
    """What has changed of a metric, by its labels."""
    after = samples(service)
    return {
        key.removeprefix(name): value - before.get(key, 0)
        for key, value in after.items()
        if key.startswith(name) and value != before.get(key, 0)
    }


@pytest.mark.slow
async def test_a_flavour_waits_from_its_first_call_on_and_programs_do_in_it_what_they_do_without(unswept):
    call, before = Caller(unswept), samples(unswept)
    said = []
    for _ in range(2):
        response = await call(CHART, ["chart.png"])
        said.append((response.ok, response.sandbox.acquired, await call.output()))
        await until(lambda: filled(unswept))
    assert (said[1], unswept.engine.pool.waiting(PreloadSet.DATA)) == ((True, "warm", "True agg\n"), 1)
    hits = grown(unswept, before, "proofbox_pool_taken_total")
    assert hits == {'{flavour="data",got="bare"}': 1, '{flavour="data",got="warm"}': 1}


IMPORTS_BYTES = 50 * MIB
"""A zygote that is larger was told what to import, and is at it."""


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def zygotes(service: Service, containers: Any) -> set[str]:
    """The ids of all that programs of a service are forked from."""
    label = f"proofbox.zygote-of={service_name(service.settings)}"
    found = await asyncio.to_thread(containers.list, filters={"label": label}, ignore_removed=True)
    return {zygote.id for zygote in found}


@pytest.mark.slow
async def test_a_program_for_statistics_finds_its_libraries_loaded_however_long_that_took(
    call, waiting, containers
):
    code = (
        "import sys\nbefore = set(vars(sys)['modules'])\nimport seaborn, statsmodels.api\n"
        "from sklearn.ensemble import RandomForestClassifier\nfrom scipy import stats\n"
        "print({'scipy.stats', 'seaborn', 'sklearn.ensemble', 'statsmodels.api'} - before)\n"
        "print(RandomForestClassifier(5, random_state=0, n_jobs=2).fit([[0], [1]] * 9, [0, 1] * 9).predict([[1]]))"
    )
    pool, before = waiting.engine.pool, await zygotes(waiting, containers)
    ticket = await call.submit("if 0: import statsmodels")  # names the library, and does without it
    while not (new := await zygotes(waiting, containers) - before):  # noqa: ASYNC110 - the engine tells nobody
        await asyncio.sleep(0.02)
    importing = (await asyncio.to_thread(containers.get, new.pop())).attrs["State"]["Pid"]
    await until(lambda: resident_bytes(importing) > IMPORTS_BYTES)
    os.kill(importing, signal.SIGSTOP)
    try:
        assert not (await ticket.answer()).is_problem
        await until(lambda: pool.starting(PreloadSet.SCIENCE) == 1)
        await until(lambda: pool.starting(PreloadSet.SCIENCE) == 0)  # gave up for now: what it waits for is stopped
        assert pool.waiting(PreloadSet.SCIENCE) == 0
    finally:
        os.kill(importing, signal.SIGCONT)
    await until(lambda: pool.waiting(PreloadSet.SCIENCE) == 1)
    response = await call(code)
    assert (response.ok, response.sandbox.acquired, await call.output()) == (True, "warm", "set()\n[1]\n")


async def test_what_waits_has_the_libraries_of_its_flavour_already(call, waiting):
    await call(CHART, ["chart.png"])
    await until(lambda: filled(waiting))
    ready = waiting.engine.pool._ready
    inside = {flavour: {box.sandbox.flavour for box in boxes} for flavour, boxes in ready.items()}
    assert inside[PreloadSet.BARE] == {PreloadSet.BARE}
    assert inside[PreloadSet.DATA] == {PreloadSet.DATA}


async def test_a_program_that_sets_what_libraries_read_has_its_way(call):
    code = "import os\nos.environ['MPLBACKEND'] = 'svg'\nimport matplotlib\nprint(matplotlib.get_backend())"
    for _ in range(2):
        response = await call(code)
        assert (response.ok, await call.output()) == (True, "svg\n")


@pytest.mark.parametrize(
    ("limits", "code", "error"),
    [
        ({"memory_bytes": 600 * MIB}, HOG % (700 * MIB), "out_of_memory"),
        ({"memory_bytes": 600 * MIB}, HOG % (400 * MIB), None),
        ({"pids": 32}, "import os\nwhile True: os.fork()", "process_limit"),
        ({}, HOG % (700 * MIB), None),
    ],
    ids=["too much memory", "enough memory", "processes", "the operator's"],
)
async def test_limits_are_set_on_a_container_that_waited_and_are_kept(call, limits, code, error):
    response = await call(code, limits=limits)
    assert (response.sandbox.acquired, response.error and response.error.code) == ("warm", error), response.report


async def test_a_share_of_the_cpu_is_set_on_a_container_that_waited(call):
    code = (
        "import time\nbegan, used = time.monotonic(), time.process_time()\n"
        "while time.monotonic() - began < 1: pass\nprint(time.process_time() - used)"
    )
    response = await call(code, limits={"cpus": 0.2})
    assert response.sandbox.acquired == "warm"
    assert float(await call.output()) < 0.5


async def test_a_smaller_file_system_means_a_cold_start(call, waiting):
    before = samples(waiting)
    response = await call("print(1)", limits={"out_dir_bytes": MIB})
    assert response.sandbox.acquired == "cold"
    assert grown(waiting, before, "proofbox_pool_taken_total") == {'{flavour="bare",got="own"}': 1}


@pytest.mark.parametrize("harm", ["pause", "kill"])
async def test_a_container_that_was_harmed_while_it_waited_is_given_to_no_call(call, waiting, containers, harm):
    before = samples(waiting)
    harmed = waiting_ids(waiting)
    for container_id in harmed:
        await asyncio.to_thread(getattr(containers.get(container_id), harm))
    response = await call("print(1)")
    assert response.ok, response.report
    await until(lambda: grown(waiting, before, "proofbox_pool_ended_total") == {"": len(harmed)})
    await until(lambda: filled(waiting))
    assert set(waiting_ids(waiting)) & set(harmed) == set()
    while set(harmed) & {found.id for found in await asyncio.to_thread(containers.list, all=True, sparse=True)}:  # noqa: ASYNC110
        await asyncio.sleep(0.1)  # they go when there is time for it; a look at each would meet one that just went


@pytest.mark.slow
async def test_a_container_is_named_after_a_call_that_lasts(call, waiting, containers):
    swept = waiting.engine.swept  # one that was harmed in a test before may have been left to the sweeper
    ticket = await call.submit("import time; time.sleep(100)", tool_call_id="call:with-name")
    names: list[str] = []
    while not any(name.endswith("-call_with-name") for name in names):
        await asyncio.sleep(0.1)
        names = [found.name for found in await asyncio.to_thread(containers.list, ignore_removed=True)]
    await waiting.calls.cancel(waiting.principal, call.last_id, call.conversation)
    await ticket.answer()
    await asyncio.sleep(1)  # the sweeper comes by
    assert waiting.engine.swept == swept


async def test_a_container_that_waits_has_the_whole_share_of_the_cpu(call, waiting, containers):
    await call(CHART, ["chart.png"])
    await until(lambda: filled(waiting))
    shares = set()
    for boxes in tuple(waiting.engine.pool._ready.values()):
        for box in tuple(boxes):  # the pool may change meanwhile
            container = await asyncio.to_thread(containers.get, box.container_id)
            shares.add(container.attrs["HostConfig"]["CpuShares"])
    assert shares == {1024}


async def test_memory_for_waiting_containers_is_told(waiting):
    found = samples(waiting)
    assert 0 < found["proofbox_pool_memory_bytes"] < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def inspectors_in(namespace: str) -> list[int]:
    """The numbers, on this machine, of the inspectors in a namespace of processes."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if b"zygote/inspector" in (entry / "cmdline").read_bytes():
                found += [int(entry.name)] if str((entry / "ns" / "pid").readlink()) == namespace else []
    return found


async def test_an_inspector_is_gone_before_its_files_are_here(waiting, tmp_path):
    await until(lambda: filled(waiting))
    limits = CallLimits(60, 1.0, 256 * MIB, 64, 16 * MIB, 1_000, 16 * MIB, 100, 8, MIB, 16 * MIB)
    wanted = OutputSpec("turn_1", (ExpectedFile("a.txt", is_glob=False, matches_max=1, checks={}),), 0, limits)
    code = b"import os\nopen('files/a.txt', 'w').write(os.readlink('/proc/self/ns/pid'))"
    job = Job(Language.PYTHON, code, "program", "turn_1", limits)
    async with waiting.engine.open(SandboxSpec("call_1", limits, 60.0)) as sandbox:
        await sandbox.put("turn_1", [])
        await sandbox.run(job, on_output=lambda *_: None, wanted=wanted)
        collected = await sandbox.collect(wanted, MadeFolder(tmp_path))
        [namespace] = [found.source.read().decode() for found in collected.found]
        assert namespace.startswith("pid:")
        assert inspectors_in(namespace) == []


# ---- the reserve ----


async def acquired(call: Caller, call_id: str) -> str:
    """How a call got its sandbox, once it has one."""
    async for event in await call.follow(call_id):
        if event.name == "started":
            return str(json.loads(event.data)["acquired"])
    raise AssertionError("the call has no sandbox")


@pytest.mark.slow
async def test_a_caller_with_many_calls_leaves_the_reserve_to_a_caller_with_none(tmp_path: Path) -> None:
    settings = Settings(
        data_dir=tmp_path, pool_size=1, pool_reserve=1, running_max=5, starts_max=4, sweep_every_s=3_600
    )
    service = build(settings)
    async with running(service):
        await until(lambda: filled(service))
        assert service.engine.pool.ready == 2
        many = Caller(service)
        ids = []
        for _ in range(3):
            await many.submit("import time\ntime.sleep(60)")
            ids.append(many.last_id)
        got = await asyncio.gather(*(acquired(many, call_id) for call_id in ids))
        assert sorted(got) == ["cold", "cold", "warm"]
        neighbour = Caller(replace(service, principal=replace(service.principal, tenant="neighbour")))
        response = await neighbour("print(1)")
        assert response.sandbox is not None
        assert response.sandbox.acquired == "warm"
        for call_id in ids:
            await service.calls.cancel(service.principal, call_id, many.conversation)
