"""No number of hogs takes the machine from the service: all sandboxes are below one control group with a total."""

import itertools
import os
import subprocess
import time
from pathlib import Path

import engine_sides
import pytest
from service_process import eventually, request, serving

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.linux.cgroups import Cgroups
from tests.support.engines import can_run_oci

pytestmark = pytest.mark.docker

MIB = 1024 * 1024
TOTAL_MEMORY, TOTAL_PIDS, HOGS = 320 * MIB, 150, 4
HUGE_PAGE = 2 * MIB
TAKES_MEMORY = (
    "block = bytearray(180_000_000); block[::4096] = b'x' * len(block[::4096])\nimport time; time.sleep(100)"
)
TAKES_PROCESSES = (
    "import os, time\n"
    "try:\n"
    "    while True:\n"
    "        if os.fork() == 0: time.sleep(100); os._exit(0)\n"
    "finally: time.sleep(100)"
)
TAKES_CPU = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
_numbers = itertools.count(1)


ENGINES = engine_sides.tested() if can_run_oci() else []


@pytest.fixture(scope="module", params=engine_sides.first_and_slow(ENGINES))
def service(request, tmp_path_factory):
    parent = f"proofbox-test-{os.getpid()}-{next(_numbers)}"
    side = engine_sides.side_of(request.param)
    # Zygotes would be in the group: a test removes it.
    settings = {
        "engine": request.param,
        "import_once": "off",
        "pool_size": 0,
        "running_max": HOGS + 2,
        "memory_bytes": 256 * MIB,
        "out_dir_bytes": 16 * MIB,
    }
    totals = {"total_memory_bytes": TOTAL_MEMORY, "total_pids": TOTAL_PIDS, "pids": 100, "cgroup_parent": parent}
    with serving(tmp_path_factory.mktemp("together") / "data", side, **settings, **totals) as service:
        service.group = f"/{parent}/{service.name}"
        yield service
    side.close()
    cgroups = Cgroups.of_machine()
    assert cgroups.children(f"/{parent}") == set()
    cgroups.remove(f"/{parent}", 5)


def metric(service, name):
    rows = [row.split() for row in service.client.get("/metrics").text.splitlines()]
    return next(float(row[1]) for row in rows if row[0] == f"proofbox_{name}")


def begin_hogs(service, code):
    bodies = [request(code, limits={"wall_s": 60}) for _ in range(HOGS)]
    for body in bodies:
        assert service.post(body, Prefer="respond-async").status_code == 202
    return bodies


def end_hogs(service, bodies):
    for body in bodies:
        service.cancel(body)
    assert eventually(service.containers, lambda left: left == []) == []


def test_memory_of_all_sandboxes_stays_below_its_total_and_a_neighbour_is_served(service):
    hogs = begin_hogs(service, TAKES_MEMORY)
    # Two and a half times the total: some of them have to go.
    codes = eventually(lambda: _codes(service, hogs), lambda codes: "out_of_memory" in codes)
    assert "out_of_memory" in codes
    assert service.client.get("/livez").status_code == 200
    assert metric(service, "sandboxes_memory_limit_bytes") == TOTAL_MEMORY
    # The kernel counts what it is asked for first, a huge page at the most, and takes it back if that was too much.
    assert 0 < metric(service, "sandboxes_memory_bytes") <= TOTAL_MEMORY + HOGS * HUGE_PAGE
    end_hogs(service, hogs)
    assert service.call("open('out.txt', 'w').write('fine')")["ok"] is True


def _codes(service, bodies):
    ended = [status["response"] for body in bodies if (status := service.status(body))["status"] == "done"]
    return {response["error"]["code"] for response in ended if response["error"]}


def test_processes_of_all_sandboxes_stay_below_their_total_and_the_service_can_start_its_own(service):
    hogs = begin_hogs(service, TAKES_PROCESSES)
    assert metric(service, "sandboxes_pids_limit") == TOTAL_PIDS
    seen = [eventually(lambda: metric(service, "sandboxes_pids"), lambda pids: pids > TOTAL_PIDS - 5)]
    # Without a total they would go on to four times a hundred.
    while len(seen) < 20:
        time.sleep(0.05)
        seen.append(metric(service, "sandboxes_pids"))
    # The kernel counts a fork first and takes it back if that was one too many: each hog may be seen at it.
    assert TOTAL_PIDS - 5 < max(seen) <= TOTAL_PIDS + HOGS
    assert service.client.get("/livez").status_code == 200
    end_hogs(service, hogs)
    assert service.call("open('out.txt', 'w').write('fine')")["ok"] is True


@pytest.mark.slow
def test_all_sandboxes_weigh_what_one_process_does_and_a_neighbour_is_served_beside_spinners(service):
    hogs = begin_hogs(service, TAKES_CPU)
    assert len(eventually(service.containers, lambda found: len(found) == HOGS)) == HOGS
    cgroups = Cgroups.of_machine()
    root, name, weight = (
        (cgroups.v2, "cpu.weight", 100) if cgroups.is_v2 else (cgroups.v1["cpu"], "cpu.shares", 1024)
    )
    for group in (Path(service.group).parent, Path(service.group)):
        assert int((root / str(group).lstrip("/") / name).read_text()) == weight
    assert service.client.get("/livez").status_code == 200
    assert service.call("open('out.txt', 'w').write('fine')")["ok"] is True
    end_hogs(service, hogs)


def test_a_group_that_somebody_removed_is_made_again_with_its_limits_before_the_next_sandbox(service):
    assert eventually(service.containers, lambda left: left == []) == []  # a group that is in use stays
    for hierarchy in {root for root in (*Cgroups.of_machine().v1.values(), Cgroups.of_machine().v2) if root}:
        subprocess.run(["rmdir", hierarchy / service.group.lstrip("/")], stderr=subprocess.DEVNULL, check=False)
    assert metric(service, "sandboxes_memory_limit_bytes") == 0
    assert service.call("open('out.txt', 'w').write('fine')")["ok"] is True
    assert metric(service, "sandboxes_memory_limit_bytes") == TOTAL_MEMORY


def test_a_total_below_what_one_sandbox_may_take_is_refused_at_the_start(tmp_path):
    with pytest.raises(ValueError, match="PROOFBOX_TOTAL_PIDS 10 is less than what one sandbox may take"):
        Settings(data_dir=tmp_path, total_pids=10, pids=20)
