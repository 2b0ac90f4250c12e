"""What the writers of DOCX parts share: the package in the making, names of bookmarks, numbers of notes."""

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from render.docx.numbering import Numbering
from render.docx.package import Media, Part
from render.ir import Align, Anchor, Content, Heading, Line, Sources
from render.model import Document
from render.to_ir.flatten import paragraphs, plain, walk

if TYPE_CHECKING:  # few documents have a template
    from render.docx.template import DocxTemplate

FIRST_ID = 100_000
"""Of bookmarks and drawings in a template: its own have small ids."""
_MAX_NAME = 40


@dataclass(frozen=True, slots=True)
class Place:
    """Where blocks are written; lengths in twips.

    Attributes:
        part: the part that the blocks are of.
        width: the room between left and right, without the indent.
        indent: how far the blocks are moved in.
        style: paragraph style; empty for Normal.
        align: alignment of paragraphs that have none of their own.
        bar: a line at the left, as beside quotations.
        ground: colour behind every paragraph, in a box that is too long for a frame.
        level: depth of lists.
        nested: depth of tables.
        note: within a footnote.
        keep: every paragraph stays on the page of the next one.
    """

    part: Part
    width: int
    indent: int = 0
    style: str = ""
    align: Align | None = None
    bar: Line | None = None
    ground: str | None = None
    level: int = 0
    nested: int = 0
    note: bool = False
    keep: bool = False


@dataclass(slots=True)
class Target:
    """A heading as the table of contents lists it."""

    heading: Heading
    bookmark: str
    text: str


@dataclass(slots=True)
class State:
    """The document in the making."""

    document: Document
    content: Content
    media: Media = field(default_factory=Media)
    numbering: Numbering = field(default_factory=Numbering)
    bookmarks: dict[str, str] = field(default_factory=dict)
    """Names of bookmarks by anchor."""
    headings: dict[int, Target] = field(default_factory=dict)
    """Headings by ``id()``, in order."""
    sources: dict[int, str] = field(default_factory=dict)
    """Names of bookmarks of sources, by sid."""
    notes: dict[str, int] = field(default_factory=dict)
    """Numbers of the footnotes that were called, by id."""
    looks: dict[tuple[object, ...], str] = field(default_factory=dict)
    """Run properties that were made before."""
    charts: dict[str, bytes] = field(default_factory=dict)
    """Parts of charts by name."""
    counters: dict[str, int] = field(default_factory=dict)
    template: "DocxTemplate | None" = None
    """The house template that the document is written into."""
    _names: set[str] = field(default_factory=set)

    def take_template(self, template: "DocxTemplate") -> None:
        """Write into a house template: with its lists, and with names and ids that it has not."""
        self.template, self.numbering, self.media = template, template.numbering, Media("picture")
        self.counters.update(dict.fromkeys(("bookmark", "drawing", "chart"), FIRST_ID))

    @property
    def has_house_table(self) -> bool:
        """Whether tables have the style of a template, with its own ground for their heads."""
        return self.template is not None and self.template.has_table_style

    def number(self, kind: str) -> int:
        """The next number of a kind of things, from 1."""
        self.counters[kind] = self.counters.get(kind, 0) + 1
        return self.counters[kind]

    def name(self, anchor: str) -> str:
        """A name for a bookmark that Word accepts and that nothing else has."""
        stem = re.sub(r"\W", "_", anchor, flags=re.ASCII)[: _MAX_NAME - 8].strip("_")
        stem = stem if stem[:1].isalpha() else f"a_{stem}"
        name, count = stem, 1
        while name.lower() in self._names:
            count += 1
            name = f"{stem}_{count}"
        self._names.add(name.lower())
        return name

    def survey(self) -> None:
        """Gives names to all that can be led to, before anything is written."""
        blocks = [self.content.blocks, *self.content.notes.values()]
        for block in (step for group in blocks for step in walk(group)):
            if isinstance(block, Heading):
                target = Target(block, f"_Toc{100000000 + len(self.headings)}", plain(block.inlines))
                self.headings[id(block)] = target
                if block.anchor:
                    self.bookmarks.setdefault(block.anchor, target.bookmark)
            elif isinstance(block, Sources):
                for number, source in enumerate(block.sources, 1):
                    name = self.sources.setdefault(source.sid, self.name(f"source_{number}"))
                    self.bookmarks[f"pb-source-{number}"] = name
        for group in blocks:
            for part in paragraphs(group):
                for inline in part:
                    if isinstance(inline, Anchor) and inline.name not in self.bookmarks:
                        self.bookmarks[inline.name] = self.name(inline.name)

    def mark(self, name: str, inner: str = "") -> str:
        """A bookmark around something."""
        number = self.number("bookmark")
        return f'<w:bookmarkStart w:id="{number}" w:name="{name}"/>{inner}<w:bookmarkEnd w:id="{number}"/>'
