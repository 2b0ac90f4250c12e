"""The database in a file: locked by another process, gone, damaged, read-only; and its folder full at any write."""

import itertools
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from checked import checked
from extent import WHOLE
from phases import WRITES
from rig import Call, told
from service_process import ServiceProcess, eventually, request, serving
from test_local_disk_full import ballast_of_bytes, ballast_of_files, small_disk

from tests.support.gate import Gate
from tests.support.store_check import assert_data_fits

pytestmark = [pytest.mark.docker]
BALLASTS = [(ballast_of_bytes, 12), (ballast_of_files, 3)]
ROUNDS = 5 if WHOLE else 1
needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")

ROLE = "the database of artifacts, sources and calls"
QUICK = {"pool_size": 1, "running_max": 2, "sweep_every_s": 0.5, "shutdown_grace_s": 0.3}


@pytest.fixture
def service(tmp_path: Path, engine) -> Iterator[ServiceProcess]:
    with checked(tmp_path / "data", engine, **QUICK) as process:
        yield process


@pytest.fixture
def doomed_service(tmp_path: Path, engine) -> Iterator[ServiceProcess]:
    """One whose database will not fit its files."""
    with serving(tmp_path / "data", engine, **QUICK) as process:
        yield process


def file_of(service: ServiceProcess) -> Path:
    return service.data_dir / "proofbox.sqlite3"


