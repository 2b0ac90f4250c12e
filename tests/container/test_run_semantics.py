"""A program runs byte for byte as ``__main__``, as if its script had been started by hand."""

import hashlib
import json

import pytest

from proofbox.contracts.tool_call_response import ToolCallResponse
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


def ended(response: ToolCallResponse) -> tuple[str, str]:
    """The error of a run that failed."""
    assert response.error is not None, response.report
    return response.error.code, response.error.message


def log_of(response: ToolCallResponse) -> str:
    return response.report.partition("Program log (tail):\n")[2]


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "\n\n   \nprint(1)  # no line end, spaces before",
        "if True:\n\tprint('tab')\n\n\n",
        "print('''a\n    b\n\tc''')\r\nprint('mixed')\nx = 1\r",
        "\ufeffprint('byte order mark')",
        "print('\u00e9 \u4e2d \U0001f600 \u2028')",
    ],
)
async def test_code_lies_in_the_sandbox_byte_for_byte_as_given(call: Caller, code: str) -> None:
    look = "\nimport hashlib; print(hashlib.sha256(open(__file__, 'rb').read()).hexdigest())"
    response = await call(code + look)
    assert response.ok, response.report
    assert (await call.output()).splitlines()[-1] == hashlib.sha256((code + look).encode()).hexdigest()


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (
            "from __future__ import annotations\ndef f(x: Undefined): ...\nprint(f.__annotations__)",
            "{'x': 'Undefined'}\n",
        ),
        ('"""The docstring."""\nfrom __future__ import annotations\nprint(__doc__)', "The docstring.\n"),
        ("# leading comment\nfrom __future__ import barry_as_FLUFL\nprint(1 <> 2)", "True\n"),
        ("text = '''one\n  two\n\tthree\n'''\nprint(repr(text))", "'one\\n  two\\n\\tthree\\n'\n"),
        ("def f():\n    return '''\n  kept\n'''\nprint(repr(f()))", "'\\n  kept\\n'\n"),
        ("print(repr('''a\r\nb'''))\r\nprint(2)\r\n", "'a\\nb'\n2\n"),
        ("\ufeff# coding: utf-8\nprint(len('é'))", "1\n"),
        ("# -*- coding: latin-1 -*-\nprint(len('é'))", "2\n"),
        ("if __name__ == '__main__':\n    print(__name__, __file__)", "__main__ /job/main.py\n"),
        ("import __main__\nx = 5\nprint(__main__.x, vars(__main__) is globals())", "5 True\n"),
        ("x = 1\ndef f():\n    global x\n    x += 1\nf()\nprint(x, [x for _ in 'ab'])", "2 [2, 2]\n"),
        ("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)", "True\n"),
        ("import inspect\ndef f(): return 1\nprint(inspect.getsource(f), end='')", "def f(): return 1\n"),
        ("import asyncio\nasync def f(): return 7\nprint(asyncio.run(f()))", "7\n"),
        ("import os, sys\nprint(sys.stdin.read() == '', os.isatty(0))", "True False\n"),
        ("def f():\n    try: return 1\n    finally: print('done')\nf()", "done\n"),
    ],
)
async def test_program_means_what_it_means_to_python(call: Caller, code: str, printed: str) -> None:
    response = await call(code)
    assert (response.ok, await call.output()) == (True, printed), response.report


SAME_AS_BY_HAND = """\
import json, os, signal, subprocess, sys, threading
facts = {
    "names": sorted(globals()),
    "values": [repr(globals().get(n)) for n in ("__name__", "__file__", "__package__", "__spec__", "__doc__")],
    "types": [type(__builtins__).__name__, type(__loader__).__name__, __loader__.path],
    "thread": threading.current_thread() is threading.main_thread(),
    "flags": [sys.flags.optimize, sys.flags.isolated, sys.flags.no_site, sys.flags.dev_mode, sys.flags.utf8_mode],
    "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "recursion": sys.getrecursionlimit(),
    "encoding": [sys.stdout.encoding, sys.stderr.errors, sys.getfilesystemencoding()],
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__],
    "umask": os.umask(0o022),
}
print(json.dumps(facts))
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-B", __file__, "by hand"], check=True)
"""


