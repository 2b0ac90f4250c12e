"""Decks as language models write them: HTML, Markdown, Marp; of varied density. And hostile ones."""

import html
import random
import runpy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.render.model import SourceFormat

WRITTEN = 150
HOSTILE = 50
_SEED = Path(__file__).parents[2] / "tests" / "in_image" / "render" / "deck_corpus.py"
_WORDS = [
    "revenue",
    "growth",
    "customers",
    "retention",
    "pipeline",
    "churn",
    "roadmap",
    "quarter",
    "platform",
    "latency",
    "budget",
    "hiring",
    "regional",
    "launch",
    "pricing",
    "margin",
    "support",
    "migration",
    "security",
    "compliance",
    "forecast",
    "partner",
    "onboarding",
    "efficiency",
    "baseline",
    "experiment",
    "adoption",
    "feedback",
    "delivery",
    "infrastructure",
    "capacity",
    "reliability",
    "the",
    "of",
    "and",
    "for",
    "with",
    "across",
    "into",
    "by",
]
_LOOKS = (
    (
        ".slide{width:1280px;height:720px;padding:60px;background:#fff;color:#222;font-family:Arial}"
        ".slide h2{font-size:40px;color:#036}li{font-size:22px}"
    ),
    (
        "*{margin:0;box-sizing:border-box}h2{font-size:32px}p,li,td{font-size:16px}"
        ".slide{width:960px;height:540px;padding:40px;background:linear-gradient(135deg,#0f2027,#2c5364);color:#fff}"
    ),
    ".slide{width:1920px;height:1080px;padding:90px;background:#fafafa}h2{font-size:64px}p,li,td{font-size:30px}",
    ".slide{aspect-ratio:16/9;padding:4vw}h2{font-size:3vw}p,li,td{font-size:1.6vw}",
    "",
)


@dataclass(frozen=True, slots=True)
class Deck:
    """A deck, and what it says as HTML; None if that is the text itself or nobody knows."""

    name: str
    source_format: SourceFormat
    text: str
    said: str | None = None


@dataclass(frozen=True, slots=True)
class _Block:
    markdown: str
    html: str


def written() -> Iterator[Deck]:
    """Decks of five ways to write one, from nearly empty slides to ones that must be split."""
    for number in range(WRITTEN):
        kind = ("headings", "rules", "marp", "slides", "sections")[number % 5]
        yield _Writer(random.Random(number)).deck(kind, number)  # noqa: S311 - decks, not keys


def hostile() -> Iterator[Deck]:
    """The hostile decks of the renderer's tests, and the same traps in the midst of ordinary slides."""
    seeds: dict[str, tuple[SourceFormat, str]] = runpy.run_path(str(_SEED))["HOSTILE"]
    for name, (source_format, text) in seeds.items():
        yield Deck(name, source_format, text)
    inner = [name for name, (source_format, _) in seeds.items() if source_format == "html"]
    for number in range(HOSTILE - len(seeds)):
        first, second = inner[number % len(inner)], inner[(number * 7 + 3) % len(inner)]
        deck = _Writer(random.Random(1000 + number)).deck("slides", number)  # noqa: S311
        yield Deck(
            f"{first}+{second}-{number}", "html", f"{deck.text}{seeds[first][1]}{deck.text}{seeds[second][1]}"
        )


