"""Widths of text without layout: each character is measured once, by the engine that lays out the rest."""

from render.frontend.element_tree import make
from render.slides.model import Piece
from render.weasy.boxes import Layouter

_SIZE = 100.0
_CHARACTERS_MAX = 3000
_SAFETY = 1.01
_WIDE = 0x1100
"""From here on, scripts break lines between any two characters."""


class Measure:
    """Counts the lines that text takes."""

    def __init__(self, layouter: Layouter, characters: set[str], like: Piece) -> None:
        """Measures characters.

        Args:
            layouter: the layout engine.
            characters: all that will be asked for; those that are too many count as wide.
            like: the font they're set in.
        """
        known = sorted(character for character in characters if character.isprintable() and character != " ")[
            :_CHARACTERS_MAX
        ]
        family = like.family.replace('"', "")
        weight = 700 if like.bold else 400
        style = f'display:inline-block;font:{weight} {_SIZE}px "{family}";white-space:pre'
        spans = [
            make("span", {"style": style, "data-character": character}, character)
            for character in [*known, "\u00a0"]
        ]
        body = make("body", {"style": "margin:0"}, None, make("div", None, None, *spans))
        self._widths: dict[str, float] = {}
        for page in layouter.pages(make("html", None, None, make("head"), body)):
            for node in page.walk():
                if node.kind == "inline-block" and node.element is not None and node.element.get("data-character"):
                    self._widths[node.element.get("data-character", "")] = node.width / _SIZE * _SAFETY
        self._widths[" "] = self._widths.get("\u00a0", 0.25)

    def width(self, text: str, size: float) -> float:
        """Width of a text in pixels, a little more than it takes."""
        return sum(self._widths.get(character, 1.0) for character in text) * size

    def lines(self, pieces: list[Piece], width: float) -> int:
        """How many lines pieces take in a column."""
        width = max(
            width * 1.012 + 1.0, 8.0
        )  # a column is as wide as its longest word, which is measured a little wider
        size = max((piece.size * (1.07 if piece.bold else 1.0) for piece in pieces), default=16.0)
        space = self._widths[" "] * size
        lines, at = 1, 0.0
        for word in "".join(piece.text for piece in pieces).split(" "):
            if word == "\n":
                lines, at = lines + 1, 0.0
                continue
            long = self.width(word, size)
            if at and at + space + long > width:
                lines, at = lines + 1, 0.0
            if long > width:
                more = long / width * (1.15 if any(ord(character) >= _WIDE for character in word) else 1.08)
                lines += int(more)
                at = width * (more - int(more))
            else:
                at += long + (space if at else 0.0)
        return lines
