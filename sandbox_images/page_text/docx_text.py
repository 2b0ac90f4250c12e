"""The text of a DOCX: headings, paragraphs, lists and tables in their order."""

import re
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.document import Document
from docx.table import Table, _Cell
from docx.text.paragraph import Paragraph
from page_text.markdown_tables import cell_text, table_lines

_HEADING = re.compile(r"(?:heading|berschrift|titre|título) ?(\d)", re.IGNORECASE)


def lines(path: Path) -> Iterator[str]:
    """The lines of a document, as Markdown."""
    document = docx.Document(str(path))
    for block in _blocks(document):
        if isinstance(block, Table):
            yield from table_lines(_rows(block))
        else:
            text = block.text.strip()
            if text:
                yield from ("", f"{_mark(block)}{text}")


def _blocks(part: Document | _Cell) -> Iterator[Paragraph | Table]:
    yield from part.iter_inner_content()


def _mark(paragraph: Paragraph) -> str:
    """What stands before a paragraph in Markdown: the marks of a heading or of an item of a list."""
    style = paragraph.style
    name = (style.name if style is not None else None) or ""
    if name == "Title":
        return "# "
    if heading := _HEADING.search(name):
        return "#" * min(int(heading[1]) or 1, 6) + " "
    properties = paragraph._p.pPr  # noqa: SLF001 - there is no public name for it
    is_item = name.startswith("List") or (properties is not None and properties.numPr is not None)
    return "- " if is_item else ""


def _rows(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        # A merged cell comes once for each column that it covers.
        cells: list[_Cell] = []
        for cell in row.cells:
            if not cells or cell._tc is not cells[-1]._tc:  # noqa: SLF001 - the element is what is merged
                cells.append(cell)
        yield [cell_text(" ".join(_cell_lines(cell))) for cell in cells]


def _cell_lines(cell: _Cell) -> Iterator[str]:
    for block in _blocks(cell):
        if isinstance(block, Paragraph):
            yield block.text
        else:
            yield from (" ".join(row) for row in _rows(block))
