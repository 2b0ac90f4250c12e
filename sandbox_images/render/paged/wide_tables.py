"""Tables that are too wide for the page: words break, then smaller type, then a landscape page, then a wider one.

Widths are estimated from the text before layout, since laying a table out to see that it doesn't fit takes as long
as the whole document.
"""

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from render.frontend.element_tree import add_class, classes_of, make, parents_of
from render.frontend.headings import LEVELS
from render.model import Document

TYPE_PX = 12.4
"""Type of a table cell: 10 pt times .93."""
PADDING_PX = 17.0
WORD_PX_MAX = 110.0
"""A longer word is broken where the column ends: addresses, hashes, paths."""
SMALLEST = 0.72
"""Type isn't made smaller than this part of its size while another way is left."""
SAMPLED_ROWS = 200
FIXED_ROWS = 150
"""Tables with more rows get fixed column widths from a sample: measuring all cells is half of the layout's time."""
LINE_SMALLEST = 0.8
"""Type of such a table is made smaller down to this (8 pt) where its texts then stand in one line each: wrapped, a
long table takes twice the pages and twice the time."""
LINE_PX = 13.6
"""Type of a cell in a theme's own size, by which one line of text is measured."""
TEXT_PX_MAX = 420.0
GROUP_ROWS = 100
SHORT_CHARACTERS = 300
"""A text of so many letters between a heading and its table goes with them to a page of another kind."""
BOLD = 1.1
"""How much wider bold type is."""


@dataclass(slots=True)
class _Column:
    least: float = 0.0
    line: float = 0.0
    breaks: bool = False


def fit_tables(document: Document, room_mm: float, landscape_mm: float) -> list[str]:
    """Marks the tables of a document that need it; gives the CSS of the wider pages that it takes."""
    css: list[str] = []
    if not any(True for _ in document.tree.iter("table")):
        return css
    parents = parents_of(document.tree)
    for table in list(document.tree.iter("table")):
        if any(ancestor.tag == "table" for ancestor in _ancestors(table, parents)):
            continue
        rows = list(table.iter("tr"))
        columns = _measure(rows)
        if columns:
            _fit(table, columns, (room_mm / 25.4 * 96, landscape_mm / 25.4 * 96), parents, css)
            if len(rows) > FIXED_ROWS and table.find("colgroup") is None and table.find("col") is None:
                _fix_widths(table, columns)
                _let_stand_in_lines(table, columns, room_mm / 25.4 * 96)
    if css:
        document.warn("wide_table", "A table is wider than a landscape page and stands on a page of its own width.")
    return css


def _ancestors(element: Element, parents: dict[Element, Element]) -> list[Element]:
    found = []
    parent = parents.get(element)
    while parent is not None:
        found.append(parent)
        parent = parents.get(parent)
    return found


def _width(text: str) -> float:
    """About how wide a text is in a cell, in px; rather too wide than too narrow."""
    return TYPE_PX * sum(1.0 if char > "\u2e7f" else 0.75 if char.isupper() else 0.58 for char in text)


def _line_width(text: str) -> float:
    """How wide a text is in one line, in px: what is put into one line must not be guessed far too wide."""
    return LINE_PX * sum(
        1.0 if char > "\u2e7f" else 0.62 if char.isupper() else 0.26 if char in " ,.;:!|'ijlft" else 0.52
        for char in text
    )


