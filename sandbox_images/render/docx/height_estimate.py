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
    NoteRef,
    PageBreak,
    Paragraph,
    Quote,
    Run,
    Sources,
    Table,
)  # fmt: skip
from render.to_ir.flatten import flat

_LETTER, _LINE, _AFTER = 5.1, 15.8, 6.5
"""Points: the width of a letter and the height of a line of body text, and what follows a paragraph."""
_HEADINGS = (57.0, 49.0, 40.0, 36.0, 34.0, 34.0)
_CELL_LINE, _CELL_SPACE, _CELL_LETTER = 13.6, 5.0, 4.9
_CODE_LINE, _CODE_LETTER, _CODE_SPACE = 12.2, 5.15, 21.0
_CONTENTS_LINE, _CONTENTS_TITLE = 18.4, 40.0
_FRAME, _INDENT, _PER_PIXEL = 20.0, 19.0, 0.75
_CHART, _DIAGRAM = 247.0, 200.0
_NOTE = 14.0
_ABOVE_HEADING = 20.0
"""What a heading at the top of a page, but the first, goes without."""
_SHORTEST, _LONGEST = 6, 60
"""Letters of a cell that count for the width of its column."""
UNSPLIT_ROWS = 15
"""A table of no more rows stands on one page, if its cells are short."""


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
    longest = [_SHORTEST] * max(table.columns, 1)
    for cell in table.cells:
        if cell.colspan == 1:
            letters = sum(len(str(getattr(inline, "text", ""))) for inline in flat(cell.blocks))
            longest[cell.column] = min(max(longest[cell.column], letters), _LONGEST)
    per_letter = width / sum(longest)
    rows = [0.0] * table.rows
    for cell in table.cells:
        inner = max(per_letter * sum(longest[cell.column : cell.column + cell.colspan]) - 11, 10.0)
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
        rows, spare = [(block.blocks, width - _INDENT)], _frame(block)
    elif isinstance(block, Columns):
        share = width / max(len(block.columns), 1)
        return max((height_of_all(column, share) for column in block.columns), default=0.0) + _FRAME
    else:
        return len(block.sources) * (_LINE + _AFTER) if isinstance(block, Sources) else 0.0
    return sum(height_of_all(blocks, wide) for blocks, wide in rows) + spare


def _frame(block: Box | Quote | Callout) -> float:
    """What a block of blocks adds to them: its edges, and a callout's title."""
    return 0.0 if isinstance(block, Quote) else _FRAME + (_LINE if isinstance(block, Callout) else 0.0)


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
    number, at, notes = 1, 0.0, 0.0
    waiting = list(reversed(blocks))
    while waiting:
        block = waiting.pop()
        if isinstance(block, Box | Quote | Callout):  # headings may stand in them
            waiting.extend(reversed(block.blocks))
            at += _frame(block)
            continue
        together = _together(block, waiting, page)
        if at and (isinstance(block, PageBreak) or at + together + notes > height):
            number, at, notes = number + 1, 0.0, 0.0
        if isinstance(block, Heading):
            pages[id(block)] = number
        needed = height_of(block, width)
        if isinstance(block, Contents):
            needed = _CONTENTS_TITLE + _CONTENTS_LINE * entries
        if isinstance(block, Heading) and not at and number > 1:
            needed -= _ABOVE_HEADING
        at += 0.0 if isinstance(block, PageBreak) else needed
        notes += _notes(block)
        while at + notes > height:
            number, at, notes = number + 1, max(at + notes - height, 0.1), 0.0
    return pages


def _together(block: Block, waiting: list[Block], page: tuple[float, float]) -> float:
    """How much stands on one page from a block's start on: a heading goes with the start of what it heads."""
    together = _height_together(block, *page) + _notes(block)
    if isinstance(block, Heading):
        for after in reversed(waiting):
            together += _height_together(after, *page) + _notes(after)
            if not isinstance(after, Heading):
                break
    return together


def _height_together(block: Block, width: float, height: float) -> float:
    """How much of a block stands on one page at least."""
    needed = height_of(block, width)
    if needed <= 3 * _LINE + _AFTER:  # two lines are kept at either side of a page's end
        return needed
    short = isinstance(block, Table) and block.rows <= UNSPLIT_ROWS
    whole = short or isinstance(block, Heading | Figure | Diagram | Chart)
    return needed if whole and needed < height else min(needed, 2 * _LINE)


def _notes(block: Block) -> float:
    """The height of the footnotes that a block calls."""
    if isinstance(block, Table):
        return sum(_notes(inner) for cell in block.cells for inner in cell.blocks)
    if isinstance(block, ListBlock):
        return sum(_notes(inner) for item in block.items for inner in item.blocks)
    if not isinstance(block, Paragraph | Heading):
        return 0.0
    calls = sum(isinstance(inline, NoteRef) for inline in block.inlines)
    return _NOTE * calls + (_NOTE if calls else 0.0)
