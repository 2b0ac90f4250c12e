"""The package of a house template: read within bounds, and without what acts, loads or belongs to another document.

Only parts of known kinds are taken, each by a relationship from a part that was taken. What refers to one that was not
is taken out of its XML, so that office programs do not call the file damaged.
"""

import io
import posixpath
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import Literal

from lxml import etree
from render.frontend.assets import AssetRefused, read_file
from render.limits import (
    TEMPLATE_BYTES_MAX,
    TEMPLATE_PARTS_MAX,
    TEMPLATE_UNPACKED_BYTES_MAX,
    TEMPLATE_XML_BYTES_MAX,
)
from render.model import Document, RenderError

Kind = Literal["docx", "pptx"]
LINKS_MAX = 2_000
"""Relationships of one part."""
RELATIONSHIPS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELS = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_TYPES = "{http://schemas.openxmlformats.org/package/2006/content-types}"
_OLE = b"\xd0\xcf\x11\xe0"
_MAIN = {
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml",
}
_MAIN_WORDS = {"docx": ("wordprocessingml", "ms-word"), "pptx": ("presentationml", "ms-powerpoint")}
_NAMES = {
    "docx": "a Word document or template (.docx, .dotx)",
    "pptx": "a PowerPoint file or template (.pptx, .potx)",
}
_TAKEN = frozenset(
    {
        "officeDocument",
        "styles",
        "numbering",
        "settings",
        "webSettings",
        "fontTable",
        "font",
        "theme",
        "themeOverride",
    }
    | {"header", "footer", "footnotes", "endnotes", "image", "hyperlink", "chart", "chartStyle", "chartColorStyle"}
    | {"chartUserShapes", "diagramData", "diagramLayout", "diagramQuickStyle", "diagramColors", "diagramDrawing"}
    | {"slideMaster", "slideLayout", "notesMaster", "presProps", "viewProps", "tableStyles", "hdphoto"}
)
"""Kinds of relationships whose parts are taken; embedded workbooks only those of charts."""
_SCHEMES = ("http:", "https:", "mailto:")
_ACTIONS = ("ppaction://macro", "ppaction://program", "ppaction://hlinkfile", "ppaction://ole")
_USABLE_WITHOUT = frozenset({"hyperlink", "blip", "hlinkClick", "hlinkHover"})
"""Elements that may stay without what they referred to; others leave with it."""
_IDENTIFIERS = frozenset({"id", "embed", "link", "pict", "href", "dm", "lo", "qs", "cs"})


@dataclass(frozen=True, slots=True)
class Link:
    """A relationship: its kind in one word, the full one, and the part or address that it leads to."""

    kind: str
    full: str
    target: str
    external: bool


@dataclass(slots=True)
class Package:
    """The parts of a template that are taken.

    Attributes:
        name: of the file, for messages.
        main: name of the main part.
        parts: content by name, without a leading slash; no relationships.
        types: media types by name.
        links: relationships by part and id; "" is the package.
    """

    name: str
    main: str
    parts: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    links: dict[str, dict[str, Link]] = field(default_factory=dict)

    def linked(self, part: str, kind: str) -> str | None:
        """The name of the first part of a kind that a part leads to."""
        return next((link.target for link in self.links.get(part, {}).values() if link.kind == kind), None)


def open_template(document: Document, kind: Kind) -> Package | None:
    """Read the template of a request; None if it has none. What is left out is the warning ``template_cleaned``.

    Raises:
        RenderError: ``invalid_template``.
    """
    path = str(document.request.options.get("template") or "").strip()
    if not path:
        return None
    try:
        data, found = read_file(document, path)
    except AssetRefused as refusal:
        name = posixpath.basename(path)[:100]
        reason = "is not in the conversation" if refusal.code == "missing_asset" else f"is not read: {refusal}"
        raise _refused(
            f"{name} {reason}; give the path of {_NAMES[kind]}, as turn_1/attachments/a.{kind}"
        ) from None
    name = posixpath.basename(found)
    package, left_out = read_package(data, name, kind)
    if left_out:
        document.warn("template_cleaned", f"{name}: left out of the template: {', '.join(sorted(left_out))}.")
    return package