async def test_program_finds_itself_as_a_script_started_by_hand_does(call: Caller) -> None:
    response = await call(SAME_AS_BY_HAND)
    assert response.ok, response.report
    ours, by_hand = (json.loads(line) for line in (await call.output()).splitlines())
    assert ours == by_hand


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("x = 1\ny = 2\nfor in x:\n    pass", "SyntaxError: invalid syntax"),
        ("if True:\nprint(1)", "IndentationError: expected an indented block after 'if' statement on line 1"),
        ("input('name? ')", "EOFError: EOF when reading a line"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("raise ValueError('one\\ntwo')", "ValueError: one"),
        ("raise KeyError", "KeyError"),
        ("assert 1 == 2, 'no'", "AssertionError: no"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("\ufeff# coding: latin-1\n", "SyntaxError: encoding problem: iso-8859-1 with BOM"),
        ("import sys\nsys.exit('the input is wrong')", "the input is wrong"),
        ("x = 'a\0b'", "SyntaxError: source code string cannot contain null bytes"),
    ],
)
async def test_exception_is_an_exit_status_of_1_with_its_last_line(call: Caller, code: str, error: str) -> None:
    response = await call(code)
    assert ended(response) == ("nonzero_exit", f"exit status 1: {error}")
    assert response.usage.exit_code == 1
    assert "/opt/proofbox" not in response.report


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(3)", 3),
        ("exit(4)", 4),
        ("raise SystemExit(137)", 137),
        ("import os; os._exit(5)", 5),
        ("import sys; sys.exit(-1)", 255),
    ],
)
async def test_exit_status_is_the_programs_own(call: Caller, code: str, status: int) -> None:
    response = await call(code)
    assert ended(response) == ("nonzero_exit", f"exit status {status}")
    assert (response.usage.exit_code, response.usage.signal) == (status, None)


@pytest.mark.parametrize(
    "code", ["import sys; sys.exit()", "raise SystemExit(0)", "import os; os._exit(0)", "pass"]
)
async def test_exit_status_of_0_is_a_good_end(call: Caller, code: str) -> None:
    response = await call(code)
    assert (response.ok, response.usage.exit_code) == (True, 0)


async def test_traceback_names_the_lines_of_the_code_and_no_frame_of_ours(call: Caller) -> None:
    code = "def inner():\n    raise ValueError('boo')\n\n\ntry:\n    inner()\nexcept ValueError:\n    1 / 0\n"
    response = await call(code, prog_name="analysis")
    assert log_of(response) == (
        "Traceback (most recent call last):\n"
        '  File "/job/analysis.py", line 6, in <module>\n'
        "    inner()\n"
        "    ~~~~~^^\n"
        '  File "/job/analysis.py", line 2, in inner\n'
        "    raise ValueError('boo')\n"
        "ValueError: boo\n"
        "\n"
        "During handling of the above exception, another exception occurred:\n"
        "\n"
        "Traceback (most recent call last):\n"
        '  File "/job/analysis.py", line 8, in <module>\n'
        "    1 / 0\n"
        "    ~~^~~\n"
        "ZeroDivisionError: division by zero"
    )


async def test_syntax_error_names_its_line(call: Caller) -> None:
    response = await call("x = 1\n\nprint('a' 'b'\ny = 2\n")
    assert log_of(response) == (
        "  File \"/job/main.py\", line 3\n    print('a' 'b'\n         ^\nSyntaxError: '(' was never closed"
    )


async def test_code_of_1_mb_runs_and_its_last_line_is_named(call: Caller) -> None:
    code = f"text = '''{'x' * 500_000}'''\n" + "# filler\n" * 60_000 + "raise ValueError(len(text))"
    response = await call(code)
    assert ended(response) == ("nonzero_exit", "exit status 1: ValueError: 500000")
    assert 'File "/job/main.py", line 60002, in <module>' in log_of(response)


