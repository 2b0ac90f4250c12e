"""Whether a rendered file opens, and holds nothing that acts or that came from elsewhere."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdf
from attack import CANARY, CANARY_RGB
from lxml import etree
from PIL import Image
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

Image.MAX_IMAGE_PIXELS = None
CANARY_PIXELS = bytes(CANARY_RGB) * 4
FIELDS = re.compile(r"\s*(?:TOC|PAGE|NUMPAGES|PAGEREF|NOTEREF|REF|SEQ)\b[^\"]*(?:\"1-\d\"[^\"]*)?")
"""The instructions of the fields that the writer itself makes; none of them opens or runs anything."""
LINK = re.compile(r"(?:https?://|mailto:|tel:|#)", re.IGNORECASE)
_SCHEME = re.compile(r"\s*[a-z][a-z0-9+.-]*:|\s*[/\\]{2}", re.IGNORECASE)
_ACTIVE = {
    "/JavaScript",
    "/Launch",
    "/GoToR",
    "/GoToE",
    "/SubmitForm",
    "/ImportData",
    "/Rendition",
    "/Movie",
    "/Sound",
}
_RELATIONSHIPS = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FORMULA = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}f"
_ACTIONS = ("", "ppaction://hlinksldjump")


def faults_of(path: Path, output: str) -> list[str]:
    """What is wrong with a rendered file; an empty list if it opens and is harmless."""
    data = path.read_bytes()
    if not data:
        return ["empty"]
    return {"pdf": _pdf, "png": _png, "docx": _package, "pptx": _package, "xlsx": _package}[output](data)


def is_link(address: str) -> bool:
    """Whether an address leads to the web, to a mailbox, or to a place beside the document."""
    return bool(LINK.match(address)) or not _SCHEME.match(address)


def _holds_canary(data: bytes) -> bool:
    return CANARY.encode() in data or CANARY_PIXELS in data


def _png(data: bytes) -> list[str]:
    with Image.open(io.BytesIO(data)) as picture:
        pixels = picture.convert("RGB").tobytes()
    return ["the canary is shown"] if _holds_canary(data + pixels) else []


def _pdf(data: bytes) -> list[str]:
    reader = pypdf.PdfReader(io.BytesIO(data))
    faults = [] if len(reader.pages) else ["no page"]
    text = " ".join((page.extract_text() or "") for page in reader.pages[:20])
    if CANARY in text:
        faults.append("the canary is shown")
    for item in _objects(reader):
        if not isinstance(item, DictionaryObject):
            continue
        kind = item.get("/S")
        if kind in _ACTIVE or "/JS" in item or "/EF" in item:
            faults.append(f"acts or carries a file: {kind}")
        if kind == "/URI" and not is_link(str(item["/URI"])):
            faults.append(f"links to {item['/URI'][:80]}")
        stream = getattr(item, "_data", None)
        if stream and _holds_canary(_inflated(stream)):
            faults.append("the canary is in a stream")
    return faults


def _objects(reader: pypdf.PdfReader) -> Iterator[Any]:
    for number in range(1, int(reader.trailer["/Size"])):
        item = reader.get_object(IndirectObject(number, 0, reader))
        stack = [item]
        while stack:  # dictionaries that stand within others
            inner = stack.pop()
            yield inner
            parts = inner.values() if isinstance(inner, DictionaryObject) else inner
            if isinstance(inner, DictionaryObject | ArrayObject):
                stack.extend(part for part in parts if isinstance(part, DictionaryObject | ArrayObject))


def _inflated(stream: bytes | str) -> bytes:
    raw = stream if isinstance(stream, bytes) else stream.encode("latin-1", "replace")
    try:
        return raw + zlib.decompress(raw)
    except zlib.error:
        return raw


def _package(data: bytes) -> list[str]:
    faults = []
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        names = package.namelist()
        faults += [f"part {name}" for name in names if ".." in name or name.startswith("/")]
        for name in names:
            part = package.read(name)
            if _holds_canary(part):
                faults.append(f"the canary is in {name}")
            if name.endswith((".xml", ".rels", ".svg")):
                faults += [f"{name}: {fault}" for fault in _xml(part, is_drawing=name.endswith(".svg"))]
            elif name.endswith((".png", ".jpeg", ".jpg", ".gif", ".bmp")):
                faults += [f"{name}: {fault}" for fault in _png(part)]
            elif name.endswith(".xlsx"):  # the figures of a chart
                faults += _package(part)
            else:
                faults.append(f"part {name}")
    return faults


def _xml(part: bytes, *, is_drawing: bool) -> list[str]:
    faults = [] if b"<!DOCTYPE" not in part and b"<!ENTITY" not in part else ["document type"]
    root = etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))
    for element in root.iter(etree.Element):
        if element.tag == _RELATIONSHIPS and element.get("TargetMode") == "External":
            kind = element.get("Type", "").rpartition("/")[2]
            if kind != "hyperlink" or not is_link(element.get("Target", "")):
                faults.append(f"external {kind} {element.get('Target', '')[:80]}")
        elif element.tag == f"{_WORD}instrText" and not FIELDS.fullmatch(element.text or ""):
            faults.append(f"field {(element.text or '')[:80]}")
        elif element.tag in {f"{_WORD}fldSimple", f"{_WORD}object", f"{_WORD}altChunk", f"{_WORD}attachedTemplate"}:
            faults.append(f"element {element.tag}")
        elif element.tag == _FORMULA:
            faults.append(f"formula {element.text}")
        elif element.tag.endswith(("}hlinkClick", "}hlinkHover")) and element.get("action", "") not in _ACTIONS:
            faults.append(f"action {element.get('action')}")
        if is_drawing:
            faults += _drawing(element)
    return faults


def _drawing(element: Any) -> list[str]:
    """What a drawing that is carried in a package would fetch or run in a program that shows it."""
    faults = []
    name = etree.QName(element).localname
    if name in {"script", "foreignObject", "iframe", "audio", "video"}:
        faults.append(f"<{name}>")
    for key, value in element.attrib.items():
        plain = etree.QName(key).localname.lower()
        if plain.startswith("on"):
            faults.append(f"{plain}=")
        if name == "a" and plain == "href":
            faults += [] if is_link(value) else [f"links to {value[:60]}"]
        elif plain in {"href", "src"} and not value.strip().startswith(("#", "data:image/")):
            faults.append(f"{name} {plain}={value[:60]}")
        if re.search(r"url\(\s*['\"]?\s*(?!#|data:image/|['\"#]|\s)", value, re.IGNORECASE):
            faults.append(f"{name} {plain}={value[:60]}")
    if name == "style" and re.search(
        r"@import|url\(\s*['\"]?\s*(?!#|data:|['\"#]|\s)", element.text or "", re.IGNORECASE
    ):
        faults.append("style sheet that loads")
    return faults
