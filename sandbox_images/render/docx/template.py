"""A house template of a DOCX: its styles, numbering, page, headers and theme, and where the text goes."""

import copy
from dataclasses import dataclass, replace
from typing import Literal

from lxml import etree
from render.docx.page import Page
from render.docx.template_lists import HouseNumbering
from render.docx.template_styles import HouseStyles
from render.docx.template_words import drop_references, fill_fields, fill_part
from render.docx.xml import NAMESPACES
from render.model import Document, RenderError, Theme
from render.template.package import Package, open_template, parse_part, rels_xml
from render.template.theme import theme_of

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
MARK = "{{content}}"
_HOUSE = "house"
"""What the ids of the template's relationships begin with, beside ours."""
_TWIPS_PER_MM = 1440 / 25.4
_RUNNING = ("header+xml", "footer+xml")


@dataclass(slots=True)
class DocxTemplate:
    """A template that a document is written into.

    Attributes:
        package: its parts.
        root: of its main part.
        styles: its styles, with ours beside them.
        numbering: its lists, with ours beside them.
        before, after: what stands around the text.
        section: ``w:sectPr`` of the pages with the text.
        page: their size and margins.
        theme: its colours and fonts.
    """

    package: Package
    root: etree._Element
    styles: HouseStyles
    numbering: HouseNumbering
    before: list[etree._Element]
    after: list[etree._Element]
    section: etree._Element
    page: Page
    theme: Theme

    @property
    def has_table_style(self) -> bool:
        """Whether tables look as those of the template do."""
        return bool(self.styles.table)

    def applied(self, document: Document) -> Document:
        """The document with the page, the theme and the running lines of the template, as far as the request has none."""
        options = dict(document.request.options)
        if not options.get("page_size"):
            sides = (self.page.width, self.page.height)
            if options.get("landscape"):
                sides = (max(sides), min(sides))
            options["page_size"] = " ".join(f"{side / _TWIPS_PER_MM:.4f}mm" for side in sides)
        given = options.get("margins") or {}
        own = {
            side: f"{getattr(self.page, side) / _TWIPS_PER_MM:.4f}mm" for side in ("top", "right", "bottom", "left")
        }
        if isinstance(given, dict):
            options["margins"] = {**own, **{side: value for side, value in given.items() if value}}
        if self._has("footer"):
            options["page_numbers"] = False
        return replace(document, request=replace(document.request, options=options), theme=self.theme)

    def _has(self, edge: str) -> bool:
        return self.section.find(f"{W}{edge}Reference") is not None

    def section_xml(self, page: Page, references: str, *, bare_first: bool) -> str:
        """``w:sectPr`` of a section with the template's headers, but for those that the request has of its own."""
        section = copy.deepcopy(self.section)
        kinds = ("default", "even") if bare_first else ("default", "even", "first")
        for row in reversed(etree.fromstring(f"<w:x {NAMESPACES}>{references}</w:x>")):
            for old in section.findall(row.tag):
                if old.get(f"{W}type", "default") in kinds:
                    section.remove(old)
            for kind in reversed(kinds):  # those that the template does not use do no harm
                added = copy.deepcopy(row)
                added.set(f"{W}type", kind)
                section.insert(0, added)
        if page != self.page:
            _set_page(section, page, self.page)
        if bare_first and section.find(f"{W}titlePg") is None:
            _add_title_page(section)
        return str(etree.tostring(section, encoding="unicode"))

    def end_section(self, section: str) -> None:
        """Gives the section that goes on behind the text other settings: those of the text."""
        ended = etree.fromstring(f"<w:x {NAMESPACES}>{section}</w:x>")[0]
        for index, block in enumerate(self.after):
            if block.tag == f"{W}sectPr":
                self.after[index] = ended
                return
            own = block.find(f"{W}pPr/{W}sectPr")
            if own is not None:
                own.getparent().replace(own, ended)
                return
        self.after.append(ended)

    def linked_part(self, key: str) -> str | None:
        """The part of the template that a reference in the main part leads to; None if it is none of the template."""
        link = self.package.links.get(self.package.main, {}).get(key.removeprefix(_HOUSE))
        return link.target if link is not None and key.startswith(_HOUSE) and not link.external else None

    def document_root(self, body: str) -> etree._Element:
        """The root of the main part with a text in its place."""
        inner = etree.fromstring(f"<w:body {NAMESPACES}>{body}</w:body>", etree.XMLParser(huge_tree=True))
        root = copy.deepcopy(self.root)
        place = root.find(f"{W}body")
        if place is None:  # opening a template without one is an error
            raise ValueError("the template has no body")
        place[:] = [*self.before, *inner, *self.after]
        return root

    def xml_of(self, root: etree._Element) -> bytes:
        """The main part as it is written."""
        part: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
        return part

    def parts(self, document: Document) -> tuple[dict[str, str | bytes], dict[str, str]]:
        """The parts that are taken as they are, and the media types of all."""
        parts: dict[str, str | bytes] = {}
        written = {self.package.main, self.package.linked(self.package.main, "footnotes")}
        for name, data in self.package.parts.items():
            if name in written:
                continue
            is_running = self.package.types[name].endswith(_RUNNING)
            parts[name] = fill_part(data, document.metadata) if is_running else data
            links = self.package.links.get(name)
            if links:
                folder, _, last = name.rpartition("/")
                parts[f"{folder}/_rels/{last}.rels"] = rels_xml(name, links)
        types = {name: mime for name, mime in self.package.types.items() if name in parts}
        return parts, types

    def part_name(self, kind: str) -> str | None:
        """The name of the part with the styles, the numbering and so on."""
        return self.package.linked(self.package.main, kind)

    def relationships(self, ours: str) -> str:
        """The relationships of the main part: ours and those of the template."""
        own = self.package.links.get(self.package.main, {})
        links = {_HOUSE + key: link for key, link in own.items() if link.kind != "footnotes"}
        rows = etree.fromstring(rels_xml(self.package.main, links))
        text = "".join(etree.tostring(row, encoding="unicode") for row in rows)
        return ours.replace("</Relationships>", text + "</Relationships>")


