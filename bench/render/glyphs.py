"""Glyphs that a PDF shows as an empty box, and formulas of a DOCX."""

import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

from fontTools.ttLib import TTFont
from pypdf import PdfReader
from pypdf.generic import ByteStringObject, ContentStream, TextStringObject

CODES = 65_536
_FORMULA = re.compile(rb"<m:oMath[ >]")


def missing(path: Path) -> int:
    """How often a PDF shows glyph 0 of a font, or one that the font has not: what stands for a missing glyph.

    It knows fonts with two-byte codes that are glyph numbers, as WeasyPrint and Chromium write them.
    """
    reader = PdfReader(path)
    count = 0
    for page in reader.pages:
        count += _missing_in(page.get_contents(), page.get("/Resources"), reader, set())
    return count


def _missing_in(content: Any, resources: Any, reader: PdfReader, seen: set[int]) -> int:
    if content is None or resources is None:
        return 0
    resources = resources.get_object()
    fonts = resources.get("/Font", {}).get_object() if "/Font" in resources else {}
    forms = resources.get("/XObject", {}).get_object() if "/XObject" in resources else {}
    count, known = 0, 0
    for operands, operator in ContentStream(content, reader).operations:
        if operator == b"Tf":
            font = fonts.get(operands[0])
            known = _glyph_count(font.get_object()) if font is not None else 0
        elif operator in {b"Tj", b"TJ", b"'"} and known:
            rows = operands[0] if operator == b"TJ" else [operands[-1]]
            count += sum(
                _unknown(_bytes(row), known) for row in rows if isinstance(row, ByteStringObject | TextStringObject)
            )
        elif operator == b"Do" and operands[0] in forms:
            form = forms[operands[0]].get_object()
            if form.get("/Subtype") == "/Form" and id(form) not in seen:
                count += _missing_in(form, form.get("/Resources", resources), reader, seen | {id(form)})
    return count


def _bytes(value: Any) -> bytes:
    return bytes(value.original_bytes)


def _glyph_count(font: Any) -> int:
    """Glyphs of an embedded font with two-byte codes; 0 for any other font."""
    if font.get("/Subtype") != "/Type0":
        return 0
    described = font["/DescendantFonts"][0].get_object()["/FontDescriptor"].get_object()
    if "/FontFile2" not in described:
        return CODES
    program = TTFont(BytesIO(described["/FontFile2"].get_object().get_data()), lazy=True)
    return int(program["maxp"].numGlyphs)


def _unknown(codes: bytes, known: int) -> int:
    numbers = (int.from_bytes(codes[at : at + 2]) for at in range(0, len(codes), 2))
    return sum(number == 0 or number >= known for number in numbers)


def formulas_of_docx(path: Path) -> int:
    """Formulas that Word can edit."""
    with zipfile.ZipFile(path) as package:
        return len(_FORMULA.findall(package.read("word/document.xml")))
