"""Tables of DOCX, written row by row: spans, repeated headers, widths; and frames of callouts and columns."""

from collections.abc import Callable
from dataclasses import replace

from render.docx.state import Place, State
from render.docx.xml import TWIPS, hexa, mix
from render.ir import Block, Cell, Image, Paragraph, Run, Table
from render.reading.flat import paragraphs

WORD_COLUMNS = 63
"""Word opens no table with more."""
MAX_NESTED = 6
_LEAST = 300
_CHAR = 105
"""About the width of a letter of table text, in twips."""
_PADDING = 260
_WIDEST_WORD = 28
_LONGEST = 60
_SAMPLE = 400
_FRAME_MARGIN = 160
_SIDE = 108
"""Margin at the sides of a cell."""
_SHORT_BLOCKS = 8
_SHORT_TEXT = 400

WriteBlocks = Callable[[State, Place, list[Block]], str]


def spacer(height: int = 120) -> str:
    """An empty paragraph of a height in twips: Word joins tables that touch, and wants one at a cell's end."""
    return f'<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="{height}" w:lineRule="exact"/></w:pPr></w:p>'


def closed(inner: str) -> str:
    """What stands in a cell, with the paragraph at its end that Word insists on."""
    return inner if inner.endswith("</w:p>") else inner + (spacer(20) if inner else "<w:p/>")


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
    room = max(place.width - place.indent, _LEAST)
    widths = column_widths(table, room)
    rows: list[list[tuple[Cell, bool]]] = [[] for _ in range(table.rows)]
    for cell in table.cells:
        for row in range(cell.row, min(cell.row + cell.rowspan, table.rows)):
            rows[row].append((cell, row == cell.row))
    head = min(table.header_rows, table.rows)
    parts = [_opening(place, widths, head), _grid(widths)]
    ground = mix(state.document.theme.colours["surface"], state.document.theme.colours["background"], 1.0)
    inner = replace(place, indent=0, align=None, bar=None, level=0, nested=place.nested + 1)
    repeated = True  # a header that is higher than a page would leave no room for rows
    for number, cells in enumerate(rows):
        cells.sort(key=lambda pair: pair[0].column)
        whole = all(_short(cell) for cell, first in cells if first)
        repeated = repeated and whole and number < head
        shape = ("<w:cantSplit/>" if whole else "") + ("<w:tblHeader/>" if repeated else "")
        parts.append(f"<w:tr><w:trPr>{shape}</w:trPr>" if shape else "<w:tr>")
        for cell, first in cells:
            is_head = cell.header or number < head
            fill = cell.background or (ground if number < head else None)
            width = sum(widths[cell.column : cell.column + cell.colspan])
            parts.append(f"<w:tc>{_cell_shape(cell, width, fill, first=first)}")
            if first and cell.blocks:
                style = "TableHeader" if is_head else "TableText"
                room = max(width - 2 * _SIDE, 100)
                where = replace(inner, width=room, style=style, align=cell.align, fill=fill)
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


