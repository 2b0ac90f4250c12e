"""EPUB books: a ZIP archive of a declared type, with a container that leads to the book's package."""

from __future__ import annotations

import zipfile

from lxml import etree
from model import Problem, Subject, quoted
from parsing.typed_package import open_typed_package, parsed_part

_CONTAINER = "META-INF/container.xml"
_ROOTFILE = "{urn:oasis:names:tc:opendocument:xmlns:container}rootfile"
_ITEM = "{http://www.idpf.org/2007/opf}item"
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def inspect(subject: Subject) -> None:
    """Follow the container to the package, and the package to its pages; blank if none of them has text."""
    with open_typed_package(subject) as archive:
        rootfile = parsed_part(archive, _CONTAINER).find(f".//{_ROOTFILE}")
        path = "" if rootfile is None else rootfile.get("full-path", "")
        package = parsed_part(archive, path)
        pages = [item.get("href", "") for item in package.iter(_ITEM) if item.get("media-type") in _PAGES]
        if not pages:
            raise Problem("is not an EPUB book: its package names no page")
        folder = path.rpartition("/")[0]
        if subject.must_not_be_blank() and not any(_has_text(archive, folder, page) for page in pages):
            raise Problem("is blank: none of its pages has text")


def _has_text(archive: zipfile.ZipFile, folder: str, href: str) -> bool:
    name = f"{folder}/{href}" if folder else href
    if name not in archive.namelist():
        raise Problem(f"is damaged: the page {quoted(href)} is missing")
    body = parsed_part(archive, name).find("{*}body")
    return body is not None and any(_is_seen(element) for element in body.iter())


def _is_seen(element: etree._Element) -> bool:
    texts = (element.text or "") + (element.tail or "")
    return bool(texts.strip()) or (
        isinstance(element.tag, str) and element.tag.rpartition("}")[2] in {"img", "svg"}
    )
