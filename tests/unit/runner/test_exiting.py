"""When a process counts as ended: no thread of it runs any more, whatever it is called, and reaped or not."""

import contextlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of Linux")

EXITING_FILE = Path(__file__).parents[3] / "sandbox_images" / "runner" / "exiting.py"
# Each says a line when it is as it should be, and has a thread that runs until its standard input ends.
WAITS = "print(flush=True); input()"
IS_CALLED = "import ctypes; ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0); " + WAITS
OUTLIVES_ITS_MAIN_THREAD = """
import ctypes, os, platform, threading
for _ in range({threads}):
    threading.Thread(target=os.read, args=(0, 1)).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
"""


def _runner_exiting():
    spec = importlib.util.spec_from_file_location("exiting_of_the_runner", EXITING_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exiting = _runner_exiting()


def has_ended(pid):
    with contextlib.closing(exiting.Watched(pid)) as watched:
        return watched.has_ended()


@contextlib.contextmanager
def running(program):
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def become_zombie(process):
    """Waits for the end of a process, and does not reap it."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def lose_main_thread(process):
    """Waits for the end of its main thread."""
    stat = Path(f"/proc/{process.pid}/task/{process.pid}/stat")
    while ") Z " not in stat.read_text():
        time.sleep(0.01)


def test_a_process_that_runs_has_not_ended():
    with running(WAITS) as process:
        assert has_ended(process.pid) is False


def test_a_process_has_ended_before_it_is_reaped_and_when_it_is_gone():
    with running(WAITS) as process, contextlib.closing(exiting.Watched(process.pid)) as watched:
        running_so = watched.has_ended()
        process.kill()
        become_zombie(process)
        unreaped = watched.has_ended()
        process.wait()
        assert (running_so, unreaped, watched.has_ended()) == (False, True, True)


# What is opened takes memory of the container: there may be none, and then the kernel kills somebody for it.
LOOKS = """
import os, sys
sys.path.insert(0, {folder!r})
import exiting
opened = []
watched = exiting.Watched(os.getppid())
sys.addaudithook(lambda event, arguments: opened.append(arguments) if event in ("open", "os.listdir") else None)
for _ in range(3):
    assert not watched.has_ended()
print(opened)
"""


def test_looking_at_a_process_that_runs_opens_nothing():
    program = LOOKS.format(folder=str(EXITING_FILE.parent))
    looked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert looked.stdout == "[]\n"


@pytest.mark.parametrize("threads", [1, 100])
def test_a_process_whose_main_thread_has_ended_alone_ends_with_its_other_threads(threads):
    with running(OUTLIVES_ITS_MAIN_THREAD.format(threads=threads)) as process:
        lose_main_thread(process)
        outlived = has_ended(process.pid)
        process.stdin.close()
        become_zombie(process)
        assert (outlived, has_ended(process.pid)) == (False, True)


# The first looks like the fields of a process that ends, behind its own parenthesis.
@pytest.mark.parametrize("name", [b") Z 1 1 1 1 1 4", b"(4) 4 (4\n4) 4 4", b")))))))))))))))", b"\n 4 4 4 4 4 4 4"])
def test_a_process_is_not_taken_for_ended_by_its_name(name):
    with running(IS_CALLED.format(name=name)) as process:
        called = Path(f"/proc/{process.pid}/comm").read_bytes()
        running_so = has_ended(process.pid)
        process.kill()
        become_zombie(process)
        assert (called, running_so, has_ended(process.pid)) == (name + b"\n", False, True)


@pytest.mark.parametrize("most", [0, 1 << 22])
def test_others_have_not_ended_while_one_runs_however_many_may_be_looked_at(most):
    with running(WAITS):
        assert (exiting.ended_others(most), exiting.others_are_there()) == (None, True)


# Fields as in proc(5): what stands behind the name begins with the third, and the flags are the ninth.
@pytest.mark.parametrize(
    ("flags", "memory_bytes", "is_exiting"),
    [(0x4, 0, True), (0x400144, 0, True), (0x4, 4096, False), (0x400100, 0, False), (0x400100, 4096, False)],
)
def test_a_thread_has_ended_when_it_is_past_its_last_instruction_and_has_no_memory(
    tmp_path, flags, memory_bytes, is_exiting
):
    fields = ["0"] * 50
    fields[0], fields[9 - 3], fields[23 - 3] = "Z", str(flags), str(memory_bytes)
    (tmp_path / "stat").write_text(f"7 (python3) {' '.join(fields)}\n")
    assert exiting._is_exiting(str(tmp_path / "stat")) is is_exiting


@pytest.mark.skipif(os.getuid() != 0, reason="only root can start a process of another user")
@pytest.mark.parametrize("hides", [False, True])
def test_processes_of_another_user_are_not_counted_and_of_ours_all_are(hides):
    hiding = "import ctypes; ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); " if hides else ""
    other = "import os; os.setresuid(54321, 54321, 54321); "
    with running(hiding + WAITS) as ours, running(other + hiding + WAITS) as theirs:
        found = set(exiting._others())
    assert (str(ours.pid) in found, str(theirs.pid) in found) == (True, False)


def test_a_process_is_there_until_it_is_reaped():
    with running(WAITS) as process:
        running_so = exiting.is_there(str(process.pid))
        process.kill()
        become_zombie(process)
        unreaped = exiting.is_there(str(process.pid))
        process.wait()
        assert (running_so, unreaped, exiting.is_there(str(process.pid))) == (True, True, False)


@pytest.mark.parametrize(
    ("status", "is_ours"),
    [
        (b"Name:\tpython3\nUid:\t10001\t10001\t10001\t10001\nGid:\t0\t0\t0\t0\n", True),
        (b"Name:\tpython3\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n", False),
        # As gVisor shows a name that was chosen to be taken for another line.
        (b"Name:\t\nUid:\t0\t0\t0\t0\n\nState:\tR\nUid:\t10001\t10001\t10001\t10001\n", True),
        (b"Name:\tpython3\nState:\tR\n", True),
        (b"Name:\tpython3\nUid:\t0\t10001\t10001\t10001\n", False),
    ],
)
def test_whose_a_process_is_cannot_be_told_by_its_name(status, is_ours):
    assert exiting._is_said_to_be_of(status, 10_001) is is_ours
