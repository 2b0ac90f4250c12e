"""Tables: rows of cells with spans become a grid in which every position is covered by exactly one cell."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from render.ir import Cell, Frame, Line, Table
from render.to_ir.flatten import flat
from render.to_ir.inline import Flow, Look
from render.to_ir.style import length, percentage
from render.to_ir.text_style import align_of

if TYPE_CHECKING:
    from render.to_ir.reader import Reader

MAX_COLUMNS = 1000
_NO_FRAME = Frame()
_GROUPS = ("thead", "tbody", "tfoot")


@dataclass(slots=True)
class Row:
    """A row of a table's source; ``left`` is how many rows of its group are left, itself included."""

    element: Element
    group: Element | None
    cells: list[Element]
    left: int
    head: bool


@dataclass(slots=True)
class Parts:
    """What a table's source is made of; ``strays`` are elements that have no place in a table."""

    rows: list[Row]
    captions: list[Element]
    columns: list[Element]
    strays: list[Element]


def parts(table: Element) -> Parts:
    """Sorts the children of a table: head first and foot last, as they are shown."""
    found = Parts([], [], [], [])
    groups: dict[str, list[tuple[Element | None, list[Element]]]] = {name: [] for name in _GROUPS}
    loose: list[Element] = []
    for child in table:
        if child.tag in _GROUPS:
            groups[str(child.tag)].append((child, list(child)))
        elif child.tag == "tr":
            if not loose:
                groups["tbody"].append((None, loose))
            loose.append(child)
        elif child.tag == "caption":
            found.captions.append(child)
        elif child.tag == "colgroup":
            found.columns.extend(_columns(child))
        elif child.tag == "col":
            found.columns.extend(_repeated(child))
        else:
            found.strays.append(child)
    for name in _GROUPS:
        for group, elements in groups[name]:
            _add_rows(found, group, elements, head=name == "thead")
    return found


def _columns(colgroup: Element) -> list[Element]:
    columns = [column for child in colgroup if child.tag == "col" for column in _repeated(child)]
    return columns or _repeated(colgroup)


def _repeated(column: Element) -> list[Element]:
    return [column] * span(column, "span", MAX_COLUMNS)


def _add_rows(found: Parts, group: Element | None, elements: list[Element], *, head: bool) -> None:
    rows = [element for element in elements if element.tag == "tr"]
    found.strays.extend(element for element in elements if element.tag != "tr")
    for index, row in enumerate(rows):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        found.strays.extend(cell for cell in row if cell.tag not in {"td", "th"})
        found.rows.append(Row(row, group, cells, len(rows) - index, head))


def span(element: Element, name: str, most: int) -> int:
    """A span attribute as browsers read it: digits in front count, nonsense is 1, and 0 is as far as it goes."""
    given = element.get(name)
    if given is None:
        return 1
    text = given.strip()
    digits = text[: len(text) - len(text.lstrip("0123456789"))][:9]
    if not digits.isascii() or not digits:
        return 1
    number = int(digits)
    return most if number == 0 and name == "rowspan" else min(max(number, 1), most)


@dataclass(slots=True)
class Placed:
    """A cell in the grid: of no element where the source left a gap; those past the first have no room in it."""

    elements: list[Element]
    row: int
    column: int
    rowspan: int
    colspan: int


def grid(rows: list[Row]) -> tuple[list[Placed], int]:
    """Places the cells of all rows; returns them in reading order, and the number of columns.

    Overlaps are cut at the cell that was there first, gaps are filled, and columns in which no cell starts go.
    """
    placed: list[Placed] = []
    busy: dict[int, int] = {}  # column → the first row in which it is free again
    for number, row in enumerate(rows):
        column = 0
        for element in row.cells:
            while busy.get(column, 0) > number:
                column += 1
            if column >= MAX_COLUMNS:  # more than any reader shows: the text still has to go somewhere
                placed[-1].elements.append(element)
                continue
            wide = 1
            wanted = min(span(element, "colspan", MAX_COLUMNS), MAX_COLUMNS - column)
            while wide < wanted and busy.get(column + wide, 0) <= number:
                wide += 1
            tall = span(element, "rowspan", row.left)
            for covered in range(column, column + wide):
                busy[covered] = number + tall
            placed.append(Placed([element], number, column, tall, wide))
            column += wide
    return _repaired(placed, len(rows))


def _repaired(placed: list[Placed], rows: int) -> tuple[list[Placed], int]:
    starts = sorted({cell.column for cell in placed})
    if not starts:
        return [], 0
    order = {column: index for index, column in enumerate(starts)}
    for cell in placed:
        last = cell.column + cell.colspan
        cell.column = order[cell.column]
        cell.colspan = bisect_left(starts, last) - cell.column
    return _filled(placed, rows, len(starts)), len(starts)


