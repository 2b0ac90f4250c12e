"""Office Open XML packages: a ZIP archive whose parts are judged before a library reads them."""

from __future__ import annotations

import zipfile

from lxml import etree
from model import Problem, Subject, quoted

from parsing.xml_safety import prolog_is_harmless
from parsing.zip_members import open_zip

_CONTENT_TYPES = "[Content_Types].xml"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_OOXML = "application/vnd.openxmlformats-officedocument."
_MAIN_PARTS = {
    _OOXML + "wordprocessingml.document.main+xml": "office.word",
    _OOXML + "spreadsheetml.sheet.main+xml": "office.excel",
    _OOXML + "presentationml.presentation.main+xml": "office.powerpoint",
}
"""The content type of each main part, and the family that it belongs to."""

_NAMES = {
    "office.word": "a Word document",
    "office.excel": "an Excel workbook",
    "office.powerpoint": "a PowerPoint presentation",
}


def judge_package(subject: Subject) -> None:
    """Judge the package and leave the file at its start for the format's library.

    Raises:
        Problem: As ``open_zip``; a part declares a document type (Office parts never do); the main part is
            missing or of another program.
    """
    with open_zip(subject) as archive:
        if _CONTENT_TYPES not in archive.namelist():
            raise Problem(f"is not {subject.format.name}: it is a ZIP archive without {_CONTENT_TYPES}")
        for member in archive.infolist():
            if member.filename.lower().endswith((".xml", ".rels", ".vml")):
                _judge_part(archive, member)
        family = _family_of(archive)
    if family != subject.format.family:
        actual = f"it is {_NAMES[family]}" if family else "the part that makes it one is missing"
        raise Problem(f"is not {subject.format.name}: {actual}")
    subject.file.seek(0)


def _judge_part(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    part = f"the part {quoted(member.filename)}"
    with archive.open(member) as content:
        harmless = prolog_is_harmless(content, f"{part} ", doctype_allowed=False)
    if not harmless and not member.filename.lower().endswith(".vml"):
        raise Problem(f"{part} is not well-formed XML")


def _family_of(archive: zipfile.ZipFile) -> str | None:
    """Return the family of the first main part that [Content_Types].xml declares and the package really holds."""
    names = set(archive.namelist())
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    with archive.open(_CONTENT_TYPES) as content:
        types = etree.parse(content, parser).getroot()
    for override in types.iter(_TYPES + "Override"):
        family = _MAIN_PARTS.get(override.get("ContentType", ""))
        if family is not None and override.get("PartName", "").lstrip("/") in names:
            return family
    return None
