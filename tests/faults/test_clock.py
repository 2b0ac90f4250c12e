"""The wall clock jumps an hour while calls wait and run: durations, deadlines and the pool do not notice."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from extent import WHOLE
from rig import told
from service_process import ServiceProcess, eventually, request

from tests.support.store_check import assert_data_fits

pytestmark = pytest.mark.docker

LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")
WRITES = "open('out.txt', 'w').write('x')"
LASTS = f"import time\ntime.sleep(4)\n{WRITES}"


JUMPS_S = [3600, -3600] if WHOLE else [3600]


class Clock:
    """The clock of one process: what is in a file is added to it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set(0)
        [library, *_] = [found for pattern in LIBRARIES for found in Path("/").glob(pattern.lstrip("/"))]
        self.environment = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds: int) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}", encoding="ascii")
        fresh.replace(self._file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture
def service(tmp_path: Path, engine, clock: Clock) -> Iterator[ServiceProcess]:
    process = ServiceProcess(
        tmp_path / "data",
        engine,
        pool_size=2,
        running_max=1,
        sweep_every_s=0.3,
        wall_s=60,
        queue_s=120,
        overhead_s=10,
        # libfaketime refuses time.sleep(), which is used there; nothing there asks for the time of day.
        import_once="off",
    )
    process.environment = clock.environment
    try:
        yield process.start()
    finally:
        process.stop()
    assert_data_fits(tmp_path / "data")


def seconds_of_clock(service: ServiceProcess) -> float:
    """How far the service's clock is from ours, by the time it gives a new call."""
    body = request(WRITES)
    assert told(service.post(body)) == "200 ok"
    created = time.mktime(time.strptime(service.status(body)["created"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    return round((created - time.time()) / 60) * 60


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_calls_that_run_and_wait_while_the_clock_jumps_end_as_if_it_had_not(
    service: ServiceProcess, clock: Clock, jump_s: int
) -> None:
    bodies = [request(LASTS, limits={"wall_s": 20}) for _ in range(3)]
    for body in bodies:
        assert service.post(body, Prefer="respond-async").status_code == 202
    eventually(lambda: service.status(bodies[0])["status"], lambda status: status == "running")
    assert len(eventually(service.containers, lambda found: len(found) >= 3)) >= 3
    clock.set(jump_s)
    ended = [
        eventually(lambda b=body: service.status(b), lambda status: status["status"] == "done") for body in bodies
    ]
    timings = [status["response"]["timings_ms"] for status in ended]
    assert [status["response"]["ok"] for status in ended] == [True] * 3
    assert all(0 <= each <= 60_000 for timing in timings for each in timing.values())
    assert seconds_of_clock(service) == jump_s
    # Those that waited were not taken for left ones: the second and third call had them.
    assert [status["response"]["sandbox"]["acquired"] for status in ended[1:]] == ["warm"] * 2
    assert "should have been gone" not in service.log


@pytest.mark.parametrize("jump_s", JUMPS_S)
def test_limits_hold_while_the_clock_jumps(service: ServiceProcess, clock: Clock, jump_s: int) -> None:
    hangs = request("import time\ntime.sleep(60)", limits={"wall_s": 3})
    assert service.post(hangs, Prefer="respond-async").status_code == 202
    eventually(lambda: service.status(hangs)["status"], lambda status: status == "running")
    waits = request(WRITES, limits={"wall_s": 10})
    assert service.post(waits, Prefer="respond-async").status_code == 202
    clock.set(jump_s)
    ended = eventually(lambda: service.status(hangs), lambda status: status["status"] == "done")
    assert ended["response"]["error"]["code"] == "timeout"
    assert 2_900 <= ended["response"]["timings_ms"]["run"] <= 30_000
    waited = eventually(lambda: service.status(waits), lambda status: status["status"] == "done")
    assert waited["response"]["ok"] is True


def test_an_answer_is_the_same_after_a_restart_an_hour_earlier(service: ServiceProcess, clock: Clock) -> None:
    body = request(WRITES)
    first = service.post(body)
    clock.set(-3600)
    os.kill(service.pid, 9)
    service.wait()
    service.start()
    again = service.post(body)
    assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
    assert told(service.post(request(WRITES))) == "200 ok"
