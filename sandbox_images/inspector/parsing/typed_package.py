"""ZIP archives whose member ``mimetype`` declares their type: OpenDocument and EPUB."""

from __future__ import annotations

import zipfile

from lxml import etree
from model import Problem, Subject, quoted

from parsing.xml_safety import prolog_is_harmless
from parsing.zip_members import open_zip

_TYPE = "mimetype"
_TYPE_BYTES_MAX = 256


def open_typed_package(subject: Subject) -> zipfile.ZipFile:
    """Open the archive, its members judged, if its type is that of the extension.

    Raises:
        Problem: As ``open_zip``; its type is missing or another one.
    """
    archive = open_zip(subject)
    if _TYPE not in archive.namelist():
        raise Problem(f"is not {subject.format.name}: it is a ZIP archive without {_TYPE}")
    with archive.open(_TYPE) as content:
        found = content.read(_TYPE_BYTES_MAX).strip().decode("ascii", "replace")
    if found != subject.format.mime:
        raise Problem(f"is not {subject.format.name}: its type is {quoted(found)}")
    return archive


def parsed_part(archive: zipfile.ZipFile, name: str) -> etree._Element:
    """Parse a member as XML; returns its root.

    Raises:
        Problem: There is no such member, it is not well-formed, or declares entities.
    """
    part = f"the part {quoted(name)}"
    if name not in archive.namelist():
        raise Problem(f"is damaged: {part} is missing")
    with archive.open(name) as content:
        certain = prolog_is_harmless(content, f"{part} ")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=certain)
    try:
        with archive.open(name) as content:
            return etree.parse(content, parser).getroot()
    except etree.XMLSyntaxError as error:
        raise Problem(f"is damaged: {part} is not well-formed XML: {error.msg}") from error
