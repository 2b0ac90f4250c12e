"""An inspector that waits in a container while a hostile program runs there: what this sees of it, and can do.

It is found from the host by its namespace of processes, and from inside by being root's.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import engine_sides
import pytest
from engine_sides import is_of_sandboxes, side_of
from service_process import ServiceProcess, eventually, request, serving, verdicts

pytestmark = pytest.mark.docker

# Into containers of gVisor nothing can be forked.
FORKING = [
    name
    for name in engine_sides.tested()
    if name != "docker" or "runsc" not in os.environ.get("PROOFBOX_RUNTIME", "")
]
CAP_SETGID, CAP_SETUID = 1 << 6, 1 << 7
RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


@pytest.fixture(scope="module", params=FORKING)
def service(request, tmp_path_factory) -> Iterator[ServiceProcess]:
    side = side_of(request.param)
    folder = tmp_path_factory.mktemp("waiting")
    with serving(folder / "data", side, engine=request.param, import_once="on", pool_size=1) as running:
        yield running
    side.close()


def fields_of(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def in_namespace_of(first: int) -> dict[int, dict[str, str]]:
    """The processes in the namespace of processes of another, and what their status says."""
    space = Path(f"/proc/{first}/ns/pid").readlink()
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if (entry / "ns" / "pid").readlink() == space:
                found[int(entry.name)] = fields_of(int(entry.name))
    return found


def held_by(pid: int) -> list[str]:
    """What the descriptors of a process are of; nothing while they change."""
    try:
        return [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except FileNotFoundError:
        return []


def first_of(box: str) -> int:
    """Process 1 of a container, as this machine counts."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            is_in_box = box.rpartition("/")[2] in (entry / "cgroup").read_text()
            if is_in_box and fields_of(int(entry.name))["NSpid"].split()[-1] == "1":
                return int(entry.name)
    raise LookupError(box)


@contextlib.contextmanager
def sleeping(service: ServiceProcess, *promised: str, then: str = "") -> Iterator[tuple[dict, int, int]]:
    """A call whose program waits to be let go on, process 1 of its container, and the process that waits there."""
    waits = "while not os.path.exists('/tmp/go'): time.sleep(0.02)"
    code = f"import os, subprocess, time\nsubprocess.Popen(['sleep', '987'])\n{waits}\n{then}"
    body = request(code, *promised)
    assert service.post(body, Prefer="respond-async").status_code == 202
    try:
        [box] = eventually(service.busy, lambda busy: len(busy) == 1)
        first = first_of(box)

        def waiting() -> list[int]:
            return [pid for pid, said in in_namespace_of(first).items() if said["Uid"].split() == ["0"] * 4]

        [pid] = eventually(waiting, lambda found: len(found) == 1)
        yield body, first, pid
    finally:
        service.cancel(body)
        eventually(service.busy, lambda busy: busy == [])


def answer_after(service: ServiceProcess, body: dict, first: int) -> dict:
    """The answer to a call, after its program was let go on."""
    Path(f"/proc/{first}/root/tmp/go").touch()
    return eventually(lambda: service.status(body), lambda told: told["status"] == "done")["response"]


@pytest.mark.parametrize("promised", ["out.txt", "out.pdf"])
def test_it_holds_no_right_but_to_become_the_user_and_nothing_that_leads_out(service, promised):
    with sleeping(service, promised) as (_, first, pid):
        held = eventually(lambda: held_by(pid), lambda found: found.count("/dev/null") == 3)
        said = fields_of(pid)
        rights = {name: int(said[name], 16) for name in RIGHTS}
        spaces = [
            {entry.name: entry.readlink() for entry in Path(f"/proc/{one}/ns").iterdir()} for one in (first, pid)
        ]
        same_root = Path(f"/proc/{first}/root").samefile(f"/proc/{pid}/root")
    assert rights == {
        **dict.fromkeys(("CapInh", "CapBnd", "CapAmb"), 0),
        **dict.fromkeys(("CapPrm", "CapEff"), CAP_SETGID | CAP_SETUID),
    }
    assert (said["NoNewPrivs"], said["Threads"], same_root) == ("1", "1", True)
    assert spaces[0] == spaces[1]
    kinds = [name for name in held if name != "/dev/null" and not name.endswith(("/tasks", "/cgroup.procs"))]
    assert ([name.partition(":")[0] for name in kinds], held.count("/dev/null")) == (["socket"], 3)


