"""A thousand calls at once, a queue that never drains, a call that kills its service each time it runs."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from checked import checked
from extent import WHOLE
from phases import SLEEPS, WRITES
from rig import told
from service_process import ServiceProcess, eventually, request

from tests.support.gate import Gate

pytestmark = pytest.mark.docker

CALLS = 1000
# In `make test` most of them are refused; `make faults` runs every one.
WAITING = 1000 if WHOLE else 40
# A connection and the call on it: some 35 KB each.
GROWTH_BYTES_MAX = 64 * 1024 * 1024


async def _post(url: str, body: dict[str, Any], gate: asyncio.Event) -> tuple[int, dict[str, str], dict[str, Any]]:
    """One client of its own: a connection, a request, an answer."""
    where, payload = urlsplit(url), json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    await gate.wait()
    head = (
        "POST /v1/tool-calls HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    writer.write(head.encode() + payload)
    told_head, _, content = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = told_head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, json.loads(content)


async def _at_once(url: str, bodies: list[dict[str, Any]]) -> list[tuple[int, dict[str, str], dict[str, Any]]]:
    gate = asyncio.Event()
    tasks = [asyncio.ensure_future(_post(url, body, gate)) for body in bodies]
    await asyncio.sleep(1)  # all are connected, or wait to be
    gate.set()
    return await asyncio.gather(*tasks)


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@pytest.mark.timeout(900)
def test_of_a_thousand_calls_at_once_each_is_answered_or_told_when_to_come_again(tmp_path: Path, engine) -> None:
    settings = {"pool_size": 4, "starts_max": 4, "running_max": 4, "queue_max": WAITING, "queue_s": 600}
    with checked(tmp_path / "data", engine, **settings) as service:
        assert told(service.post(request(WRITES))) == "200 ok"
        before = peak_bytes(service.pid)
        bodies = [request(WRITES) for _ in range(CALLS)]
        answers = asyncio.run(_at_once(service.url, bodies))
        kinds = Counter((status, answer.get("code", answer.get("ok"))) for status, _, answer in answers)
        assert set(kinds) <= {(200, True), (429, "queue_full")}
        assert (len(answers), kinds[200, True] >= min(CALLS, WAITING)) == (CALLS, True)
        refused = [(headers, answer) for status, headers, answer in answers if status == 429]
        assert all(int(headers["retry-after"]) >= 1 and answer["retryable"] for headers, answer in refused)
        # Those that were refused left nothing: their ids are free.
        first_refused = [body for body, (status, _, _) in zip(bodies, answers, strict=True) if status == 429][:3]
        assert [told(service.post(body)) for body in first_refused] == ["200 ok"] * len(first_refused)
        assert peak_bytes(service.pid) - before <= GROWTH_BYTES_MAX
        assert eventually(lambda: len(service.containers()), lambda count: count == 4) == 4
        assert eventually(service.staged, lambda left: left == []) == []
        assert "Traceback" not in service.log


def test_calls_behind_places_that_never_come_free_are_told_so_and_can_come_again(tmp_path: Path, engine) -> None:
    with checked(tmp_path / "data", engine, pool_size=2, running_max=2, queue_s=1) as service:
        hanging = [request(SLEEPS) for _ in range(2)]
        for body in hanging:
            assert service.post(body, Prefer="respond-async").status_code == 202
        eventually(service.busy, lambda busy: len(busy) == 2)
        behind = [request(WRITES, limits={"wall_s": 1}) for _ in range(50)]
        answers = asyncio.run(_at_once(service.url, behind))
        assert Counter((status, answer["code"]) for status, _, answer in answers) == {(503, "queue_timeout"): 50}
        assert all(int(headers["retry-after"]) >= 1 for _, headers, _ in answers)
        for body in hanging:
            assert service.cancel(body).json()["status"] == "cancelled"
        assert told(service.post(behind[0])) == "200 ok"


def test_a_call_that_kills_its_service_each_time_runs_once_and_is_answered_as_interrupted(
    tmp_path: Path, engine
) -> None:
    docker_socket = os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock"
    with Gate(docker_socket) as gate:
        settings = {"engine": "docker", "engine_host": f"tcp://127.0.0.1:{gate.port}", "pool_size": 0}
        with checked(tmp_path / "data", engine, **settings) as service:
            poison = request(f"# poison-by-its-marker\n{SLEEPS}")
            gate.count(b"poison-by-its-marker")
            seen = []
            for _ in range(3):
                response = service.post(poison, Prefer="respond-async")
                if response.status_code == 202 and response.headers.get("idempotent-replayed") != "true":
                    assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1
                    service.signal(signal.SIGKILL)
                    service.wait()
                    service.start()
                seen.append(told(service.post(poison)))
            assert (seen, gate.seen) == (["200 sandbox_failed"] * 3, 1)
            assert "outcome is unknown" in service.post(poison).json()["report"]
            assert told(service.post(request(WRITES))) == "200 ok"


@pytest.fixture
def service(tmp_path: Path, engine) -> Iterator[ServiceProcess]:
    with checked(tmp_path / "data", engine, pool_size=1, running_max=1, shutdown_grace_s=0.3) as process:
        yield process


def test_clients_that_vanish_in_the_middle_of_their_request_leave_nothing(service: ServiceProcess) -> None:
    where = urlsplit(service.url)

    async def vanish() -> None:
        for sent in (
            b"POST /v1/tool",
            b'POST /v1/tool-calls HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{"tool_id": "ex',
        ):
            for _ in range(20):
                _, writer = await asyncio.open_connection(where.hostname, where.port)
                writer.write(sent)
                await writer.drain()
                writer.transport.abort()

    before = len(list(Path(f"/proc/{service.pid}/fd").iterdir()))
    asyncio.run(vanish())
    assert told(service.post(request(WRITES))) == "200 ok"
    most = before + 5
    held = eventually(lambda: len(list(Path(f"/proc/{service.pid}/fd").iterdir())), lambda count: count <= most)
    assert max(held, most) == most
    assert [line for line in service.complaints if "Traceback" in line or "ERROR" in line] == []


def test_clients_that_vanish_while_they_watch_leave_the_call_alone(service: ServiceProcess) -> None:
    body = request(SLEEPS)
    assert service.post(body, Prefer="respond-async").status_code == 202
    assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1
    path = f"/v1/tool-calls/{body['tool_call_id']}/events"
    for _ in range(10):
        with service.client.stream("GET", path) as stream:
            assert next(stream.iter_lines()) == "id: 1"
    assert service.status(body)["status"] == "running"
    assert service.cancel(body).json()["status"] == "cancelled"
    assert eventually(service.busy, lambda busy: busy == []) == []
