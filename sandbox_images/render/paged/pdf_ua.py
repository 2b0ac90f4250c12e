"""What WeasyPrint's PDFs lack for PDF/UA and PDF/A, mended when all objects are made and none is written.

page-validation found each of these, in documents of ``tests/container/documents``.
"""

import re
from typing import Any

import pydyf

# A glyph without a character of its own, such as a vowel sign drawn ahead of its consonant: its letter is in the text
# of the glyph beside it. PDF/UA wants a character for each glyph; this one shows nothing and breaks no word.
_WORD_JOINER = b"2060"
_HEADING = re.compile(r"/H([1-6])")
_NO_TEXT = re.compile(rb"(<[0-9a-f]{4}> )<>")
_PLAIN = frozenset({"/Span", "/Div", "/NonStruct"})
"""Tags that have no information on their content."""

Kid = tuple[Any, Any]
"""A child of a tag as the tag names it, and the child itself."""


def mend(pdf: pydyf.PDF, *, archive: bool) -> None:
    """Mends the tags of headings and lists and the characters of glyphs; for archives the pictures too."""
    _settle_headings(pdf)
    for item in list(pdf.objects):
        if isinstance(item, pydyf.Dictionary) and item.get("S") == "/LI":
            _put_into_body(pdf, item)
        elif isinstance(item, pydyf.Dictionary) and item.get("S") in _PLAIN and _has_link(pdf, item):
            item["S"] = "/Link"
        elif isinstance(item, pydyf.Dictionary) and item.get("S") == "/Figure" and not item.get("Alt"):
            # Decoration, as its author declares by an empty alternative text: a figure would need one.
            item["S"] = "/NonStruct"
            item.pop("A", None)
        elif isinstance(item, pydyf.Stream):
            if b"begincmap" in item.stream[:8]:
                item.stream = [_NO_TEXT.sub(rb"\1<" + _WORD_JOINER + b">", line) for line in item.stream]
            if archive:
                _store_for_archive(item)


def _settle_headings(pdf: pydyf.PDF) -> None:
    """Headings start at level 1, skip none on the way down and hold none; objects are in the document's order."""
    last = 0
    for item in pdf.objects:
        found = _HEADING.fullmatch(str(item.get("S"))) if isinstance(item, pydyf.Dictionary) else None
        if not found:
            continue
        parent = pdf.objects[int(item["P"].split()[0])]
        if _HEADING.fullmatch(
            str(parent.get("S"))
        ):  # the text of a heading beside what stands before it as a block
            item["S"] = "/NonStruct"
            continue
        last = min(int(found[1]), last + 1)
        item["S"] = f"/H{last}"


def _has_link(pdf: pydyf.PDF, item: pydyf.Dictionary) -> bool:
    """Whether an element holds a link's annotation: a box in a line has its own beside that of the link around it."""
    kids = (pdf.objects[int(kid.split()[0])] for kid in item["K"] if isinstance(kid, bytes))
    links = (pdf.objects[int(kid["Obj"].split()[0])] for kid in kids if kid.get("Type") == "/OBJR")
    return any(link.get("Subtype") == "/Link" for link in links)


def _store_for_archive(stream: pydyf.Stream) -> None:
    """Pictures are not smoothed, and no stream ends as a line does: its length would be read as one byte less."""
    if stream.extra.get("Interpolate") == "true":
        stream.extra["Interpolate"] = "false"
    body = stream.data.split(b"\nstream\n", 1)[1].removesuffix(b"\nendstream")
    if body.endswith(b"\r"):
        # What decompresses stops at the end of its data; a byte more is a byte of the stream and no more.
        stream.stream = [body + b"\n"]
        if stream.compress:
            stream.compress = False
            stream.extra["Filter"] = "/FlateDecode"


def _put_into_body(pdf: pydyf.PDF, item: pydyf.Dictionary) -> None:
    """A list item may hold its label and its body only: what else is in it becomes its body."""
    labels: list[Kid] = []
    bodies: list[Kid] = []
    loose: list[Kid] = []
    for kid in item["K"]:
        element = pdf.objects[int(kid.split()[0])] if isinstance(kid, bytes) else {}
        role = element.get("S")
        (labels if role == "/Lbl" else bodies if role == "/LBody" else loose).append((kid, element))
    if not loose:
        return
    body = pydyf.Dictionary({"Type": "/StructElem", "S": "/LBody", "Pg": item["Pg"], "P": item.reference})
    pdf.add_object(body)
    for _, element in bodies:
        element["S"] = "/Div"
    for _, element in (*bodies, *loose):
        if "S" in element:  # not a marked content, nor the reference of a link
            element["P"] = body.reference
    inner = {id(kid) for kid, _ in labels}
    body["K"] = pydyf.Array(kid for kid in item["K"] if id(kid) not in inner)
    item["K"] = pydyf.Array([*(kid for kid, _ in labels), body.reference])
