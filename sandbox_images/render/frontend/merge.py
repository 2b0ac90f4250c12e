"""Documents that a request appends to its content: Markdown and HTML become part of its tree, PDFs a mark in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote
from xml.etree.ElementTree import Element

from render.frontend.assets import AssetRefused, read_file
from render.frontend.content_format import recognised
from render.frontend.element_tree import body_of, head_of, make, text_of
from render.frontend.headings import slug_of
from render.frontend.html import clean_text
from render.frontend.identities import rename_ids
from render.frontend.title_block import word
from render.limits import MERGED_BYTES_MAX, MERGED_DOCUMENTS_MAX, MERGED_TEXT_BYTES_MAX
from render.model import Document, RenderError, RenderRequest, SourceFormat
from render.themes import load_theme

HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_START = "data-document"
"""Attribute of the page break in front of a document: the levels of its headings have nothing to do with those before."""
PDF_CLASS = "pb-pdf-part"
_FORMATS: dict[str, SourceFormat] = {
    ".md": "markdown", ".markdown": "markdown", ".txt": "markdown", ".html": "html", ".htm": "html",
}  # fmt: skip
Parse = Callable[[RenderRequest], tuple[Element, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class MergedPart:
    """A document that is appended.

    Attributes:
        label: how messages call it, such as ``merge[1]: costs.pdf``.
        path: OUT_DIR-relative.
        content: its text; empty for a PDF.
        source_format: of the text; None for a PDF.
        index: its place in ``merge``.
    """

    label: str
    path: str
    content: str
    source_format: SourceFormat | None
    index: int


def read_merge(request: RenderRequest) -> tuple[RenderRequest, list[MergedPart]]:
    """The documents that a request appends, and the request, whose blank content is replaced by the first of them.

    Raises:
        RenderError: ``invalid_part``: one of them cannot be had or is of no use here.
    """
    given = request.options.get("merge") or []
    if not isinstance(given, list) or not given:
        return request, []
    if len(given) > MERGED_DOCUMENTS_MAX:
        raise RenderError(
            "invalid_part", f"merge: {len(given)} documents (at most {MERGED_DOCUMENTS_MAX}); merge them in steps"
        )
    probe = Document(request, request.metadata, load_theme("plain", request.root, ""), Element("html"))
    parts, room = [], MERGED_BYTES_MAX
    for index, path in enumerate(given):
        part, size = _read(probe, index, str(path))
        room -= size
        if room < 0:
            raise RenderError(
                "invalid_part", f"{part.label}: all documents together have more than {MERGED_BYTES_MAX:,} bytes"
            )
        parts.append(part)
    first = parts[0]
    if not request.content.strip() and first.source_format is not None:
        return replace(request, content=first.content, source_format=first.source_format), parts[1:]
    return request, parts


def _read(probe: Document, index: int, path: str) -> tuple[MergedPart, int]:
    name = PurePosixPath(path).name[:100]
    label = f"merge[{index}]: {name}"
    try:
        data, found = read_file(probe, path)
    except AssetRefused as refusal:
        reason = "is not in the conversation" if refusal.code == "missing_asset" else f"is not read: {refusal}"
        raise RenderError("invalid_part", f"{label} {reason}; give a path such as turn_1/files/costs.md") from None
    if b"%PDF-" in data[:1024]:
        if probe.request.output != "pdf":
            raise RenderError(
                "invalid_part",
                f"{label} is a PDF, and a {probe.request.output.upper()} is made of Markdown and HTML only; "
                "use write_pdf, or leave it out",
            )
        return MergedPart(label, found, "", None, index), len(data)
    source_format = _FORMATS.get(PurePosixPath(found).suffix.lower())
    if source_format is None:
        raise RenderError("invalid_part", f"{label} is neither Markdown (.md), HTML (.html) nor a PDF; convert it")
    if len(data) > MERGED_TEXT_BYTES_MAX:
        raise RenderError(
            "invalid_part", f"{label} has {len(data):,} bytes (at most {MERGED_TEXT_BYTES_MAX:,}); split it"
        )
    try:
        content = clean_text(data.decode(probe.request.encodings.get(found, "utf-8-sig")))
    except (UnicodeDecodeError, LookupError):
        raise RenderError("invalid_part", f"{label} is not UTF-8 text; save it as UTF-8") from None
    return MergedPart(label, found, content, recognised(content, source_format), index), len(data)


def append_parts(tree: Element, request: RenderRequest, parts: list[MergedPart], parse: Parse) -> None:
    """Appends documents to a tree, each on a new page or slide, in place.

    Args:
        tree: that of the content.
        request: of the rendering.
        parts: what is appended.
        parse: makes a tree and the front matter of a content.
    """
    body = body_of(tree)
    known = {item.get("id") for item in tree.iter() if item.get("id")}
    for part in parts:
        if part.source_format is None:
            body.append(make("div", {"class": PDF_CLASS, "data-part": str(part.index)}))
            continue
        own, matter = parse(replace(request, content=part.content, source_format=part.source_format))
        prefix = f"part-{part.index + 1}-"
        name_headings(own, prefix)
        rename_ids(own, known, prefix)
        find_pictures(own, request, part.path)
        inner = body_of(own)
        last = body[-1] if len(body) else None
        is_behind_pdf = last is not None and last.get("class") == PDF_CLASS  # its pages have a size of their own
        if (last is not None and not is_behind_pdf) or (body.text or "").strip():
            body.append(make("div", {"class": "pb-page-break", _START: "1"}))
        body.extend(item for item in head_of(own) if item.tag in {"style", "link"})
        title = word(matter.get("title"))
        if title and next(inner.iter("h1"), None) is None:
            body.append(make("h1", None, title))
        if (inner.text or "").strip():
            body.append(make("p", None, inner.text))
        body.extend(list(inner))


def name_headings(tree: Element, prefix: str) -> None:
    """Gives the headings that links of their own document lead to anchors that no other document has, in place."""
    headings = [item for item in tree.iter() if item.tag in HEADINGS and not item.get("id")]
    named = {slug_of(text_of(item)): item for item in reversed(headings)}
    known = {item.get("id") for item in tree.iter()}
    for link in tree.iter("a"):
        target = (link.get("href") or "").partition("#")
        heading = named.get(target[2].lower()) if not target[0] and target[2] not in known else None
        if heading is not None:
            anchor = heading.get("id") or prefix + slug_of(text_of(heading))
            heading.set("id", anchor)
            link.set("href", f"#{anchor}")


def find_pictures(tree: Element, request: RenderRequest, path: str) -> None:
    """Addresses of pictures beside an appended document become those from the output folder, in place."""
    folder = PurePosixPath(path).parent
    for item in tree.iter("img"):
        address = (item.get("src") or "").strip()
        if not address or ":" in address or address.startswith(("/", "#")):
            continue
        near = folder / unquote(address)
        newest = request.names.get("/".join(near.parts[2:]))
        if newest is not None:
            item.set("src", f"/{quote(newest)}")
        elif ".." not in near.parts and "\0" not in address and Path(request.root, near).is_file():
            item.set("src", f"/{near}")


def documents_of(blocks: list[Element]) -> list[list[Element]]:
    """Blocks by the document that they are of, where several were appended to each other."""
    parts: list[list[Element]] = [[]]
    for block in blocks:
        if block.get(_START):
            parts.append([])
        else:
            parts[-1].append(block)
    return [part for part in parts if part]


def pdf_marks(tree: Element) -> Iterator[tuple[Element, int]]:
    """The marks of appended PDFs in a tree, with their places in ``merge``; each place once."""
    seen: set[int] = set()
    for item in tree.iter("div"):
        number = item.get("data-part") or ""
        if item.get("class") == PDF_CLASS and number.isdigit() and int(number) not in seen:
            seen.add(int(number))
            yield item, int(number)
