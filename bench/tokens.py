"""Counts what a model reads of typical calls, and what the catalogue costs it, in the product's own tokens.

Usage: python -m bench.tokens [--views]. Starts the service on the real engine, makes the calls of one conversation
over HTTP and reads the rendered view of each from ``GET …/timeline?view=rendered``. Prints each figure, what it was
before view and catalogue were made shorter, and its bar; with --views the texts too. Ends with 1 if one is missed.
"""

import asyncio
import itertools
import json
import sys
from dataclasses import dataclass
from typing import Any

import httpx

from bench.serving import serving
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter

CONVERSATION = "tokens"
_TRIES = 60
TURN = "turn_1"
ATTACHMENT = "sales_2026.csv"
ROWS = "month,region,sales\n" + "".join(
    f"2026-{month:02},{region},{100 + 7 * month}\n" for month in range(1, 13) for region in ("north", "south")
)
CODE = f"""\
import pandas as pd
import matplotlib.pyplot as plt

sales = pd.read_csv("{TURN}/attachments/{ATTACHMENT}")
total = sales.groupby("month")["sales"].sum()
total.to_excel("files/sales_by_month.xlsx")
axes = total.plot(kind="bar", title="Sales by month")
axes.set_ylabel("units")
plt.tight_layout()
plt.savefig("files/sales_by_month.png", dpi=120)
best = total.idxmax()
with open("files/summary.md", "w") as summary:
    summary.write(f"# Sales\\n\\nThe best month was {{best}} with {{total[best]}} units.\\n")
"""
CONTRACT = [
    {"filename": "sales_by_month.png", "description": "bar chart of sales by month", "min_width": 400},
    {"filename": "sales_by_month.xlsx", "description": "sales by month", "min_rows": 12},
    {"filename": "summary.md", "description": "what the numbers say, in two lines"},
]
TEXT = "# Notes\n\n" + "The figures of the north and of the south move together, month by month. " * 8
EXEC = "exec: 13 lines, png, xlsx, md"
STEPS = ["Read the sales data", "Compute the totals by month", "Draw the chart", "Write the summary"]
LIST = "# To do\n\n- ask for the numbers of January\n- draw the chart again\n- send the summary\n"
PATCH = """\
--- a/todo.md
+++ b/todo.md
@@ -3,3 +3,3 @@
 - ask for the numbers of January
-- draw the chart again
+- draw the chart again, in blue
 - send the summary
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: what was counted.
        before: tokens of the same call in the view of before; None: there was no such form.
        bar: tokens that it may have at most; None: it has no bar.
        tokens: tokens now.
    """

    name: str
    before: int | None
    bar: int | None
    tokens: int

    @property
    def is_met(self) -> bool:
        """Whether the bar is met, if there is one."""
        return self.bar is None or self.tokens <= self.bar


