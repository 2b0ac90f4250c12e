"""The intermediate representation: what a document is made of, between its tree and the DOCX writer.

Lengths are in CSS pixels (1/96 inch) unless the name has another unit; colours are ``#rrggbb``; None means: as the
theme has it.
"""

from dataclasses import dataclass, field
from typing import Literal

from render.model import Metadata, Source, Theme

Align = Literal["left", "center", "right", "justify"]
Marker = Literal["decimal", "lower-alpha", "upper-alpha", "lower-roman", "upper-roman", "none"]

BODY_SIZE = 14.0
"""Pixels; all sizes of type are in proportion to it, whatever the author's body text has."""

# ---- looks ----


@dataclass(frozen=True, slots=True)
class Line:
    """A line at a side of a block: its width, colour and CSS style (solid, dashed, dotted, double …)."""

    width: float
    colour: str
    style: str = "solid"


@dataclass(frozen=True, slots=True)
class Frame:
    """The ground of a block, and the lines around it; None: there is none, or as the theme has it."""

    background: str | None = None
    top: Line | None = None
    right: Line | None = None
    bottom: Line | None = None
    left: Line | None = None


# ---- inline ----


@dataclass(frozen=True, slots=True)
class Run:
    """Text with one look."""

    text: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    code: bool = False
    sub: bool = False
    sup: bool = False
    colour: str | None = None
    background: str | None = None
    link: str | None = None
    """A URL, or ``#anchor`` within the document."""
    cites: int | None = None
    """The sid of the source, if the run is a citation."""
    size: float | None = None
    """Size of type, where body text has `BODY_SIZE`."""
    language: str | None = None
    """BCP 47 tag, where it is not the document's."""


RIGHT_TAB = Run("\t")
"""What stands behind it ends at the right edge; it is known by its identity."""


@dataclass(frozen=True, slots=True)
class LineBreak:
    """A forced line break."""


@dataclass(frozen=True, slots=True)
class Image:
    """A picture: a file below OUT_DIR or bytes from a data URI."""

    data: bytes
    mime: str
    alt: str
    width: float | None = None
    height: float | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """TeX, and its picture."""

    tex: str
    svg: str
    display: bool
    mathml: str = ""
    """Where the source has MathML and no TeX."""


@dataclass(frozen=True, slots=True)
class NoteRef:
    """Where a footnote is called."""

    note_id: str


@dataclass(frozen=True, slots=True)
class Missing:
    """The visible place of an asset that cannot be had."""

    path: str
    text: str = ""
    """What is shown there, if the tree has a text for it."""
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place that a link within the document leads to; it shows nothing. Headings carry their own."""

    name: str


Inline = Run | LineBreak | Image | Formula | NoteRef | Missing | Anchor

# ---- blocks ----


@dataclass(slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    inlines: list[Inline]
    anchor: str = ""
    align: Align | None = None
    frame: Frame | None = None
    rtl: bool | None = None


@dataclass(slots=True)
class Paragraph:
    """A paragraph.

    Attributes:
        inlines: what stands in it.
        align: where its lines begin.
        frame: its ground and lines.
        rtl: whether it runs from right to left; None: as its letters do.
        style: the named style of a line of the title block.
    """

    inlines: list[Inline]
    align: Align | None = None
    frame: Frame | None = None
    rtl: bool | None = None
    style: Literal["", "Title", "Subtitle", "Byline", "CoverTitle"] = ""


@dataclass(slots=True)
class ListItem:
    """An item; ``checked`` is None but for task lists."""

    blocks: list["Block"]
    checked: bool | None = None


@dataclass(slots=True)
class ListBlock:
    """A list; nested ones are blocks of their items."""

    ordered: bool
    items: list[ListItem]
    start: int = 1
    marker: Marker = "decimal"
    """How an ordered list counts; ``none``: without marks, ordered or not."""


@dataclass(slots=True)
class Definition:
    """A term and what it means."""

    term: list[Inline]
    blocks: list["Block"]


@dataclass(slots=True)
class DefinitionList:
    """Terms and what they mean."""

    items: list[Definition]


@dataclass(slots=True)
class Cell:
    """A table cell, at the grid position where it starts."""

    blocks: list["Block"]
    row: int
    column: int
    rowspan: int = 1
    colspan: int = 1
    header: bool = False
    align: Align | None = None
    frame: Frame | None = None
    middle: bool = False
    """Whether its content stands in the middle of its height."""


@dataclass(slots=True)
class Table:
    """A table as a grid of ``rows`` by ``columns``; every position is covered by one cell."""

    rows: int
    columns: int
    cells: list[Cell]
    header_rows: int = 0
    caption: list[Inline] = field(default_factory=list)
    widths: list[float] | None = None
    """Relative widths of the columns; None: as the content needs."""
    caption_below: bool = False


@dataclass(slots=True)
class Code:
    """A code block: lines of coloured runs."""

    language: str
    lines: list[list[Run]]


@dataclass(slots=True)
class Figure:
    """A picture with a caption."""

    image: Image | Missing
    caption: list[Inline] = field(default_factory=list)


@dataclass(slots=True)
class Diagram:
    """A diagram: its source, its picture."""

    source: str
    svg: str
    alt: str


@dataclass(slots=True)
class Series:
    """One row of figures of a chart."""

    name: str
    values: list[float | None]


@dataclass(slots=True)
class Chart:
    """A chart that a writer can make native."""

    kind: Literal["bar", "column", "line", "pie", "area", "scatter"]
    title: str
    categories: list[str]
    series: list[Series]
    svg: str
    data: str = ""
    """The JSON of the mark, with the labels of its axes and whether it is stacked."""


@dataclass(slots=True)
class FormulaBlock:
    """A displayed formula."""

    formula: Formula


@dataclass(slots=True)
class Quote:
    """A quotation."""

    blocks: list["Block"]


@dataclass(slots=True)
class Callout:
    """A box that wants attention: note, tip, important, warning, caution."""

    kind: str
    title: str
    blocks: list["Block"]


@dataclass(slots=True)
class Columns:
    """Columns side by side, with relative widths."""

    columns: list[list["Block"]]
    widths: list[float]


@dataclass(slots=True)
class Box:
    """Blocks that have a look of their own together, such as a card."""

    blocks: list["Block"]
    frame: Frame


@dataclass(slots=True)
class SpeakerNotes:
    """Speaker notes."""

    blocks: list["Block"]


@dataclass(slots=True)
class Sources:
    """The cited sources, in the order of their numbers."""

    sources: list[Source]


@dataclass(slots=True)
class Rule:
    """A thematic break."""


@dataclass(slots=True)
class PageBreak:
    """A page break."""


@dataclass(slots=True)
class Contents:
    """Where the table of contents stands."""


Block = (
    Heading
    | Paragraph
    | ListBlock
    | DefinitionList
    | Table
    | Code
    | Figure
    | Diagram
    | Chart
    | FormulaBlock
    | Quote
    | Callout
    | Columns
    | Box
    | SpeakerNotes
    | Sources
    | Rule
    | PageBreak
    | Contents
)


@dataclass(slots=True)
class Content:
    """A whole document.

    Attributes:
        metadata: what it declares about itself.
        theme: how it looks; the author's own colours of page and text are in it.
        blocks: its content, in order.
        notes: footnotes by id, numbered in the order of their first call.
    """

    metadata: Metadata
    theme: Theme
    blocks: list[Block]
    notes: dict[str, list[Block]] = field(default_factory=dict)
