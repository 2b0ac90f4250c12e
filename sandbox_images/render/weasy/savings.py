"""What WeasyPrint does more often than it needs to, done once: this is a third of the time of a large table.

These are changes to functions of WeasyPrint 70 and pydyf 0.13 which are not theirs to offer;
`tests/container/in_image/render/test_layout_savings.py` fails if what is changed here changes its shape. What is written is the
same, byte by byte, but for the compression.
"""

import copy
import io
import re
import zlib
from functools import lru_cache
from typing import Any

import pydyf
import weasyprint
import weasyprint.draw.text
import weasyprint.pdf.fonts
import weasyprint.text.fonts
from PIL import Image
from render.weasy.patch import change
from weasyprint.document import Page
from weasyprint.formatting_structure.boxes import Box
from weasyprint.images import RasterImage
from weasyprint.text.ffi import ffi, pango
from weasyprint.text.line_break import Layout

_NOTES = frozenset({"footnote-call", "footnote-marker", "note-call", "note-marker", "note-callback"})
_OF_LAYOUT = ("layout", "language", "ascent", "underline_position", "strikethrough_position",
              "underline_thickness", "strikethrough_thickness")  # fmt: skip
"""What `Layout.setup` sets and `Layout.deactivate` gives up."""
_LENGTH = re.compile(r"\[\d+\]$")
COMPRESSION = 6
"""zlib's own default: level 9, which pydyf uses, takes three times as long for one percent."""

_set_up = Layout.setup
_deactivate = Layout.deactivate
_page_references = pydyf.PDF.page_references
_paint = Page.paint


@lru_cache(maxsize=4)
def without_notes(sheet: weasyprint.CSS) -> weasyprint.CSS:
    """The user agent's style sheet without its rules for notes, and with those for markers on list items only.

    They name no element, so every element of a document would get six more styles.
    """
    lean = copy.copy(sheet)
    matcher = lean.matcher = copy.copy(sheet.matcher)
    markers = [entry for entry in matcher.other_selectors if entry[3] == "marker"]
    matcher.other_selectors = [
        entry for entry in matcher.other_selectors if entry[3] != "marker" and entry[3] not in _NOTES
    ]
    by_name = sheet.matcher.lower_local_name_selectors
    matcher.lower_local_name_selectors = {name: list(rows) for name, rows in by_name.items()}
    for name in ("li", "summary"):
        matcher.lower_local_name_selectors.setdefault(name, []).extend(markers)
    return lean


def _set_up_again(layout: Layout, style: Any) -> None:
    """Takes a Pango layout that a line of the same style has done with: fonts are searched once for a style."""
    ready = style.__dict__.get("_pb_ready")
    if not ready:
        _set_up(layout, style)
        return
    layout.__dict__.update(ready.pop())
    layout.style = style
    layout.first_line_direction = 0
    pango.pango_layout_set_width(layout.layout, -1)
    pango.pango_layout_set_wrap(layout.layout, 0)
    pango.pango_layout_set_ellipsize(layout.layout, 0)
    pango.pango_layout_set_single_paragraph_mode(layout.layout, 0)


def _give_back(layout: Layout) -> None:
    """Keeps a Pango layout for the next line of its style, unless attributes of the text were put on it."""
    style, held = layout.style, layout.__dict__
    is_plain = (
        style["letter_spacing"] == "normal"
        and not style["word_spacing"]
        and not layout.justification_spacing
        and "\t" not in layout.text
    )
    if is_plain:
        retained = {name: held[name] for name in _OF_LAYOUT if name in held}
        style.__dict__.setdefault("_pb_ready", []).append(retained)
    _deactivate(layout)


def _remembered_references(pdf: pydyf.PDF) -> tuple[bytes, ...]:
    """The references of a PDF's pages: pydyf makes all of them anew for every tag."""
    known: tuple[bytes, ...] = pdf.__dict__.get("_pb_references", ())
    if len(known) * 3 != len(pdf.pages["Kids"]):
        known = pdf.__dict__["_pb_references"] = _page_references.fget(pdf)
    return known


