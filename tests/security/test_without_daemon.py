"""The engine that no daemon watches over: what it leaves when it dies, and what it says where it cannot run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from engine_sides import OciSide, kinds_held_by
from service_process import REPOSITORY, ServiceProcess, eventually, request, serving

from proofbox.service.app.settings import Settings

pytestmark = pytest.mark.oci

SLEEPS = "import subprocess\nsubprocess.run(['sleep', '987'])"
WRITES = "open('out.txt', 'w').write('x')"
STREAMS = ["socket", "socket", "pipe"]  # standard input, output and error of process 1


@pytest.fixture(scope="module")
def side():
    side = OciSide()
    yield side
    side.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory, side):
    """A service that tests leave as they found it."""
    folder = tmp_path_factory.mktemp("undisturbed") / "data"
    with serving(folder, side, engine="oci", pool_size=1, sweep_every_s=0.1) as running:
        yield running


def groups_of(service: ServiceProcess) -> list[str]:
    # Not rglob: it raises for a folder that goes while it looks.
    folders = (Path(parent, name) for parent, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return [str(folder) for folder in folders if service.name in folder.name]


def begin(service: ServiceProcess) -> None:
    assert service.post(request(SLEEPS), Prefer="respond-async").status_code == 202
    assert len(eventually(service.busy, lambda busy: len(busy) == 1)) == 1


def test_after_kill_9_no_process_no_group_and_no_folder_is_left(tmp_path, side):
    with serving(tmp_path / "data", side, engine="oci", pool_size=1) as service:
        begin(service)
        cleanup = side.cleanup_process(service.name)
        folder = side._run_dir / service.name
        assert (folder.is_dir(), groups_of(service) != []) == (True, True)
        service.signal(signal.SIGKILL)
        service.wait()
        assert eventually(lambda: groups_of(service), lambda left: left == []) == []
        assert eventually(folder.exists, lambda there: not there) is False
        assert eventually(Path(f"/proc/{cleanup}/cmdline").exists, lambda there: not there) is False


@pytest.mark.slow
def test_what_is_left_when_the_cleanup_process_dies_too_is_swept_by_the_next_life(tmp_path, side):
    with serving(tmp_path / "data", side, engine="oci", pool_size=1) as service:
        begin(service)
        eventually(service.ready_containers, lambda count: count == 1)  # else one more may be on its way
        before = service.containers()
        os.kill(side.cleanup_process(service.name), signal.SIGKILL)
        service.signal(signal.SIGKILL)
        service.wait()
        # Their streams have ended, so their processes do; groups and folders wait for the next life.
        assert eventually(lambda: [service.processes_in(box) for box in before], lambda told: set(told) == {"[]"})
        assert set(service.containers()) == set(before)
        service.start()
        assert set(service.containers()) & set(before) == set()
        assert service.call(WRITES)["ok"] is True


@pytest.mark.slow
def test_a_cleanup_process_that_ends_is_replaced(service, side):
    first = side.cleanup_process(service.name)
    os.kill(first, signal.SIGKILL)
    gone = {None, first}
    assert eventually(lambda: side.cleanup_process(service.name), lambda pid: pid not in gone) not in gone


def test_a_container_inherits_no_descriptor_but_its_stream(service, side):
    [waiting] = eventually(service.containers, lambda found: len(found) == 1)
    eventually(lambda: service.processes_in(waiting), lambda told: "launcher" in told)
    first = min(side._processes(waiting))
    # Of its own: the pipes and the socket to its launcher.
    kept = eventually(lambda: kinds_held_by(first), lambda kinds: set(kinds.values()) <= {*STREAMS, "anon_inode"})
    assert [kept[number] for number in "012"] == STREAMS
    assert set(kept.values()) <= {*STREAMS, "anon_inode"}


def test_answers_say_which_engine_and_which_runtime(service):
    sandbox = service.call(WRITES)["sandbox"]
    assert (sandbox["engine"], sandbox["runtime"] in {"crun", "runc"}) == ("oci", True)
    assert sandbox["image_digest"].startswith("sha256:")


DOCTOR = "; 'proofbox doctor' checks this machine"


@pytest.mark.parametrize("runtime", ["no-such-runtime", "/bin/true"])
def test_a_runtime_that_is_none_is_told_in_one_line_at_the_start(tmp_path, side, runtime):
    service = ServiceProcess(tmp_path / "data", side, engine="oci", oci_runtime=runtime)
    service.launch()
    assert service.wait() == 2
    told = {
        "no-such-runtime": (
            "proofbox: the engine 'oci' needs an OCI runtime and there is no no-such-runtime: "
            "install the package crun or runc, or set PROOFBOX_OCI_RUNTIME to its path"
        ),
        "/bin/true": "proofbox: /bin/true does not answer as an OCI runtime: it says no version",
    }
    assert service.complaints == [f"{told[runtime]}{DOCTOR}"]


@pytest.mark.slow
def test_a_service_that_lacks_the_rights_is_told_so_in_one_line_at_the_start(tmp_path):
    command = [
        "setpriv",
        "--bounding-set=-sys_admin",
        "--inh-caps=-sys_admin",
        sys.executable,
        "-m",
        "proofbox.cli",
    ]
    environment = {**os.environ, "PROOFBOX_ENGINE": "oci", "PROOFBOX_DATA_DIR": str(tmp_path / "data")}
    done = subprocess.run(
        [*command, "serve"], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )
    told = (
        "proofbox: the engine 'oci' needs root with CAP_SYS_ADMIN: "
        f"run the service as root or set PROOFBOX_ENGINE=docker{DOCTOR}"
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, told)


@pytest.mark.slow
def test_an_archive_is_all_that_is_needed_where_no_engine_answers(tmp_path, side):
    archive = tmp_path / "image.tar"
    with archive.open("wb") as file:
        subprocess.run(["docker", "save", Settings().sandbox_image], stdout=file, check=True)
    settings = {"engine_host": f"unix://{tmp_path}/nobody.sock", "oci_image_archive": archive}
    with serving(tmp_path / "data", side, engine="oci", oci_cache_dir=tmp_path / "cache", **settings) as service:
        assert service.call(WRITES)["ok"] is True
