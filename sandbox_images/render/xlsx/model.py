"""Tables and text on their way from the source to sheets."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class SourceCell:
    """A cell as the source has it.

    Attributes:
        text: its words, with a line end between lines, without references.
        row: where it begins, from 0.
        column: the same across.
        rowspan: how many rows it covers.
        colspan: how many columns.
        is_header: it is a head of a column or a row.
        align: left, center, right or None.
        is_bold: all of its words are bold.
        is_code: all of its words are code, so a formula in it is a text.
        href: where all of its words lead to.
        full_text: its words with references; empty if it has none.
        references: numbers of footnotes and citations in it.
        has_scripts: it has raised or lowered characters, so it is a text.
    """

    text: str
    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    is_header: bool = False
    align: str | None = None
    is_bold: bool = False
    is_code: bool = False
    href: str = ""
    full_text: str = ""
    references: str = ""
    has_scripts: bool = False

    @property
    def shown(self) -> str:
        """All that a text of it has."""
        return self.full_text or self.text


@dataclass(frozen=True, slots=True)
class ChartPlan:
    """A native chart over the cells of its own sheet: categories in the first column, a series in each other one."""

    kind: str
    title: str = ""
    is_stacked: bool = False
    x_label: str = ""
    y_label: str = ""


@dataclass(slots=True)
class SourceTable:
    """A table of the source: what becomes one sheet.

    Attributes:
        cells: in the order of their rows.
        rows: how many there are, heads included.
        columns: how many there are.
        header_rows: how many at the top are heads.
        caption: its own title.
        heading: the heading above it.
        chart: a chart of its figures.
    """

    cells: list[SourceCell]
    rows: int
    columns: int
    header_rows: int = 0
    caption: str = ""
    heading: str = ""
    chart: ChartPlan | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Text outside of tables: a paragraph, an item, a block of code, or a heading with its level."""

    text: str
    level: int = 0
    is_code: bool = False


@dataclass(slots=True)
class Contents:
    """What a document has for a workbook.

    Attributes:
        tables: in the order of the document.
        notes: text outside of tables, in its order; a heading of level 1 to 6 stands for itself.
    """

    tables: list[SourceTable] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