def _compressed_quickly(stream: pydyf.Stream) -> bytes:
    data = b"\n".join(_bytes_of(item) for item in stream.stream)
    extra = pydyf.Dictionary(stream.extra.copy())
    if stream.compress:
        extra["Filter"] = "/FlateDecode"
        data = zlib.compress(data, COMPRESSION)
    extra["Length"] = len(data)
    return b"\n".join((extra.data, b"stream", data, b"endstream"))


def _removed_sides(box: Box) -> set[str]:
    """The sides of a box that lose their decoration at a page's edge: few boxes have any, a set takes 216 bytes."""
    sides: set[str] = box.__dict__.setdefault("_pb_removed", set())
    return sides


def _set_removed_sides(box: Box, sides: set[str]) -> None:
    box.__dict__.pop("_pb_removed", None)
    if sides:
        box.__dict__["_pb_removed"] = sides


def _paint_and_pack(page: Page, stream: pydyf.Stream, scale: float = 1) -> None:
    """Paints a page and keeps what came of it as one string: its parts take ten times the memory."""
    _paint(page, stream, scale)
    stream.stream = [b"\n".join(_bytes_of(item) for item in stream.stream)]


def _bytes_of(item: Any) -> bytes:
    """What pydyf makes of a part of a stream, which is text more often than not."""
    return item.encode("ascii") if type(item) is str else pydyf._to_bytes(item)  # noqa: SLF001 - this module's purpose


@lru_cache(maxsize=256)
def _one_emoji(image_id: str, png: bytes) -> RasterImage:
    return RasterImage(Image.open(io.BytesIO(png)), image_id, png)


def _emoji(_picture: Image.Image, image_id: str, png: bytes) -> RasterImage:
    """The picture of an emoji, encoded once and not wherever it stands."""
    return _one_emoji(image_id, png)


class _ArraysOfAnyLength:
    """WeasyPrint's interface to its libraries, with one type for arrays of all lengths.

    It names the length in the type, and each type takes 6 ms to parse: all declarations are read with it.
    """

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ffi, name)

    def new(self, kind: str, *initial: Any) -> Any:
        if initial and isinstance(initial[0], list | tuple):
            kind = _LENGTH.sub("[]", kind)
        return self._ffi.new(kind, *initial)


_any_length = _ArraysOfAnyLength(ffi)


class _ConfiguredAhead:
    """WeasyPrint's interface to fontconfig, with a configuration loaded ahead: the next document gets it.

    To load one takes 5 ms. It serves one document, which may add fonts of its own to it.
    """

    def __init__(self, fontconfig: Any) -> None:
        self._fontconfig = fontconfig
        self._configurations: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fontconfig, name)

    def FcInitLoadConfigAndFonts(self) -> Any:  # noqa: N802 - fontconfig's own name
        if self._configurations:
            return self._configurations.pop()
        return self._fontconfig.FcInitLoadConfigAndFonts()

    def load_ahead(self) -> None:
        if not self._configurations:
            self._configurations.append(self._fontconfig.FcInitLoadConfigAndFonts())


_fontconfig = _ConfiguredAhead(weasyprint.text.fonts.fontconfig)


def configure_fonts_ahead() -> None:
    """Loads fontconfig's configuration, with the machine's fonts, for the next PDF or PNG."""
    _fontconfig.load_ahead()


def save() -> None:
    """Puts the changes in place; again is no harm."""
    change(Layout, "setup", _set_up_again)
    change(Layout, "deactivate", _give_back)
    change(pydyf.PDF, "page_references", property(_remembered_references))
    change(pydyf.Stream, "data", property(_compressed_quickly))
    change(weasyprint.draw.text, "RasterImage", _emoji)
    change(weasyprint.pdf.fonts, "ffi", _any_length)
    change(weasyprint.text.fonts, "fontconfig", _fontconfig)
    change(Page, "paint", _paint_and_pack)
    change(Box, "remove_decoration_sides", property(_removed_sides, _set_removed_sides))