def read_package(data: bytes, name: str, kind: Kind) -> tuple[Package, set[str]]:
    """The parts of a template, and what was left out, in words.

    Raises:
        RenderError: ``invalid_template``.
    """
    if len(data) > TEMPLATE_BYTES_MAX:
        raise _refused(
            f"{name} has {len(data):,} bytes (at most {TEMPLATE_BYTES_MAX:,}); take large pictures out of it"
        )
    if data.startswith(_OLE):
        raise _refused(f"{name} is encrypted or of an old format; save it without a password as .{kind}")
    try:
        files = _unpacked(data, name)
        types = _content_types(files, name)
        package = Package(name, _main_part(files, types, name, kind))
        left_out: set[str] = set()
        _take(package, files, types, left_out)
    except (zipfile.BadZipFile, zlib.error, etree.XMLSyntaxError, EOFError, NotImplementedError, ValueError) as exc:
        raise _refused(f"{name} is not {_NAMES[kind]}: {str(exc)[:120]}; save it again as .{kind}") from exc
    package.types[package.main] = _MAIN[kind]
    return package, left_out


def packed(package: Package) -> bytes:
    """A package as a file."""
    rows = "".join(f'<Override PartName="/{name}" ContentType="{mime}"/>' for name, mime in package.types.items())
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    head = '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
        written.writestr("[Content_Types].xml", f'<Types xmlns="{space}">{head}{rows}</Types>')
        for name in ("", *package.parts):
            if package.links.get(name):
                written.writestr(rels_name(name), rels_xml(name, package.links[name]))
        for name, part in package.parts.items():
            written.writestr(name, part)
    return file.getvalue()


def rels_name(part: str) -> str:
    """The name of the part with the relationships of another."""
    folder, _, name = part.rpartition("/")
    return f"{folder}/_rels/{name}.rels".lstrip("/")


def rels_xml(part: str, links: dict[str, Link]) -> bytes:
    """The relationships of a part; targets are relative to its folder."""
    root = etree.Element(f"{_RELS}Relationships", nsmap={None: _RELS[1:-1]})
    for key, link in links.items():
        target = link.target if link.external else posixpath.relpath(link.target, posixpath.dirname(part) or ".")
        row = etree.SubElement(root, f"{_RELS}Relationship", Id=key, Type=link.full, Target=target)
        if link.external:
            row.set("TargetMode", "External")
    content: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
    return content


def parse_part(data: bytes) -> etree._Element:
    """The root of an XML part.

    Raises:
        etree.XMLSyntaxError: it is not XML.
        ValueError: it is too large, or has a document type.
    """
    if len(data) > TEMPLATE_XML_BYTES_MAX:
        raise ValueError(f"a part has {len(data):,} bytes (at most {TEMPLATE_XML_BYTES_MAX:,})")
    root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False))
    if root.getroottree().docinfo.doctype or next(root.iter(etree.Entity), None) is not None:
        raise ValueError("a part has a document type")
    return root


def _refused(message: str) -> RenderError:
    return RenderError("invalid_template", f"template: {message}")


def _unpacked(data: bytes, name: str) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = TEMPLATE_UNPACKED_BYTES_MAX
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if len(entries) > TEMPLATE_PARTS_MAX:
            raise _refused(
                f"{name} has {len(entries):,} parts (at most {TEMPLATE_PARTS_MAX:,}); take slides and pictures out"
            )
        for entry in entries:
            if entry.flag_bits & 1:
                raise _refused(f"{name} is encrypted; save it without a password")
            with archive.open(entry) as part:  # the size that an entry claims may be a lie
                content = part.read(room + 1)
            room -= len(content)
            if room < 0:
                raise _refused(
                    f"{name} unpacks to more than {TEMPLATE_UNPACKED_BYTES_MAX:,} bytes; take large pictures out of it"
                )
            files[entry.filename.lstrip("/")] = content
    return files


def _content_types(files: dict[str, bytes], name: str) -> dict[str, str]:
    if "[Content_Types].xml" not in files:
        raise ValueError(f"{name} has no list of its parts")
    root = parse_part(files["[Content_Types].xml"])
    defaults = {
        row.get("Extension", "").lower(): row.get("ContentType", "") for row in root.iter(f"{_TYPES}Default")
    }
    own = {
        row.get("PartName", "").lstrip("/").lower(): row.get("ContentType", "")
        for row in root.iter(f"{_TYPES}Override")
    }
    extensions = {part: part.rpartition(".")[2].lower() for part in files}
    return {part: own.get(part.lower()) or defaults.get(extensions[part], "") for part in files}


