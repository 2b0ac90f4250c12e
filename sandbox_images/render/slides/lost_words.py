"""Finds slides that lack most of their words: hidden by rules, of no size, or without a box."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, name_of
from render.slides.model import Shape, TableShape, TextShape

_LEAST = 0.5
"""So much of a slide's letters is shown; the rest may be hidden on purpose."""
_UNREAD = frozenset(
    {"head", "style", "script", "title", "template", "svg", "math", "pb-math", "pb-chart", "pb-notes"}
)
"""Names and classes of elements whose letters are pictures, notes or none."""


def lacks_words(root: Element, shapes: Sequence[Shape]) -> bool:
    """Whether most of a slide's letters are in none of its shapes."""
    frames = [shape.paragraphs for shape in shapes if isinstance(shape, TextShape)]
    frames += [cell.paragraphs for shape in shapes if isinstance(shape, TableShape) for cell in shape.cells]
    pieces = [piece for paragraphs in frames for para in paragraphs for piece in para.pieces if piece.size >= 1]
    return sum(_letters(piece.text) for piece in pieces) < _LEAST * _letters_of(root)


def _letters_of(root: Element) -> int:
    count = 0
    stack = [root]
    while stack:
        item = stack.pop()
        name = name_of(item).rpartition("}")[2]
        if name and not _UNREAD & {name, *classes_of(item)}:
            count += _letters(item.text)
            stack.extend(item)
        if item is not root:
            count += _letters(item.tail)
    return count


def _letters(text: str | None) -> int:
    return len("".join((text or "").split()))
