"""What a program costs its neighbours: one exhausts a counter of the kernel, another one still gets all it needs.

Each container has a user of its own, so what the kernel counts for each user is the container's own.
"""

from collections.abc import Iterator
from typing import Any

import engine_sides
import pytest
from service_process import ServiceProcess, request, serving

pytestmark = pytest.mark.docker

HOLDS = "\nopen('files/full', 'w').close()\nprint('exhausted', flush=True)\nimport time; time.sleep(60)"
DESCRIPTORS_IN_FLIGHT = (
    "import socket\nheld = []\n"
    "try:\n"
    "    for _ in range(40):\n"
    "        pair = socket.socketpair(); held.append(pair); socket.send_fds(pair[0], [b'x'], [0] * 250)\n"
    "except OSError: pass"
)
PIPES = (
    "import fcntl, os\nheld = []\n"
    "for size in (1 << 20, 1 << 16):\n"
    "    try:\n"
    "        while len(held) < 480:\n"
    "            pair = os.pipe(); held.append(pair); fcntl.fcntl(pair[1], 1031, size)\n"
    "    except OSError: pass"
)
SIGNALS = (
    "import ctypes, os, signal\n"
    "number = signal.SIGRTMIN + 1\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, [number])\n"
    "libc = ctypes.CDLL(None)\n"
    "for _ in range(5000): libc.sigqueue(os.getpid(), number, ctypes.c_void_p(0))"
)
INOTIFY = (
    "import ctypes\nlibc = ctypes.CDLL(None)\n"
    "held = [libc.inotify_init() for _ in range(200)]\n"
    "watches = [libc.inotify_add_watch(held[0], f'/proc/{n}'.encode(), 2) for n in range(100)]"
)
NEEDS = {
    "descriptors in flight": (
        DESCRIPTORS_IN_FLIGHT,
        "import socket\na, b = socket.socketpair(); socket.send_fds(a, [b'x'], [0] * 100)",
    ),
    "pipes": (PIPES, "import fcntl, os\n_, w = os.pipe(); assert fcntl.fcntl(w, 1031, 1 << 18) >= 1 << 18"),
    "pending signals": (
        SIGNALS,
        (
            "import ctypes, os, signal\nnumber = signal.SIGRTMIN + 1\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [number])\nlibc = ctypes.CDLL(None)\n"
            "assert libc.sigqueue(os.getpid(), number, ctypes.c_void_p(0)) == 0"
        ),
    ),
    "inotify": (INOTIFY, "import ctypes\nassert ctypes.CDLL(None).inotify_init() >= 0"),
}


@pytest.fixture(scope="module", params=engine_sides.tested())
def service(request, tmp_path_factory) -> Iterator[ServiceProcess]:
    side = engine_sides.side_of(request.param)
    # Nothing waits: the neighbour's container and its interpreter are started beside the hog.
    with serving(tmp_path_factory.mktemp("near") / "data", side, engine=request.param, pool_size=0) as process:
        yield process
    side.close()


def wait_until_exhausted(service: ServiceProcess, hog: dict[str, Any]) -> None:
    """Follows the hog's output until it holds all that it can get."""
    path = f"/v1/tool-calls/{hog['tool_call_id']}/events"
    with service.client.stream("GET", path, params={"conversation_id": hog["conversation_id"]}) as events:
        assert any("exhausted" in line for line in events.iter_lines())


@pytest.mark.parametrize("counter", NEEDS)
def test_a_neighbour_gets_what_a_program_has_exhausted_for_itself(service, counter):
    exhausts, needs = NEEDS[counter]
    hog = request(exhausts + HOLDS, limits={"wall_s": 60})
    assert service.post(hog, Prefer="respond-async").status_code == 202
    wait_until_exhausted(service, hog)
    answer = service.call(needs + "\nopen('out.txt', 'w').write('fine')")
    service.cancel(hog)
    assert (answer["ok"], answer["report"].splitlines()[0]) == (True, "Runtime error: none")


def test_an_interpreter_is_forked_in_beside_a_program_that_holds_descriptors_in_flight(service):
    hog = request(DESCRIPTORS_IN_FLIGHT + HOLDS, limits={"wall_s": 60})
    assert service.post(hog, Prefer="respond-async").status_code == 202
    wait_until_exhausted(service, hog)
    before = service.log
    assert service.call("open('out.txt', 'w').write('fine')")["ok"] is True
    service.cancel(hog)
    logged = service.log.removeprefix(before)
    assert [line for line in logged.splitlines() if "zygote" in line or "forked" in line] == []
