"""Tables with more columns than a slide has room for: smaller type first, then parts of their columns on slides each."""

import re
from xml.etree.ElementTree import Element

from render.slides.model import Para, Shape, TableShape
from render.slides.splitting.split_after_layout import append_mark, whole_copy

SMALLEST_STEP = 0.65
"""Tables are set in 10 points then."""
_COLUMNS_LEAST = 6
_BREAKS = re.compile(r"[\s\-/\u2010-\u2014]+")
_ANYWHERE = "\u1100"
"""From here on, scripts break lines between any two characters."""


def cuts_words(shapes: list[Shape]) -> bool:
    """Whether words of a table's cells are broken, as they are in columns narrower than they."""
    tables = [shape for shape in shapes if isinstance(shape, TableShape)]
    return any(_is_cut(para) for table in tables for cell in table.cells for para in cell.paragraphs)


def _is_cut(para: Para) -> bool:
    """Whether a paragraph has more lines than places to break one at."""
    text = para.text.strip()
    places = sum(len(_BREAKS.split(line)) for line in text.split("\n"))
    return para.lines > max(1, places) and max(text, default="") < _ANYWHERE


def column_parts(root: Element, title: Element | None) -> list[tuple[Element, Element | None]]:
    """Copies of a slide, each with half of the columns of its widest table behind its first; none if it has no such.

    Args:
        root: the slide.
        title: its title; each part gets a place for its number.
    """
    tables = [table for table in root.iter("table") if _is_plain(table)]
    table = max(tables, key=_width, default=None)
    if table is None or _width(table) < _COLUMNS_LEAST:
        return []
    count = _width(table)
    middle = (count + 2) // 2
    parts = []
    for columns in (range(1, middle), range(middle, count)):
        known: dict[int, Element] = {}
        copy = _copy(root, table, {0, *columns}, known)
        head = known.get(id(title)) if title is not None else None
        if head is not None:
            append_mark(head)
        parts.append((copy, head))
    return parts


def _is_plain(table: Element) -> bool:
    cells = [cell for row in table.iter("tr") for cell in row]
    return not any(cell.get("colspan") or cell.get("rowspan") for cell in cells)


def _width(table: Element) -> int:
    return max((len(row) for row in table.iter("tr")), default=0)


def _copy(element: Element, table: Element, columns: set[int], known: dict[int, Element]) -> Element:
    """A copy of an element, of a table in it with some of its columns."""
    if element is table:
        made = whole_copy(table)
        for row in made.iter("tr"):
            row[:] = [cell for index, cell in enumerate(row) if index in columns]
        for group in made.iter("colgroup"):
            group[:] = []
        return made
    made = Element(element.tag, dict(element.attrib))
    made.text = element.text
    known[id(element)] = made
    for child in element:
        inner = _copy(child, table, columns, known)
        inner.tail = child.tail
        made.append(inner)
    return made
