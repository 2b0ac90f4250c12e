"""What a program costs its neighbours: one exhausts every counter of the kernel, another still gets what it needs.

Each container has a user of its own, so what the kernel counts for each user is the container's own. What it counts
for the whole machine is bounded for each container, or cannot be reached.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import engine_sides
import pytest
from service_process import ServiceProcess, request, serving

pytestmark = pytest.mark.docker

COUNTERS = Path(__file__).with_name("kernel_counters.py").read_text()
# By which error a program is refused more of each counter; "taken": the limit is beyond what a sandbox can hold.
ENDS = {
    "descriptors in flight": "ETOOMANYREFS",
    "pages of pipes": "EPERM",
    "pending signals": "EAGAIN",
    "timers": "EAGAIN",
    "inotify instances": "EMFILE",
    "inotify watches": "ENOSPC",
    "epoll watches": "taken",
    "locked memory": "ENOMEM",
    "open files": "EMFILE",
    "processes": "EAGAIN",
}
TERMINALS = {"docker": ("EINVAL", "EINVAL"), "oci": ("ENOSPC", "taken")}
"""How that ends, and what a neighbour gets: their number can be bounded by the engine oci alone."""
REFUSED = {
    "keys": "EPERM",
    "POSIX message queues": "ENOSYS",
    "System V message queues": "ENOSYS",
    "System V shared memory": "ENOSYS",
    "System V semaphores": "ENOSYS",
    "asynchronous requests": "ENOSYS",
    "kernel programs, of calls": "EPERM",
    "kernel programs, of sockets": "EPERM",
}


def begun(service: ServiceProcess, program: str) -> tuple[dict[str, Any], dict[str, str]]:
    """A call whose program holds all that it could get, and how that ended, by counter."""
    hog = request(program, limits={"wall_s": 60})
    assert service.post(hog, Prefer="respond-async").status_code == 202
    path = f"/v1/tool-calls/{hog['tool_call_id']}/events"
    with service.client.stream("GET", path, params={"conversation_id": hog["conversation_id"]}) as events:
        for line in events.iter_lines():
            if line.startswith("data:") and "exhausted" in line:
                text = json.loads(line.removeprefix("data:"))["text"]
                return hog, json.loads(text.partition("exhausted ")[2])
    raise AssertionError(service.status(hog))


def beside_a_hog(service: ServiceProcess) -> tuple[dict[str, str], dict[str, str]]:
    """What a hog and its neighbour were refused, by counter."""
    hog, ends = begun(service, f"{COUNTERS}\ntake_all()")
    try:
        return ends, service.probe(f"{COUNTERS}\ntold = take_little()")
    finally:
        service.cancel(hog)


def complaints_of_zygotes(service: ServiceProcess) -> list[str]:
    return [line for line in service.complaints if "zygote" in line or "forked" in line]


@pytest.fixture(scope="module", params=engine_sides.first_and_slow(engine_sides.tested()))
def engine(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def service(engine, tmp_path_factory) -> Iterator[ServiceProcess]:
    side = engine_sides.side_of(engine)
    # Nothing waits: the neighbour's container and its interpreter are started beside the hog.
    with serving(tmp_path_factory.mktemp("near") / "data", side, engine=engine, pool_size=0) as process:
        yield process
    side.close()


@pytest.fixture(scope="module")
def outcomes(service) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Of the hog, of its neighbour, and what the service complained of."""
    return *beside_a_hog(service), complaints_of_zygotes(service)


@pytest.mark.parametrize("counter", ENDS)
def test_a_neighbour_gets_what_a_program_has_exhausted_for_itself(outcomes, counter):
    hog, neighbour, _ = outcomes
    assert (hog[counter], neighbour[counter]) == (ENDS[counter], "taken")


@pytest.mark.parametrize("counter", REFUSED)
def test_counters_that_no_program_needs_are_out_of_reach(outcomes, counter):
    hog, neighbour, _ = outcomes
    assert (hog[counter], neighbour[counter]) == (REFUSED[counter], REFUSED[counter])


def test_the_terminals_of_the_machine_cannot_be_taken_by_one_program(outcomes, engine):
    hog, neighbour, _ = outcomes
    assert (hog["pseudo-terminals"], neighbour["pseudo-terminals"]) == TERMINALS[engine]


def test_buffers_of_tcp_are_bounded(service):
    """The kernel has a limit for all of the machine; 120 connections would hold 450 MiB."""
    held = service.probe(f"{COUNTERS}\ntold = take_buffers(120)", limits={"memory_bytes": 128 << 20})
    assert 8 << 20 < held < 192 << 20


def test_an_interpreter_is_forked_in_beside_a_program_that_exhausts_every_counter(outcomes):
    assert outcomes[2] == []


@pytest.mark.slow
def test_process_1_still_sends_its_descriptors_where_containers_share_a_user(engine, tmp_path):
    side = engine_sides.side_of(engine)
    settings = {"engine": engine, "pool_size": 0, "sandbox_users": 1, "import_once": "on"}
    with serving(tmp_path / "data", side, **settings) as service:
        hog, ends = begun(service, f"{COUNTERS}\ntake_descriptors()")
        answer = service.call("open('files/out.txt', 'w').write('fine')")
        service.cancel(hog)
        assert ends == {"descriptors in flight": "ETOOMANYREFS"}
        assert (answer["ok"], complaints_of_zygotes(service)) == (True, [])
    side.close()


@pytest.mark.slow
def test_users_are_apart_where_root_outside_is_nobody_inside(tmp_path, remapped_docker):
    side = engine_sides.DockerSide(remapped_docker.host)
    settings = {"engine": "docker", "engine_host": remapped_docker.host, "pool_size": 0}
    with serving(tmp_path / "data", side, **settings) as service:
        hog, neighbour = beside_a_hog(service)
        # The kernel counts inotify for the user that made the namespace, too: root.
        ends = ENDS | {"inotify instances": "ENOSYS", "inotify watches": "ENOSYS"}
        assert {counter: hog[counter] for counter in ENDS} == ends
        gets = {counter: "ENOSYS" if end == "ENOSYS" else "taken" for counter, end in ends.items()}
        assert {counter: neighbour[counter] for counter in ENDS} == gets
        assert complaints_of_zygotes(service) == []
    side.close()