async def test_excepthook_of_the_program_is_called(call: Caller) -> None:
    code = "import sys\nsys.excepthook = lambda kind, exc, tb: print('hook', kind.__name__, tb.tb_lineno)\n1 / 0"
    response = await call(code)
    assert (response.usage.exit_code, await call.output()) == (1, "hook ZeroDivisionError 3\n")


async def test_atexit_runs_also_after_an_exception(call: Caller) -> None:
    code = "import atexit\natexit.register(print, 'at exit')\nprint('before')\nraise ValueError('boo')"
    response = await call(code)
    assert (response.usage.exit_code, await call.output()) == (1, "before\nat exit\n")


async def test_interrupt_ends_the_program_after_its_exit_handlers_and_output(call: Caller) -> None:
    code = "import atexit\natexit.register(print, ', at exit')\nprint('before', end='')\nraise KeyboardInterrupt"
    response = await call(code)
    assert (response.usage.signal, await call.output()) == (2, "before, at exit\n")
    assert log_of(response).count("KeyboardInterrupt") == 2  # its line of code, and its name


@pytest.mark.parametrize(
    ("code", "name", "number"),
    [
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV", 11),
        ("import os; os.abort()", "SIGABRT", 6),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "SIGTERM", 15),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL", 9),
        ("raise KeyboardInterrupt", "SIGINT", 2),
    ],
)
async def test_signal_that_ends_the_program_is_named(call: Caller, code: str, name: str, number: int) -> None:
    response = await call(code)
    assert ended(response) == ("killed", f"the program was ended by {name} (signal {number})")
    assert (response.usage.exit_code, response.usage.signal) == (None, number)


async def test_thread_is_waited_for_and_its_exception_does_not_fail_the_program(call: Caller) -> None:
    code = """
import threading, time
def late():
    time.sleep(0.2)
    open("files/late.txt", "w").write("late")
    raise ValueError("in a thread")
threading.Thread(target=late).start()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
"""
    response = await call(code, ["late.txt"])
    assert (response.ok, response.usage.exit_code, await call.text("late.txt")) == (True, 0, "late")
    assert (await call.output("stderr")).splitlines()[-1] == "ValueError: in a thread"


async def test_daemon_thread_does_not_run_on_in_modules_that_are_taken_apart(call: Caller) -> None:
    code = """
import json, threading, time
guard = threading.Lock()
def spin():
    while True:
        with guard:
            pass
class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.1)
json.held = spin  # so that the names of the program are still there when they are taken apart
last = Last()
threading.Thread(target=spin, daemon=True).start()
"""
    response = await call(code)
    assert (response.ok, await call.output("stderr")) == (True, "")


async def test_thread_is_waited_for_after_the_main_one_has_ended_alone(call: Caller) -> None:
    code = """
import ctypes, platform, threading, time
def late():
    time.sleep(0.5)
    open("files/late.txt", "w").write("late")
threading.Thread(target=late).start()
ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, not exit_group
"""
    response = await call(code, ["late.txt"])
    assert response.ok, response.report
    assert (response.usage.exit_code, await call.text("late.txt")) == (0, "late")


async def test_subprocess_sees_the_same_folder_and_environment(call: Caller) -> None:
    code = """
import subprocess, sys
subprocess.run(["sh", "-c", 'echo "$TURN_ID $OUT_DIR $PWD" > files/a.txt'], check=True)
print(subprocess.run([sys.executable, "-c", "import numpy; print(numpy.array([1, 2]).sum())"],
                     capture_output=True, text=True, check=True).stdout, end="")
print(subprocess.run(["sh", "-c", "exit 3"]).returncode)
"""
    response = await call(code, ["a.txt"])
    assert response.ok, response.report
    assert (await call.text("a.txt"), await call.output()) == ("turn_1 /out /out/turn_1/files\n", "3\n3\n")


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
async def test_multiprocessing_finds_functions_of_the_program(call: Caller, method: str) -> None:
    code = f"""
import multiprocessing as mp

FACTOR = 3

def triple(n):
    return FACTOR * n

def put(queue, n):
    queue.put(triple(n))

if __name__ == "__main__":
    context = mp.get_context({method!r})
    with context.Pool(2) as pool:
        print(pool.map(triple, range(4)))
    queue = context.Queue()
    process = context.Process(target=put, args=(queue, 7))
    process.start()
    print(queue.get(), process.join(), process.exitcode)
"""
    response = await call(code)
    assert (response.ok, await call.output()) == (True, "[0, 3, 6, 9]\n21 None 0\n"), response.report


