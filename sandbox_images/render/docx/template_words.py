"""Words of a house template: its fields such as ``{{title}}``, and the notes that its text calls."""

import re
from collections.abc import Iterable
from typing import Any

from lxml import etree
from render.docx.xml import legal
from render.model import Metadata
from render.template.package import parse_part

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_FIELD = re.compile(r"\{\{\s*(title|author|date|subject)\s*\}\}")
_KINDS = ((f"{_W}p", f"{_W}t"), (f"{_A}p", f"{_A}t"))
_REFERENCES = {
    "footnotes": ("footnoteReference",),
    "endnotes": ("endnoteReference",),
    "comments": ("commentReference", "commentRangeStart", "commentRangeEnd"),
}


def fill_part(data: bytes, metadata: Metadata) -> bytes:
    """A header or footer with the words of the document in place of its fields."""
    if b"{" not in data:
        return data
    root = parse_part(data)
    if not fill_fields(root, metadata):
        return data
    filled: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return filled


def fill_fields(root: etree._Element, metadata: Metadata) -> bool:
    """Puts the words of the document in place of ``{{title}}`` and its like; whether there was one.

    Word splits the words of a paragraph into runs where it likes, so those of a paragraph are read together. What
    replaces a field has the look of its first letter.
    """
    values: dict[str, Any] = {
        "title": metadata.title, "author": metadata.author, "date": metadata.date, "subject": metadata.subject,
    }  # fmt: skip
    found = False
    for paragraph_tag, text_tag in _KINDS:
        for paragraph in root.iter(paragraph_tag):
            texts = [
                text for text in paragraph.iter(text_tag)
                if next(text.iterancestors(paragraph_tag)) is paragraph  # not one of a text box in it
            ]  # fmt: skip
            found = _fill_paragraph(texts, values) or found
    return found


def _fill_paragraph(texts: list[etree._Element], values: dict[str, Any]) -> bool:
    pieces = [text.text or "" for text in texts]
    fields = list(_FIELD.finditer("".join(pieces)))
    for field in reversed(fields):
        start = 0
        for index, piece in enumerate(pieces):
            end = start + len(piece)
            if start < field.end() and end > field.start():
                head = piece[: max(field.start() - start, 0)]
                value = legal(str(values[field[1]])) if start <= field.start() else ""
                pieces[index] = head + value + piece[field.end() - start :]
            start = end
    if fields:
        for text, piece in zip(texts, pieces, strict=True):
            text.text = piece
            if text.tag.startswith(_W):
                text.set(_SPACE, "preserve")
    return bool(fields)


def drop_references(blocks: Iterable[etree._Element], known: set[str]) -> set[str]:
    """Takes out what calls notes and comments of parts that the document has not, in place.

    Args:
        blocks: of the template.
        known: kinds of notes whose part is in the document as it was.

    Returns:
        The kinds that were taken out.
    """
    tags = {f"{_W}{tag}": kind for kind, own in _REFERENCES.items() if kind not in known for tag in own}
    dropped = set()
    for block in blocks:
        for element in list(block.iter(*tags)) if tags else ():
            run = element.getparent()
            if run is None:
                continue
            dropped.add(tags[element.tag])
            run.remove(element)
            above = run.getparent()
            if run.tag == f"{_W}r" and above is not None and all(child.tag == f"{_W}rPr" for child in run):
                above.remove(run)
    return dropped
