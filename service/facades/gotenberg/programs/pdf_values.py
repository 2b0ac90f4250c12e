"""Part of the program `pdf`: the values of a PDF, its metadata, bookmarks and ranges of pages."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pypdf import PdfWriter
from pypdf.generic import NameObject

OUTLINE_MAX = 10_000
OUTLINE_DEPTH_MAX = 32
_INFO_NAMES = {
    "CreateDate": "/CreationDate",
    "CreationDate": "/CreationDate",
    "ModDate": "/ModDate",
    "ModifyDate": "/ModDate",
}
_DC, _PDF, _BASIC = (
    "http://purl.org/dc/elements/1.1/",
    "http://ns.adobe.com/pdf/1.3/",
    "http://ns.adobe.com/xap/1.0/",
)
_XMP: dict[str, tuple[str, str, str, Callable[[str], Any]]] = {
    "/Title": (_DC, "title", "dc_title", lambda text: {"x-default": text}),
    "/Author": (_DC, "creator", "dc_creator", lambda text: [text]),
    "/Subject": (_DC, "description", "dc_description", lambda text: {"x-default": text}),
    "/Keywords": (_PDF, "Keywords", "pdf_keywords", str),
    "/Producer": (_PDF, "Producer", "pdf_producer", str),
    "/Creator": (_BASIC, "CreatorTool", "xmp_creator_tool", str),
}
"""Where XMP has what the information dictionary has: namespace, tag, property of pypdf, form of the value."""
_DATES = {"/CreationDate": "CreateDate", "/ModDate": "ModDate"}
_GIVEN_DATE = re.compile(
    r"(\d{4})[-:](\d\d)[-:](\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?)?"
)
_PDF_DATE = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(Z|[+-]\d\d'?\d\d)?")
_RANGE = re.compile(r"(\d{1,6})?(-?)(\d{1,6}|z|end)?")


class Refused(Exception):  # noqa: N818 - the answer to the client
    """The request cannot be carried out; the message names the file or the field."""


@dataclass(slots=True)
class Pdf:
    """A PDF in work: its file name and its content."""

    name: str
    content: PdfWriter


def page_numbers(text: str, count: int, field: str) -> list[int]:
    """The pages of ranges such as ``1-3,7``, counted from 0.

    Raises:
        Refused: it is not a range, or none of the pages is in it.
    """
    numbers: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = _RANGE.fullmatch(part)
        if match is None or not (match[1] or match[3]):
            raise Refused(f"{field}: '{part[:40]}' is not a range of pages, such as 1-3; correct it")
        first = int(match[1] or (1 if match[2] else match[3] if match[3].isdigit() else count))
        last = count if match[3] in {"z", "end"} or (match[2] and not match[3]) else int(match[3] or first)
        numbers += range(first - 1, min(last, count))
    found = [number for number in numbers if 0 <= number < count]
    if not found:
        raise Refused(f"{field}: none of the {count} pages is in '{text[:40]}'; correct it")
    return found


# ---- metadata ----


def read_metadata(pdf: Pdf) -> dict[str, Any]:
    """The information dictionary, with the names and dates of ExifTool."""
    shown: dict[str, Any] = {"PageCount": len(pdf.content.pages)}
    version = re.search(r"(\d\.\d)", pdf.content.pdf_header)
    if version:
        shown["PDFVersion"] = float(version[1])
    for key, value in (pdf.content.metadata or {}).items():
        text = str(value)
        name = _DATES.get(key, key.removeprefix("/"))
        if key in _DATES:
            text = _shown_date(text)
        elif key == "/Trapped":
            text = text.removeprefix("/")
        shown[name] = [word.strip() for word in text.split(",")] if name == "Keywords" and "," in text else text
    return shown


def _shown_date(text: str) -> str:
    match = _PDF_DATE.match(text)
    if match is None:
        return text
    zone = (match[7] or "").replace("'", "")
    shown_zone = f"{zone[:3]}:{zone[3:]}" if len(zone) > 1 else zone
    day = ":".join((match[1], match[2] or "01", match[3] or "01"))
    return f"{day} {match[4] or '00'}:{match[5] or '00'}:{match[6] or '00'}{shown_zone}"


def write_metadata(pdf: Pdf, step: dict[str, Any]) -> None:
    """Writes the values of a step into the information dictionary and the XMP packet."""
    values = {name: value for name, value in step["metadata"].items() if name not in {"PDFVersion", "PageCount"}}
    info: dict[str, Any] = {}
    for name, value in values.items():
        key = _INFO_NAMES.get(name, f"/{name}")
        if key in _DATES:
            info[key] = _pdf_date(name, str(value))
        elif key == "/Trapped":
            info[key] = NameObject(f"/{value}")
        elif isinstance(value, list):
            info[key] = ", ".join(map(str, value))
        else:
            info[key] = str(value).lower() if isinstance(value, bool) else str(value)
    pdf.content.add_metadata(info)
    _update_xmp(pdf.content, info)


def _pdf_date(name: str, text: str) -> str:
    match = _GIVEN_DATE.fullmatch(text.strip())
    if match is None:
        raise Refused(f"metadata: {name} '{text[:40]}' is not a date such as 2026-11-26T16:27:50+01:00; correct it")
    clock = "".join(part or "00" for part in match.group(4, 5, 6))
    zone = (match[7] or "").replace(":", "")
    return f"D:{match[1]}{match[2]}{match[3]}{clock}" + (f"{zone[:3]}'{zone[3:]}'" if len(zone) > 1 else zone)


def _update_xmp(content: PdfWriter, info: dict[str, Any]) -> None:
    """Keeps the XMP packet, if there is one, equal to the information dictionary; drops one that cannot be read."""
    root = content.root_object
    if "/Metadata" not in root:
        return
    try:
        xmp = content.xmp_metadata
        assert xmp is not None
        for key, (space, tag, name, in_form) in _XMP.items():
            if key not in info:
                continue
            for element in list(xmp.rdf_root.getElementsByTagNameNS(space, tag)):  # in whichever description
                if element.parentNode is not None:
                    element.parentNode.removeChild(element)
            setattr(xmp, name, in_form(info[key]))
        content.xmp_metadata = xmp
    except Exception:  # noqa: BLE001 - whatever is wrong with the packet of a stranger
        del root["/Metadata"]


# ---- bookmarks ----


def read_bookmarks(pdf: Pdf) -> list[dict[str, Any]]:
    """The outline, as the field ``bookmarks`` has it."""
    left = [OUTLINE_MAX]

    def rows(entries: list[Any], depth: int) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = []
        for entry in entries:
            if left[0] <= 0 or depth > OUTLINE_DEPTH_MAX:
                break
            left[0] -= 1
            if isinstance(entry, list):
                if shown and (below := rows(entry, depth + 1)):
                    shown[-1]["children"] = below
                continue
            number = pdf.content.get_destination_page_number(entry)
            shown.append({"title": str(entry.title), "page": (number or 0) + 1})
        return shown

    try:
        return rows(pdf.content.outline, 0)
    except Exception as exc:
        raise Refused(f"{pdf.name}: its bookmarks cannot be read ({type(exc).__name__}: {exc})"[:300]) from exc


def set_bookmarks(pdf: Pdf, step: dict[str, Any]) -> None:
    """Replaces the outline by the bookmarks of a step."""
    given = step["bookmarks"]
    rows = given.get(pdf.name) if isinstance(given, dict) else given
    if rows is None:
        return
    pdf.content.root_object.pop(NameObject("/Outlines"), None)
    count = len(pdf.content.pages)

    def add(items: list[dict[str, Any]], parent: Any) -> None:
        for item in items:
            if not 1 <= item["page"] <= count:
                raise Refused(
                    f"bookmarks: {pdf.name} has {count} pages, none of them is {item['page']}; correct it"
                )
            made = pdf.content.add_outline_item(item["title"], item["page"] - 1, parent=parent)
            add(item.get("children") or [], made)

    add(rows, None)
