"""Tables of DOCX, written row by row: spans, repeated headers, widths."""

from collections.abc import Callable
from dataclasses import replace

from render.docx.borders import LEAST, MAX_NESTED, WORD_COLUMNS, cell_frame, closed, grid_xml, scaled, spacer
from render.docx.height_estimate import UNSPLIT_ROWS
from render.docx.writer_state import Place, State
from render.docx.xml import TWIPS
from render.ir import Block, Cell, Frame, Image, Paragraph, Run, Table
from render.to_ir.flatten import paragraphs

_CHAR = 105
"""About the width of a letter of table text, in twips."""
_PADDING = 260
_WIDEST_WORD = 28
_LONGEST = 60
_SAMPLE = 400
_SIDE = 108
"""Margin at the sides of a cell."""
_MANY_COLUMNS = 7
"""With fewer, a page on its side gains little."""
_TOLERANCE = 1.05
_SMALL_FROM = 1.2
"""How much wider than its room a table is that is set in small type."""
_SHORT_BLOCKS = 8
_SHORT_TEXT = 400

WriteBlocks = Callable[[State, Place, list[Block]], str]


def table_xml(state: State, place: Place, table: Table, write: WriteBlocks) -> str:
    """A table; one with more columns than Word opens becomes several, one below the other."""
    if place.nested >= MAX_NESTED:  # deeper tables than Word lays out: their content, cell by cell
        return "".join(write(state, place, cell.blocks) for cell in table.cells)
    if table.columns <= WORD_COLUMNS:
        return _one(state, place, table, write) + spacer()
    state.document.warn(
        "table_split", f"A table of {table.columns} columns is split: Word opens {WORD_COLUMNS} at most."
    )
    return "".join(
        _one(state, place, _band(table, start, min(start + WORD_COLUMNS, table.columns)), write) + spacer()
        for start in range(0, table.columns, WORD_COLUMNS)
    )


def _band(table: Table, start: int, end: int) -> Table:
    """Some columns of a table; a cell that reaches into them shows its content where it starts."""
    cells = []
    for cell in table.cells:
        left, right = max(cell.column, start), min(cell.column + cell.colspan, end)
        if left < right:
            blocks = cell.blocks if cell.column >= start else []
            cells.append(replace(cell, blocks=blocks, column=left - start, colspan=right - left))
    widths = table.widths[start:end] if table.widths else None
    return Table(table.rows, end - start, cells, table.header_rows, [], widths)


def _one(state: State, place: Place, table: Table, write: WriteBlocks) -> str:
    room = max(place.width - place.indent, LEAST)
    widths = column_widths(table, room)
    rows: list[list[tuple[Cell, bool]]] = [[] for _ in range(table.rows)]
    for cell in table.cells:
        for row in range(cell.row, min(cell.row + cell.rowspan, table.rows)):
            rows[row].append((cell, row == cell.row))
    head = min(table.header_rows, table.rows)
    parts = [_opening(place, widths, head, banded=state.has_house_table), grid_xml(widths)]
    ground = None if state.has_house_table else Frame(state.content.theme.colours["surface"])
    inner = replace(place, indent=0, align=None, bar=None, level=0, nested=place.nested + 1, ground=None)
    retained = table.rows <= UNSPLIT_ROWS and all(_short(cell) for cell in table.cells)
    small = "Small" if is_too_wide(table, round(room * _SMALL_FROM)) else ""
    repeated = True  # a header that is higher than a page would leave no room for rows
    for number, cells in enumerate(rows):
        cells.sort(key=lambda pair: pair[0].column)
        whole = all(_short(cell) for cell, first in cells if first)
        repeated = repeated and whole and number < head
        shape = ("<w:cantSplit/>" if whole else "") + ("<w:tblHeader/>" if repeated else "")
        parts.append(f"<w:tr><w:trPr>{shape}</w:trPr>" if shape else "<w:tr>")
        for cell, first in cells:
            is_head = cell.header or number < head
            frame = cell.frame or (ground if number < head else None)
            width = sum(widths[cell.column : cell.column + cell.colspan])
            parts.append(f"<w:tc>{_cell_shape(cell, width, frame, first=first)}")
            if first and cell.blocks:
                style = ("TableHeader" if is_head else "TableText") + small
                room = max(width - 2 * _SIDE, 100)
                where = replace(
                    inner, width=room, style=style, align=cell.align, keep=retained and number < table.rows - 1
                )
                parts.append(closed(write(state, where, cell.blocks)))
            else:
                parts.append("<w:p/>")
            parts.append("</w:tc>")
        parts.append("</w:tr>")
    parts.append("</w:tbl>")
    return "".join(parts)


