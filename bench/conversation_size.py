"""Measures how the size of a conversation tells on its calls: reading, the rendered view, bringing files back.

Usage: python -m bench.conversation_size [--quick]. One conversation grows to 10,000 artifacts and 1,000,000 blocks
(with --quick to 2,000 and 20,000); at each size the same questions are asked over HTTP, in turn. Writes
bench/results/conversation_size.md and .json, and charts to docs/bench/conversation_size.svg and -dark.svg.
"""

import argparse
import asyncio
import itertools
import json
import os
import platform
import random
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import matplotlib as mpl
from matplotlib.figure import Figure

from bench.chart_style import inks, style
from bench.serving import ROOT, serving
from proofbox.service.storage.sources import FILE_SID_MIN

RESULTS = ROOT / "bench" / "results"
CHARTS = ROOT / "docs" / "bench"
CONVERSATION = "long"
PER_TURN = 20  # attachments of one turn
APPENDED = 1_000  # blocks of one request
UPLOADS = 8  # at one time
ROUNDS = 25
SIZES = [(1_000, 2_001), (2_000, 10_000), (5_000, 100_000), (10_000, 1_000_000)]
QUICK_SIZES = [(200, 1_001), (1_000, 5_000), (2_000, 20_000)]
WORDS = "the report was read twice and its figures were compared with those of the first before anybody decided"
Question = Callable[[], Awaitable[None]]


