"""What a slide is made of, between layout and the PPTX writer. Lengths are CSS pixels on a slide of 1280 by 720."""

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from render.weasy.box_style import Border, Gradient, Paint, Shadow

WIDTH, HEIGHT = 1280, 720
HANG, HANG_NUMBER = 0.96, 1.3
"""How far before its text a list marker stands, in ems of the text."""
TICKS = "\u2611\u2610"
"""Markers of tasks, done and open."""


@dataclass(slots=True)
class Piece:
    """A run of text with one look; a line feed is a forced line break."""

    text: str
    size: float = 16.0
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    colour: Paint | None = None
    highlight: Paint | None = None
    family: str = ""
    capitals: str = ""
    spacing: float = 0.0
    raised: int = 0
    link: str = ""
    is_verbatim: bool = False
    """Whether its spaces are kept as they are."""


@dataclass(slots=True)
class Bullet:
    """A list marker: a character, or a numbering scheme with the item's number."""

    character: str = ""
    scheme: str = ""
    number: int = 1
    colour: Paint | None = None
    x: float | None = None
    """Where an author has drawn it; None: as far before the text as the list is indented."""

    @property
    def hang(self) -> float:
        """How far before its text it stands, in ems of the text."""
        return HANG_NUMBER if self.scheme or self.character in TICKS else HANG


@dataclass(slots=True)
class Para:
    """A paragraph where it was laid out.

    Attributes:
        pieces: its text.
        x, y, width, height: of its lines.
        line: height of a line.
        lines: how many lines there are.
        text_width: of its widest line.
        align: left, center, right or justify.
        bullet: its list marker.
        level: depth in lists, 0 for none or the first.
        rtl: whether it runs from right to left.
    """

    pieces: list[Piece]
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    line: float = 20.0
    lines: int = 1
    text_width: float = 0.0
    align: str = "left"
    bullet: Bullet | None = None
    level: int = 0
    rtl: bool = False

    @property
    def text(self) -> str:
        """Its words."""
        return "".join(piece.text for piece in self.pieces)


@dataclass(slots=True)
class Shape:
    """Anything on a slide, with its place."""

    x: float
    y: float
    width: float
    height: float
    turn: float = field(default=0.0, kw_only=True)
    """Degrees clockwise that it is turned by, about its middle."""
    free: bool = field(default=False, kw_only=True)
    """Whether its author has placed it apart from the flow, where it may lie on other shapes."""

    @property
    def right(self) -> float:
        """Right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.y + self.height


@dataclass(slots=True)
class TextShape(Shape):
    """A text frame, on a filled or outlined shape if it has a fill or a border.

    Attributes:
        paragraphs: its text.
        role: title, subtitle, body, text, code or footnotes.
        fill: what it's filled with.
        border: its outline.
        radius: of its corners.
        shadow: that it casts.
        insets: left, top, right, bottom.
        anchor: t, ctr or b.
        wrap: whether lines are broken at the frame's edge.
        exact: whether lines are as tall as they were measured, whatever the font's own height: nothing has room to grow.
    """

    paragraphs: list[Para] = field(default_factory=list)
    role: str = "text"
    fill: Paint | Gradient | None = None
    border: Border | None = None
    radius: float = 0.0
    shadow: Shadow | None = None
    insets: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    anchor: str = "t"
    wrap: bool = True
    exact: bool = False
    key: int = 0
    """The container that it flows in."""


@dataclass(slots=True)
class PictureShape(Shape):
    """A picture.

    Attributes:
        element: the ``img`` or ``svg``.
        alt: what it shows in words.
        link: where it leads.
        decorative: whether it may lie under or over text: behind it, or in a gap that a line leaves for it.
        fit: how it fills its place: fill, cover (its edges are cut) or contain.
        radius: of its corners.
        shadow: that it casts.
        opacity: how much of it is seen, 0 to 1.
    """

    element: Element | None = None
    alt: str = ""
    link: str = ""
    decorative: bool = False
    fit: str = "fill"
    radius: float = 0.0
    shadow: Shadow | None = None
    opacity: float = 1.0


@dataclass(slots=True)
class ChartShape(Shape):
    """A native chart: the JSON of the tree's mark."""

    data: str = ""
    element: Element | None = None


@dataclass(slots=True)
class LineShape(Shape):
    """A rule: a thin filled rectangle."""

    paint: Paint = field(default_factory=lambda: Paint("808080"))


@dataclass(slots=True)
class TableCell:
    """A cell of a native table, at its grid position."""

    row: int
    column: int
    rowspan: int
    colspan: int
    paragraphs: list[Para]
    fill: Paint | None = None
    borders: tuple[Border | None, Border | None, Border | None, Border | None] = (None, None, None, None)
    """Left, right, top, bottom."""
    margins: tuple[float, float, float, float] = (8.0, 4.0, 8.0, 4.0)
    """Left, top, right, bottom."""
    middle: bool = False


@dataclass(slots=True)
class TableShape(Shape):
    """A native table: widths of columns, heights of rows, cells."""

    columns: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    cells: list[TableCell] = field(default_factory=list)
    header_rows: int = 0


@dataclass(slots=True)
class Slide:
    """A finished slide.

    Attributes:
        kind: title, section, content or blank.
        shapes: in reading order, which is the painting order too.
        notes: paragraphs of the speaker's notes.
        background: what fills the slide, if not the theme's.
        pictured: whether a picture lies behind it, whose colours nobody knows.
        anchors: ids of elements on it, for links within the deck.
        number: whether the slide's number is shown.
        part, parts: which part of a split slide it is.
        zoom: factor that its type was scaled by.
    """

    kind: str
    shapes: list[Shape] = field(default_factory=list)
    notes: list[Para] = field(default_factory=list)
    background: Paint | Gradient | None = None
    pictured: bool = False
    anchors: set[str] = field(default_factory=set)
    number: bool = True
    part: int = 1
    parts: int = 1
    zoom: float = 1.0
