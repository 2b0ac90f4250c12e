"""The interpreter that waits warm and then becomes the user's program.

It is started before any call is known, by the runner or, where processes are forked into containers, as a fork of a
zygote that was started by the same command. It waits for one job on file descriptor 3, sets up what a program
finds (limits, environment, folder, arguments) and runs the code as ``__main__``, byte for byte, so that line
numbers, tracebacks, ``__file__``, threads, subprocesses and exit codes are those of a script started by hand.
It never knows the nonce of the stream.
"""

import atexit
import builtins
import importlib.machinery
import json
import os
import resource
import runpy
import signal
import socket
import struct
import sys
import time
import types
from typing import TYPE_CHECKING, Any

import program_text
from shown import Shown

if TYPE_CHECKING:
    from zygote.main import Fork

CONTROL_FD = 3
OWN_MODULES = ("user_program", "program_text", "shown", "shown_figures", "last_value", "notebook_display")
"""What a program's own import of such a name must not find."""
_PANGO = "libpangoft2-1.0.so.0"
_OWN_PROGRAMS = frozenset({"render", "page_text", "inventory"})
# A program is a script with imports or with require, as it likes: node finds out which, and need not warn of that.
_INTERPRETERS = {
    "bash": ("/bin/bash",),
    "node": ("/usr/bin/node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"),
}


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


def _take_place(job: dict[str, Any]) -> str:
    """Opens standard input and goes to the working directory, made if it is missing; returns that."""
    if job["stdin"]:
        fd = os.open(job["stdin"], os.O_RDONLY | os.O_CLOEXEC)
        os.dup2(fd, 0)
        os.close(fd)
        os.unlink(job["stdin"])
    cwd = os.path.join(job["out_dir"], job["cwd"]) if job["cwd"] else job["out_dir"]
    try:
        if job["cwd"]:
            os.makedirs(cwd, exist_ok=True)
        if not os.path.realpath(cwd).startswith(os.path.realpath(job["out_dir"])):
            sys.exit(f"cwd {job['cwd']} cannot be used as the working directory: a link leads out of files/")
        os.chdir(cwd)
    except OSError as exc:
        sys.exit(f"cwd {job['cwd']} cannot be used as the working directory: {exc.strerror}")
    return str(cwd)


def _hide(links: dict[str, str]) -> None:
    """Leaves the links of the working directory to itself out of what the program lists."""
    import spellings  # noqa: PLC0415 - only programs that name such a folder need it

    del sys.modules["spellings"]
    spellings.hide(links)


def _add_packages(folder: str) -> None:
    """Lets this interpreter, and those that the program starts, find the packages of the call first."""
    if not os.path.isdir(folder):
        sys.exit("the packages of the call are not there: the engine does not see the folder of the service")
    os.environ["PYTHONPATH"] = folder
    sys.path.insert(1, folder)


def _run_python(path: str, shown: Shown) -> None:
    with open(path, "rb") as file:
        source = file.read()
    shown.watch(names_display=b"display" in source or b"IPython" in source)
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    module.__dict__.update(__cached__=None, __annotations__={})
    module.__builtins__ = builtins  # type: ignore[attr-defined]  # as the interpreter sets it
    sys.modules["__main__"] = module
    try:
        program = program_text.compile_program(source, path)
        del source
        for note in program.notes:
            shown.note(note)
        awaited = eval(program.code, module.__dict__)  # noqa: S307 - running the caller's code is the purpose
        if program.code.co_flags & program_text.CO_COROUTINE:
            import asyncio  # noqa: PLC0415 - few programs wait outside of functions

            asyncio.run(awaited)
        shown.end(module.__dict__.pop(program_text.VALUE_NAME, None))
    except SystemExit:
        shown.end()
        raise
    except BaseException as exc:  # whatever ends the program is shown as Python would show it
        _show(exc, path)
        if isinstance(exc, Exception):
            shown.end()
        if isinstance(exc, KeyboardInterrupt):
            # Python itself ends by SIGINT, after exit handlers and the last of the output; the traceback is shown.
            sys.excepthook = lambda *_: None
            raise
        sys.exit(1)


def _run_to_the_end(path: str, shown: Shown, fork: "Fork | None") -> None:
    """Runs a program, and passes its exit status to the shutdown of a fork."""
    try:
        _run_python(path, shown)
    except SystemExit as end:
        if fork:
            fork.shutdown.set_status(end)
        raise
    if fork:
        fork.shutdown.set_status(None)


def _keep_pango() -> None:
    """Has pango stay until the process is gone, if WeasyPrint is loaded.

    Pango has a thread, which may still run when Python takes the modules apart and unloads the library: a few in a
    thousand programs ended by that with a segmentation fault.
    """
    if "weasyprint" not in sys.modules:
        return
    try:
        import ctypes  # noqa: PLC0415 - which WeasyPrint has loaded

        ctypes.CDLL(_PANGO)  # ctypes gives none back
    except Exception:  # noqa: BLE001, S110 - whatever the program has done to imports: it has ended already
        pass


def _run_own(name: str, path: str, loaded: dict[str, types.ModuleType]) -> None:
    """A program of ours in place of the user's; what lies in OUT_DIR must not shadow a module of it."""
    sys.modules.update({module: loaded[module] for module in loaded if module.partition(".")[0] == name})
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
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


def _show(exc: BaseException, path: str) -> None:
    """Prints the traceback from the program's first frame on, as if the script had been started by hand."""
    traceback = exc.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename != path:
        traceback = traceback.tb_next
    sys.excepthook(type(exc), exc.with_traceback(traceback), traceback)


def main() -> None:
    """Waits for the job, then is the program."""
    for name in sys.argv[1:]:
        __import__(name)
    for stream in (sys.stdout, sys.stderr):
        # Output is streamed as it comes, and what was printed is there when a program is killed.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # not replaced yet
    fork = _serve_as_zygote()
    _run(_receive_job(fork.connection if fork else socket.socket(fileno=CONTROL_FD)), fork)


def _run(job: dict[str, Any], fork: "Fork | None") -> None:
    for name in OWN_MODULES:
        sys.modules.pop(name, None)
    _confine(job)
    os.environ.update(job["env"])
    cwd = _take_place(job)
    sys.argv = [job["prog_name"], *job["args"]]
    if job["language"] in _OWN_PROGRAMS:
        _run_own(job["language"], job["path"], fork.ours if fork else {})
        return
    if job["links"] and job["language"] == "python":
        _hide(job["links"])
    sys.path[0] = cwd
    if job["packages"]:
        _add_packages(job["packages"])
    if job["language"] == "python":
        atexit.register(_keep_pango)
        folder = os.path.join(job["out_dir"], job["turn_id"], "files")
        stem = os.environ.pop("PROOFBOX_SHOWN_STEM", "shown")  # set by a facade whose clients know another name
        _run_to_the_end(job["path"], Shown(folder, job["record"], stem), fork)
    else:
        # Python ignores these two; what it becomes and starts would inherit that, so `yes | head` would complain.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        program, *options = _INTERPRETERS[job["language"]]
        command = [job["language"], *options, job["path"], *job["args"]]
        os.execv(program, command)  # noqa: S606 - becoming it is the purpose