def load_template(document: Document) -> DocxTemplate | None:
    """The template of a request; None if it has none.

    Raises:
        RenderError: ``invalid_template``.
    """
    package = open_template(document, "docx")
    if package is None:
        return None
    try:
        return _read(package, document)
    except (ValueError, etree.XMLSyntaxError, KeyError, TypeError) as exc:
        raise RenderError(
            "invalid_template",
            f"template: {package.name} cannot be used: {str(exc)[:160]}; open it in Word and save it again as .docx",
        ) from exc


def _read(package: Package, document: Document) -> DocxTemplate:
    root = parse_part(package.parts[package.main])
    _rename_links(root)
    body = root.find(f"{W}body")
    if body is None or not package.main.startswith("word/"):
        raise ValueError("it has no body")
    before, after, section = _around(body)
    is_marked = any(_words(child) == MARK for child in body)
    if not is_marked and MARK in "".join(text.text or "" for text in body.iter(f"{W}t")):
        document.warn(
            "content_mark_ignored",
            f"{package.name}: {MARK} is not a paragraph of its own on the page, so the text replaced all of the "
            "template's; take it out of its table or box.",
        )

    around = [*before, *after]
    for block in around:
        fill_fields(block, document.metadata)
    endnotes = {"endnotes"} if package.linked(package.main, "endnotes") else set()
    notes = drop_references(around, endnotes) - {"comments"}
    if notes:
        left_out = f"the {' and '.join(sorted(notes))} of its text"
        document.warn("template_cleaned", f"{package.name}: left out of the template: {left_out}.")

    def part(kind: str) -> bytes | None:
        name = package.linked(package.main, kind)
        return None if name is None else package.parts[name]

    styles_part = part("styles")
    if styles_part is None:
        raise ValueError("it has no styles")
    theme = theme_of(part("theme"), document.theme)
    page = _page(section)
    styles = HouseStyles(parse_part(styles_part), body)
    numbering_part = part("numbering")
    numbering = HouseNumbering(parse_part(numbering_part) if numbering_part else None, styles)
    return DocxTemplate(package, root, styles, numbering, before, after, section, page, theme)


def _around(body: etree._Element) -> tuple[list[etree._Element], list[etree._Element], etree._Element]:
    """What stands before and after the place of the text, and the section that it is in."""
    last = body.find(f"{W}sectPr")
    children = [child for child in body if child is not last]
    at = next((index for index, child in enumerate(children) if _words(child) == MARK), None)
    plain = copy.deepcopy(last) if last is not None else etree.fromstring(f"<w:sectPr {NAMESPACES}/>")
    if at is None:
        return [], [], plain
    after = children[at + 1 :]
    own = next((found for child in after if (found := child.find(f"{W}pPr/{W}sectPr")) is not None), None)
    section = copy.deepcopy(own) if own is not None else plain
    if after and last is not None:
        after.append(last)
    return children[:at], after, section


def _words(element: etree._Element) -> str:
    if element.tag != f"{W}p":
        return ""
    return "".join(text.text or "" for text in element.iter(f"{W}t")).strip()


def _page(section: etree._Element) -> Page:
    size, margins = section.find(f"{W}pgSz"), section.find(f"{W}pgMar")

    def length(element: etree._Element | None, name: str, default: int) -> int:
        value = element.get(f"{W}{name}") if element is not None else None
        try:
            return min(max(round(float(value)), 0), 31_680) if value is not None else default
        except ValueError:
            return default

    sides = ("top", "right", "bottom", "left")
    wide, tall = max(length(size, "w", 11_906), 1_440), max(length(size, "h", 16_838), 1_440)
    return Page(wide, tall, *(length(margins, side, 1_440) for side in sides))


def _set_page(section: etree._Element, page: Page, own: Page) -> None:
    size = section.find(f"{W}pgSz")
    if size is None:
        size = etree.SubElement(section, f"{W}pgSz")
    size.set(f"{W}w", str(page.width))
    size.set(f"{W}h", str(page.height))
    size.attrib.pop(f"{W}orient", None)
    if page.width > page.height:
        size.set(f"{W}orient", "landscape")
    margins = section.find(f"{W}pgMar")
    if margins is not None:
        sides: tuple[Literal["top", "right", "bottom", "left"], ...] = ("top", "right", "bottom", "left")
        for side in sides:
            if abs(getattr(page, side) - getattr(own, side)) > 1:
                margins.set(f"{W}{side}", str(getattr(page, side)))


def _add_title_page(section: etree._Element) -> None:
    """``w:titlePg`` in its place in the schema."""
    later = {
        f"{W}{name}"
        for name in ("textDirection", "bidi", "rtlGutter", "docGrid", "printerSettings", "sectPrChange")
    }
    at = next((index for index, child in enumerate(section) if child.tag in later), len(section))
    section.insert(at, etree.Element(f"{W}titlePg"))


def _rename_links(root: etree._Element) -> None:
    """Give the template's relationships ids that ours, which begin with ``rId`` too, never have."""
    for element in root.iter(etree.Element):
        for key, value in list(element.attrib.items()):
            if key.startswith(_R) and value:
                element.set(key, _HOUSE + value)