def _measure(rows: list[Element]) -> list[_Column]:
    """The widest word and the widest line of each column."""
    columns: list[_Column] = []
    every = max(1, len(rows) // SAMPLED_ROWS)
    for row in rows[:3] + rows[3::every]:
        place = 0
        for cell in row:
            if cell.tag not in {"td", "th"}:
                continue
            span = int(cell.get("colspan") or 1)
            while len(columns) < place + span:
                columns.append(_Column())
            if span == 1:
                _measure_cell(cell, columns[place])
            place += span
    return columns


def _measure_cell(cell: Element, column: _Column) -> None:
    text = "".join(cell.itertext()).strip()[:2000]
    words = text.split()
    # Characters of Chinese and Japanese may stand alone, so a run of them is no word.
    longest = max((_width(word) for word in words if word < "\u2e80"), default=TYPE_PX)
    if cell.tag == "th":
        longest *= BOLD
    column.breaks |= longest > WORD_PX_MAX
    column.least = max(column.least, min(longest, WORD_PX_MAX) + PADDING_PX)
    column.line = max(column.line, _line_width(text) * (BOLD if cell.tag == "th" else 1.0))


def _fit(
    table: Element,
    columns: list[_Column],
    rooms: tuple[float, float],
    parents: dict[Element, Element],
    css: list[str],
) -> None:
    least = sum(column.least for column in columns)
    room, turned = rooms
    if least <= room:
        _let_break(table, columns, everywhere=least > room * 0.95)
        return
    if room / least >= SMALLEST:
        _let_break(table, columns, everywhere=False)
        _shrink(table, room / least)
        return
    free = all(
        item.tag in {"html", "body", "section", "main", "article", "div"} and not _is_cut(item)
        for item in _ancestors(table, parents)
    )
    smallest = SMALLEST * 0.85
    # Few columns are wide by long words, which break.
    if free and (turned / least >= smallest or len(columns) < 8):  # noqa: PLR2004
        _let_break(table, columns, everywhere=turned / least < smallest)
        _turn(table, parents, "pb-landscape")
        _shrink(table, max(turned / least, smallest))
        return
    _let_break(table, columns, everywhere=True)
    if not free:
        _shrink(table, max(room / least, 0.3))
        return
    width = min(least * SMALLEST / 96 * 25.4 + 30, 4_900.0)
    name = f"pb-wide-{len(css)}"
    height = max(210.0, min(297.0, width * 0.6))
    css.append(f"@page {name} {{ size: {width:.0f}mm {height:.0f}mm; margin: 15mm }}\n.{name} {{ page: {name} }}")
    _turn(table, parents, name)
    _shrink(table, SMALLEST)


def _turn(table: Element, parents: dict[Element, Element], name: str) -> None:
    """Puts a table on a page of another kind, with the heading above it and a short text between the two."""
    add_class(table, name)
    siblings = list(parents[table])
    before = siblings[: siblings.index(table)]
    if len(before) > 1 and _is_short(before[-1]) and before[-2].tag in LEVELS:
        add_class(before.pop(), name)
    while before and before[-1].tag in LEVELS and not (before[-1].tail or "").strip():
        add_class(before.pop(), name)


def _is_short(element: Element) -> bool:
    return element.tag == "p" and len("".join(element.itertext())) <= SHORT_CHARACTERS


def _is_cut(element: Element) -> bool:
    """Whether an element cannot be left for another page: columns, flex boxes, floats."""
    style = (element.get("style") or "").replace(" ", "")
    return (
        bool({"pb-columns", "pb-column"} & set(classes_of(element)))
        or "display:" in style
        or "float:" in style
        or "position:" in style
    )


def _shrink(table: Element, factor: float) -> None:
    if factor < 1:
        style = table.get("style") or ""
        table.set("style", f"{style}{';' if style else ''}font-size:{max(factor, 0.3) * 0.93:.3f}em")
        add_class(table, "pb-tight")


def _let_break(table: Element, columns: list[_Column], *, everywhere: bool) -> None:
    """Words of the columns that need it break anywhere; in the others they stay whole."""
    for row in table.iter("tr"):
        place = 0
        for cell in row:
            if cell.tag not in {"td", "th"}:
                continue
            if everywhere or (place < len(columns) and columns[place].breaks):
                add_class(cell, "pb-any")
            place += int(cell.get("colspan") or 1)


def _fix_widths(table: Element, columns: list[_Column]) -> None:
    widths = [max(min(column.line, TEXT_PX_MAX) + PADDING_PX, column.least) for column in columns]
    group = make("colgroup")
    group.extend(make("col", {"style": f"width:{width / sum(widths):.2%}"}) for width in widths)
    index = 1 if len(table) and table[0].tag == "caption" else 0
    table.insert(index, group)
    add_class(table, "pb-fixed")
    if not any("rowspan" in cell.attrib for row in table.iter("tr") for cell in row):
        for body in table.findall("tbody"):
            _divide(table, body)


def _let_stand_in_lines(table: Element, columns: list[_Column], room: float) -> None:
    """Makes the type of a long table a little smaller if each of its texts then has a line to itself."""
    if "pb-tight" in classes_of(table):
        return
    roomy = sum(column.line for column in columns) + PADDING_PX * len(columns)
    tight = sum(column.line + 0.9 * LINE_PX for column in columns) * 1.03
    if roomy > room >= tight * LINE_SMALLEST:
        _shrink(table, min(1.0, room / tight) - 0.001)


def _divide(table: Element, body: Element) -> None:
    """Makes many row groups of a long one: on every page WeasyPrint walks all the rows of the current group."""
    rows = list(body)
    place = list(table).index(body)
    for number, start in enumerate(range(GROUP_ROWS, len(rows), GROUP_ROWS), 1):
        part = make("tbody")
        part.extend(rows[start : start + GROUP_ROWS])
        table.insert(place + number, part)
    body[:] = rows[:GROUP_ROWS]
