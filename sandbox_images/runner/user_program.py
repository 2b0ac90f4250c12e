"""The interpreter that waits warm and then becomes the user's program.

It is started before any call is known, by the runner or, where processes are forked into containers, as a fork of a
zygote that was started by the same command. It waits for one job on file descriptor 3, sets up what a program
finds (limits, environment, folder, arguments) and runs the code as ``__main__``, byte for byte, so that line
numbers, tracebacks, ``__file__``, threads, subprocesses and exit codes are those of a script started by hand.
It never knows the nonce of the stream.
"""

import builtins
import contextlib
import importlib.machinery
import json
import os
import posix
import resource
import runpy
import signal
import socket
import struct
import sys
import time
import types
from typing import TYPE_CHECKING, Any, NoReturn, Self

import program_text
from shown import Shown

if TYPE_CHECKING:
    from zygote.main import Fork

CONTROL_FD = 3
OWN_MODULES = ("user_program", "program_text", "shown", "shown_figures", "last_value", "notebook_display")
"""What a program's own import of such a name must not find."""
_HERE = os.path.dirname(os.path.abspath(__file__))
_OWN_PROGRAMS = frozenset({"render", "page_text", "inventory"})
# A program is a script with imports or with require, as it likes: node finds out which, and need not warn of that.
_INTERPRETERS = {
    "bash": ("/bin/bash",),
    "node": (
        *("/usr/bin/node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"),
        *("--enable-source-maps", "--require", os.path.join(_HERE, "typescript.cjs")),
    ),
}
# By these variables libraries learn how many threads they may have: OpenMP, BLAS and others.
_BEGIN_PATHS = "\x01begin"  # from here on paths mean what they mean for programs: paths.c
_PROCESSORS = os.cpu_count()  # a zygote has asked before its forks need it
_THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "RAYON")
_HEAP_SHARE = 0.75  # of the memory: what Node has beside its heap needs the rest


def _serve_as_zygote() -> "Fork | None":
    """Serves as a zygote, if this process is one: then this returns in its forks; else None.

    A zygote has a socket for messages in place of a stream.
    """
    with socket.socket(fileno=os.dup(CONTROL_FD)) as control:
        if control.type != socket.SOCK_SEQPACKET:
            return None
    from zygote.main import serve  # noqa: PLC0415 - an interpreter that the runner starts has no part of it

    return serve(socket.socket(fileno=CONTROL_FD))


def _receive_job(control: socket.socket) -> dict[str, Any]:
    # What starting has cost is not the program's.
    control.sendall(struct.pack(">d", time.process_time()))
    with control, control.makefile("rb") as stream:
        job: dict[str, Any] = json.loads(stream.readline())
        return job


