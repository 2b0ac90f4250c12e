"""Rows of a table that is too long to be laid out, measured in the looks of a few that were."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from render.frontend.element_tree import name_of
from render.slides.canvas import slide_height
from render.slides.css import MARGIN_BOTTOM
from render.slides.model import Para, Piece, Shape, TableCell, TableShape
from render.slides.text import collapsed
from render.slides.text_width import Measure
from render.weasy.box_style import Gradient, Paint

_BLOCKS = frozenset({"p", "div", "li", "ul", "ol", "br"})
_BOLD, _ITALIC, _CODE = frozenset({"b", "strong", "th"}), frozenset({"i", "em"}), frozenset({"code", "kbd", "samp"})


@dataclass(slots=True)
class Model:
    """How the sample was laid out: the shapes around the table, its columns, and a model cell for each column."""

    others: list[Shape]
    table: TableShape
    heads: list[TableCell]
    columns: dict[int, TableCell]
    fills: list[Paint | None]
    background: Paint | Gradient | None
    padding: float
    """Height of a row beyond its lines."""
    anchors: set[str] = field(default_factory=set)


def base_piece(model: Model) -> Piece:
    """Text as the sample has it."""
    return next(piece for cell in model.columns.values() for para in cell.paragraphs for piece in para.pieces)


@dataclass(slots=True)
class Row:
    """A row of cells, and the height that it needs."""

    cells: list[TableCell]
    height: float


def chunks(rows: list[Element], model: Model, measure: Measure) -> Iterator[list[Row]]:
    """Rows by slide; a row that is too tall for any slide is cut into several."""
    head = sum(model.table.rows[: len({cell.row for cell in model.heads})])
    room = slide_height() - MARGIN_BOTTOM - model.table.y - head
    chunk: list[Row] = []
    height = 0.0
    busy: dict[int, int] = {}
    for row in rows:
        for made in _cut_row(_row(row, model, measure, busy), room, measure, model):
            if chunk and height + made.height > room:
                made.cells = [*_end_spans(chunk), *made.cells]
                yield chunk
                chunk, height = [], 0.0
            chunk.append(made)
            height += made.height
    if chunk:
        _end_spans(chunk)
        yield chunk


def _end_spans(chunk: list[Row]) -> list[TableCell]:
    """Ends cells that span rows at the end of a slide; returns what goes on at the next one, with its text again."""
    rest: list[TableCell] = []
    for index, row in enumerate(chunk):
        for cell in row.cells:
            more = cell.rowspan - (len(chunk) - index)
            if more > 0:
                cell.rowspan -= more
                rest.append(replace(cell, rowspan=more, paragraphs=deepcopy(cell.paragraphs)))
    return rest


def _row(row: Element, model: Model, measure: Measure, busy: dict[int, int]) -> Row:
    """A row's cells in the look of the model's, and the height that they need.

    ``busy`` has, by column, how many more rows a cell from above reaches into.
    """
    covered = {column for column, count in busy.items() if count > 0}
    for column in covered:
        busy[column] -= 1
    cells: list[TableCell] = []
    column, height = 0, 0.0
    count = len(model.table.columns)
    for cell in row:
        while column in covered:
            column += 1
        if cell.tag not in {"td", "th"} or column >= count:
            continue
        span = cell.get("colspan", "1")
        colspan = max(1, min(int(span) if span.isdigit() else 1, count - column))
        down = cell.get("rowspan", "1")
        rowspan = max(1, int(down)) if down.isdigit() else 1
        if rowspan > 1:
            busy.update(dict.fromkeys(range(column, column + colspan), rowspan - 1))
        like = model.columns.get(column) or next(iter(model.columns.values()))
        width = sum(model.table.columns[column : column + colspan]) - like.margins[0] - like.margins[2]
        base = next((piece for para in like.paragraphs for piece in para.pieces), base_piece(model))
        line = like.paragraphs[0].line if like.paragraphs else base.size * 1.25
        align = next((para.align for para in like.paragraphs), "left")
        paragraphs = []
        y = 0.0
        for pieces in _rows_of_text(cell, base):
            lines = measure.lines(pieces, width)
            paragraphs.append(Para(pieces, y=y, height=lines * line, line=line, lines=lines, align=align))
            y += lines * line
        cells.append(
            TableCell(0, column, rowspan, colspan, paragraphs, None, like.borders, like.margins, like.middle)
        )
        height = max(height, y + model.padding, line + model.padding)
        column += colspan
    return Row(cells, height)


def _rows_of_text(cell: Element, base: Piece) -> list[list[Piece]]:
    """The text of a cell as paragraphs of pieces."""
    rows: list[list[Piece]] = [[]]
    stack: list[tuple[Element, Piece, bool]] = [(cell, replace(base, bold=base.bold or cell.tag == "th"), True)]

    def walk(element: Element, piece: Piece, depth: int) -> None:
        if element.text:
            rows[-1].append(replace(piece, text=element.text))
        for child in element:
            tag = name_of(child)
            if tag in _BLOCKS:
                rows.append([])
            if tag and depth < 100:  # noqa: PLR2004 - deeper than any text is marked up
                walk(child, _marked(piece, child, tag), depth + 1)
            if tag in _BLOCKS:
                rows.append([])
            if child.tail:
                rows[-1].append(replace(piece, text=child.tail))

    walk(*stack[0][:2], 0)
    return [row for row in (collapsed(row) for row in rows) if row]


def _marked(piece: Piece, child: Element, tag: str) -> Piece:
    if tag in _BOLD:
        return replace(piece, bold=True)
    if tag in _ITALIC:
        return replace(piece, italic=True)
    if tag in _CODE:
        return replace(piece, family="Noto Sans Mono", size=piece.size * 0.88)
    if tag in {"del", "s"}:
        return replace(piece, strike=True)
    if tag in {"sup", "sub"}:
        return replace(piece, raised=1 if tag == "sup" else -1)
    return replace(piece, link=child.get("href", "")) if tag == "a" else piece


def _cut_row(row: Row, room: float, measure: Measure, model: Model) -> list[Row]:
    """A row as rows that are no taller than a slide."""
    if row.height <= room:
        return [row]
    parts = int(row.height / room * 1.2) + 1
    made = []
    for part in range(parts):
        cells, height = [], 0.0
        for cell in row.cells:
            width = (
                sum(model.table.columns[cell.column : cell.column + cell.colspan])
                - cell.margins[0]
                - cell.margins[2]
            )
            words = [
                (piece, word)
                for para in cell.paragraphs
                for piece in para.pieces
                for word in piece.text.split(" ")
                if word
            ]
            size = -(-len(words) // parts)
            pieces = [replace(piece, text=f"{word} ") for piece, word in words[part * size : (part + 1) * size]]
            copied = replace(cell, rowspan=1, paragraphs=[])
            if pieces:
                line = cell.paragraphs[0].line
                lines = measure.lines(pieces, width)
                copied.paragraphs = [
                    Para(pieces, height=lines * line, line=line, lines=lines, align=cell.paragraphs[0].align)
                ]
                height = max(height, lines * line + line)
            cells.append(copied)
        made.append(Row(cells, min(room, max(height, 20.0))))
    return made
