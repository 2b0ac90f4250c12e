"""What a program writes while it runs and leaves behind when it ends, and what this costs the service."""

import json
import re
from pathlib import Path

import pytest

from proofbox.contracts.tools import Language
from proofbox.service.calls.service import CallEvent
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PASSED_ON = 1024 * 1024
# 50 MB go by; what stays is the passed-on beginning (1 MiB), its events and the answer.
GROWTH_BYTES_MAX = 24 * 1024 * 1024
ENDED = "Note: processes that still ran were ended with the call, as nothing outlives it: "


def texts(events: list[CallEvent], stream: str) -> list[tuple[str, bool]]:
    pieces = [json.loads(event.data) for event in events if event.name == stream]
    return [(piece["text"], piece["truncated"]) for piece in pieces]


async def test_pieces_of_output_arrive_while_the_program_runs(call: Caller) -> None:
    code = "import time\nprint('first')\nprint('no line end', end='', flush=True)\ntime.sleep(1000)"
    # Without streaming the first event with text would be the timeout's answer.
    await call.submit(code, timeout_s=60)
    seen = ""
    async for event in await call.follow():
        if event.name == "stdout":
            seen += json.loads(event.data)["text"]
        if seen == "first\nno line end":
            break
    status = await call.service.calls.status(call.service.principal, call.last_id, call.conversation)
    assert status.status == "running"
    ended = await call.service.calls.cancel(call.service.principal, call.last_id, call.conversation)
    assert (ended.status, [event.name for event in await call.events()][-1]) == ("cancelled", "error")


async def test_print_needs_no_flush_to_be_seen_of_a_program_that_is_killed(call: Caller) -> None:
    response = await call("import os\nprint('printed')\nos.kill(os.getpid(), 9)")
    assert (await call.output(), response.usage.stdout_bytes) == ("printed\n", 8)


async def test_a_program_that_closes_its_streams_goes_on(call: Caller) -> None:
    """Most programs let go of them last, which is why the runner looks whether they have ended then."""
    code = """
import os, time
print("printed", flush=True)
os.close(1)
os.close(2)
time.sleep(0.3)
open("late.txt", "w").write("late")
"""
    response = await call(code, [{"filename": "late.txt", "description": "written at the end"}])
    assert (response.ok, await call.output(), response.artifacts[0].verdict) == (True, "printed\n", "produced")


async def test_both_streams_are_passed_on_each_in_its_order(call: Caller) -> None:
    code = """
import sys
for n in range(100):
    print("out", n)
    print("err", n, file=sys.stderr)
sys.exit(1)
"""
    response = await call(code)
    assert await call.output("stdout") == "".join(f"out {n}\n" for n in range(100))
    assert await call.output("stderr") == "".join(f"err {n}\n" for n in range(100))
    assert (response.usage.stdout_bytes, response.usage.stderr_bytes) == (690, 690)
    log = response.report.partition("Program log (tail):\n")[2].splitlines()
    assert sorted(log) == sorted(f"{name} {n}" for n in range(100) for name in ("out", "err"))


async def test_log_keeps_the_order_of_both_streams_where_the_program_waits_between(call: Caller) -> None:
    code = """
import sys, time
for n in range(3):
    print(n, file=(sys.stderr, sys.stdout)[n % 2])
    time.sleep(0.4)
sys.exit(1)
"""
    response = await call(code)
    assert response.report.partition("Program log (tail):\n")[2] == "0\n1\n2"


async def test_traceback_stands_in_one_piece_after_what_was_printed_before_it(call: Caller) -> None:
    response = await call("for n in range(50): print('line', n)\nraise ValueError('boo')")
    assert response.report.partition("Program log (tail):\n")[2].splitlines() == [
        *(f"line {n}" for n in range(50)),
        "Traceback (most recent call last):",
        '  File "/job/main.py", line 2, in <module>',
        "    raise ValueError('boo')",
        "ValueError: boo",
    ]


async def test_log_of_a_failed_run_is_its_last_4000_characters(call: Caller) -> None:
    response = await call("print('é' * 9000 + 'x' * 3000, end='')\nraise SystemExit(1)")
    path = f"fi:turn_1.output.{call.last_id}"
    head, _, log = response.report.partition("Program log (tail):\n")[2].partition("\n")
    assert head == f"[… {12_000 - len(log)} characters left out, all of it is {path} …]"
    assert (log, 3_900 < len(head) + len(log) <= 4_000) == ("é" * (len(log) - 3_000) + "x" * 3_000, True)


async def test_what_a_run_that_went_well_printed_is_in_the_report(call: Caller) -> None:
    response = await call("print('chatter')")
    assert response.report == "Runtime error: none\nProgram log (tail):\nchatter"