def _confine(job: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_bytes"], job["file_bytes"]))
    try:
        # When memory runs out the kernel is to pick the program, not the runner that reports it.
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as file:
            file.write(b"1000")
    except OSError:
        pass  # gVisor has no such file; its runner is not in the program's address space either


def _take_processors(count: int) -> None:
    """Has the program see as many processors as its time is worth: more threads than that only slow it.

    Which ones is left to chance, so that small programs do not meet on the first ones.
    """
    allowed = sorted(os.sched_getaffinity(0))
    seen = min(count, len(allowed))
    os.environ.update({f"{name}_NUM_THREADS": str(seen) for name in _THREADS}, PYTHON_CPU_COUNT=str(seen))
    if seen < len(allowed):
        first = int.from_bytes(os.urandom(4)) % len(allowed)
        with contextlib.suppress(OSError):  # gVisor may refuse it
            os.sched_setaffinity(0, [*allowed[first:], *allowed[:first]][:seen])
        if "numpy" in sys.modules:
            _limit_loaded(seen)
    if seen != _PROCESSORS:
        # Python reads its variable when it starts, which was before this was known.
        posix.cpu_count = os.cpu_count = os.process_cpu_count = lambda: seen


def _limit_loaded(threads: int) -> None:
    """Libraries that were loaded before have counted the processors of the machine."""
    import threadpoolctl  # noqa: PLC0415 - only where a limit is lower than the machine has

    threadpoolctl.threadpool_limits(limits=threads)
    if (pyarrow := sys.modules.get("pyarrow")) is not None:
        pyarrow.set_cpu_count(threads)


def _take_place(job: dict[str, Any]) -> str:
    """Opens standard input and goes to the working directory, made if it is missing; returns that."""
    if job["stdin"]:
        fd = os.open(job["stdin"], os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(fd, 0)
        os.close(fd)
        os.unlink(job["stdin"])
    cwd = os.path.join(job["out_dir"], job["cwd"]) if job["cwd"] else job["out_dir"]
    try:
        if job["cwd"] not in ("", f"{job['turn_id']}/files"):
            os.makedirs(cwd, exist_ok=True)
            if not os.path.realpath(cwd).startswith(os.path.realpath(job["out_dir"])):
                sys.exit(f"cwd {job['cwd']} cannot be used as the working directory: a link leads out of files/")
        os.chdir(cwd)
    except OSError as exc:
        sys.exit(f"cwd {job['cwd']} cannot be used as the working directory: {exc.strerror}")
    return str(cwd)


def _add_packages(folder: str) -> None:
    """Lets this interpreter, and those that the program starts, find the packages of the call first."""
    if not os.path.isdir(folder):
        sys.exit("the packages of the call are not there: the engine does not see the folder of the service")
    os.environ["PYTHONPATH"] = folder
    sys.path.insert(1, folder)


class Program(list[Any]):
    """The user's program, its code and its names, while it runs; its end is shown as Python would show it.

    Attributes:
        awaited: what running the code gave: a coroutine, if it has ``await`` outside of functions.
    """

    def __init__(self, path: str, shown: Shown, fork: "Fork | None") -> None:
        super().__init__()
        self.awaited: Any = None
        self._path = path
        self._shown = shown
        self._fork = fork
        self._names: dict[str, Any] = {}

    def __enter__(self) -> Self:
        with open(self._path, "rb") as file:
            source = file.read()
        self._shown.watch(names_display=b"display" in source or b"IPython" in source)
        module = types.ModuleType("__main__")
        module.__file__ = self._path
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", self._path)
        module.__dict__.update(__cached__=None, __annotations__={})
        module.__builtins__ = builtins  # type: ignore[attr-defined]  # as the interpreter sets it
        sys.modules["__main__"] = module
        self._names = module.__dict__
        try:
            program = program_text.compile_program(source, self._path)
            for note in program.notes:
                self._shown.note(note)
            self.extend((program.code, self._names))
        except BaseException as exc:
            self.__exit__(type(exc), exc, exc.__traceback__)
            raise
        return self

    def __exit__(self, kind: object, exc: BaseException | None, traceback: types.TracebackType | None) -> None:
        self.clear()  # the launcher goes on holding this
        error = exc
        if self.awaited is not None:
            import asyncio  # noqa: PLC0415 - few programs wait outside of functions

            try:
                asyncio.run(self.awaited)
            except BaseException as raised:  # noqa: BLE001 - whatever ends the program
                error = raised
        end = self._end(error)
        if self._fork and not isinstance(error, KeyboardInterrupt):
            self._fork.shutdown.set_status(end)
        if isinstance(error, KeyboardInterrupt) and error is not exc:
            raise error
        if end is not None and end is not exc:
            raise end

    def _end(self, error: BaseException | None) -> SystemExit | None:
        """Shows the error that ended the program, and stores what that shows; its exit, if it is one."""
        names, self._names = self._names, {}
        if error is None or isinstance(error, SystemExit):
            self._shown.end(names.pop(program_text.VALUE_NAME, None) if error is None else None)
            return error
        _show(error, None if self.awaited is None else self._path)
        if isinstance(error, Exception):
            self._shown.end()
        if isinstance(error, KeyboardInterrupt):
            # Python itself ends by SIGINT, after exit handlers and the last output; the traceback is shown.
            sys.excepthook = lambda *_: None
            return None
        return SystemExit(1)


def _run_own(name: str, path: str, loaded: dict[str, types.ModuleType]) -> NoReturn:
    """A program of ours in place of the user's; what lies in OUT_DIR must not shadow a module of it."""
    sys.modules.update({module: loaded[module] for module in loaded if module.partition(".")[0] == name})
    sys.path[0] = os.path.dirname(_HERE)
    sys.argv = [name, path]
    status = 0
    try:
        runpy.run_module(name, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    sys.stdout.flush()
    sys.stderr.flush()
    os.closerange(1, 3)  # standard output and error: by that process 1 sees at once that this is the end
    os._exit(status)  # nothing is left to be done, and to take the interpreter apart takes as long as a page


def _show(exc: BaseException, path: str | None) -> None:
    """Prints the traceback without the frames of ours, as if the script had been started by hand.

    Args:
        exc: what ended the program.
        path: the program, of one that ran within the loop of asyncio; None for any other.
    """
    _without_ours(exc, path)
    try:
        sys.excepthook(type(exc), exc, exc.__traceback__)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a hook of the program raises, as Python shows it
        _without_ours(error, None)
        error.__context__ = None
        for title, shown in (("Error in sys.excepthook", error), ("\nOriginal exception was", exc)):
            sys.stderr.write(f"{title}:\n")
            sys.__excepthook__(type(shown), shown, shown.__traceback__)


def _without_ours(exc: BaseException, path: str | None) -> None:
    traceback = exc.__traceback__
    while traceback is not None and (
        os.path.dirname(traceback.tb_frame.f_code.co_filename) == _HERE
        or path not in (None, traceback.tb_frame.f_code.co_filename)
    ):
        traceback = traceback.tb_next
    exc.__traceback__ = traceback


def wait() -> Program:
    """Waits for the job and sets up what its program finds; returns only if that is in Python."""
    for name in sys.argv[1:]:
        __import__(name)
    for stream in (sys.stdout, sys.stderr):
        # Output is streamed as it comes, and what was printed is there when a program is killed.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # not replaced yet
    fork = _serve_as_zygote()
    job = _receive_job(fork.connection if fork else socket.socket(fileno=CONTROL_FD))
    for name in OWN_MODULES:
        sys.modules.pop(name, None)
    _confine(job)
    _take_processors(job["cpus"])
    os.environ["NODE_OPTIONS"] = f"--max-old-space-size={int(job['memory_bytes'] * _HEAP_SHARE) >> 20}"
    os.environ.update(job["env"])
    os.access(_BEGIN_PATHS, os.F_OK)
    cwd = _take_place(job)
    sys.argv = [job["path"], *job["args"]]
    if job["language"] in _OWN_PROGRAMS:
        _run_own(job["language"], job["path"], fork.ours if fork else {})
    sys.path[0] = cwd
    if job["packages"]:
        _add_packages(job["packages"])
    if job["language"] != "python":
        _become(job)
    sys.orig_argv = [sys.executable, *sys.argv]
    folder = os.path.join(job["out_dir"], job["turn_id"], "files")
    stem = os.environ.get("PROOFBOX_SHOWN_STEM", "shown")  # set by a facade whose clients know another name
    return Program(job["path"], Shown(folder, job["record"], stem), fork)


def _become(job: dict[str, Any]) -> NoReturn:
    """Becomes the interpreter of another language."""
    # Python ignores these two; what it becomes and starts would inherit that, so `yes | head` would complain.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    program, *options = _INTERPRETERS[job["language"]]
    command = [job["language"], *options, job["path"], *job["args"]]
    os.execv(program, command)  # noqa: S606 - becoming it is the purpose