def _short(cell: Cell) -> bool:
    """Whether a cell is sure to fit on a page, so that its row need not be split."""
    if len(cell.blocks) > _SHORT_BLOCKS:
        return False
    return all(
        isinstance(block, Paragraph)
        and sum(len(inline.text) if isinstance(inline, Run) else 60 for inline in block.inlines) < _SHORT_TEXT
        for block in cell.blocks
    )


def _opening(place: Place, widths: list[int], head: int, *, banded: bool) -> str:
    width, side = sum(widths), min(_SIDE, min(widths) // 12)
    indent = f'<w:tblInd w:w="{place.indent}" w:type="dxa"/>' if place.indent else ""
    margins = ""
    if side < _SIDE // 2:  # in narrow columns the margins of the style would leave no room
        edges = "".join(f'<w:{name} w:w="{side}" w:type="dxa"/>' for name in ("left", "right"))
        margins = f"<w:tblCellMar>{edges}</w:tblCellMar>"
    return (
        f'<w:tbl><w:tblPr><w:tblStyle w:val="ReportTable"/><w:tblW w:w="{width}" w:type="dxa"/>{indent}'
        f'<w:tblLayout w:type="fixed"/>{margins}<w:tblLook w:val="04A0" w:firstRow="{int(head > 0)}" w:lastRow="0" '
        f'w:firstColumn="0" w:lastColumn="0" w:noHBand="{int(not banded)}" w:noVBand="1"/></w:tblPr>'
    )


def _cell_shape(cell: Cell, width: int, frame: Frame | None, *, first: bool) -> str:
    shape = f'<w:tcW w:w="{width}" w:type="dxa"/>'
    if cell.colspan > 1:
        shape += f'<w:gridSpan w:val="{cell.colspan}"/>'
    if cell.rowspan > 1:
        shape += '<w:vMerge w:val="restart"/>' if first else "<w:vMerge/>"
    shape += cell_frame(frame) if frame else ""
    shape += '<w:vAlign w:val="center"/>' if cell.middle else ""
    return f"<w:tcPr>{shape}</w:tcPr>"


def column_widths(table: Table, room: int) -> list[int]:
    """Widths of the columns in twips: as in the source, else as the longest words and texts need."""
    if table.widths:
        total = sum(table.widths) or 1.0
        return scaled([width / total * room for width in table.widths], room)
    least, wanted = _needs(table)
    total = sum(wanted)
    if total <= room:
        return scaled([float(width) for width in wanted], room)
    if sum(least) >= room:
        return scaled([float(width) for width in least], room)
    spare, more = room - sum(least), sum(wanted) - sum(least)
    return scaled([low + (high - low) / more * spare for low, high in zip(least, wanted, strict=True)], room)


def is_too_wide(table: Table, room: int) -> bool:
    """Whether words of a table would have to be broken in ``room`` twips, and not for a few long ones alone."""
    return table.columns >= _MANY_COLUMNS and sum(_needs(table)[0]) > room * _TOLERANCE


def _needs(table: Table) -> tuple[list[int], list[int]]:
    """For each column, the widths of its longest word and of its longest paragraph."""
    least, wanted = [LEAST] * table.columns, [LEAST] * table.columns
    step = max(1, len(table.cells) // (_SAMPLE * table.columns))
    for cell in table.cells:
        if cell.colspan > 1 or (cell.row % step and cell.row > _SAMPLE):
            continue
        word, text = _extent(cell)
        least[cell.column] = max(least[cell.column], word)
        wanted[cell.column] = max(wanted[cell.column], text)
    return least, wanted


def _extent(cell: Cell) -> tuple[int, int]:
    """The width of the longest word of a cell, and that of its longest paragraph, in twips."""
    word = text = 0
    for part in _paragraphs(cell.blocks):
        pictures = max(
            (int((inline.width or 0) * TWIPS) for inline in part if isinstance(inline, Image)), default=0
        )
        shown = "".join(inline.text for inline in part if isinstance(inline, Run))
        longest = max(map(len, shown.split()), default=0)
        word = max(word, min(longest, _WIDEST_WORD) * _CHAR + _PADDING, min(pictures, 2000))
        text = max(text, min(len(shown), _LONGEST) * _CHAR + _PADDING, pictures)
    return word, max(text, word)


def _paragraphs(blocks: list[Block]) -> list[list[object]]:
    if len(blocks) == 1 and isinstance(blocks[0], Paragraph):
        return [list(blocks[0].inlines)]
    return [list(part) for part in paragraphs(blocks)]
