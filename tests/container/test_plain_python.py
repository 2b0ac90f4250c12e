"""A Python program in the forked interpreter behaves as ``python3 main.py`` does: stdout, stderr and how it ends.

The programs are in plain_programs.txt. One call runs all of them by ``python3``; each then has a call of its own.
"""

import asyncio
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
ADDRESS = re.compile(r"0x[0-9a-f]{6,}|(?<=pid=)\\d+|(?<=Process-)\\d+")
AT_ONCE = 2


def ended(response: ToolCallResponse) -> list[object]:
    output, usage = response.output, response.usage
    assert output is not None
    assert usage is not None
    return [output.stdout, output.stderr, -usage.signal if usage.signal else usage.exit_code]


def plain(end: list[object]) -> list[object]:
    """Without what differs from one run to the next."""
    return [ADDRESS.sub("…", part) if isinstance(part, str) else part for part in end]


async def test_programs_behave_as_under_plain_python(call: Caller) -> None:
    await call.attach("programs.json", json.dumps(PROGRAMS).encode())
    response = await call(BY_HAND, ["ends.json"], timeout_s=300)
    assert response.ok, response.report
    by_hand = {name: plain(end) for name, end in json.loads(await call.text("ends.json")).items()}
    turns = asyncio.Semaphore(AT_ONCE)

    async def forked(name: str, code: str) -> tuple[str, list[object]]:
        async with turns:
            caller = Caller(call.service)
            return name, plain(ended(await caller(code)))

    ends = dict(await asyncio.gather(*(forked(name, code) for name, code in PROGRAMS.items())))
    different = {
        name: {"forked": ends[name], "plain": by_hand[name]} for name in PROGRAMS if ends[name] != by_hand[name]
    }
    assert len(PROGRAMS) >= 100
    assert different == {}, json.dumps(different, indent=1, ensure_ascii=False)