async def test_bytes_that_are_no_text_are_replaced_and_counted(call: Caller) -> None:
    code = """
import os
os.write(1, bytes(range(256)) + b"\\xff\\xfe caf\\xc3")
os.write(1, b"\\xa9 \\xed\\xa0\\x80 \\x1b[31m\\n")
os.write(2, b"\\xf0\\x9f\\x98")
raise SystemExit(1)
"""
    response = await call(code)
    expected = (bytes(range(256)) + b"\xff\xfe caf\xc3\xa9 \xed\xa0\x80 \x1b[31m\n").decode(errors="replace")
    assert await call.output() == expected
    assert (response.usage.stdout_bytes, response.usage.stderr_bytes) == (275, 3)
    shown = response.report.partition("Program log (tail):\n")[2]
    assert re.findall(r"[^\x20-\x7e\n\t\ufffd\u00a1-\u00ff\u0100-\U0010ffff]", shown) == []


async def test_character_cut_by_a_pipe_read_is_put_together_again(call: Caller) -> None:
    code = """
import os, time
for piece in ("\u4e2d".encode()[:1], "\u4e2d".encode()[1:2], "\u4e2d".encode()[2:]):
    os.write(1, piece)
    time.sleep(0.1)
"""
    await call(code)
    assert await call.output() == "\u4e2d"


def memory_bytes(name: str) -> int:
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize(
    ("code", "size"),
    [
        ("import sys\nfor _ in range(50): sys.stdout.write('x' * 1_000_000)", 50_000_000),
        ("import sys\nfor _ in range(1000): sys.stdout.write('1234\\n' * 10_000)", 50_000_000),
    ],
    ids=["one_line_of_50_MB", "10_million_lines"],
)
async def test_flood_of_output_costs_the_service_no_memory(call: Caller, code: str, size: int) -> None:
    await call("print('warm up')")
    before = memory_bytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # noqa: ASYNC240 - resets the peak that VmHWM tells
    response = await call(code)
    growth = memory_bytes("VmHWM") - before
    assert (response.ok, response.usage.stdout_bytes) == (True, size)
    assert growth < GROWTH_BYTES_MAX
    pieces = texts(await call.events(), "stdout")
    assert sum(len(text) for text, _ in pieces) == PASSED_ON
    assert [truncated for _, truncated in pieces] == [False] * (len(pieces) - 1) + [True]


@pytest.mark.parametrize("more", [b"", b"y"])
async def test_output_of_exactly_what_is_passed_on_is_cut_off_only_if_more_comes(call: Caller, more: bytes) -> None:
    code = f"""
import os, time
for _ in range({PASSED_ON} // 32768):
    os.write(1, b"x" * 32768)
    time.sleep(0.02)
os.write(1, {more!r})
"""
    await call(code)
    pieces = texts(await call.events(), "stdout")
    assert (sum(len(text) for text, _ in pieces), pieces[-1][1]) == (PASSED_ON, more != b"")


async def test_daemon_that_holds_the_output_open_does_not_keep_the_call_open(call: Caller) -> None:
    code = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            with open("files/beat.txt", "a") as beat:
                beat.write("x")
            time.sleep(0.001)
    os._exit(0)
os.wait()
while not os.path.exists("files/beat.txt") or not os.path.getsize("files/beat.txt"):
    time.sleep(0.01)
print("parent ends")
"""
    response = await call(code, ["beat.txt"], timeout_s=60)
    first, *between, last = response.report.split("\n")
    assert (first, last) == ("Runtime error: none", "parent ends")
    assert between == ["Produced files:", "- turn_1/files/beat.txt", f"{ENDED}python3", "Program log (tail):"]
    assert (await call.output(), response.usage.exit_code) == ("parent ends\n", 0)


async def test_output_of_a_child_that_outlives_the_program_is_cut_at_its_end(call: Caller) -> None:
    code = "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 1000; echo late'])\nprint('done')"
    response = await call(code, timeout_s=60)
    assert (response.ok, await call.output()) == (True, "done\n")
    assert f"{ENDED}sh" in response.report


async def test_processes_that_a_failed_program_or_a_shell_leaves_are_named_and_those_of_libraries_are_not(
    call: Caller,
) -> None:
    response = await call("nohup sleep 1000 > out.log &\nexit 3", language=Language.BASH)
    assert ("exit status 3" in response.report, ENDED in response.report) == (True, True)
    code = "from joblib import Parallel, delayed\nprint(Parallel(n_jobs=2)(delayed(abs)(i) for i in (-1, 2)))"
    response = await call(code)
    assert response.report == "Runtime error: none\nProgram log (tail):\n[1, 2]"


async def test_program_cannot_end_the_runner_or_keep_it_from_answering(call: Caller) -> None:
    code = """
import contextlib, os, signal
for pid in (1, os.getppid()):
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
open("files/a.txt", "w").write("still here")
"""
    response = await call(code, ["a.txt"], timeout_s=60)
    assert (response.ok, await call.text("a.txt")) == (True, "still here"), response.report


async def test_child_that_kills_everything_ends_the_program_alone(call: Caller) -> None:
    code = """
import os, time
open("files/a.txt", "w").write("before")
if os.fork() == 0:
    os.kill(-1, 9)
time.sleep(1000)
"""
    response = await call(code, ["a.txt"], timeout_s=60)
    assert response.report == (
        "Runtime error: killed — the program was ended by SIGKILL (signal 9)\nSucceeded:\n- turn_1/files/a.txt\n"
        f"{ENDED}python3"
    )
