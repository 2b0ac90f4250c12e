"""The styles of a house template: ours by the names that they have there, and those that it lacks beside them."""

import copy
import re
from collections import Counter

from lxml import etree
from render.docx.styles import styles_xml
from render.model import Theme

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_USED = re.compile(r'<w:(pStyle|rStyle|tblStyle) w:val="([^"]+)"/>')
_CONTENTS = re.compile(r'<w:pPr><w:pStyle w:val="(TOC\d)"/></w:pPr>')
_KINDS = {"pStyle": "paragraph", "rStyle": "character", "tblStyle": "table"}
_TABLE = "ReportTable"
_LEVELS = 5
"""Word has list styles of five levels: List Bullet, List Bullet 2, …"""
_ALIASES = {"code block": ("code", "source code", "html preformatted", "macro text"), "inline code": ("code char",)}
"""Names that other programs have for styles of ours."""


class HouseStyles:
    """The styles of a template.

    Args:
        root: of its styles part.
        body: of its main part: tables in it show which style tables have.
    """

    def __init__(self, root: etree._Element, body: etree._Element) -> None:
        self._root = root
        self._ids: dict[tuple[str, str], str] = {}
        self._ours: dict[tuple[str, str], str] = {}
        for style in root.iter(f"{W}style"):
            name = style.find(f"{W}name")
            key = (
                style.get(f"{W}type", "paragraph"),
                (name.get(f"{W}val") or "").lower() if name is not None else "",
            )
            self._ids.setdefault(key, style.get(f"{W}styleId", ""))
        self.table = self._table_style(body)
        """Id of the style that tables get; "" for ours."""

    def style_id(self, kind: str, name: str) -> str:
        """The id of a style by its name; "" if there is none."""
        return self._ids.get((kind, name), "")

    def list_style(self, ordered: bool, level: int) -> str:
        """The id of the list style of a level, from 0, or of the nearest above it; "" if there is none."""
        stem = "list number" if ordered else "list bullet"
        names = (f"{stem} {number}" if number > 1 else stem for number in range(min(level, _LEVELS - 1) + 1, 0, -1))
        return next((found for name in names if (found := self.style_id("paragraph", name))), "")

    def numbering_of(self, style_id: str) -> tuple[str, int] | None:
        """The list and the level that a style numbers its paragraphs with."""
        style = self._find(style_id)
        found = style.find(f"{W}pPr/{W}numPr") if style is not None else None
        number = found.find(f"{W}numId") if found is not None else None
        level = found.find(f"{W}ilvl") if found is not None else None
        if number is None:
            return None
        value = level.get(f"{W}val", "0") if level is not None else "0"
        return number.get(f"{W}val", ""), int(value) if value.isdigit() else 0

    def part(self, theme: Theme, language: str, width: int) -> bytes:
        """The styles part: the template's, and those of ours that it lacks, in its colours."""
        ours = etree.fromstring(styles_xml(theme, language, width).encode())
        added = []
        for style in ours.iter(f"{W}style"):
            kind, identity = style.get(f"{W}type", ""), style.get(f"{W}styleId", "")
            name = style.find(f"{W}name").get(f"{W}val", "").lower()
            known = self._known(kind, name)
            if identity == _TABLE and self.table:
                known = self.table
            self._ours[kind, identity] = known or self._free(identity)
            if not known:
                added.append(style)
        root = copy.deepcopy(self._root)
        for style in added:
            root.append(self._adapted(style))
        part: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
        return part

    def renamed(self, xml: str, width: int) -> str:
        """A text whose paragraphs and tables have the template's styles; `part` has to be made before.

        Args:
            xml: paragraphs and tables with our styles.
            width: of the text, where entries of a table of contents end.
        """
        stop = f'<w:tabs><w:tab w:val="right" w:leader="dot" w:pos="{width}"/></w:tabs>'
        xml = _CONTENTS.sub(lambda match: f'<w:pPr><w:pStyle w:val="{match[1]}"/>{stop}</w:pPr>', xml)

        def house(match: re.Match[str]) -> str:
            return f'<w:{match[1]} w:val="{self._ours.get((_KINDS[match[1]], match[2]), match[2])}"/>'

        return _USED.sub(house, xml)

    def _known(self, kind: str, name: str) -> str:
        names = (name, *_ALIASES.get(name, ()))
        return next((found for alias in names if (found := self.style_id(kind, alias))), "")

    def _adapted(self, style: etree._Element) -> etree._Element:
        """One of our styles with the ids that the template has for those that it builds on."""
        kind = style.get(f"{W}type", "")
        style.set(f"{W}styleId", self._ours[kind, style.get(f"{W}styleId", "")])
        style.attrib.pop(f"{W}default", None)
        for name in ("basedOn", "next", "link"):
            other = style.find(f"{W}{name}")
            if other is not None:
                value = other.get(f"{W}val", "")
                other.set(f"{W}val", self._ours.get((kind, value), value))
        return style

    def _free(self, identity: str) -> str:
        taken = set(self._ids.values())
        while identity in taken:
            identity += "1"
        return identity

    def _find(self, style_id: str) -> etree._Element | None:
        return next((style for style in self._root.iter(f"{W}style") if style.get(f"{W}styleId") == style_id), None)

    def _table_style(self, body: etree._Element) -> str:
        """The style that most tables of the template have, else one of its own making, else none."""
        known = {identity for (kind, _), identity in self._ids.items() if kind == "table"}
        used = Counter(
            style.get(f"{W}val", "") for style in body.iter(f"{W}tblStyle") if style.get(f"{W}val") in known
        )
        if used:
            return str(used.most_common(1)[0][0])
        own = (
            style.get(f"{W}styleId", "")
            for style in self._root.iter(f"{W}style")
            if style.get(f"{W}type") == "table" and style.get(f"{W}customStyle") in {"1", "true"}
        )
        return next(own, "")
