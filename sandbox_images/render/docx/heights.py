"""How much room blocks take on a page, about: for page numbers in the contents, and for boxes that are too long.

Word lays a document out when it is opened; these are figures of the theme's type, and no letter is measured.
"""

from render.ir import (
    Block,
    Box,
    Callout,
    Chart,
    Code,
    Columns,
    Contents,
    DefinitionList,
    Diagram,
    Figure,
    FormulaBlock,
    Heading,
    Image,
    Inline,
    LineBreak,
    ListBlock,
    PageBreak,
    Paragraph,
    Quote,
    Run,
    Sources,
    Table,
)  # fmt: skip

_LETTER, _LINE, _AFTER = 5.35, 16.9, 6.5
"""Points: the width of a letter and the height of a line of body text, and what follows a paragraph."""
_HEADINGS = (57.0, 49.0, 40.0, 36.0, 34.0, 34.0)
_CELL_LINE, _CELL_SPACE, _CELL_LETTER = 13.6, 6.5, 4.9
_CODE_LINE, _CODE_LETTER, _CODE_SPACE = 12.2, 5.15, 21.0
_CONTENTS_LINE, _CONTENTS_TITLE = 18.4, 40.0
_FRAME, _INDENT, _PER_PIXEL = 20.0, 19.0, 0.75
_CHART, _DIAGRAM = 247.0, 200.0


def _text(inlines: list[Inline], width: float, letter: float, line: float) -> float:
    """The height of the lines of a text."""
    lines, run, tallest = 0, 0.0, 0.0
    for inline in inlines:
        if isinstance(inline, LineBreak):
            lines, run = lines + max(1, -int(-run // width)), 0.0
        elif isinstance(inline, Image):
            shown = min(1.0, width / max((inline.width or 1.0) * _PER_PIXEL, 1.0))
            tallest = max(tallest, (inline.height or 0.0) * _PER_PIXEL * shown)
        else:
            wide = letter * (1.9 if isinstance(inline, Run) and inline.text[:1] > "\u2e80" else 1.0)
            run += len(getattr(inline, "text", "xxxxxx")) * wide
    lines += max(1, -int(-run // width)) if run or not tallest else 0
    return lines * line + tallest


def _table(table: Table, width: float) -> float:
    share = width / max(table.columns, 1)
    rows = [0.0] * table.rows
    for cell in table.cells:
        inner = max(share * cell.colspan - 11, 10.0)
        height = sum(
            _text(block.inlines, inner, _CELL_LETTER, _CELL_LINE)
            if isinstance(block, Paragraph)
            else height_of(block, inner)
            for block in cell.blocks
        )
        if cell.rowspan == 1:
            rows[cell.row] = max(rows[cell.row], height + _CELL_SPACE)
    return sum(max(row, _CELL_LINE + _CELL_SPACE) for row in rows) + 8 + (_LINE if table.caption else 0)


def height_of(block: Block, width: float) -> float:
    """The height of a block, in points, where it has ``width`` points."""
    width = max(width, 20.0)
    if isinstance(block, Heading):
        lines = _text(block.inlines, width, _LETTER * (2.2 - 0.2 * block.level), 1.0)
        return _HEADINGS[min(block.level, 6) - 1] + (lines - 1) * 20
    if isinstance(block, Paragraph):
        return _text(block.inlines, width, _LETTER, _LINE) + _AFTER
    if isinstance(block, Table):
        return _table(block, width)
    if isinstance(block, Code):
        lines = sum(
            max(1, -int(-sum(len(run.text) for run in line) * _CODE_LETTER // width)) for line in block.lines
        )
        return lines * _CODE_LINE + _CODE_SPACE
    if isinstance(block, Figure):
        tall = _text([block.image], width, _LETTER, _LINE)
        return tall + _AFTER + (_LINE if block.caption else 0)
    if isinstance(block, Diagram | Chart):
        return _CHART if isinstance(block, Chart) else _DIAGRAM
    if isinstance(block, FormulaBlock):
        return 40.0
    return _LINE if not (inner := _inner(block, width)) else inner


def _inner(block: Block, width: float) -> float:
    """The height of a block of blocks."""
    if isinstance(block, ListBlock):
        rows = [(item.blocks, width - _INDENT) for item in block.items]
        spare = -3.5 * len(block.items)  # items stand closer than paragraphs
    elif isinstance(block, DefinitionList):
        rows, spare = [(item.blocks, width - _INDENT) for item in block.items], _LINE * len(block.items)
    elif isinstance(block, Quote | Box | Callout):
        rows, spare = [(block.blocks, width - _INDENT)], 0.0 if isinstance(block, Quote) else _FRAME
    elif isinstance(block, Columns):
        share = width / max(len(block.columns), 1)
        return max((height_of_all(column, share) for column in block.columns), default=0.0) + _FRAME
    else:
        return len(block.sources) * (_LINE + _AFTER) if isinstance(block, Sources) else 0.0
    return sum(height_of_all(blocks, wide) for blocks, wide in rows) + spare


def height_of_all(blocks: list[Block], width: float) -> float:
    """The height of blocks one below the other, in points."""
    return sum(height_of(block, width) for block in blocks)


def pages_of(blocks: list[Block], page: tuple[float, float], entries: int) -> dict[int, int]:
    """About the page of each heading, by ``id()``.

    Args:
        blocks: the content.
        page: width and height of the text of a page, in points.
        entries: lines of the table of contents.
    """
    pages: dict[int, int] = {}
    width, height = page
    at = 0.0
    waiting = list(reversed(blocks))
    while waiting:
        block = waiting.pop()
        if isinstance(block, Box | Quote | Callout):  # headings may stand in them
            waiting.extend(reversed(block.blocks))
            continue
        if isinstance(block, PageBreak):
            at = -(-at // height) * height
            continue
        needed = (
            _CONTENTS_TITLE + _CONTENTS_LINE * entries if isinstance(block, Contents) else height_of(block, width)
        )
        whole = isinstance(block, Heading | Figure | Diagram | Chart) and needed < height
        least = needed + (2 * _LINE if isinstance(block, Heading) else 0)
        if whole and at % height + least > height:  # what is not split goes to the next page, headings with a line
            at = (at // height + 1) * height
        if isinstance(block, Heading):
            pages[id(block)] = int(at // height) + 1
        at += needed
    return pages
