"""Glyphs that a PDF shows as an empty box, and formulas of a DOCX."""

import re
import zipfile
from pathlib import Path
from typing import Any

from pypdf import PdfReader
from pypdf.generic import ByteStringObject, ContentStream, TextStringObject

_FORMULA = re.compile(rb"<m:oMath[ >]")


def missing(path: Path) -> int:
    """How often a PDF shows glyph 0 of a font with two-byte codes, which is what stands for a missing one.

    Fonts with one-byte codes are left out: no renderer here uses them for text that it has no glyph for.
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
    count, wide = 0, False
    for operands, operator in ContentStream(content, reader).operations:
        if operator == b"Tf":
            font = fonts.get(operands[0])
            wide = font is not None and font.get_object().get("/Subtype") == "/Type0"
        elif operator in {b"Tj", b"TJ", b"'"} and wide:
            rows = operands[0] if operator == b"TJ" else [operands[-1]]
            count += sum(
                _zeros(_bytes(row)) for row in rows if isinstance(row, ByteStringObject | TextStringObject)
            )
        elif operator == b"Do" and operands[0] in forms:
            form = forms[operands[0]].get_object()
            if form.get("/Subtype") == "/Form" and id(form) not in seen:
                count += _missing_in(form, form.get("/Resources", resources), reader, seen | {id(form)})
    return count


def _bytes(value: Any) -> bytes:
    return bytes(value.original_bytes)


def _zeros(codes: bytes) -> int:
    return sum(codes[at : at + 2] == b"\0\0" for at in range(0, len(codes), 2))


def formulas_of_docx(path: Path) -> int:
    """Formulas that Word can edit."""
    with zipfile.ZipFile(path) as package:
        return len(_FORMULA.findall(package.read("word/document.xml")))