async def test_process_pool_executor_and_shared_memory_work(call: Caller) -> None:
    code = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import shared_memory
import numpy as np

def double(name):
    block = shared_memory.SharedMemory(name)
    np.ndarray((2_000_000,), dtype="int64", buffer=block.buf)[:] *= 2
    block.close()

if __name__ == "__main__":
    block = shared_memory.SharedMemory(create=True, size=16_000_000)
    values = np.ndarray((2_000_000,), dtype="int64", buffer=block.buf)
    values[:] = 21
    with ProcessPoolExecutor(1) as pool:
        pool.submit(double, block.name).result()
    print(set(values.tolist()))
    del values
    block.close()
    block.unlink()
"""
    response = await call(code)
    assert (response.ok, await call.output()) == (True, "{42}\n"), response.report


@pytest.mark.parametrize(
    ("prog_name", "file"),
    [
        ("main", "/job/main.py"),
        ("plot.py", "/job/plot.py"),
        ("my report", "/job/my_report.py"),
        ("../../etc/passwd", "/job/_.._etc_passwd.py"),
        ("", "/job/main.py"),
        ("..", "/job/main.py"),
    ],
)
async def test_prog_name_is_a_harmless_file_name_and_argv_0(call: Caller, prog_name: str, file: str) -> None:
    response = await call("import sys; print(sys.argv, __file__)", prog_name=prog_name)
    assert (response.ok, await call.output()) == (True, f"{[file]} {file}\n"), response.report


async def test_environment_tells_the_folder_and_the_turn(call: Caller) -> None:
    code = """
import os
print([os.environ[n] for n in ("OUT_DIR", "OUTPUT_DIR", "TURN_ID", "HOME", "LANG", "TMPDIR")], os.getcwd())
print(sorted(os.listdir()))
"""
    response = await call(code, turn_id="turn_2026-07-04.a")
    assert response.ok, response.report
    assert await call.output() == (
        "['/out', '/out', 'turn_2026-07-04.a', '/mnt/data', 'C.UTF-8', '/tmp'] /out/turn_2026-07-04.a/files\n[]\n"
    )


@pytest.mark.parametrize(
    "written",
    ["files/sub/a.txt", "turn_1/files/sub/a.txt", "sub/a.txt", "/out/files/sub/a.txt", "/out/sub/a.txt"],
)
async def test_files_turn_files_and_the_folder_itself_are_one_place(call: Caller, written: str) -> None:
    code = f"import os; os.makedirs(os.path.dirname({written!r})); _ = open({written!r}, 'w').write('x')"
    response = await call(code, ["sub/a.txt"])
    assert response.report == "Runtime error: none\nProduced files:\n- turn_1/files/sub/a.txt"
    assert await call.text("sub/a.txt") == "x"


async def test_file_below_files_wins_over_a_bare_one_of_its_name(call: Caller) -> None:
    code = "open('a.txt', 'w').write('bare'); open('files/a.txt', 'w').write('below files')"
    response = await call(code, ["a.txt"])
    assert (response.ok, await call.text("a.txt")) == (True, "below files")


@pytest.mark.parametrize("name", ["localhost", "socket.gethostname()", "'sandbox'"])
async def test_localhost_and_the_own_host_name_resolve_to_the_loopback_interface(call: Caller, name: str) -> None:
    name = repr(name) if name == "localhost" else name
    code = f"""
import socket
listener = socket.create_server(("", 0))
address = socket.gethostbyname({name})
socket.create_connection((address, listener.getsockname()[1])).close()
print(address.startswith("127."))
"""
    response = await call(code)
    assert (response.ok, await call.output()) == (True, "True\n"), response.report