@contextmanager
def locked(service: ServiceProcess) -> Iterator[None]:
    """Another process, a shell or a backup tool, keeps writers out."""
    with closing(sqlite3.connect(file_of(service), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def begun(service: ServiceProcess) -> Call:
    """A call whose program runs until its sleep is ended; it leaves no file that would have to be stored."""
    call = Call(service.url, request("import subprocess\nsubprocess.run(['sleep', '987'])"))
    assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1
    return call


# ---- locked ----


def test_a_call_that_comes_while_the_database_is_locked_is_told_to_come_again(service: ServiceProcess) -> None:
    body = request(WRITES)
    with locked(service):
        refused = service.post(body)
    assert (refused.status_code, refused.json()["code"]) == (503, "store_failed")
    assert (refused.json()["detail"], refused.json()["retryable"]) == (f"{ROLE} is locked by another process", True)
    assert int(refused.headers["retry-after"]) >= 1
    assert told(service.post(body)) == "200 ok"


def test_an_answer_that_meets_a_locked_database_is_stored_when_it_is_free(service: ServiceProcess) -> None:
    call = begun(service)
    with locked(service):
        service.end_sleeps()
        first = call.answer(60)
        assert first == "503 store_failed"
    again = service.post(call.body)
    assert told(again) == "200 execution_failed"
    service.signal(signal.SIGKILL)
    service.wait()
    service.start()
    replayed = service.post(call.body)
    assert (replayed.content, replayed.headers["idempotent-replayed"]) == (again.content, "true")


def test_a_service_that_is_told_to_stop_while_the_database_is_locked_ends(service: ServiceProcess) -> None:
    call = begun(service)
    with locked(service):
        service.end_sleeps()
        assert call.answer(60) == "503 store_failed"
        service.signal(signal.SIGTERM)
        assert service.wait() in {0, 1}
    service.start()
    assert told(service.post(call.body)) in {"200 execution_failed", "200 sandbox_failed"}


# ---- gone, damaged, read-only ----


def test_nothing_is_accepted_once_the_file_of_the_database_is_gone(doomed_service: ServiceProcess) -> None:
    assert told(doomed_service.post(request(WRITES))) == "200 ok"
    for file in doomed_service.data_dir.glob("proofbox.sqlite3*"):
        file.unlink()
    refused = doomed_service.post(request(WRITES))
    assert (refused.status_code, refused.json()["code"]) == (503, "store_failed")
    assert refused.json()["detail"] == f"{ROLE} was removed or replaced; start the service again"
    doomed_service.signal(signal.SIGTERM)
    assert doomed_service.wait() == 0
    doomed_service.start()
    assert told(doomed_service.post(request(WRITES))) == "200 ok"


def test_a_damaged_database_is_told_as_such_and_nothing_is_accepted(doomed_service: ServiceProcess) -> None:
    assert told(doomed_service.post(request(WRITES))) == "200 ok"
    doomed_service.signal(signal.SIGKILL)
    doomed_service.wait()
    with closing(sqlite3.connect(file_of(doomed_service))) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(page,)] = database.execute("SELECT rootpage FROM sqlite_master WHERE name = 'calls'").fetchall()
        [(size,)] = database.execute("PRAGMA page_size").fetchall()
    with file_of(doomed_service).open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    doomed_service.launch()
    assert doomed_service.wait() == 2
    assert doomed_service.complaints == [f"proofbox: {ROLE} is damaged"]


def test_a_file_that_is_no_database_is_told_in_one_line(doomed_service: ServiceProcess) -> None:
    doomed_service.signal(signal.SIGTERM)
    doomed_service.wait()
    file_of(doomed_service).write_bytes(b"no database at all\n" * 1000)
    doomed_service.launch()
    assert doomed_service.wait() == 2
    assert doomed_service.complaints == [f"proofbox: {ROLE} is damaged or not a database"]


@needs_mount
def test_a_data_folder_that_is_read_only_is_told_in_one_line(tmp_path: Path, engine) -> None:
    with small_disk(tmp_path / "disk", "size=8m") as disk:
        with serving(disk / "data", engine, **QUICK) as service:
            assert told(service.post(request(WRITES))) == "200 ok"
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        service = ServiceProcess(disk / "data", engine)
        service._log_path = tmp_path / "log"
        service.launch()
        assert service.wait() == 2
        assert service.complaints == ["proofbox: the data folder is read-only"]


def test_answers_survive_a_service_that_is_killed_while_it_writes(service: ServiceProcess) -> None:
    told_by_then = []
    for _ in range(ROUNDS):
        bodies = [request(f"{WRITES}\nprint('x' * 200000)") for _ in range(4)]
        calls = [Call(service.url, body) for body in bodies]
        told_by_then.append((bodies[0], calls[0].answer(60), calls[0].response))
        service.signal(signal.SIGKILL)
        service.wait()
        service.start()
        for body in bodies:
            first, second = service.post(body), service.post(body)
            assert first.content == second.content
    for body, first, response in told_by_then:
        assert first == "200 ok"
        assert service.post(body).content == response.content


# ---- full ----


@needs_mount
@pytest.mark.parametrize(("ballast_of", "freed_at_once"), BALLASTS if WHOLE else BALLASTS[:1])
def test_a_disk_that_is_full_at_any_write_is_told_as_507_and_keeps_no_half_of_anything(
    tmp_path: Path, engine, ballast_of, freed_at_once: int
) -> None:
    docker_socket = os.environ.get("DOCKER_HOST", "").removeprefix("unix://") or "/var/run/docker.sock"
    with Gate(docker_socket) as gate, small_disk(tmp_path / "disk", "size=3m,nr_inodes=120") as disk:
        marker = "marker-of-a-full-disk"
        gate.count(marker.encode())
        settings = {**QUICK, "engine_host": f"tcp://127.0.0.1:{gate.port}", "engine": "docker"}
        service = ServiceProcess(disk / "data", engine, **settings)
        service._log_path = tmp_path / "log"
        try:
            service.start()
            code = f"# {marker}\nopen('out.txt', 'w').write('x' * 20000)\nopen('deep.txt', 'w').write('y')"
            bodies, seen = [], []
            freed = ballast_of(disk)
            for _ in range(40):
                next(itertools.islice(freed, freed_at_once, freed_at_once), None)
                # One conversation: its folders are made once.
                body = request(code, "out.txt", "deep.txt") | {"conversation_id": "on-a-full-disk"}
                seen.append(told(service.post(body)))
                bodies.append(body)
                if seen[-3:] == ["200 ok"] * 3:
                    break
            assert set(seen) <= {"200 ok", "507 store_full"}
            assert {"200 ok", "507 store_full"} <= set(seen)
            for ballast in disk.glob("ballast"):
                subprocess.run(["rm", "-rf", ballast], check=True)
            again = [told(service.post(body)) for body in bodies]
            assert set(again) <= {"200 ok", "507 store_full"}
            assert [told(service.post(body)) for body in bodies] == again
            # Each ran once: those that were refused before they ran have run now.
            assert gate.seen == len(bodies)
            # The next save undoes what a full disk cut short.
            assert told(service.post(request(WRITES))) == "200 ok"
            assert eventually(service.staged, lambda left: left == []) == []
            assert_data_fits(service.data_dir)
        finally:
            service.stop()
