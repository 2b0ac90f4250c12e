"""Many calls of every kind at once: each is answered, and nothing of any is left. `make soak` makes more."""

import contextlib
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from service_process import ServiceProcess, eventually, request, serving

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.docker

AT_A_TIME = 20
ROUNDS = 4
"""How many calls of each kind there are: what one of them leaves is left more often than may be by chance."""
ENGINE_CONNECTIONS = 10
# The engine's, the stores', asyncio's own; for forks, reading, writing, the watch for a death; the main one.
THREADS_MAX = 16 + 16 + min(32, (os.cpu_count() or 1) + 4) + 8 + 3 + 1 + 1 + 1
# The processes that a service keeps beside it.
CLEANUP_PROCESSES = {"docker": 0, "oci": 1}
WRITES = "open('out.txt', 'w').write('x')"


@pytest.fixture
def loaded(tmp_path, engine) -> Iterator[ServiceProcess]:
    settings = {"pool_size": 2, "pool_max": 2, "running_max": 4, "wall_s": 60, "lost_connection_grace_s": 0}
    with serving(tmp_path / "data", engine, **settings) as process:
        yield process


def _ok() -> dict[str, Any]:
    return request(WRITES)


def _raises() -> dict[str, Any]:
    return request("raise ValueError('no')")


def _hangs() -> dict[str, Any]:
    return request("import time\ntime.sleep(60)", limits={"wall_s": 0.3})


def _breaks_its_promise() -> dict[str, Any]:
    return request("pass")


def _eats_memory() -> dict[str, Any]:
    return request("bytearray(1 << 30)", limits={"memory_bytes": 64 << 20})


def _has_no_contract() -> dict[str, Any]:
    return request(WRITES) | {"params": {"contract": []}}


def _floods() -> dict[str, Any]:
    return request("import os\nwhile True: os.write(1, b'x' * 65536)", limits={"output_bytes": 1 << 20})


# How each call is made, and what its answer has to be.
KINDS: list[tuple[Callable[[], dict[str, Any]], str]] = [
    (_ok, "ok"),
    (_ok, "ok"),
    (_ok, "ok"),
    (_raises, "nonzero_exit"),
    (_hangs, "timeout"),
    (_breaks_its_promise, "execution_failed"),
    (_eats_memory, "out_of_memory"),
    (_has_no_contract, "invalid_artifacts"),
    (_floods, "output_limit"),
]


def what_became_of(response: httpx.Response) -> str:
    answer = response.json()
    if response.status_code != 200:
        return f"{response.status_code} {answer['code']}"
    return "ok" if answer["ok"] else str(answer["error"]["code"])


def held_by(pid: int) -> dict[str, int]:
    """Unix sockets, other descriptors, and threads of a process."""
    unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    opened = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            opened.append(str(entry.readlink()))
    sockets = sum(1 for name in opened if name.removeprefix("socket:[").removesuffix("]") in unix)
    return {
        "unix sockets": sockets,
        "descriptors": len(opened) - sockets,
        "threads": sum(1 for _ in Path(f"/proc/{pid}/task").iterdir()),
    }


def children_of(pid: int) -> list[str]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += (task / "children").read_text().split()
    return found


def cancelled(service: ServiceProcess, wait_for: str | None) -> str:
    """Makes a call and cancels it as soon as its status is ``wait_for``."""
    body = request("import time\ntime.sleep(60)")
    assert service.post(body, Prefer="respond-async").status_code == 202
    if wait_for is not None:
        eventually(lambda: service.status(body)["status"], lambda status: status == wait_for)
    answered = service.cancel(body)
    return f"{answered.status_code} {answered.json()['status']}"


def abandoned(service: ServiceProcess) -> str:
    """Makes a call and hangs up: one that runs is cancelled, one that only waits is forgotten."""
    body = request("import time\ntime.sleep(60)")
    with contextlib.suppress(httpx.ReadTimeout):
        httpx.post(f"{service.url}/v1/tool-calls", json=body, timeout=httpx.Timeout(30, read=0.5))

    def state() -> str:
        answer = service.look_at(body).json()
        return str(answer.get("code") or answer["status"])

    over = {"cancelled", "unknown_call"}
    seen = eventually(state, lambda seen: seen in over)
    return "abandoned" if seen in over else seen


