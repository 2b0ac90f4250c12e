"""Grounds and lines around blocks of DOCX: of paragraphs, of cells, of tables of one row that stand for boxes."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from render.docx.writer_state import Place
from render.docx.xml import hexa
from render.ir import Frame, Line

WORD_COLUMNS = 63
"""Word opens no table with more."""
MAX_NESTED = 6
LEAST = 300
"""The narrowest column, in twips."""
LEAST_SPACE = '<w:spacing w:before="0" w:after="0" w:line="20" w:lineRule="exact"/>'
"""Of a paragraph that takes no room."""
_MARGIN = 160
_STYLES = {"dashed": "dashed", "dotted": "dotted", "double": "double"}
_EIGHTHS = 6
"""Of a point, in a pixel: how Word measures lines."""
_ORDER = ("top", "left", "bottom", "right")


def _edge(side: str, line: Line, space: int) -> str:
    kind = _STYLES.get(line.style, "single")
    size = min(max(round(line.width * _EIGHTHS), 2), 96)
    return f'<w:{side} w:val="{kind}" w:sz="{size}" w:space="{space}" w:color="{hexa(line.colour)}"/>'


def shading(colour: str | None) -> str:
    """``w:shd`` of a colour."""
    return f'<w:shd w:val="clear" w:color="auto" w:fill="{hexa(colour)}"/>' if colour else ""


def paragraph_frame(frame: Frame) -> str:
    """``w:pBdr`` and ``w:shd``; a ground without lines gets some of its own colour, or letters would touch its edge."""
    unseen = Line(1.0, frame.background) if frame.background else None
    lines = {side: getattr(frame, side) or unseen for side in _ORDER}
    edges = "".join(
        _edge(side, line, 4 if side in {"top", "bottom"} else 6) for side, line in lines.items() if line
    )
    return (f"<w:pBdr>{edges}</w:pBdr>" if edges else "") + shading(frame.background)


@lru_cache(maxsize=256)
def cell_frame(frame: Frame) -> str:
    """``w:tcBorders`` and ``w:shd``."""
    lines = {side: getattr(frame, side) for side in _ORDER}
    edges = "".join(_edge(side, line, 0) for side, line in lines.items() if line)
    return (f"<w:tcBorders>{edges}</w:tcBorders>" if edges else "") + shading(frame.background)


def spacer(height: int = 120) -> str:
    """An empty paragraph of a height in twips: Word joins tables that touch, and wants one at a cell's end."""
    return f'<w:p><w:pPr><w:spacing w:before="0" w:after="0" w:line="{height}" w:lineRule="exact"/></w:pPr></w:p>'


def closed(inner: str) -> str:
    """What stands in a cell, with the paragraph at its end that Word insists on."""
    return inner if inner.endswith("</w:p>") else inner + (spacer(20) if inner else "<w:p/>")


def grid_xml(widths: list[int]) -> str:
    """``w:tblGrid`` of widths in twips."""
    columns = "".join(f'<w:gridCol w:w="{width}"/>' for width in widths)
    return f"<w:tblGrid>{columns}</w:tblGrid>"


def scaled(widths: list[float], total: int) -> list[int]:
    """Whole widths in proportion to others, ``total`` together."""
    scale = total / (sum(widths) or 1.0)
    return [max(int(width * scale), 40) for width in widths]


def framed(
    place: Place,
    inside: Callable[[Place], str],
    frame: Frame,
) -> str:
    """Blocks in a frame: a table of one cell.

    Args:
        place: where the frame stands.
        inside: writes what is in it.
        frame: its ground and lines.
    """
    if place.nested >= MAX_NESTED:
        return inside(place)
    width = max(place.width - place.indent, LEAST)
    cell = _cell(place, width, inside, frame)
    return f"{_bare(place, width, 80)}{grid_xml([width])}<w:tr>{cell}</w:tr></w:tbl>{spacer(160)}"


def _cell(place: Place, width: int, inside: Callable[[Place], str], frame: Frame | None) -> str:
    inner = replace(
        place, width=max(width - 2 * _MARGIN, 100), indent=0, bar=None, level=0, nested=place.nested + 1, style="",
        ground=None,
    )  # fmt: skip
    look = cell_frame(frame) if frame else ""
    if frame:
        look += (
            "<w:tcMar>"
            + "".join(f'<w:{side} w:w="{_MARGIN}" w:type="dxa"/>' for side in ("left", "right"))
            + "</w:tcMar>"
        )
    return f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{look}</w:tcPr>{closed(inside(inner))}</w:tc>'


def side_by_side(
    place: Place, columns: list[tuple[Callable[[Place], str], Frame | None]], widths: list[float]
) -> str:
    """Columns side by side: a table of one row, without lines but those of the columns' own frames.

    Args:
        place: where they stand.
        columns: writes what is in each, and its frame.
        widths: relative.
    """
    room = max(place.width - place.indent, LEAST)
    if place.nested >= MAX_NESTED or len(columns) > WORD_COLUMNS:
        return "".join(writer(place) for writer, _ in columns)
    total = sum(widths) or 1.0
    if any(frame for _, frame in columns):  # frames that touch would look like one
        columns, widths = _with_gaps(columns, widths, total)
        total = sum(widths)
    wide = scaled([max(width / total, 0.02) * room for width in widths], room)
    cells = [_cell(place, width, writer, frame) for (writer, frame), width in zip(columns, wide, strict=True)]
    return f"{_bare(place, room, 80, 0)}{grid_xml(wide)}<w:tr>{''.join(cells)}</w:tr></w:tbl>{spacer()}"


def _with_gaps(
    columns: list[tuple[Callable[[Place], str], Frame | None]], widths: list[float], total: float
) -> tuple[list[tuple[Callable[[Place], str], Frame | None]], list[float]]:
    spread: list[tuple[Callable[[Place], str], Frame | None]] = []
    for column in columns:
        spread += [column, (lambda _inner: "", None)]
    return spread[:-1], [size for width in widths for size in (width, total * 0.02)][:-1]


def _bare(place: Place, width: int, top: int, left: int = _MARGIN) -> str:
    indent = f'<w:tblInd w:w="{place.indent}" w:type="dxa"/>' if place.indent else ""
    sides = "".join(
        f'<w:{side} w:w="{room}" w:type="dxa"/>'
        for side, room in (("top", top), ("left", left), ("bottom", top), ("right", 2 * _MARGIN - left))
    )
    return (
        f'<w:tbl><w:tblPr><w:tblW w:w="{width}" w:type="dxa"/>{indent}<w:tblLayout w:type="fixed"/>'
        f'<w:tblCellMar>{sides}</w:tblCellMar><w:tblLook w:val="0000"/></w:tblPr>'
    )