class Conversation:
    """One conversation, and what a model reads of each of its calls."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._numbers = itertools.count(1)
        self._last = 0
        self.views: dict[str, str] = {}

    async def attach(self, name: str, content: str) -> None:
        """Adds an attachment of the user."""
        path = f"turns/{TURN}/attachments/{name}"
        answer = await self._client.put(
            self._path(path), content=content.encode(), headers={"Content-Type": "text/csv"}
        )
        answer.raise_for_status()
        await self.read()

    async def call(self, tool: str, params: dict[str, Any], *, is_ok: bool = True, **more: Any) -> int:
        """Makes a call; the tokens of what it adds to the view."""
        body = {
            "tool_id": tool,
            "tool_call_id": f"call_{next(self._numbers)}",
            "conversation_id": CONVERSATION,
            "turn_id": TURN,
            "params": params,
            **more,
        }
        answer = await self._client.post("/v1/tool-calls", json=body)
        answer.raise_for_status()
        if answer.json()["ok"] is not is_ok:
            raise AssertionError(answer.json()["report"])
        return await self.read()

    async def read(self) -> int:
        """The tokens of what came since the last time."""
        query = {"view": "rendered", "after": str(self._last)}
        answer = await self._client.get(self._path("timeline"), params=query)
        answer.raise_for_status()
        self._last = int(answer.headers["Timeline-Last"])
        self.views[str(self._last)] = answer.text
        return int(answer.headers["Timeline-Tokens"])

    @staticmethod
    def _path(rest: str) -> str:
        return f"/v1/conversations/{CONVERSATION}/{rest}"


async def counted_calls(client: httpx.AsyncClient) -> tuple[list[Figure], Conversation]:
    """The figures of typical calls."""
    conversation = Conversation(client)
    await conversation.attach(ATTACHMENT, ROWS)
    await conversation.call("react.file", {"path": "todo.md", "content": LIST})
    shown = {"channel": "canvas", "kind": "display"}

    async def figure(name: str, before: int, bar: int | None, tool: str, params: dict[str, Any]) -> Figure:
        code = {"code": CODE} if tool.startswith("exec_tools.") else {}
        is_ok = not name.startswith("failed")
        return Figure(name, before, bar, await conversation.call(tool, params, is_ok=is_ok, **code))

    plan = {"steps": STEPS, "status": {"1": "done", "2": "in_progress"}}
    hidden = {"path": f"fi:{TURN}.files/notes.md", "replacement": "notes on the sales"}
    figures = [
        await figure(EXEC, 1_354, 900, "exec_tools.execute_code_python", {"contract": CONTRACT}),
        await figure("failed react.read", 370, 200, "react.read", {"paths": [f"fi:{TURN}.files/raport.md"]}),
        await figure("react.plan of four steps", 347, 150, "react.plan", plan),
        await figure(
            "react.write of 600 characters",
            579,
            None,
            "react.write",
            {"path": "notes.md", **shown, "content": TEXT},
        ),
        await figure(
            "react.patch of three lines", 609, None, "react.patch", {"path": "todo.md", **shown, "patch": PATCH}
        ),
        await figure("react.hide", 212, None, "react.hide", hidden),
    ]
    return figures, conversation


async def counted_catalogue(client: httpx.AsyncClient) -> list[Figure]:
    """The figures of the catalogue: of the definitions that a loop hands to a model, as compact JSON."""
    tokens = BpeTokenCounter()
    figures = []
    for _ in range(_TRIES):
        if (await client.get("/v1/tools")).raise_for_status().json()["image"] is not None:
            break
        await asyncio.sleep(1)  # the image cannot be asked at the moment
    for form, before in (("proofbox", 9_549), ("openai", None), ("anthropic", None)):
        answer = await client.get("/v1/tools", params={"format": form})
        tools = answer.raise_for_status().json()["tools"]
        text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
        figures.append(Figure(f"catalogue, format={form}", before, 5_545, tokens.count(text)))
        if form == "proofbox":
            loose = json.dumps(tools, ensure_ascii=False)
            figures.append(Figure("the same with spaces between", 11_091, None, tokens.count(loose)))
            figures.append(Figure("the same and what the image has", None, None, tokens.count(answer.text)))
    return figures


def table(figures: list[Figure]) -> str:
    """The figures as a table."""
    rows = [
        (
            figure.name,
            f"{figure.before:,}" if figure.before else "",
            f"{figure.tokens:,}",
            f"{figure.bar:,}" if figure.bar else "",
            "" if figure.bar is None else "yes" if figure.is_met else "NO",
        )
        for figure in figures
    ]
    head = ("tokens of", "before", "now", "bar", "met")
    return "\n".join(
        f"{name:<34}{before:>8}{now:>8}{bar:>8}{met:>6}" for name, before, now, bar, met in [head, *rows]
    )


async def main(*, views: bool) -> int:
    """Prints the figures, with ``views`` the texts too; 1 if a bar is missed."""
    async with serving() as client:
        figures, conversation = await counted_calls(client)
        figures += await counted_catalogue(client)
    if views:
        sys.stdout.write("".join(conversation.views.values()) + "\n")
    sys.stdout.write(table(figures) + "\n")
    return 0 if all(figure.is_met for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main(views="--views" in sys.argv[1:])))
