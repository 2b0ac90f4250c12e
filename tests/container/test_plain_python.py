"""A Python program in the forked interpreter behaves as ``python3 main.py`` does: stdout, stderr and how it ends.

The programs are in plain_programs.txt. One call runs all of them by ``python3``; each then has a call of its own.
"""

import asyncio
import itertools
import json
import re
from pathlib import Path

import pytest

from proofbox.contracts.tool_call_response import ToolCallResponse
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PROGRAMS = dict(
    re.findall(
        r"^== (.+)\n((?:(?!== ).*\n)*)", Path(__file__).with_name("plain_programs.txt").read_text(), re.MULTILINE
    )
)
# Where /job/main.py would be run by hand: its folder has to be writable, standard input is at its end.
BY_HAND = """
import json, subprocess, sys
programs, ends = json.load(open("programs.json")), {}
for name, code in programs.items():
    open("/job/main.py", "w", newline="").write(code)
    done = subprocess.run(["python3", "/job/main.py"], stdin=subprocess.DEVNULL, capture_output=True)
    ends[name] = [done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), done.returncode]
json.dump(ends, open("files/ends.json", "w"))
"""
VARYING = re.compile(r"0x[0-9a-f]{6,}|(?<=pid=)\d+|(?<=Process-)\d+|(?<= in )\d+\.\d+s")
AT_ONCE, IN_ONE_CALL = 2, 25
# What differs for a reason.
INHERENT = {
    "asyncio pending task of an open loop": "its coroutine is freed before the task that describes it",
    "descriptor of stdout closed": "output is written line by line, so that a program that is killed has shown it",
    "faulthandler": "the same; and the file that starts the program is the last line of its stack",
    "frames": "below a program is one frame, of the file that starts it",
    "gc": "what was imported before the fork is frozen",
    "modules loaded": "some modules are imported before the fork",
    "sys.path": "the working directory comes first: it has the modules that earlier calls wrote",
    "recursion": "one frame fewer than Python's limit is left",
    "recursion limit": "the same",
    "traceback format": "the one frame below is shown",
}


def ended(response: ToolCallResponse) -> list[object]:
    usage = response.usage
    assert usage is not None
    return [response.output.stdout, response.output.stderr, -usage.signal if usage.signal else usage.exit_code]


def plain(end: list[object]) -> list[object]:
    """Without what differs from one run to the next."""
    return [VARYING.sub("…", part) if isinstance(part, str) else part for part in end]


@pytest.mark.parametrize("begin", range(0, len(PROGRAMS), IN_ONE_CALL))
async def test_programs_behave_as_under_plain_python(call: Caller, begin: int) -> None:
    programs = dict(itertools.islice(PROGRAMS.items(), begin, begin + IN_ONE_CALL))
    await call.attach("programs.json", json.dumps(programs).encode())
    response = await call(BY_HAND, ["ends.json"], timeout_s=120)
    assert response.ok, response.report
    by_hand = {name: plain(end) for name, end in json.loads(await call.text("ends.json")).items()}
    turns = asyncio.Semaphore(AT_ONCE)

    async def forked(name: str, code: str) -> tuple[str, list[object]]:
        async with turns:
            return name, plain(ended(await Caller(call.service)(code)))

    ends = dict(await asyncio.gather(*(forked(name, code) for name, code in programs.items())))
    different = {
        name: {"forked": ends[name], "plain": by_hand[name]} for name in programs if ends[name] != by_hand[name]
    }
    known = INHERENT.keys() & programs.keys()
    assert different.keys() == known, json.dumps(different, indent=1, ensure_ascii=False)


async def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 100
    assert INHERENT.keys() < PROGRAMS.keys()
