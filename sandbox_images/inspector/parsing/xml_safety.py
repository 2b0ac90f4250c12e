"""Keeps XML from doing anything but being read: no entity, no DTD from elsewhere, no network."""

from __future__ import annotations

from typing import IO
from xml.parsers import expat

from lxml import etree
from model import Problem, Subject

_CHUNK_BYTES = 65_536
_SNIFFED_BYTES = 64
_BEFORE_MARKUP = b"\xef\xbb\xbf\xff\xfe \t\r\n\x00"
"""What may stand before the first ``<``: byte order marks, white space, and the other half of UTF-16."""


class _RootReachedError(Exception):
    """The prolog is over: what follows can declare nothing any more."""


def prolog_is_harmless(file: IO[bytes], part: str = "", *, doctype_allowed: bool = True) -> bool:
    """Read what stands before the root element, and stop at the first entity that is declared there.

    Args:
        file: Read from its position.
        part: What begins a problem's sentence if the file is a part of another one, with a space behind it.
        doctype_allowed: Whether a document type may be named at all (Office files may not).

    Returns:
        Whether the prolog could be read to its end; if not, the file is not XML or in an encoding that expat
        does not know.

    Raises:
        Problem: An entity is declared, or a document type where none may be.
    """
    parser = expat.ParserCreate()

    def on_doctype(*_: object) -> None:
        if not doctype_allowed:
            raise Problem(f"{part}has a document type declaration, which this format forbids")

    def on_entity(*_: object) -> None:
        raise Problem(f"{part}declares XML entities, which are not read for safety")

    def on_element(*_: object) -> None:
        raise _RootReachedError

    parser.StartDoctypeDeclHandler = on_doctype
    parser.EntityDeclHandler = on_entity
    parser.StartElementHandler = on_element
    try:
        while chunk := file.read(_CHUNK_BYTES):
            parser.Parse(chunk, False)  # noqa: FBT003 - expat takes no names
        parser.Parse(b"", True)  # noqa: FBT003
    except _RootReachedError:
        return True
    except (expat.ExpatError, ValueError, LookupError):
        return False
    return False


def parse_xml(subject: Subject) -> etree._Element:
    """Parse a whole document; returns its root.

    Raises:
        Problem: It is not well-formed, no XML at all, or declares entities.
    """
    # libxml2's own bounds on depth and on the length of one text are lifted (a drawing may hold a large picture)
    # only where it is certain that no entity can multiply.
    certain = prolog_is_harmless(subject.file)
    subject.file.seek(0)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=certain)
    try:
        tree = etree.parse(subject.file, parser)
    except etree.XMLSyntaxError as error:
        if not subject.head(_SNIFFED_BYTES).lstrip(_BEFORE_MARKUP).startswith(b"<"):
            raise subject.wrong_format() from error
        raise Problem(f"is not well-formed XML: {error.msg}") from error
    dtd = tree.docinfo.internalDTD
    if dtd is not None and any(True for _ in dtd.iterentities()):
        raise Problem("declares XML entities, which are not read for safety")
    return tree.getroot()
