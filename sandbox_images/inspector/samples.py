"""Small files of ours, for a process that inspectors are forked from: what its forks do is found out with them."""

from __future__ import annotations

import io
import json
import tempfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from child import confine
from formats import FORMATS
from judge import judge
from request import Entry
from verdict import Limits

_ROWS = "number,score\n" + "".join(f"{number},{number * 37 % 100}\n" for number in range(40))
_TEXTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "csv": (_ROWS.encode(), {"min_rows": 1, "columns": ["number"]}),
    "json": (json.dumps({"count": 1, "rows": [1, 2.5]}).encode(), {"json_schema": {"type": "object"}}),
    "md": (f"# Rows\n\n{_ROWS}".encode(), {"not_blank": True}),
}
_FAMILY_OF_TEXTS = "text"


def rehearsals_of(*, libraries: bool) -> dict[str, Callable[[], None]]:
    """What a judge does with a file of each family that is promised often, by family; all texts are one."""
    works: dict[str, Callable[[], None]] = {_FAMILY_OF_TEXTS: partial(_judge, _TEXTS)}
    if libraries:
        made = {"pdf": _pdf(), "png": _png(), "xlsx": _xlsx(), "docx": _docx(), "pptx": _pptx()}
        for extension, content in made.items():
            works[family_of(extension)] = partial(_judge, {extension: (content, {"not_blank": True})})
    return works


def family_of(extension: str) -> str:
    """The family whose files are judged as those of an extension are."""
    found = FORMATS.get(extension)
    family = found.family if found is not None else _FAMILY_OF_TEXTS
    return _FAMILY_OF_TEXTS if family in {"delimited", "json_document", "json_lines"} else family


def _judge(files: dict[str, tuple[bytes, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for extension, (content, _) in files.items():
            (Path(folder) / f"a.{extension}").write_bytes(content)
        confine(Limits())
        for extension, (_, checks) in files.items():
            verdict = judge(Path(folder), Entry(0, f"a.{extension}", checks), Limits())
            if not verdict["ok"]:
                raise ValueError(f"a sample is not what it is to be: {verdict['problem']}")


def _png() -> bytes:
    from PIL import Image  # noqa: PLC0415 - an inspector of plain files does without

    out = io.BytesIO()
    Image.effect_mandelbrot((800, 450), (-3, -2.5, 2, 2.5), 20).convert("RGBA").save(out, "png")
    return out.getvalue()


def _xlsx() -> bytes:
    import openpyxl  # noqa: PLC0415 - as above

    out, book = io.BytesIO(), openpyxl.Workbook()
    book.active.append(["number", "score"])
    book.save(out)
    return out.getvalue()


def _docx() -> bytes:
    import docx  # noqa: PLC0415 - as above

    out, document = io.BytesIO(), docx.Document()
    document.add_paragraph("0")
    document.save(out)
    return out.getvalue()


def _pptx() -> bytes:
    import pptx  # noqa: PLC0415 - as above

    out, deck = io.BytesIO(), pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "0"
    deck.save(out)
    return out.getvalue()


def _pdf() -> bytes:
    """A page with lines of text (ISO 32000-1, 7.5)."""
    lines = b"".join(b"(Line %d of a page) Tj 0 -14 Td " % number for number in range(40))
    text = zlib.compress(b"BT /F1 12 Tf 72 760 Td " + lines + b"ET")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources 6 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%b\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Font << /F1 5 0 R >> >>",
    )
    out, rows = bytearray(b"%PDF-1.7\n"), [b"0000000000 65535 f \n"]
    for number, each in enumerate(objects, start=1):
        rows.append(b"%010d 00000 n \n" % len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    size, at = len(rows), len(out)
    out += b"xref\n0 %d\n%b" % (size, b"".join(rows))
    return bytes(out) + b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, at)
