"""What a document or a file has of structure, as rows that can be compared."""

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from bench.render.words import words

KINDS = ("link", "heading", "list", "table", "emphasis", "alt")
WEB = re.compile(r"(?:https?:|mailto:|#)", re.IGNORECASE)
MONO = re.compile(r"mono|consolas|courier|code|verbatim", re.IGNORECASE)
TICKS = "\u2610\u2611\u2612\u2713\u2714\u25a1\u2705"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
ShownBlock = tuple[str, frozenset[str]]
"""A text and its marks, such as ``bold``."""


@dataclass
class Structure:
    """What a document or a file has, kind by kind, in order."""

    rows: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    dressed: set[str] = field(default_factory=set)
    """Lines of code and quotations: a theme may set those in italics or another font as a whole."""
    pictured: dict[Any, set[str]] = field(default_factory=dict)
    """Texts of rows with a picture in them, by the rest of the row: a file may name the picture there."""

    pictures: list[Counter[str]] = field(default_factory=list)
    """What a picture is called by if it cannot be shown: the words of its alt text, else of its address."""

    def names_picture(self, text: str) -> bool:
        """Whether a run of text stands in place of a picture."""
        there = Counter(words(text))
        return any(not name - there for name in self.pictures if name)

    def add(self, kind: str, *what: Any) -> None:
        """Notes one more of a kind."""
        self.rows[kind].append(what)


def plain_words(text: str) -> str:
    """The words of a text, one blank apart."""
    return " ".join(words(text))


def plain_address(href: str) -> str:
    """An address as it is compared."""
    return unquote(href).strip().rstrip("/").casefold()


def add_marks(found: Structure, pieces: list[ShownBlock]) -> None:
    """Notes marked words; neighbours of the same marks are one text, whatever runs they are in."""
    for mark in ("bold", "italic", "strike", "code"):
        text = "".join(piece if mark in marks else "\0" for piece, marks in pieces)
        for part in text.split("\0"):
            for word in words(part):
                found.add("emphasis", mark, word)
