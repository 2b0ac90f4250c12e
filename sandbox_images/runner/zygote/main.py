"""A process that imports once, outside of every sandbox, and is forked into them: the zygote.

It runs on the image's own Python and root folder, as root, with the few capabilities that it takes to enter a
container and to give up everything. It has one thread, never runs anything of a call, and its only connection is
the socket to the service, which sends descriptors: namespaces and control groups of a container, and a pipe for the
report.

A fork is made in steps, each by a process that can do less. This one forks A into the container's process
namespace and, where groups are of version 2, its control group. A joins those of version 1 and all other
namespaces, gives up every right for good, and forks B. A ends, so that B is a child of the container's process 1,
which alone learns how it ends. B connects to process 1, which waits for nobody else at that time, and is what it
was forked for. How an inspector ends nobody has to learn: there A goes on as B.

A container cannot end before its last process is reaped. The kernel reaps forks of this process at once, so it
never waits for one: a fork that a container holds up holds up no other.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NoReturn

from zygote import clone3, enter_container, warm_up
from zygote.interpreter_shutdown import InterpreterShutdown
from zygote.runner_address import RUNNER_ADDRESS

SERVICE_FD = 3
_MESSAGE_BYTES_MAX = 262_144
_DESCRIPTORS_MAX = 64
_REPORT_CHARS_MAX = 500
_LOOK_AGAIN_S = 0.0003
_SETTINGS_WITHIN_S = 60.0
# A container that stalls its fork ends that fork, never the zygote: two steps are shorter than the service waits.
_STEP_S_MAX = 4
_PROGRAMS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OUR_NAMES = frozenset(
    {
        *("zygote", "render", "page_text", "user_program"),
        *("program_text", "shown", "shown_figures", "last_value", "notebook_display"),
    }
)


class Zygote:
    """The process, from its first message to its end."""

    def __init__(self, service: socket.socket) -> None:
        self._service = service
        # Where the service has to take the socket's other end, its death before that is not seen: hence a limit.
        service.settimeout(_SETTINGS_WITHIN_S)
        settings = json.loads(service.recv(_MESSAGE_BYTES_MAX))
        service.settimeout(None)
        os.closerange(SERVICE_FD + 1, os.sysconf("SC_OPEN_MAX"))  # the other end, where the service had to take it
        self._confinement = enter_container.Confinement.from_settings(settings)
        self._runs_programs: bool = settings["runs_programs"]
        self.shutdown = InterpreterShutdown()
        atexit.register(self.shutdown)  # before any library registers a function: so it runs last
        _import(settings["imports"], settings["own_imports"])
        warm_up.warm(settings["kind"])
        self.ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] in _OUR_NAMES}
        """Modules that a program's own import of such a name must not find."""
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        # What is there now is there for ever: no collection has to look at it, so forks go on sharing its memory.
        gc.collect()
        gc.freeze()
        warm_up.use_large_pages()
        # The kernel reaps the forks. One that is traced would stay; the filter of system calls refuses tracing.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        service.send(b".")

    def serve(self) -> socket.socket:
        """Serves the service until it hangs up; returns in forks: with the socket to their process 1."""
        while True:
            message, fds, _, _ = socket.recv_fds(self._service, _MESSAGE_BYTES_MAX, _DESCRIPTORS_MAX)
            if not message:
                os._exit(0)
            request = json.loads(message)
            if not request:
                _confirm(fds[0])
            elif (connection := self._fork_into(request, fds)) is not None:
                return connection
            for fd in fds:
                os.close(fd)

    def _fork_into(self, request: dict[str, Any], fds: list[int]) -> socket.socket | None:
        """Makes a fork; returns None in this process, and reports a failure to the service."""
        report, pids, *others = fds
        joined = _Joined.from_request(request, others)
        try:
            os.setns(pids, os.CLONE_NEWPID)
            pid, to_write = _fork_with(joined)
        except OSError as exc:
            _send_report(report, exc)
            pid = -1
        if pid == 0:
            os.close(pids)
            return self._be_first_step(report, request, joined.namespaces, to_write, others)
        os.setns(self._own_pids, os.CLONE_NEWPID)
        return None

    def _be_first_step(
        self,
        report: int,
        request: dict[str, Any],
        namespaces: list[int],
        control_groups: list[int],
        fds: list[int],
    ) -> socket.socket:
        try:
            # Before anybody inside could see this process, it has nothing that leads out again.
            self._service.close()
            os.close(self._own_pids)
            enter_container.take_label(request["label"])
            signal.alarm(_STEP_S_MAX)
            enter_container.join_control_groups(control_groups)
            enter_container.join_namespaces(namespaces)
            enter_container.limit_rights()
            for fd in fds:
                os.close(fd)
            self._confinement.take_user(request["user"])
            pid = os.fork() if self._runs_programs else 0
        except BaseException as exc:  # noqa: BLE001 - none may get back to the loop
            _end(report, exc)
        if pid != 0:
            os._exit(0)
        try:
            return self._be_second_step(report)
        except BaseException as exc:  # noqa: BLE001 - as above
            _end(report, exc)

    def _be_second_step(self, report: int) -> socket.socket:
        signal.alarm(_STEP_S_MAX)  # a fork of A does not inherit its alarm
        os.setsid()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(RUNNER_ADDRESS)
        nowhere = os.open(os.devnull, os.O_RDWR)
        outputs = [nowhere, nowhere]
        if self._runs_programs:
            _, outputs, _, _ = socket.recv_fds(connection, 1, len(outputs))
            if not outputs:
                raise OSError("the runner could not hand over the output")
        for standard, fd in enumerate([nowhere, *outputs]):
            os.dup2(fd, standard)
        for name in self.ours:
            del sys.modules[name]
        self.shutdown.mark_libraries()
        control = connection.detach()
        if control != SERVICE_FD:
            os.dup2(control, SERVICE_FD, inheritable=False)
        for first, last in ((SERVICE_FD + 1, report), (report + 1, os.sysconf("SC_OPEN_MAX"))):
            os.closerange(first, last)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # an inspector waits for its judges, a program as it likes
        if self._runs_programs:
            _reseed()
            # A is about to end: the kernel takes its memory apart first, which takes a while.
            while os.getppid() != 1:
                time.sleep(_LOOK_AGAIN_S)
        enter_container.become_readable()
        signal.alarm(0)
        os.write(report, b".")
        os.close(report)
        return socket.socket(fileno=SERVICE_FD)


