"""Decks as language models design them: eight style sheets, each with slides of every kind, from fixed seeds.

Slides are 16:9 boxes of a fixed size, so that a PDF has a page for each of them.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEEDS = 5
_NAMES = ("Nimbus", "Harbor", "Atlas", "Juniper", "Meridian", "Quarry", "Solstice", "Tern")
_TOPICS = ("Quarterly review", "Market entry", "Product roadmap", "Research summary", "Operating plan")
_FACTS = (
    "Revenue grew by a fifth while costs stayed level",
    "Reviews take two days instead of five",
    "Half of the spend is idle capacity",
    "Customers renew earlier than a year ago",
    "One vendor holds all keys",
    "Prices fall slowly and demand moves to services",
    "The old platform closes in October",
    "Six roles in engineering are open",
)
_TERMS = ("Speed", "Quality", "Trust", "Cost", "Reach", "Risk", "Focus", "Scale")
_TOWNS = ("Arita", "Delft", "Faenza", "Lagos", "Lima", "Oslo", "Porto", "Quito")
_QUOTES = (
    "Good clay is patient.",
    "We measure twice and ship weekly.",
    "The best tool that we have bought in years.",
)

_DESIGNS = Path(__file__).parent / "designs"


@dataclass(frozen=True, slots=True)
class ModelDeck:
    """A deck: its name and its HTML."""

    name: str
    text: str


def decks() -> Iterator[ModelDeck]:
    """All decks, style by style."""
    for sheet in sorted(_DESIGNS.glob("*.css")):
        css = sheet.read_text(encoding="utf-8")
        for seed in range(SEEDS):
            yield ModelDeck(f"{sheet.stem}-{seed}", _deck(css, random.Random(f"{sheet.stem}{seed}")))  # noqa: S311


def _deck(css: str, chance: random.Random) -> str:
    name, topic = chance.choice(_NAMES), chance.choice(_TOPICS)
    kinds = [_kpis, _cards, _points, _table, _quote, _bars]
    chance.shuffle(kinds)
    bodies = [f"<h1>{topic}</h1><p class='sub'>{name} · 2026</p>", *(kind(chance) for kind in kinds[:5])]
    slides = "".join(
        f"<div class='slide'>{body}<div class='foot'><span>{name}</span><span>{number}</span></div></div>"
        for number, body in enumerate(bodies, 1)
    )
    head = f"<head><style>body{{margin:0}}{css}</style></head>"
    return f"<!DOCTYPE html><html>{head}<body>{slides}</body></html>"


def _kpis(chance: random.Random) -> str:
    values = [
        f"{chance.randint(2, 98)} %",
        f"${chance.randint(1, 9)}.{chance.randint(0, 9)}M",
        str(chance.randint(20, 900)),
    ]
    rows = zip(values, chance.sample(_TERMS, 3), strict=True)
    cells = "".join(
        f"<div class='kpi'><div class='v'>{v}</div><div class='l'>{label} index</div></div>" for v, label in rows
    )
    return f"<h2>Key figures</h2><div class='kpis'>{cells}</div>"


def _cards(chance: random.Random) -> str:
    rows = zip(chance.sample(_TERMS, 3), chance.sample(_FACTS, 3), strict=True)
    cells = "".join(f"<div class='card'><h3>{term}</h3><p>{fact}.</p></div>" for term, fact in rows)
    return f"<h2>Three priorities</h2><div class='cards'>{cells}</div>"


def _points(chance: random.Random) -> str:
    items = "".join(f"<li>{fact}</li>" for fact in chance.sample(_FACTS, chance.randint(3, 4)))
    ring = f"<div class='ring'>{chance.randint(10, 99)}%</div>"
    return f"<h2>What we found</h2><div class='two'><ul>{items}</ul>{ring}</div>"


def _table(chance: random.Random) -> str:
    rows = "".join(
        f"<tr><td>{town}</td><td>{chance.randint(50, 500)}</td><td>{chance.randint(50, 500)}</td></tr>"
        for town in chance.sample(_TOWNS, chance.randint(3, 5))
    )
    return f"<h2>Regions</h2><table><tr><th>Town</th><th>Plan</th><th>Actual</th></tr>{rows}</table>"


def _quote(chance: random.Random) -> str:
    return f"<h2>Voices</h2><blockquote>{chance.choice(_QUOTES)}</blockquote>"


def _bars(chance: random.Random) -> str:
    rows = "".join(
        f"<p class='lab'>{term}</p><div class='bar'><div style='width:{chance.randint(20, 95)}%'></div></div>"
        for term in chance.sample(_TERMS, 3)
    )
    return f"<h2>Progress</h2><div>{rows}</div>"
