"""Watermarks in a house template: in its own headers, of every kind that its pages have."""

import posixpath

from lxml import etree
from render.docx.package import Part
from render.docx.page import Page
from render.docx.pages import watermark_header
from render.docx.watermark import watermark_run
from render.docx.writer_state import State
from render.docx.xml import NAMESPACES
from render.template.package import parse_part

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MIME = "application/vnd.openxmlformats-officedocument.wordprocessingml.header+xml"
KINDS = ("default", "first", "even")
Parts = dict[str, str | bytes]


def mark_headers(
    state: State, root: etree._Element, main: Part, page: Page, package: tuple[Parts, dict[str, str]]
) -> None:
    """Puts the watermark of the request, if it has one, onto all pages of a document, in place.

    Headers of the template are replaced by copies with the watermark. Headers that the request has of its own have it
    already. What the first section lacks is added to it; later sections go on with the headers of those before.

    Args:
        state: the document.
        root: its main part.
        main: what the main part leads to.
        page: most of its pages.
        package: the parts, and their types.
    """
    room = page.text_width, page.text_height
    template = state.template
    sections = list(root.iter(f"{_W}sectPr"))
    if template is None or not sections or not watermark_run(state, room):
        return
    marked: dict[str, str] = {}
    for section in sections:
        for reference in section.findall(f"{_W}headerReference"):
            key = reference.get(_ID) or ""
            name = template.linked_part(key)
            if name is None:
                continue
            if key not in marked:
                copy = _free_name(package[0])
                package[0][copy] = _with_run(parse_part(_bytes(package[0][name])), watermark_run(state, room))
                package[1][copy] = _MIME
                links = package[0].get(_rels(name))
                if links is not None:
                    package[0][_rels(copy)] = _moved(links, name)
                marked[key] = main.link("header", posixpath.basename(copy))
            reference.set(_ID, marked[key])
    known = {reference.get(f"{_W}type", "default") for reference in sections[0].findall(f"{_W}headerReference")}
    lacking = [kind for kind in KINDS if kind not in known]
    if not lacking:
        return
    name = _free_name(package[0])
    content = watermark_header(state, Part(name), page)
    package[0][name], package[1][name] = template.styles.renamed(content, page.text_width), _MIME
    for kind in lacking:
        reference = etree.Element(f"{_W}headerReference")
        reference.set(f"{_W}type", kind)
        reference.set(_ID, main.link("header", posixpath.basename(name)))
        sections[0].insert(0, reference)


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _free_name(parts: Parts) -> str:
    number = 1
    while (name := f"word/header_marked{number}.xml") in parts:
        number += 1
    return name


def _rels(name: str) -> str:
    folder, _, last = name.rpartition("/")
    return f"{folder}/_rels/{last}.rels"


def _moved(links: str | bytes, origin: str) -> bytes:
    """Relationships of a part for its copy in ``word``."""
    root = parse_part(_bytes(links))
    for row in root:
        if row.get("TargetMode") != "External":
            target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), row.get("Target", "")))
            row.set("Target", posixpath.relpath(target, "word"))
    moved: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return moved


def _with_run(header: etree._Element, run: str) -> bytes:
    """A header with a run before the words of its first paragraph."""
    paragraph = header.find(f"{_W}p")
    if paragraph is None:
        paragraph = next(header.iter(f"{_W}p"), None)
    if paragraph is None:
        paragraph = etree.SubElement(header, f"{_W}p")
    after = 1 if len(paragraph) and paragraph[0].tag == f"{_W}pPr" else 0
    paragraph.insert(after, etree.fromstring(f"<w:x {NAMESPACES}>{run}</w:x>")[0])
    marked: bytes = etree.tostring(header, xml_declaration=True, encoding="UTF-8", standalone=True)
    return marked
