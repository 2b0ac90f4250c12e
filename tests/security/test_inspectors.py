"""The inspector that is forked into a container when its program has ended, as the host sees it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import engine_sides
import pytest
from engine_sides import DockerSide, EngineSide, first_and_slow, is_of_sandboxes, side_of
from service_process import ServiceProcess, eventually, request, serving, verdicts

pytestmark = pytest.mark.docker

# Into containers of gVisor nothing can be forked.
FORKING = [
    name
    for name in engine_sides.tested()
    if name != "docker" or "runsc" not in os.environ.get("PROOFBOX_RUNTIME", "")
]
RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
PROGRAM_PROCESSES = 2
"""The runner and the program, or the runner and the inspector while no judge runs."""


@pytest.fixture(scope="module", params=first_and_slow(FORKING))
def side(request) -> Iterator[EngineSide]:
    found = side_of(request.param)
    yield found
    found.close()


@pytest.fixture(scope="module")
def service(side, tmp_path_factory) -> Iterator[ServiceProcess]:
    engine = "docker" if isinstance(side, DockerSide) else "oci"
    folder = tmp_path_factory.mktemp("inspectors")
    with serving(folder / "data", side, engine=engine, import_once="on", pool_size=1) as running:
        yield running


def fields_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def inspectors(containers: list[str]) -> dict[int, dict[str, str]]:
    """The status of each inspector, and of its judges, in these containers; zygotes are in none.

    Tests that run beside this one have inspectors of their own on the machine: the control group says whose it is.
    """
    ids = [container.rpartition("/")[2] for container in containers]
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if b"zygote/inspector" in (entry / "cmdline").read_bytes():
                groups = (entry / "cgroup").read_text()
                if any(container_id in groups for container_id in ids):
                    found[int(entry.name)] = fields_of(int(entry.name))
    return found


@contextlib.contextmanager
def judging(service: ServiceProcess, side: EngineSide) -> Iterator[list[dict[str, str]]]:
    """The status of an inspector and its judge, while it is busy with a pattern that backtracks without end."""
    endless = {"properties": {"x": {"pattern": "^(a+)+$"}}}
    promised = {"filename": "slow.json", "description": "slow to check", "json_schema": endless}
    body = request("open('slow.json', 'w').write('{\"x\": \"' + 'a' * 60 + '!\"}')", promised)
    assert service.post(body, Prefer="respond-async").status_code == 202
    try:
        # The second is the judge, which the inspector forks once it is confined.
        found = eventually(
            lambda: inspectors(side.containers(service.name)), lambda seen: len(seen) == PROGRAM_PROCESSES
        )
        assert len(found) == PROGRAM_PROCESSES
        yield list(found.values())
    finally:
        service.cancel(body)
        eventually(service.busy, lambda busy: busy == [])


def test_an_inspector_is_confined_as_programs_are(service, side):
    with judging(service, side) as found:
        for status in found:
            assert {is_of_sandboxes(user) for user in status["Uid"].split()} == {True}
            assert status["Gid"].split() == ["10001"] * 4
            assert {status[name] for name in RIGHTS} == {"0" * 16}
            assert (status["NoNewPrivs"], status["Seccomp"], status["Groups"].split()) == ("1", "2", ["10001"])


@pytest.mark.slow
def test_an_inspector_is_confined_where_root_outside_is_nobody_inside(tmp_path, remapped_docker):
    """There the kernel takes no capability away from a process that gives up being root."""
    settings = {"engine": "docker", "engine_host": remapped_docker.host, "import_once": "on", "pool_size": 1}
    side = DockerSide(remapped_docker.host)
    with serving(tmp_path / "data", side, **settings) as remapped, judging(remapped, side) as found:
        for status in found:
            assert (is_of_sandboxes(status["Uid"].split()[0]), status["NSpid"].split()[-1] != "1") == (False, True)
            assert {status[name] for name in RIGHTS} == {"0" * 16}
            assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    side.close()


def test_no_inspector_is_in_a_container_while_its_program_runs(service):
    code = (
        "import glob\nseen = [open(path, 'rb').read() for path in glob.glob('/proc/[0-9]*/cmdline')]\n"
        "open('out.txt', 'w').write(str(len(seen)))"
    )
    answer = service.call(code, "out.txt")
    told = next(
        block["text"] for block in answer["blocks"] if block["path"].endswith("out.txt") and "text" in block
    )
    assert (answer["ok"], told) == (True, str(PROGRAM_PROCESSES))


@pytest.mark.parametrize("held", ["fcntl.F_WRLCK", "fcntl.F_RDLCK"])
def test_a_lease_that_a_program_leaves_on_its_file_changes_no_verdict(service, held):
    code = (
        "import fcntl, os\nopen('out.csv', 'w').write('a,b\\n1,2\\n')\n"
        f"file = os.open('out.csv', os.O_RDONLY)\nfcntl.fcntl(file, fcntl.F_SETLEASE, {held})\n"
        "memory = bytearray(300 << 20)\nmemory[::4096] = b'x' * len(memory[::4096])\nos._exit(0)\n"
    )
    answer = service.call(code, "out.csv")
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})


def test_a_program_that_takes_all_memory_is_judged_as_one_that_takes_little(service):
    code = (
        "import os\nopen('out.csv', 'w').write('a\\n1\\n')\n"
        "held = bytearray(150 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n"
    )
    answer = service.call(code, "out.csv", limits={"memory_bytes": 200 << 20})
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})


# Signals that the kernel sends for what is done to a file reach the owner that the program has chosen for it.
LEAVES_SIGNALS = """
import fcntl, os
open('out.csv', 'w').write('a,b\\n1,2\\n')
held, folder = os.open('out.csv', os.O_RDONLY), os.open('.', os.O_RDONLY)
for fd in (held, folder):
    fcntl.fcntl(fd, fcntl.F_SETOWN, -os.getpgid(0))
    fcntl.fcntl(fd, fcntl.F_SETSIG, 9)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
if os.fork():
    os._exit(0)
os.setsid()
import time
time.sleep(600)
"""


def test_what_a_program_leaves_open_in_another_process_reaches_no_inspector(service):
    answer = service.call(LEAVES_SIGNALS, "out.csv")
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})
