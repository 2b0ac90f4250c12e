"""Columns side by side: the marks for them, and what the author's styles put in rows."""

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from render.ir import Block, Columns
from render.to_ir.flatten import flat
from render.to_ir.inline import Flow, Look
from render.to_ir.style import Declarations, length, percentage
from render.to_ir.text_style import BLOCKS, classes

if TYPE_CHECKING:
    from render.to_ir.reader import Reader

FLEX_ITEMS_MAX = 6
_GRID_COLUMNS_MAX = 4
_AUTO_COLUMNS = 3
"""Columns of a grid that takes as many as there is room for."""
_FULL = 100.5
"""Percent of a row that its items may take."""
_LETTER_PX, _CELL_PX, _WORD_MAX = 8.0, 16.0, 40
_LINE_MAX = 90
"""Letters of a line whose ends are two items; longer ones are columns."""
_LINES = frozenset({"div", "p", "address", "header", "footer"})
_PICTURES = frozenset({"img", "svg", "{http://www.w3.org/2000/svg}svg", "br", "input"})
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
    """Reads a flex or grid container whose items stand side by side; returns whether it is one."""
    style = reader.style(element)
    display = style.get("display", "").lower()
    if display not in {"flex", "grid", "inline-flex", "inline-grid"}:
        return False
    items = [child for child in element if isinstance(child.tag, str) and not reader.hidden(child)]
    loose = bool((element.text or "").strip()) or any((child.tail or "").strip() for child in element)
    row = not style.get("flex-direction", "row").startswith("column")
    if not loose and display.endswith("flex") and row and _is_line(reader, style, items):
        _read_line(reader, items, look, flow)
        return True
    if loose or any(child.tag not in _ITEMS for child in items):
        _parted(reader, element, look, flow)
        return True
    if display.endswith("flex"):
        rows = _flex_rows(reader, style, items) if row and len(items) <= FLEX_ITEMS_MAX else []
    else:
        count = _grid_columns(style.get("grid-template-columns", ""), len(items))
        rows = [items[start : start + count] for start in range(0, len(items), count)] if count > 1 else []
    if not rows or len(items) <= 1:
        return False
    count = max(len(found) for found in rows)
    for found in rows:
        if len(found) == 1 and display.endswith("flex"):
            reader.element(found[0], look, flow)
            continue
        columns = [_column(reader, item, look) for item in found]
        widths = _filled([_width(reader, item) for item in found])
        widths = [max(width, _least(reader, item)) for width, item in zip(widths, found, strict=True)]
        empty = 0 if display.endswith("flex") else count - len(found)
        flow.block(Columns(columns + [[] for _ in range(empty)], widths + widths[:1] * empty))
    return True


def _flex_rows(reader: "Reader", style: Declarations, items: list[Element]) -> list[list[Element]]:
    """The items of a flex container by rows: where it wraps, those that have no room begin another one."""
    if "wrap" not in f"{style.get('flex-wrap', '')} {style.get('flex-flow', '')}".replace("nowrap", "").split():
        return [items]
    rows: list[list[Element]] = [[]]
    used = 0.0
    for item in items:
        width = _width(reader, item) or _least(reader, item)
        if rows[-1] and used + width > _FULL:
            rows.append([])
            used = 0.0
        rows[-1].append(item)
        used += width
    return rows


def _least(reader: "Reader", item: Element) -> float:
    """The share of the row that the longest word of an item takes, in percent."""
    longest = max(map(len, "".join(item.itertext()).split()), default=0)
    return (min(longest, _WORD_MAX) * _LETTER_PX + _CELL_PX) / reader.room * 100


def _is_line(reader: "Reader", style: Declarations, items: list[Element]) -> bool:
    """Whether two items are the words at the ends of one line: a name and its sum, a post and its years."""
    if style.get("justify-content", "") != "space-between" or len(items) != 2:  # noqa: PLR2004
        return False
    plain = all(
        child.tag not in BLOCKS | _PICTURES for item in items for child in item.iter() if child is not item
    ) and all(item.tag not in BLOCKS - _LINES and reader.frame(item) is None for item in items)
    return plain and sum(len("".join(item.itertext())) for item in items) <= _LINE_MAX


def _read_line(reader: "Reader", items: list[Element], look: Look, flow: Flow) -> None:
    flow.end()
    for number, item in enumerate(items):
        one = Flow()
        reader.element(item, look, one)
        inlines = flat(one.finish())
        if number:
            flow.aside(inlines)
        else:
            for inline in inlines:
                flow.inline(inline)
    flow.end(look)


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
    # Of ``flex: 1 1 300px`` the size; the other two numbers are shares of what is left.
    basis = next((word for word in style.get("flex-basis", "").split() if not word[-1].isdecimal()), None)
    for text in (element.get("data-width"), style.get("width"), basis):
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