class _Writer:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.density = chance.choice((0.3, 0.6, 1, 1, 2, 4))

    def deck(self, kind: str, number: int) -> Deck:
        slides = [(self._words(2, 7).title(), self._blocks()) for _ in range(self.chance.randint(3, 9))]
        title = self._words(2, 6).title()
        said = f"<h1>{title}</h1>" + "".join(
            f"<h2>{head}</h2>{''.join(block.html for block in blocks)}" for head, blocks in slides
        )
        if kind in {"slides", "sections"}:
            tag = "<div class='slide'>" if kind == "slides" else "<section>"
            end = "</div>" if kind == "slides" else "</section>"
            look = self.chance.choice(_LOOKS)
            body = f"{tag}<h1>{title}</h1>{end}" + "".join(
                f"{tag}<h2>{head}</h2>{''.join(block.html for block in blocks)}{end}" for head, blocks in slides
            )
            page = f"<!DOCTYPE html><html><head><style>{look}</style></head><body>{body}</body></html>"
            return Deck(f"{number:03}-{kind}", "html", page)
        break_, start = {
            "headings": ("\n\n", ""),
            "rules": ("\n\n---\n\n", ""),
            "marp": ("\n\n---\n\n", "---\nmarp: true\ntheme: default\npaginate: true\n---\n\n"),
        }[kind]
        parts = [f"# {title}"] + [
            f"## {head}\n\n" + "\n\n".join(b.markdown for b in blocks) for head, blocks in slides
        ]
        return Deck(f"{number:03}-{kind}", "markdown", start + break_.join(parts) + "\n", said)

    def _blocks(self) -> list[_Block]:
        makers = [self._list, self._list, self._paragraph, self._table, self._numbered, self._code, self._quote]
        return [self.chance.choice(makers)() for _ in range(self.chance.choice((1, 1, 2, 2, 3)))]

    def _words(self, least: int, most: int) -> str:
        return " ".join(self.chance.choices(_WORDS, k=self.chance.randint(least, most)))

    def _many(self, least: int, most: int) -> int:
        return max(1, round(self.chance.randint(least, most) * self.density))

    def _list(self) -> _Block:
        markdown, items = [], []
        for _ in range(self._many(2, 7)):
            strong, rest = self._words(1, 2), self._words(2, 14)
            inner = [self._words(2, 9) for _ in range(self.chance.choice((0, 0, 0, 2)))]
            markdown += [f"- **{strong}**: {rest}", *(f"  - {row}" for row in inner)]
            nested = f"<ul>{''.join(f'<li>{row}</li>' for row in inner)}</ul>" if inner else ""
            items.append(f"<li><strong>{strong}</strong>: {rest}{nested}</li>")
        return _Block("\n".join(markdown), f"<ul>{''.join(items)}</ul>")

    def _numbered(self) -> _Block:
        rows = [self._words(3, 12) for _ in range(self._many(2, 6))]
        markdown = "\n".join(f"{number}. {row}" for number, row in enumerate(rows, 1))
        return _Block(markdown, f"<ol>{''.join(f'<li>{row}</li>' for row in rows)}</ol>")

    def _paragraph(self) -> _Block:
        first, link, last = self._words(4, round(10 + 20 * self.density)), self._words(1, 3), self._words(2, 8)
        url = f"https://example.com/{self.chance.randint(1, 999)}"
        return _Block(
            f"{first} [{link}]({url}) *{last}*.", f"<p>{first} <a href='{url}'>{link}</a> <em>{last}</em>.</p>"
        )

    def _quote(self) -> _Block:
        words = self._words(5, 25)
        return _Block(f"> {words}", f"<blockquote><p>{words}</p></blockquote>")

    def _code(self) -> _Block:
        lines = [f"step_{number} = run({number * 7})" for number in range(self._many(2, 8))]
        return _Block(
            "```python\n" + "\n".join(lines) + "\n```",
            f"<pre><code>{html.escape(chr(10).join(lines))}</code></pre>",
        )

    def _table(self) -> _Block:
        columns, rows = self.chance.randint(2, 6), self._many(2, 8)
        grid = [[self._words(1, 2) for _ in range(columns)]]
        grid += [
            [self._words(1, 3), *(str(self.chance.randint(1, 9999)) for _ in range(columns - 1))]
            for _ in range(rows)
        ]
        lines = [f"| {' | '.join(row)} |" for row in grid]
        lines.insert(1, "|" + "---|" * columns)
        cells = "".join(
            "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>"
            for tag, row in zip(["th"] + ["td"] * rows, grid, strict=True)
        )
        return _Block("\n".join(lines), f"<table>{cells}</table>")