def _opening(place: Place, widths: list[int], head: int) -> str:
    width, side = sum(widths), min(_SIDE, min(widths) // 12)
    indent = f'<w:tblInd w:w="{place.indent}" w:type="dxa"/>' if place.indent else ""
    margins = ""
    if side < _SIDE // 2:  # in narrow columns the margins of the style would leave no room
        edges = "".join(f'<w:{name} w:w="{side}" w:type="dxa"/>' for name in ("left", "right"))
        margins = f"<w:tblCellMar>{edges}</w:tblCellMar>"
    return (
        f'<w:tbl><w:tblPr><w:tblStyle w:val="ReportTable"/><w:tblW w:w="{width}" w:type="dxa"/>{indent}'
        f'<w:tblLayout w:type="fixed"/>{margins}<w:tblLook w:val="04A0" w:firstRow="{int(head > 0)}" w:lastRow="0" '
        'w:firstColumn="0" w:lastColumn="0" w:noHBand="1" w:noVBand="1"/></w:tblPr>'
    )


def _grid(widths: list[int]) -> str:
    columns = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
    return f"<w:tblGrid>{columns}</w:tblGrid>"


def _cell_shape(cell: Cell, width: int, fill: str | None, *, first: bool) -> str:
    shape = f'<w:tcW w:w="{width}" w:type="dxa"/>'
    if cell.colspan > 1:
        shape += f'<w:gridSpan w:val="{cell.colspan}"/>'
    if cell.rowspan > 1:
        shape += '<w:vMerge w:val="restart"/>' if first else "<w:vMerge/>"
    if fill:
        shape += f'<w:shd w:val="clear" w:color="auto" w:fill="{hexa(fill)}"/>'
    return f"<w:tcPr>{shape}</w:tcPr>"


def column_widths(table: Table, room: int) -> list[int]:
    """Widths of the columns in twips: as the source says, else as the longest words and texts need."""
    if table.widths:
        total = sum(table.widths) or 1.0
        return _scaled([width / total * room for width in table.widths], room)
    least, wanted = [_LEAST] * table.columns, [_LEAST] * table.columns
    step = max(1, len(table.cells) // (_SAMPLE * table.columns))
    for cell in table.cells:
        if cell.colspan > 1 or (cell.row % step and cell.row > _SAMPLE):
            continue
        word, text = _extent(cell)
        least[cell.column] = max(least[cell.column], word)
        wanted[cell.column] = max(wanted[cell.column], text)
    total = sum(wanted)
    if total <= room:
        return _scaled([float(width) for width in wanted], room)
    if sum(least) >= room:
        return _scaled([float(width) for width in least], room)
    spare, more = room - sum(least), sum(wanted) - sum(least)
    return _scaled([low + (high - low) / more * spare for low, high in zip(least, wanted, strict=True)], room)


def _scaled(widths: list[float], total: int) -> list[int]:
    scale = total / (sum(widths) or 1.0)
    return [max(int(width * scale), 40) for width in widths]


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


def framed(
    place: Place,
    inside: Callable[[Place], str],
    *,
    ground: str | None,
    bar: str | None = None,
    border: str | None = None,
) -> str:
    """Blocks in a frame: a table of one cell.

    Args:
        place: where the frame stands.
        inside: writes what is in it.
        ground: colour of the ground.
        bar: colour of a thick line at the left.
        border: colour of a line around.
    """
    if place.nested >= MAX_NESTED:
        return inside(place)
    width = max(place.width - place.indent, _LEAST)
    inner = replace(
        place, width=max(width - 2 * _FRAME_MARGIN, 100), indent=0, bar=None, level=0, nested=place.nested + 1,
        style="",         fill=ground,
    )  # fmt: skip
    edges = "".join(
        f'<w:{side} w:val="single" w:sz="{24 if bar else 4}" w:space="0" w:color="{hexa(bar or border or "")}"/>'
        for side in (("left",) if bar else ("top", "left", "bottom", "right") if border else ())
    )
    shade = f'<w:shd w:val="clear" w:color="auto" w:fill="{hexa(ground)}"/>' if ground else ""
    borders = f"<w:tcBorders>{edges}</w:tcBorders>" if edges else ""
    cell = f'<w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{borders}{shade}</w:tcPr>{closed(inside(inner))}'
    return f"{_bare(place, width, 80)}{_grid([width])}<w:tr><w:tc>{cell}</w:tc></w:tr></w:tbl>{spacer(160)}"


def side_by_side(place: Place, writers: list[Callable[[Place], str]], widths: list[float]) -> str:
    """Columns side by side: a table of one row without lines."""
    room = max(place.width - place.indent, _LEAST)
    if place.nested >= MAX_NESTED or len(writers) > WORD_COLUMNS:
        return "".join(writer(place) for writer in writers)
    total = sum(widths) or 1.0
    wide = _scaled([max(width / total, 0.02) * room for width in widths], room)
    cells = []
    for writer, width in zip(writers, wide, strict=True):
        inner = replace(
            place,
            width=max(width - 2 * _FRAME_MARGIN, 100),
            indent=0,
            bar=None,
            level=0,
            nested=place.nested + 1,
            style="",
        )
        cells.append(f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/></w:tcPr>{closed(writer(inner))}</w:tc>')
    return f"{_bare(place, room, 0, 0)}{_grid(wide)}<w:tr>{''.join(cells)}</w:tr></w:tbl>{spacer()}"


def _bare(place: Place, width: int, top: int, left: int = _FRAME_MARGIN) -> str:
    indent = f'<w:tblInd w:w="{place.indent}" w:type="dxa"/>' if place.indent else ""
    sides = "".join(
        f'<w:{side} w:w="{room}" w:type="dxa"/>'
        for side, room in (("top", top), ("left", left), ("bottom", top), ("right", 2 * _FRAME_MARGIN - left))
    )
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="{width}" w:type="dxa"/>{indent}<w:tblLayout w:type="fixed"/>'
        f'<w:tblCellMar>{sides}</w:tblCellMar><w:tblLook w:val="0000"/></w:tblPr>'
    )