def _main_part(files: dict[str, bytes], types: dict[str, str], name: str, kind: Kind) -> str:
    links = _links_of("", files)
    main = next((link.target for link in links.values() if link.kind == "officeDocument"), "")
    if any(link.full.startswith("http://purl.oclc.org/") for link in links.values()):
        raise _refused(f"{name} is in the strict form of Open XML; save it as the usual .{kind}")
    if main not in files or not any(word in types[main].lower() for word in _MAIN_WORDS[kind]):
        raise _refused(f"{name} is not {_NAMES[kind]}; give one")
    return main


def _links_of(part: str, files: dict[str, bytes]) -> dict[str, Link]:
    data = files.get(rels_name(part))
    if data is None:
        return {}
    links: dict[str, Link] = {}
    for row in parse_part(data).iter(f"{_RELS}Relationship"):
        if len(links) >= LINKS_MAX:
            raise ValueError(f"a part has more than {LINKS_MAX:,} relationships")
        full, target = row.get("Type", ""), row.get("Target", "")
        external = row.get("TargetMode") == "External"
        if not external:
            base = "" if target.startswith("/") else posixpath.dirname(part)
            target = posixpath.normpath(posixpath.join(base, target.lstrip("/"))).lstrip("/")
        links[row.get("Id", "")] = Link(full.rstrip("/").rpartition("/")[2], full, target, external)
    return links


def _take(package: Package, files: dict[str, bytes], types: dict[str, str], left_out: set[str]) -> None:
    """Take the main part and all that it leads to, part by part."""
    waiting = [""]
    seen = {""}
    while waiting:
        part = waiting.pop()
        links = _links_of(part, files)
        taken = {key: link for key, link in links.items() if _is_taken(part, link, files, types)}
        for link in links.values():
            if all(link is not other for other in taken.values()):
                left_out.update(_words_of(link))
        package.links[part] = taken
        if part:
            package.types[part] = types[part]
            package.parts[part] = _cleaned(files[part], types[part], set(links) - set(taken), set(links))
        for link in taken.values():
            if not link.external and link.target not in seen:
                seen.add(link.target)
                waiting.append(link.target)


def _is_taken(part: str, link: Link, files: dict[str, bytes], types: dict[str, str]) -> bool:
    if link.external:
        return link.kind == "hyperlink" and link.target.lower().startswith(_SCHEMES)
    if link.target not in files:
        return False
    if link.kind == "package":
        return "chart" in types.get(part, "") and types[link.target].endswith("spreadsheetml.sheet")
    return link.kind in _TAKEN and (part != "" or link.kind == "officeDocument")


def _words_of(link: Link) -> tuple[str, ...]:
    """What is left out with a relationship, if a person should know."""
    if link.external:
        return ("links to files outside of it",)
    if link.kind in {"vbaProject", "wordVbaData", "vbaProjectSignature", "keyMapCustomizations"}:
        return ("macros",)
    if link.kind in {"oleObject", "control", "package", "activeXControlBinary", "attachedToolbars"}:
        return ("embedded objects",)
    return ("video and sound",) if link.kind in {"video", "audio", "media"} else ()


def _cleaned(data: bytes, mime: str, missing: set[str], known: set[str]) -> bytes:
    """A part without what refers to parts that were not taken, and without what starts programs."""
    if not mime.endswith("xml"):
        return data
    root = parse_part(data)
    changed = False
    for element in list(root.iter(etree.Element)):
        if element.getparent() is None:
            continue
        if (element.get("action") or "").lower().startswith(_ACTIONS):
            _remove(element)
            changed = True
            continue
        for key, value in list(element.attrib.items()):
            space, _, name = key[1:].rpartition("}")
            if space != RELATIONSHIPS or name not in _IDENTIFIERS or not value:
                continue
            if value in missing or value not in known:
                changed = True
                if etree.QName(element).localname in _USABLE_WITHOUT:
                    del element.attrib[key]
                else:
                    _remove(_whole(element))
                    break
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True) if changed else data


def _whole(element: etree._Element) -> etree._Element:
    """The object that an element is the data of."""
    for ancestor in element.iterancestors():
        if etree.QName(ancestor).localname in {"object", "graphicFrame", "control", "pict", "mailMerge"}:
            return ancestor
    return element


def _remove(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)
