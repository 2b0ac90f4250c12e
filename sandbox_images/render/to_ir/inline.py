"""Text on its way into runs: the look that elements give it, and white space collapsed as HTML defines."""

import re
from dataclasses import dataclass, replace

from render.ir import RIGHT_TAB, Align, Anchor, Block, Heading, Inline, LineBreak, Paragraph, Run

_SPACES = re.compile(r"[ \t\n\r\f]+")
_SPACES_NOT_LINES = re.compile(r"[ \t\r\f]+")
_LINE_EDGES = re.compile(r" ?\n ?")


@dataclass(frozen=True, slots=True)
class Look:
    """What the elements around a text make of it.

    ``space`` is the value of ``white-space``: normal, pre (pre-wrap too) or pre-line.
    """

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
    cites: int | None = None
    size: float | None = None
    language: str | None = None
    align: Align | None = None
    rtl: bool | None = None
    space: str = "normal"
    case: str = "none"

    def run(self, text: str) -> Run:
        """A run of the text with this look."""
        return Run(
            text, self.bold, self.italic, self.underline, self.strike, self.code, self.sub, self.sup,
            self.colour, self.background, self.link, self.cites, self.size, self.language,
        )  # fmt: skip


_PLAIN = Look()


class Flow:
    """Blocks in the making: a paragraph that grows until a block ends it."""

    __slots__ = ("_aside", "_first", "_gap", "_look", "_open", "_preserved", "blocks")

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: list[Inline] = []  # the paragraph that grows
        self._aside: list[Inline] = []  # what ends its last line at the right edge
        self._look: Look | None = None  # of its last run
        self._first = _PLAIN  # look of its first text
        self._gap = True  # white space here would collapse
        self._preserved = False

    def text(self, text: str, look: Look) -> None:
        """Adds text to the open paragraph."""
        if look.case != "none":
            text = _cased(text, look.case)
        if look.space == "normal":
            self._collapsed(_SPACES.sub(" ", text), look)
        else:
            self._lines(text, look)

    def inline(self, inline: Inline) -> None:
        """Adds something that is no text to the open paragraph."""
        if isinstance(inline, LineBreak):
            self._trim()
            self._gap = True
        elif not isinstance(inline, Anchor):
            self._gap = False
        self._open.append(inline)

    def aside(self, inlines: list[Inline]) -> None:
        """Adds what stands at the right edge of the open paragraph's line."""
        self._aside += inlines

    def _settle(self) -> None:
        if self._aside:
            self._trim()
            self._open += [RIGHT_TAB, *self._aside]
            self._aside = []

    def block(self, block: Block) -> None:
        """Ends the open paragraph, and adds a block."""
        self.end()
        if isinstance(block, Heading) and self._open:
            block.inlines[:0] = self.take()
        self.blocks.append(block)

    def end(self, look: Look | None = None) -> None:
        """Ends the open paragraph: it becomes a block if it shows anything; anchors alone wait for the next one.

        Args:
            look: of the element that ends; None: the paragraph is aligned as its first text.
        """
        self._settle()
        if not self._open:
            self._gap = True
            return
        if any(not isinstance(inline, Anchor) for inline in self._open):
            inlines = self.take()
            if any(not isinstance(inline, Anchor) for inline in inlines):
                first = self._first
                align = (look.align if look else None) or first.align
                self.blocks.append(Paragraph(inlines, align, rtl=look.rtl if look else first.rtl))
            else:
                self._open = inlines
            self._first = _PLAIN
        self._gap = True

    def finish(self) -> list[Block]:
        """Ends the last paragraph, and hands out all blocks."""
        self.end()
        if self._open:
            self.blocks.append(Paragraph(self.take()))
        return self.blocks

    def take(self) -> list[Inline]:
        """Ends the open paragraph, and hands out what was in it."""
        self._settle()
        if not self._open:
            self._gap = True
            return []
        if isinstance(self._open[-1], LineBreak):  # the last one of a paragraph shows nothing
            self._open.pop()
        self._trim()
        inlines, self._open = self._open, []
        self._gap = True
        return inlines

    def _collapsed(self, text: str, look: Look) -> None:
        if self._gap and text.startswith(" "):
            text = text[1:]
        if not text:
            return
        self._gap = text.endswith(" ")
        self._preserved = False
        self._append(text, look)

    def _lines(self, text: str, look: Look) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if look.space == "pre-line":
            text = _LINE_EDGES.sub("\n", _SPACES_NOT_LINES.sub(" ", text))
        for index, line in enumerate(text.split("\n")):
            if index:
                self._open.append(LineBreak())
            if line:
                self._append(line, look)
                self._preserved = True
                self._gap = look.space == "pre-line" and line.endswith(" ")
            elif index:
                self._gap = look.space == "pre-line"

    def _append(self, text: str, look: Look) -> None:
        last = self._open[-1] if self._open else None
        if last is not None and isinstance(last, Run) and (look is self._look or look == self._look):
            self._open[-1] = replace(last, text=last.text + text)
        else:
            if not self._open:
                self._first = look
            self._open.append(look.run(text))
            self._look = look

    def _trim(self) -> None:
        """Takes the white space off the end of a line, which HTML does not show."""
        last = self._open[-1] if self._open else None
        if isinstance(last, Run) and not self._preserved and last.text.endswith(" "):
            text = last.text[:-1]
            if text:
                self._open[-1] = replace(last, text=text)
            else:
                self._open.pop()


def _cased(text: str, case: str) -> str:
    if case == "uppercase":
        return text.upper()
    if case == "lowercase":
        return text.lower()
    return re.sub(r"(?<!\w)\w", lambda letter: letter[0].upper(), text)