class Conversation:
    """One conversation that only grows."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._random = random.Random(7)  # noqa: S311 - the same conversation in every run
        self.artifacts = 0

    async def last(self) -> int:
        """Adds one message; its position, which is the number of blocks."""
        return await self._append(1)

    async def grow(self, artifacts: int, blocks: int) -> int:
        """Adds attachments, then messages, up to these totals; the number of blocks there are now."""
        gate = asyncio.Semaphore(UPLOADS)
        await asyncio.gather(*(self._attach(number, gate) for number in range(self.artifacts, artifacts)))
        self.artifacts = artifacts
        last = await self.last()
        while last < blocks:
            last = await self._append(min(APPENDED, blocks - last))
        return last

    async def read(self) -> None:
        """``react.read`` of one old attachment."""
        await self._call("react.read", {"paths": [f"fi:{self._old_turn()}.user.attachments/{self._old_name}"]})

    async def bring_back(self) -> None:
        """A run that names one old attachment and cites another."""
        code = (
            f"rows = open('/out/{self._old_turn()}/attachments/{self._old_name}').read()\n"
            f"# [[S:{FILE_SID_MIN + self._random.randrange(self.artifacts)}]]\n"
            "open('files/a.txt', 'w').write(rows)\n"
        )
        contract = [{"filename": "a.txt", "description": "a copy"}]
        await self._call("exec_tools.execute_code_python", {"contract": contract}, code=code)

    async def look(self, after: int) -> None:
        """The rendered view of what came after a position."""
        await self._ok(self._client.get(self._path("timeline"), params={"view": "rendered", "after": after}))

    def _old_turn(self) -> str:
        number = self._random.randrange(self.artifacts)
        self._old_name = f"table-{number}.csv"
        return f"turn_{number // PER_TURN}"

    async def _attach(self, number: int, gate: asyncio.Semaphore) -> None:
        path = f"turns/turn_{number // PER_TURN}/attachments/table-{number}.csv"
        async with gate:
            await self._ok(
                self._client.put(
                    self._path(path),
                    content=f"city,rank\nwuppertal,{number}\n".encode(),
                    headers={"Content-Type": "text/csv"},
                )
            )

    async def _append(self, count: int) -> int:
        blocks = [self._message() for _ in range(count)]
        answer = await self._ok(self._client.post(self._path("timeline"), json={"blocks": blocks}))
        return int(answer.json()["last"])

    def _message(self) -> dict[str, Any]:
        number = next(self._numbers)
        turn = f"turn_m{number // 40}"
        who, path = ("user", "user.prompt") if number % 2 else ("react", "assistant.completion")
        text = " ".join(self._random.choices(WORDS.split(), k=60))
        return {
            "type": "user.prompt" if number % 2 else "assistant.completion",
            "author": who,
            "turn_id": turn,
            "ts": "2026-11-22T10:00:00.000Z",
            "mime": "text/markdown",
            "path": f"ar:{turn}.{path}",
            "text": text,
        }

    async def _call(self, tool: str, params: dict[str, Any], **more: Any) -> None:
        number = next(self._numbers)
        body = {
            "tool_id": tool,
            "tool_call_id": f"c{number}",
            "conversation_id": CONVERSATION,
            "turn_id": f"turn_q{number}",  # of its own: what a turn has read and written is put into its later runs
            "params": params,
            **more,
        }
        answer = await self._ok(self._client.post("/v1/tool-calls", json=body))
        if not answer.json()["ok"]:
            raise RuntimeError(answer.text[:500])

    async def _ok(self, sent: Awaitable[httpx.Response]) -> httpx.Response:
        answer = await sent
        if answer.is_error:
            raise RuntimeError(answer.text[:500])
        return answer

    def _path(self, rest: str) -> str:
        return f"/v1/conversations/{CONVERSATION}/{rest}"


async def measured(sizes: list[tuple[int, int]]) -> list[dict[str, float]]:
    """Medians in milliseconds at each size."""
    rows: list[dict[str, float]] = []
    async with serving(pool_size=1) as client:
        conversation = Conversation(client)
        for artifacts, blocks in sizes:
            began = time.perf_counter()
            last = await conversation.grow(artifacts, blocks)
            made_s = time.perf_counter() - began
            print(f"{artifacts:,} artifacts, {last:,} blocks: made in {made_s:.0f} s", flush=True)
            after = last - 100
            questions: dict[str, Question] = {
                "read": conversation.read,
                "rendered": lambda after=after: conversation.look(after),
                "rehost": conversation.bring_back,
            }
            times: dict[str, list[float]] = {name: [] for name in questions}
            for _ in range(ROUNDS):
                for name, question in questions.items():
                    started = time.perf_counter()
                    await question()
                    times[name].append((time.perf_counter() - started) * 1000)
                    await asyncio.sleep(0.3 if name == "rehost" else 0)  # the next container gets warm
            rows.append(
                {"artifacts": artifacts, "blocks": last}
                | {name: round(statistics.median(found), 2) for name, found in times.items()}
            )
    return rows


NAMES = {
    "read": "`react.read` of an old file",
    "rendered": "rendered view of the last 100 blocks",
    "rehost": "a run that brings back two old files",
}


def table(rows: list[dict[str, float]]) -> str:
    """The figures and how they grow, as Markdown."""
    head = "| | " + " | ".join(f"{row['artifacts']:,.0f} artifacts, {row['blocks']:,.0f} blocks" for row in rows)
    text = f"{head} | grows |\n|---|{'---|' * (len(rows) + 1)}\n"
    for name, said in NAMES.items():
        cells = " | ".join(f"{row[name]:.1f} ms" for row in rows)
        text += f"| {said} | {cells} | {rows[-1][name] / rows[0][name]:.2f} times |\n"
    kernel = platform.release().split("-")[0]
    machine = f"{os.cpu_count()} cores, Linux {kernel}, Python {platform.python_version()}"
    return f"{text}\n{machine}; medians of {ROUNDS}.\n"


def draw(rows: list[dict[str, float]], *, is_dark: bool) -> None:
    """The times over the number of blocks, each as a multiple of its first."""
    ink, _ = inks(is_dark=is_dark)
    with mpl.rc_context(style(is_dark=is_dark)):
        canvas = Figure(figsize=(8, 3.6), layout="constrained")
        axes = canvas.subplots()
        for name, colour in zip(NAMES, ("#1f6feb", "#2e9f6b", "#d4631a"), strict=True):
            values = [row[name] / rows[0][name] for row in rows]
            axes.plot(
                [row["blocks"] for row in rows], values, "o-", color=colour, label=NAMES[name].replace("`", "")
            )
        axes.axhline(2, color=ink, linewidth=1, linestyle=":")
        axes.set_xscale("log")
        axes.set_ylim(0, max(2.4, 1.1 * max(row[n] / rows[0][n] for row in rows for n in NAMES)))
        axes.set_xlabel("blocks in the conversation")
        axes.set_ylabel("times the first")
        axes.grid(visible=True, linewidth=0.6)
        axes.legend(frameon=False, loc="lower right")
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        name = f"conversation_size{'-dark' if is_dark else ''}.svg"
        canvas.savefig(CHARTS / name, transparent=True, metadata={"Date": None})


def main() -> None:
    """Measures, prints, writes and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes; nothing is written")
    is_quick = parser.parse_args().quick
    rows = asyncio.run(measured(QUICK_SIZES if is_quick else SIZES))
    text = table(rows)
    print(text)
    if is_quick:
        return
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "conversation_size.md").write_text(text, encoding="utf-8")
    (RESULTS / "conversation_size.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    for is_dark in (False, True):
        draw(rows, is_dark=is_dark)


if __name__ == "__main__":
    main()