@pytest.mark.slow
def test_many_calls_good_and_bad_are_all_answered_and_leave_nothing(loaded):
    # The idle baseline is taken after calls of each kind: connections and zygotes that are kept are not a leak.
    with ThreadPoolExecutor(AT_A_TIME) as clients:
        list(clients.map(lambda _: loaded.post(_ok()), range(AT_A_TIME)))
        list(clients.map(lambda kind: loaded.post(kind[0]()), KINDS))
        assert (cancelled(loaded, "running"), abandoned(loaded)) == ("200 cancelled", "abandoned")
        idle_containers = eventually(lambda: len(loaded.containers()), lambda count: count == 2)
        before = held_by(loaded.pid)
        jobs = [
            *((lambda make=make: what_became_of(loaded.post(make())), told) for make, told in KINDS * ROUNDS),
            *[(lambda: cancelled(loaded, "running"), "200 cancelled")] * 3,
            *[(lambda: cancelled(loaded, None), "200 cancelled")] * 4,
            *[(lambda: abandoned(loaded), "abandoned")] * 3,
        ]
        random.Random(1).shuffle(jobs)
        answers = list(clients.map(lambda job: (job[1], job[0]()), jobs))
    assert Counter(answers) == Counter((told, told) for _, told in jobs)
    assert idle_containers == 2
    assert eventually(lambda: len(loaded.containers()), lambda count: count == 2) == 2
    assert eventually(loaded.staged, lambda left: left == []) == []
    # Each kind of call is made three times or more, so what one of them leaves is left three times. The client of
    # the engine has a pool of ten connections, Unix sockets, which need not have been full at the baseline.
    most = {"descriptors": before["descriptors"] + 2, "unix sockets": before["unix sockets"] + ENGINE_CONNECTIONS}
    settled = eventually(
        lambda: held_by(loaded.pid), lambda held: all(held[kind] <= most[kind] for kind in most), within_s=20
    )
    assert {kind: max(settled[kind], most[kind]) for kind in most} == most
    # Pools of threads grow up to a size and stay: the engine's, the stores', asyncio's own.
    assert settled["threads"] <= THREADS_MAX
    expected = CLEANUP_PROCESSES[Settings().engine]
    assert len(eventually(lambda: children_of(loaded.pid), lambda found: len(found) == expected)) == expected
    assert "Traceback" not in loaded.log
    container_ids = loaded.containers()
    loaded.signal(15)
    assert loaded.wait() == 0
    assert loaded.containers() == []
    mounts = Path("/proc/self/mountinfo").read_text()
    assert [c for c in container_ids if c in mounts] == []


def test_a_full_queue_refuses_with_retry_after_and_what_was_refused_can_come_again(tmp_path, engine):
    with serving(tmp_path / "data", engine, running_max=1, queue_max=2, pool_size=1) as small:
        with ThreadPoolExecutor(8) as clients:
            holding = request(f"import subprocess\nsubprocess.run(['sleep', '987'])\n{WRITES}")
            bodies = [_ok() for _ in range(6)]
            first = clients.submit(small.post, holding)
            eventually(lambda: small.client.get(f"/v1/tool-calls/{holding['tool_call_id']}").status_code, _found)
            eventually(lambda: small.status(holding)["status"], lambda status: status == "running")
            posted = [clients.submit(small.post, body) for body in bodies]
            eventually(lambda: sum(each.done() for each in posted), lambda count: count == 4)
            assert len(eventually(small.busy, lambda busy: len(busy) == 1)) == 1
            small.end_sleeps()
            responses = [each.result() for each in posted]
            assert first.result().json()["ok"] is True
        assert Counter(what_became_of(r) for r in responses) == {"ok": 2, "429 queue_full": 4}
        for refused in (r for r in responses if r.status_code == 429):
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["retryable"] is True
        for body, response in zip(bodies, responses, strict=True):
            if response.status_code == 429:  # under its own id
                assert small.post(body).json()["ok"] is True


@pytest.mark.slow
def test_calls_beyond_their_deadline_in_the_queue_are_told_to_come_again(tmp_path, engine):
    with serving(tmp_path / "data", engine, running_max=1, queue_s=0.5, pool_size=1) as small:
        holding = request("import time\ntime.sleep(60)")
        assert small.post(holding, Prefer="respond-async").status_code == 202
        eventually(lambda: small.status(holding)["status"], lambda status: status == "running")
        late = small.post(request(WRITES, limits={"wall_s": 0.5}))
        assert (late.status_code, late.json()["code"]) == (503, "queue_timeout")
        assert "retry-after" in late.headers
        assert small.cancel(holding).status_code == 200


def _found(status: int) -> bool:
    return status == 200


def test_one_tool_call_id_posted_many_times_at_once_runs_once(loaded):
    body = request("import os, time\ntime.sleep(0.5)\nopen('out.txt', 'w').write(os.urandom(16).hex())")
    gate = threading.Barrier(10)

    def post(_: int) -> httpx.Response:
        gate.wait()
        return loaded.post(body)

    with ThreadPoolExecutor(10) as clients:
        responses = list(clients.map(post, range(10)))
    assert [r.status_code for r in responses] == [200] * 10
    assert len({r.text for r in responses}) == 1