@dataclass(frozen=True, slots=True)
class _Joined:
    """What a fork joins, as open descriptors.

    Attributes:
        namespaces: all but that of processes.
        control_groups: the files of those of version 1 that a process of one thread writes itself to.
        group: of version 2, its folder and such a file of it, or nothing.
    """

    namespaces: list[int]
    control_groups: list[int]
    group: list[int]

    @classmethod
    def from_request(cls, request: dict[str, Any], fds: list[int]) -> "_Joined":
        """Sorts the descriptors of a request."""
        at = request["namespaces"]
        end = at + request["control_groups"]
        return cls(fds[:at], fds[at:end], fds[end:])


def _fork_with(joined: _Joined) -> tuple[int, list[int]]:
    """Forks; returns the fork's number, 0 in the fork itself, and the files that it has to write itself to.

    Raises:
        OSError: there is no fork.
    """
    if joined.group:
        folder, file = joined.group
        try:
            return clone3.fork_into(folder), joined.control_groups
        except OSError:  # an old kernel, or a machine that lets nobody out of his part of the groups
            return os.fork(), [*joined.control_groups, file]
    return os.fork(), joined.control_groups


def _import(modules: list[str], own: list[str]) -> None:
    for name in modules:
        importlib.import_module(name)
    sys.path.insert(0, _PROGRAMS)
    for name in own:
        importlib.import_module(name)
    sys.path.remove(_PROGRAMS)


def _reseed() -> None:
    """Draws anew what was drawn at an import, which all forks share; the module random does this itself."""
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()
    if (tempfile := sys.modules.get("tempfile")) is not None:
        tempfile._name_sequence = None  # type: ignore[attr-defined]  # noqa: SLF001 - as random does at a fork
    if (process := sys.modules.get("multiprocessing.process")) is not None:
        process.current_process().authkey = os.urandom(32)


def _confirm(report: int) -> None:
    """Answers an empty request, which asks whether this process still serves."""
    with contextlib.suppress(OSError):
        os.write(report, b".")


def _send_report(report: int, exc: BaseException) -> None:
    with contextlib.suppress(OSError):  # the service may wait no more
        os.write(report, f"{type(exc).__name__}: {exc}"[:_REPORT_CHARS_MAX].encode(errors="replace"))


def _end(report: int, exc: BaseException) -> NoReturn:
    _send_report(report, exc)
    os._exit(1)


@dataclass(frozen=True, slots=True)
class Fork:
    """What a fork knows of itself.

    Attributes:
        connection: its socket to process 1.
        ours: modules of ours that it has.
        shutdown: needs the exit status of the program.
    """

    connection: socket.socket
    ours: dict[str, ModuleType]
    shutdown: InterpreterShutdown


def serve(service: socket.socket) -> Fork:
    """Serves as a zygote; returns only in its forks."""
    process = Zygote(service)
    return Fork(process.serve(), process.ours, process.shutdown)