def inspectors() -> dict[int, dict[str, str]]:
    """Those in containers, and what their status says; their zygotes are in no namespace of processes."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if b"inspecting_zygote" in (entry / "cmdline").read_bytes():
                said = fields_of(int(entry.name))
                if len(said["NSpid"].split()) > 1:
                    found[int(entry.name)] = said
    return found


def came_in(service: ServiceProcess) -> list[dict[str, str]]:
    """What the inspectors of a call were seen to be last."""
    code = "import time\ntime.sleep(0.3)\nopen('out.csv', 'w').write('a\\n1\\n')"
    seen: dict[int, dict[str, str]] = {}
    with ThreadPoolExecutor(1) as threads:
        calling = threads.submit(service.call, code, "out.csv")
        while (found := inspectors()) or not calling.done():
            seen |= found
        assert verdicts(calling.result()) == {"out.csv": "produced"}
    return list(seen.values())


def test_what_has_come_in_is_confined_as_programs_are(service):
    [said] = came_in(service)
    assert {is_of_sandboxes(user) for user in said["Uid"].split()} == {True}
    assert said["Gid"].split() == ["10001"] * 4
    assert {said[name] for name in RIGHTS} == {"0" * 16}
    assert (said["NoNewPrivs"], said["Seccomp"], said["Groups"].split()) == ("1", "2", ["10001"])


def test_what_has_come_in_is_confined_where_root_outside_is_nobody_inside(tmp_path, remapped_docker):
    """There the kernel takes no right away from who gives up being root."""
    settings = {"engine": "docker", "engine_host": remapped_docker.host, "import_once": "on", "pool_size": 1}
    side = side_of("docker")
    with serving(tmp_path / "data", side, **settings) as remapped:
        [said] = came_in(remapped)
    side.close()
    assert (is_of_sandboxes(said["Uid"].split()[0]), said["NSpid"].split()[-1] != "1") == (False, True)
    assert {said[name] for name in RIGHTS} == {"0" * 16}
    assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2")


TRIES = """
import ctypes, errno, json, os, resource, signal, socket, struct, time
libc = ctypes.CDLL(None, use_errno=True)
told = {}
def found():
    for name in os.listdir('/proc'):
        if name.isdigit():
            rows = dict(line.split(':', 1) for line in open(f'/proc/{name}/status') if ':' in line)
            if rows['Uid'].split()[0] == '0':
                return int(name)
for _ in range(200):
    pid = found()
    if pid is not None:
        break
    time.sleep(0.01)
time.sleep(0.1)  # until it has put on all that it waits in
def tried(name, action):
    try:
        told[name] = 'done: ' + repr(action())[:80]
    except OSError as error:
        told[name] = errno.errorcode[error.errno]
def called(number, *arguments):
    libc.syscall.restype = ctypes.c_long
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), '')
for number in (0, 1, 2, 9, 15, 18, 19, 34):
    tried(f'signal {number}', lambda: os.kill(pid, number))
for name in ('mem', 'environ', 'maps', 'auxv', 'syscall', 'stack', 'io', 'pagemap', 'smaps'):
    tried(name, lambda: open(f'/proc/{pid}/{name}', 'rb').read(1))
for name in ('fd', 'fdinfo', 'map_files'):
    tried(name, lambda: os.listdir(f'/proc/{pid}/{name}'))
for name in ('root', 'cwd', 'exe', 'ns/mnt', 'ns/pid', 'ns/net'):
    tried(name, lambda: os.readlink(f'/proc/{pid}/{name}'))
for name in ('oom_score_adj', 'comm', 'coredump_filter', 'clear_refs', 'mem'):
    tried(f'write {name}', lambda: open(f'/proc/{pid}/{name}', 'wb').write(b'0'))
tried('limits', lambda: resource.prlimit(pid, resource.RLIMIT_DATA, (1, 1)))
tried('processors', lambda: os.sched_setaffinity(pid, {0}))
tried('nice', lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
tried('scheduler', lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)))
tried('group', lambda: os.setpgid(pid, pid))
tried('wait', lambda: os.waitpid(pid, os.WNOHANG))
tried('trace', lambda: called(101, 16, pid, 0, 0))
word = ctypes.create_string_buffer(8)
one = (ctypes.c_size_t * 2)(ctypes.addressof(word), 8)
tried('read memory', lambda: called(310, pid, one, 1, one, 1, 0))
tried('write memory', lambda: called(311, pid, one, 1, one, 1, 0))
def handle():
    return os.pidfd_open(pid)
tried('signal by handle', lambda: signal.pidfd_send_signal(handle(), 9))
tried('descriptors by handle', lambda: called(438, handle(), 0, 0))
told['mounts'] = open(f'/proc/{pid}/mountinfo').read() == open('/proc/self/mountinfo').read()
told['network'] = open(f'/proc/{pid}/net/dev').read() == open('/proc/self/net/dev').read()
# Where it will come in, it could be waited for.
ahead = socket.socket(socket.AF_UNIX)
tried('the way in', lambda: ahead.connect(b'\\0proofbox'))
try:
    os.kill(-1, 9)