def _filled(placed: list[Placed], rows: int, columns: int) -> list[Placed]:
    """Adds an empty cell for every gap, as wide as the gap."""
    by_row: list[list[Placed]] = [[] for _ in range(rows)]
    for cell in placed:
        by_row[cell.row].append(cell)
    free = [0] * columns
    result: list[Placed] = []
    for number, cells in enumerate(by_row):
        for cell in cells:
            free[cell.column : cell.column + cell.colspan] = [number + cell.rowspan] * cell.colspan
        gaps: list[Placed] = []
        if any(until <= number for until in free):
            column = 0
            while column < columns:
                start = column
                while column < columns and free[column] <= number:
                    column += 1
                if column > start:
                    gaps.append(Placed([], number, start, 1, column - start))
                column += 1
        result.extend(sorted([*cells, *gaps], key=lambda cell: cell.column) if gaps else cells)
    return result


def header_rows(parted: Parts) -> int:
    """How many rows at the top are headers: those of ``thead``, or the leading ones made of ``th`` alone."""
    heads = sum(1 for row in parted.rows if row.head)
    if heads:
        return heads
    for row in parted.rows[:-1]:  # a table of headers alone has none
        if not row.cells or any(cell.tag != "th" for cell in row.cells):
            break
        heads += 1
    return heads


def widths(reader: "Reader", parted: Parts, placed: list[Placed], columns: int) -> list[float] | None:
    """Relative widths of the columns, from ``col`` elements or the first row; None if the source gives none.

    Args:
        reader: knows the author's styles.
        parted: the table's source.
        placed: where the cells stand.
        columns: how many columns there are.
    """
    given: list[Element | None] = [*parted.columns[:columns]]
    given += [None] * (columns - len(given))
    known = [_width(reader, element) for element in given]
    if not any(known):
        for cell in placed:
            if cell.row:
                break
            if cell.colspan == 1 and cell.elements:
                given[cell.column] = cell.elements[0]
        known = [_width(reader, element) for element in given]
    real = [width for width in known if width is not None]
    if not real:
        return None
    percents = any(_width(reader, element, percent=True) is not None for element in given)
    rest = max((100.0 - sum(real)) / (columns - len(real)), 1.0) if percents and len(real) < columns else 0.0
    filler = rest or sum(real) / len(real)
    return [filler if width is None else width for width in known]


def _width(reader: "Reader", element: Element | None, *, percent: bool = False) -> float | None:
    if element is None:
        return None
    for text in (reader.style(element).get("width"), element.get("width")):
        found = percentage(text) or (None if percent else length(text))
        if found is not None:
            return found
    return None


def read_table(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads a table; what has no place in one goes before it."""
    parted = parts(element)
    for stray in parted.strays:
        reader.element(stray, look, flow)
    flow.end()
    captions = [block for caption in parted.captions for block in reader.blocks(caption, look)]
    placed, columns = grid(parted.rows)
    if not placed:
        for block in captions:
            flow.block(block)
        return
    reading = _Cells(reader, element, parted, look)
    cells = [reading.cell(place) for place in placed]
    relative = widths(reader, parted, placed, columns)
    flow.block(Table(len(parted.rows), columns, cells, header_rows(parted), flat(captions), relative))
    for extra in (late for place in placed for late in place.elements[1:] if not reader.hidden(late)):
        reader.cell(extra, look, flow)
        flow.text(" ", look)
    flow.end()


class _Cells:
    """Reads the cells of a table: look, ground and alignment come down from table, group and row."""

    def __init__(self, reader: "Reader", table: Element, parted: Parts, look: Look) -> None:
        self._reader = reader
        self._table = table
        self._parted = parted
        self._row = -1
        self._look = replace(look, align=None, background=None)
        self._inherited: tuple[Look, str | None] = (self._look, None)
        # ``<table border=1>`` draws lines around every cell
        lines = table.get("border", "0").strip() not in {"", "0"}
        self._ruled = Frame(None, *[Line(1.0, "#808080")] * 4) if lines else Frame()

    def cell(self, place: Placed) -> Cell:
        """Reads a cell; they come in the order of their rows."""
        reader, columns = self._reader, self._parted.columns
        if place.row != self._row:
            self._row, self._inherited = place.row, self._from_row(self._parted.rows[place.row])
        inner, ground = self._inherited
        column = columns[place.column] if place.column < len(columns) else None
        align = inner.align or (align_of(column, reader.style(column)) if column is not None else None)
        frame, flow = self._ruled, Flow()
        header = middle = False
        for element in place.elements[:1]:
            if reader.hidden(element):
                continue
            inner = reader.styled(element, inner)
            align = inner.align or align
            own = reader.frame(element)
            if own:
                frame = own if own.background or not ground else replace(own, background=ground)
            header = element.tag == "th"
            middle = (reader.style(element).get("vertical-align") or element.get("valign", "")) == "middle"
            reader.cell(element, inner, flow)
        if ground and not frame.background:
            frame = replace(frame, background=ground)
        shown = frame if frame != _NO_FRAME else None
        where = (place.row, place.column, place.rowspan, place.colspan)
        return Cell(flow.finish(), *where, header, align, shown, middle)

    def _from_row(self, row: Row) -> tuple[Look, str | None]:
        """The look and the ground that a row gives to its cells."""
        look, ground = self._look, None
        for element in (self._table, row.group, row.element):
            if element is None or not (element.attrib or self._reader.style(element)):
                continue
            look = self._reader.styled(element, look)
            frame = self._reader.frame(element)
            ground = (frame.background if frame else None) or ground
        return look, ground
