"""Columns side by side: the marks for them, and what the author's styles put in rows."""

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from render.ir import Block, Columns
from render.reading.inline import Flow, Look
from render.reading.looks import BLOCKS, classes
from render.reading.style import length, percentage

if TYPE_CHECKING:
    from render.reading.reader import Reader

FLEX_ITEMS_MAX = 6
_GRID_COLUMNS_MAX = 4
_AUTO_COLUMNS = 3
"""Columns of a grid that takes as many as there is room for."""
_ITEMS = BLOCKS - {"li", "dt", "dd", "tr", "td", "th", "option"}


def read_columns(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads ``div.pb-columns``; what stands between its columns goes before them."""
    flow.end()
    columns: list[list[Block]] = []
    widths: list[float | None] = []
    between = Flow()
    if element.text:
        between.text(element.text, look)
    for child in element:
        if "pb-column" in classes(child):
            columns.append(_column(reader, child, look))
            widths.append(_width(reader, child))
        else:
            reader.element(child, look, between)
        if child.tail:
            between.text(child.tail, look)
    for block in between.finish():
        flow.block(block)
    if columns:
        flow.block(Columns(columns, _filled(widths)))


def read_side_by_side(reader: "Reader", element: Element, look: Look, flow: Flow) -> bool:
    """Reads a flex or grid container whose items stand side by side; tells whether it is one."""
    style = reader.style(element)
    display = style.get("display", "").lower()
    if display not in {"flex", "grid", "inline-flex", "inline-grid"}:
        return False
    items = [child for child in element if isinstance(child.tag, str) and not reader.hidden(child)]
    loose = bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)
    if loose or any(child.tag not in _ITEMS for child in items):
        _parted(reader, element, look, flow)
        return True
    count = _grid_columns(style.get("grid-template-columns", ""), len(items))
    if display.endswith("flex"):
        row = not style.get("flex-direction", "row").startswith("column")
        count = len(items) if row and len(items) <= FLEX_ITEMS_MAX else 1
    if count <= 1 or len(items) <= 1:
        return False
    for start in range(0, len(items), count):
        row_items = items[start : start + count]
        columns = [_column(reader, item, look) for item in row_items]
        widths = _filled([_width(reader, item) for item in row_items])
        empty = count - len(row_items)
        flow.block(Columns(columns + [[] for _ in range(empty)], widths + widths[:1] * empty))
    return True


def _parted(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Items that are words of a line, with a blank between them: in a row there is room between items."""
    if element.text:
        flow.text(element.text, look)
    for child in element:
        reader.element(child, look, flow)
        flow.text((child.tail or "") + " ", look)


def _column(reader: "Reader", element: Element, look: Look) -> list[Block]:
    inner = Flow()
    reader.element(element, look, inner)
    return inner.finish()


def _grid_columns(template: str, items: int) -> int:
    """How many columns a ``grid-template-columns`` makes."""
    text = template.lower().strip()
    if not text or text == "none":
        return 1
    if text.startswith("repeat("):
        number = text[7:].split(",")[0].strip()
        return min(int(number), _GRID_COLUMNS_MAX) if number.isdecimal() else min(items, _AUTO_COLUMNS)
    depth, tracks = 0, 0
    for before, letter in zip(" " + text, text, strict=False):
        tracks += before == " " and letter != " " and not depth
        depth += (letter == "(") - (letter == ")")
    return min(tracks, _GRID_COLUMNS_MAX)


def _width(reader: "Reader", element: Element) -> float | None:
    """The share of the row that an item asks for, in percent."""
    style = reader.style(element)
    for text in (element.get("data-width"), style.get("width"), style.get("flex-basis")):
        found = percentage(text)
        if found:
            return min(found, 100.0)
        number = length(text)
        if number:
            return number * 100 if number <= 1 else min(number / 6.4, 100.0)
    return None


def _filled(widths: list[float | None]) -> list[float]:
    known = [width for width in widths if width]
    filler = max((100.0 - sum(known)) / (len(widths) - len(known)), 5.0) if len(known) < len(widths) else 0.0
    return [width or filler for width in widths]
