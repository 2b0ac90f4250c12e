"""The structure of a DOCX file, read from its XML."""

import re
import zipfile
from pathlib import Path
from typing import Any

from lxml import etree

from bench.render.structure_rows import (
    MONO,
    TICKS,
    WEB,
    R,
    ShownBlock,
    Structure,
    add_marks,
    plain_address,
    plain_words,
)
from bench.render.words import W, words


def of_docx(path: Path) -> Structure:
    """Reads a DOCX file.

    Raises:
        Exception: it is no DOCX file.
    """
    with zipfile.ZipFile(path) as package:
        parts = {
            name: etree.fromstring(package.read(name))
            for name in package.namelist()
            if name.startswith("word/") and name.endswith((".xml", ".rels"))
        }
    found = Structure()
    styles = _Styles(parts["word/styles.xml"], parts.get("word/numbering.xml"))
    for name in ("document", "footnotes"):
        if f"word/{name}.xml" in parts:
            relations = parts.get(f"word/_rels/{name}.xml.rels")
            targets = {item.get("Id"): item.get("Target") for item in relations} if relations is not None else {}
            _Docx(found, styles, targets).read(parts[f"word/{name}.xml"])
    return found


class _Styles:
    """Styles and numberings of a Word document, as far as they say what a paragraph is."""

    def __init__(self, styles: Any, numbering: Any) -> None:
        self.names = {
            item.get(f"{W}styleId"): item.find(f"{W}name").get(f"{W}val") for item in styles.iter(f"{W}style")
        }
        self.formats: dict[tuple[str, str], str] = {}
        if numbering is None:
            return
        abstract = {item.get(f"{W}abstractNumId"): item for item in numbering.iter(f"{W}abstractNum")}
        for number in numbering.iter(f"{W}num"):
            levels = abstract[number.find(f"{W}abstractNumId").get(f"{W}val")].iter(f"{W}lvl")
            for level in levels:
                kind = level.find(f"{W}numFmt")
                key = (number.get(f"{W}numId"), level.get(f"{W}ilvl"))
                self.formats[key] = kind.get(f"{W}val") if kind is not None else "decimal"

    def name(self, properties: Any, tag: str) -> str:
        """The name of the style that a paragraph or run has."""
        item = properties.find(f"{W}{tag}") if properties is not None else None
        return "" if item is None else self.names.get(item.get(f"{W}val"), "")


class _Docx:
    def __init__(self, found: Structure, styles: _Styles, targets: dict[str, str]) -> None:
        self.found, self.styles, self.targets = found, styles, targets

    def read(self, root: Any) -> None:
        for element in root.iter(f"{W}p", f"{W}tbl", f"{W}hyperlink", "{*}docPr"):
            if element.tag == f"{W}p":
                self._paragraph(element)
            elif element.tag == f"{W}tbl":
                self._table(element)
            elif element.tag == f"{W}hyperlink":
                target = self.targets.get(element.get(f"{R}id")) or "#"
                text = _word_text(element)
                if words(text) and WEB.match(target):
                    self.found.add("link", plain_address(target), plain_words(text))
            elif words(element.get("descr") or ""):
                self.found.add("alt", plain_words(element.get("descr")))

    def _paragraph(self, paragraph: Any) -> None:
        properties = paragraph.find(f"{W}pPr")
        style = self.styles.name(properties, "pStyle")
        text = _word_text(paragraph)
        level = re.fullmatch(r"heading ([1-6])", style, re.IGNORECASE)
        if level and words(text):
            self.found.add("heading", int(level[1]), plain_words(text))
        number = properties.find(f"{W}numPr") if properties is not None else None
        if text.strip()[:1] in tuple(TICKS):
            self.found.add("list", "task", 0, plain_words(text))
        elif number is not None and words(text):
            depth = number.find(f"{W}ilvl").get(f"{W}val")
            kind = self.styles.formats.get((number.find(f"{W}numId").get(f"{W}val"), depth), "none")
            if kind != "none":
                row = ("bullet" if kind == "bullet" else "ordered", int(depth) + 1, plain_words(text))
                self.found.add("list", *row)
        header = next(
            iter(paragraph.xpath("ancestor::w:tr[1]/w:trPr/w:tblHeader", namespaces={"w": W[1:-1]})), None
        )
        if not level and header is None and not MONO.search(style) and style != "TableHeader":
            self._marks(paragraph)

    def _marks(self, paragraph: Any) -> None:
        pieces: list[ShownBlock] = []
        for run in paragraph.iter(f"{W}r"):
            properties = run.find(f"{W}rPr")
            marks = set()
            if properties is not None:
                flags = {"b": "bold", "i": "italic", "strike": "strike"}
                marks = {mark for tag, mark in flags.items() if _is_on(properties.find(f"{W}{tag}"))}
                fonts = properties.find(f"{W}rFonts")
                font = fonts.get(f"{W}ascii") or "" if fonts is not None else ""
                if MONO.search(font) or MONO.search(self.styles.name(properties, "rStyle")):
                    marks.add("code")
            pieces.append((_word_text(run), frozenset(marks)))
        add_marks(self.found, pieces)

    def _table(self, table: Any) -> None:
        for line, row in enumerate(table.findall(f"{W}tr")):
            column = 0
            for cell in row.iter(f"{W}tc"):
                if next(cell.iterancestors(f"{W}tbl")) is not table:
                    continue
                properties = cell.find(f"{W}tcPr")
                span = properties.find(f"{W}gridSpan") if properties is not None else None
                merge = properties.find(f"{W}vMerge") if properties is not None else None
                if merge is None or merge.get(f"{W}val") == "restart":
                    self.found.add("table", line, column, plain_words(_word_text(cell)))
                column += int(span.get(f"{W}val")) if span is not None else 1


def _word_text(element: Any) -> str:
    items = element.iter(f"{W}t", f"{W}br", f"{W}tab", f"{W}p")
    return "".join((item.text or "") if item.tag == f"{W}t" else " " for item in items)


def _is_on(flag: Any) -> bool:
    return flag is not None and flag.get(f"{W}val") not in {"0", "false", "none"}
