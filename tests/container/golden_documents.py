"""The golden documents: sources, and by hand what a reader must find in every rendering of them.

Each source in ``documents/`` has a JSON file of its name beside it. A field of `GoldenDocument` that is not given
there is empty.
"""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "documents"
PICTURE = "turn_1/attachments/buoy.png"
SOURCES_POOL = [
    {
        "sid": 7,
        "source_type": "web",
        "title": "Harbour office yearbook",
        "url": "https://harbour.example/yearbook",
    }
]


@dataclass(frozen=True)
class GoldenDocument:
    """A source and its structure.

    Attributes:
        name: of its files.
        source_format: ``markdown`` or ``html``.
        title: of the document.
        text: all that is visible as text, a line for each block.
        drawn: words that only some formats show as text: of drawings, formulas, contents, addresses of sources.
        notes: what the speaker says, on slides only.
        slides: the titles of the slides, for a deck.
        headings: level and text, in order.
        links: web addresses, in the order of the alphabet.
        lists: depth (from 0), marker and text of each item: a number, ``•``, or ``x`` and ``o`` of a task list.
        tables: rows of cells; a cell that spans is repeated in every position that it covers.
        alts: alternative texts of the pictures that the source names, in order.
        formulas: how many there are.
    """

    name: str
    source_format: str
    title: str
    text: list[str]
    drawn: str = ""
    notes: list[str] = field(default_factory=list)
    slides: list[str] = field(default_factory=list)
    headings: list[tuple[int, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    lists: list[tuple[int, str, str]] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    alts: list[str] = field(default_factory=list)
    formulas: int = 0

    @property
    def content(self) -> str:
        suffix = {"markdown": ".md", "html": ".html"}[self.source_format]
        return (FOLDER / f"{self.name}{suffix}").read_text(encoding="utf-8")


def _loaded(path: Path) -> GoldenDocument:
    given = json.loads(path.read_text(encoding="utf-8"))
    for name in ("headings", "lists"):
        given[name] = [tuple(entry) for entry in given.get(name, [])]
    return GoldenDocument(name=path.stem, **given)


DOCUMENTS = {path.stem: _loaded(path) for path in sorted(FOLDER.glob("*.json"))}


def tokens(lines: Iterable[str]) -> list[str]:
    """The words of lines as all readers agree on them: letters and digits, each ideograph and symbol on its own."""
    found: list[str] = []
    for line in lines:
        word = ""
        for character in unicodedata.normalize("NFKC", line):
            kind = unicodedata.category(character)
            if kind == "Cf":  # shows nothing: a joiner, a mark of direction
                continue
            if character.isspace() or kind[0] in "PZC" or character == "\N{VARIATION SELECTOR-16}":
                alone, joined = "", False
            else:
                joined = kind[0] in "LMN" and not _is_ideograph(character)
                alone = "" if joined else character
            if joined:
                word += character
                continue
            if word:
                found.append(word)
                word = ""
            if alone:
                found.append(alone)
        if word:
            found.append(word)
    return found


def _is_ideograph(character: str) -> bool:
    return "\u2e80" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7af"
