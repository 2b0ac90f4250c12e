"""Glyphs that a PDF shows as an empty box, digits in its emoji font, and formulas of a DOCX."""

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from fontTools.ttLib import TTFont
from pypdf import PdfReader
from pypdf.generic import ByteStringObject, ContentStream, TextStringObject

CODES = 65_536
_FORMULA = re.compile(rb"<m:oMath[ >]")
_DIGIT = re.compile(rb"<([0-9a-f]{4})>\s*<(003[0-9])>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Font:
    """A font with two-byte codes that are glyph numbers, as WeasyPrint and Chromium write them.

    Attributes:
        count: its glyphs; 0 for a font of another kind, whose text is not looked at.
        digits: glyphs of an emoji font that stand for a digit alone.
    """

    count: int = 0
    digits: frozenset[int] = frozenset()


@dataclass
class _Page:
    """What is known while the contents of a page are read."""

    reader: PdfReader
    fonts: dict[int, _Font] = field(default_factory=dict)


def missing(path: Path) -> int:
    """How often a PDF shows glyph 0 of a font, or one that the font has not: what stands for a missing glyph."""
    return sum(number == 0 or number >= font.count for font, number in _shown(path))


def emoji_digits(path: Path) -> int:
    """How often a PDF shows a digit with the emoji font."""
    return sum(number in font.digits for font, number in _shown(path))


def _shown(path: Path) -> Iterator[tuple[_Font, int]]:
    """The glyphs of a PDF in the order in which they are painted, with their fonts."""
    reader = PdfReader(path)
    state = _Page(reader)
    for page in reader.pages:
        yield from _shown_in(page.get_contents(), page.get("/Resources"), state, frozenset())


def _shown_in(content: Any, resources: Any, state: _Page, seen: frozenset[int]) -> Iterator[tuple[_Font, int]]:
    fonts, forms = _named(resources, "/Font"), _named(resources, "/XObject")
    operations = ContentStream(content, state.reader).operations if content is not None else []
    font, outer = _Font(), []
    for operands, operator in operations:
        if operator == b"q":
            outer.append(font)
        elif operator == b"Q":
            font = outer.pop() if outer else font
        elif operator == b"Tf":
            font = _font(fonts.get(operands[0]), state)
        elif operator in {b"Tj", b"TJ", b"'", b'"'} and font.count:
            yield from ((font, number) for number in _numbers(operands[-1]))
        elif operator == b"Do" and operands[0] in forms:
            form = forms[operands[0]].get_object()
            if form.get("/Subtype") == "/Form" and id(form) not in seen:
                yield from _shown_in(form, form.get("/Resources", resources), state, seen | {id(form)})


def _named(resources: Any, kind: str) -> Any:
    found = resources.get_object().get(kind) if resources is not None else None
    return found.get_object() if found is not None else {}


def _numbers(shown: Any) -> Iterator[int]:
    for row in shown if isinstance(shown, list) else [shown]:
        if isinstance(row, ByteStringObject | TextStringObject):
            codes = bytes(row.original_bytes)
            yield from (int.from_bytes(codes[at : at + 2]) for at in range(0, len(codes), 2))


def _font(found: Any, state: _Page) -> _Font:
    font = found.get_object() if found is not None else {}
    if font.get("/Subtype") != "/Type0":
        return _Font()
    if id(font) not in state.fonts:
        state.fonts[id(font)] = _Font(_glyph_count(font), _digits(font))
    return state.fonts[id(font)]


def _glyph_count(font: Any) -> int:
    described = font["/DescendantFonts"][0].get_object()["/FontDescriptor"].get_object()
    if "/FontFile2" not in described:
        return CODES
    program = TTFont(BytesIO(described["/FontFile2"].get_object().get_data()), lazy=True)
    return int(program["maxp"].numGlyphs)


def _digits(font: Any) -> frozenset[int]:
    if "emoji" not in str(font.get("/BaseFont", "")).casefold() or "/ToUnicode" not in font:
        return frozenset()
    return frozenset(int(found[1], 16) for found in _DIGIT.finditer(font["/ToUnicode"].get_data()))


def formulas_of_docx(path: Path) -> int:
    """Formulas that Word can edit."""
    with zipfile.ZipFile(path) as package:
        return len(_FORMULA.findall(package.read("word/document.xml")))
