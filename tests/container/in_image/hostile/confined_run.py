"""Renders a hostile document in a process of its own, and watches what that process does.

Opened files are seen twice: by Python's audit events, each with its path, and by the kernel (inotify), which sees
the opens of C libraries too, on the files that attackers like. Of the network every audit event is kept, and a
listener on loopback counts who says a word.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attack import ELSEWHERE, PORT, Attack, Folder, Link, Pipe, UnixSocket
from render.__main__ import run

CPU_S_MAX = 20
"""CPU time of one rendering; the service gives 120 s of wall clock to one call."""
WALL_S_MAX = 180.0
"""Ends a rendering that waits, on a FIFO for instance, and uses no CPU time."""
SCRATCH = Path("/tmp/scratch")
WATCHED = ("/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hostname", str(ELSEWHERE))
_OWN = ("/usr/", "/opt/proofbox/", "/src/", "/etc/fonts/", "/tmp/home/.cache/", "/dev/null", f"{SCRATCH}/")
"""The program itself: its libraries, its fonts, and its temporary files."""
_NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "socket.bind", "urllib.")
_PROCESSES = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile", "pty.")
_IN_OPEN, _IN_NONBLOCK = 0x20, 0o4000


@dataclass
class Ending:
    """How a rendering ended.

    Attributes:
        code: ``ok``, the code of the error, or the signal that killed it.
        message: the message of the error.
        warnings: their codes.
        target: the file that was to be written.
        opened: files outside OUT_DIR and the program itself that were opened.
        network: what it tried to do with the network.
        processes: programs that it started.
        cpu_s: CPU time, in seconds.
    """

    code: str
    message: str = ""
    warnings: list[str] = field(default_factory=list)
    target: Path = Path()
    opened: list[str] = field(default_factory=list)
    network: list[str] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)
    cpu_s: float = 0.0


def lay(root: Path, attack: Attack) -> None:
    """Puts the files of an attack into OUT_DIR."""
    (root / "turn_1" / "files").mkdir(parents=True)
    for name, what in attack.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, bytes):
            path.write_bytes(what)
        elif isinstance(what, Link):
            path.symlink_to(what.to)
        elif isinstance(what, Pipe):
            os.mkfifo(path)
        elif isinstance(what, UnixSocket):
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(path))
        elif isinstance(what, Folder):
            path.mkdir()


def rendered(attack: Attack, output: str, root: Path) -> Ending:
    """Renders an attack below ``root``, an empty folder that becomes OUT_DIR."""
    lay(root, attack)
    request = {
        "output": output,
        "source_format": attack.source,
        "content": attack.text(),
        "root": str(root),
        "target": f"turn_1/files/x.{output}",
        **attack.request,
    }
    asked = SCRATCH / "request.json"
    asked.write_text(json.dumps(request), encoding="utf-8")
    return watched(lambda: run(str(asked)), root, root / request["target"])


def watched(work: Any, root: Path, target: Path) -> Ending:
    """Does work in a process of its own whose limits and traces are those of this module."""
    read, write = os.pipe()
    started = time.monotonic()
    with _kernel_watch() as touched, _listener() as heard:
        child = os.fork()
        if child == 0:
            os.close(read)
            _be_the_child(work, root, write)
        os.close(write)
        said = _read_all(read, started + WALL_S_MAX)
        if said is None:
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        opened, network = touched(), heard()
    ending = _ending(said, status, target)
    ending.opened += opened
    ending.network += network
    ending.cpu_s = usage.ru_utime + usage.ru_stime
    return ending


def _ending(said: bytes | None, status: int, target: Path) -> Ending:
    if not said:
        how = "waits" if said is None else signal.Signals(os.WTERMSIG(status)).name if status & 127 else "silent"
        return Ending(how, target=target)
    told = json.loads(said)
    answer = told.pop("answer")
    error = answer.get("error") or {"code": "ok", "message": ""}
    codes = [row["code"] for row in answer.get("warnings", [])]
    return Ending(error["code"], error["message"], codes, target, **told)


def _be_the_child(work: Any, root: Path, write: int) -> None:
    """Never returns."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        Path("/proc/self/oom_score_adj").write_text(
            "1000", encoding="ascii"
        )  # as in the service: it, not the watcher
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        traces: dict[str, list[str]] = {"opened": [], "network": [], "processes": []}
        _listen_to_audit(f"{root}/", traces)
        told = {"answer": work(), **{kind: sorted(set(rows)) for kind, rows in traces.items()}}
        with os.fdopen(write, "wb") as pipe:
            pipe.write(json.dumps(told, default=str).encode())
        status = 0
    finally:
        os._exit(status)


def _listen_to_audit(root: str, traces: dict[str, list[str]]) -> None:
    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in {"open", "os.listdir", "os.scandir"} and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not f"{path}/".startswith((root, *_OWN)):
                traces["opened"].append(path)
        elif event.startswith(_NETWORK):
            traces["network"].append(f"{event} {arguments[1:]}")
        elif event.startswith(_PROCESSES):
            traces["processes"].append(event)

    sys.addaudithook(hook)


def _read_all(fd: int, deadline: float) -> bytes | None:
    """All that comes until the pipe is closed; None at the deadline."""
    said = b""
    with os.fdopen(fd, "rb", buffering=0) as pipe:
        while True:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                return None
            piece = pipe.read(65536)
            if not piece:
                return said
            said += piece


@contextmanager
def _kernel_watch() -> Iterator[Any]:
    """The kernel's own record of who opens the watched files, in this mount."""
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init1(_IN_NONBLOCK)
    names = {libc.inotify_add_watch(fd, path.encode(), _IN_OPEN): path for path in WATCHED}
    if fd < 0 or -1 in names:
        raise OSError(ctypes.get_errno(), "inotify")

    def touched() -> list[str]:
        rows: set[str] = set()
        try:
            data = os.read(fd, 1 << 20)
        except BlockingIOError:
            data = b""
        at = 0
        while at < len(data):
            watch, _, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode()
            rows.add(f"{names[watch]}/{name}".rstrip("/"))
            at += 16 + length
        return sorted(rows)

    try:
        yield touched
    finally:
        os.close(fd)


@contextmanager
def _listener() -> Iterator[Any]:
    """A port on loopback where the kernel takes connections; gives how many came."""
    with socket.create_server(("127.0.0.1", PORT), backlog=100) as server:
        server.settimeout(0)

        def heard() -> list[str]:
            callers = []
            with contextlib.suppress(BlockingIOError):
                while True:
                    server.accept()[0].close()
                    callers.append("a connection to loopback")
            return callers

        yield heard


def fresh(folder: Path) -> Path:
    """An empty folder of that path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