except OSError as error:
    told['everybody'] = errno.errorcode[error.errno]
else:
    told['everybody'] = 'done'
told['is there'] = found() == pid
open('out.json', 'w').write(json.dumps(told))
"""
REFUSED = {"EPERM", "EACCES", "ESRCH", "ECHILD", "ECONNREFUSED", "ENOENT"}


def test_a_program_that_looks_for_it_finds_a_process_that_it_can_do_nothing_to(service):
    answer = service.call(TRIES, "out.json")
    told = next(block for block in answer["blocks"] if block["path"].endswith("out.json") and "text" in block)
    tries = eval(told["text"], {"true": True, "false": False})
    assert {name: tries.pop(name) for name in ("mounts", "network", "everybody", "is there")} == {
        "mounts": True,
        "network": True,
        "everybody": "done",  # who kills everybody may kill nobody
        "is there": True,
    }
    assert {name: how for name, how in tries.items() if how not in REFUSED} == {}
    assert (answer["ok"], verdicts(answer)) == (True, {"out.json": "produced"})


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM])
def test_where_it_was_killed_another_one_opens_the_files(service, way):
    with sleeping(service, "out.csv", then="open('out.csv', 'w').write('a,b\\n1,2\\n')") as (body, first, pid):
        os.kill(pid, way)
        answer = answer_after(service, body, first)
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})


def test_it_ends_with_its_container_when_there_is_nothing_to_open(service):
    with sleeping(service, "out.csv") as (body, first, pid):
        answer = answer_after(service, body, first)
    assert verdicts(answer) == {"out.csv": "missing_file"}
    assert eventually(lambda: Path(f"/proc/{pid}").exists(), lambda there: not there) is False


def test_a_program_that_takes_all_memory_and_processes_is_judged_as_without_it(service):
    code = (
        "import os\nopen('out.csv', 'w').write('a\\n1\\n')\n"
        "held = bytearray(150 << 20)\nheld[::4096] = b'x' * len(held[::4096])\n"
    )
    answer = service.call(code, "out.csv", limits={"memory_bytes": 200 << 20})
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})


HAS_SIGNALS_SENT = """
import fcntl, os, signal, time
for _ in range(300):
    found = [int(name) for name in os.listdir('/proc') if name.isdigit()
             and 'Uid:\\t0' in open(f'/proc/{name}/status').read()]
    if found:
        break
    time.sleep(0.01)
[pid] = found
open('out.csv', 'w').write('a,b\\n1,2\\n')
held = os.open('out.csv', os.O_RDONLY)
folder = os.open('.', os.O_RDONLY)
def have_sent(fd, number):
    fcntl.fcntl(fd, fcntl.F_SETOWN, pid)
    fcntl.fcntl(fd, fcntl.F_SETSIG, number)
have_sent(held, NUMBER)
have_sent(folder, NUMBER)
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
fcntl.fcntl(folder, fcntl.F_NOTIFY, fcntl.DN_ACCESS | fcntl.DN_MULTISHOT)
memory = bytearray(300 << 20)
memory[::4096] = b'x' * len(memory[::4096])  # which takes a while to be taken apart
print(open('/proc/self/status').read().split('VmRSS:')[1].split()[0])
os._exit(0)
"""


@pytest.mark.timeout(30)
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL, signal.SIGTERM, signal.SIGALRM])
def test_signals_that_the_kernel_sends_it_for_a_program_that_is_over_change_no_verdict(service, number):
    """Whether they may be sent is looked at when they are: by then it is of the program's user.

    Who stops it for good has the call last 40 seconds more.
    """
    answer = service.call(HAS_SIGNALS_SENT.replace("NUMBER", str(int(number))), "out.csv")
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})


@pytest.mark.parametrize("held", ["fcntl.F_WRLCK", "fcntl.F_RDLCK"])
def test_a_lease_that_a_program_leaves_on_its_file_changes_no_verdict(service, held):
    code = (
        "import fcntl, os\nopen('out.csv', 'w').write('a,b\\n1,2\\n')\n"
        f"file = os.open('out.csv', os.O_RDONLY)\nfcntl.fcntl(file, fcntl.F_SETLEASE, {held})\n"
        "memory = bytearray(300 << 20)\nmemory[::4096] = b'x' * len(memory[::4096])\nos._exit(0)\n"
    )
    answer = service.call(code, "out.csv")
    assert (answer["ok"], verdicts(answer)) == (True, {"out.csv": "produced"})
