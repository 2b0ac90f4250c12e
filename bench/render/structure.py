"""How much of a document's structure is in a DOCX or PPTX file: precision and recall of each kind.

Each side becomes rows of what it has (links with their text, headings with their level, list items with depth and order,
tables with their grid, emphasised words, texts of pictures), and rows are compared in order. Neither side is read with
our own code.
"""

import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from lxml import etree
from pptx import Presentation

from bench.render import corpora
from bench.render.model import Sample
from bench.render.words import INLINE, W, common_subsequence, docx_text, is_visible, paragraph_text, parse_html, pptx_text, visible_text, words

KINDS = ("link", "heading", "list", "table", "emphasis", "alt")
NAMED_MAX = 8
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MARKS = {"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "del": "strike", "s": "strike", "strike": "strike",
          "code": "code", "kbd": "code", "samp": "code", "tt": "code"}  # fmt: skip
_UNMARKED = frozenset({"pre", "th", *_HEADINGS})
_BLOCKS = frozenset({"ul", "ol", "p", "pre", "blockquote", "table", "dl", "div", "hr", "section", *_HEADINGS})
_TICKS = "\u2610\u2611\u2612\u2713\u2714\u25a1\u2705"
_WEB = re.compile(r"(?:https?:|mailto:|#)", re.IGNORECASE)
_MONO = re.compile(r"mono|consolas|courier|code|verbatim", re.IGNORECASE)


Piece = tuple[str, frozenset[str]]
"""A text and its marks, such as ``bold``."""


@dataclass
class Structure:
    """What a document or a file has, kind by kind, in order."""

    rows: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    dressed: set[str] = field(default_factory=set)
    """Lines of code and quotations: a theme may set those in italics or another font as a whole."""
    pictured: dict[Any, set[str]] = field(default_factory=dict)
    """Of rows with a picture in their text: the texts, by the rest of the row. A file may name the picture there."""

    pictures: list[Counter[str]] = field(default_factory=list)
    """What a picture is called by if it cannot be shown: the words of its alt text, else of its address."""

    def names_picture(self, text: str) -> bool:
        """Whether a run of text stands in place of a picture."""
        there = Counter(words(text))
        return any(not name - there for name in self.pictures if name)

    def add(self, kind: str, *what: Any) -> None:
        """Notes one more of a kind."""
        self.rows[kind].append(what)


@dataclass(frozen=True, slots=True)
class StructureScore:
    """Rows found, rows of the file that the source has not, rows missing: by kind; and the first differences."""

    tp: dict[str, int]
    fp: dict[str, int]
    fn: dict[str, int]
    differences: tuple[str, ...] = ()


def f1(tp: int, fp: int, fn: int) -> float:
    """The harmonic mean of precision and recall; 1 where there is nothing to find."""
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 1.0


def score(sample: Sample, path: Path, fmt: str) -> StructureScore:
    """Compares what a source has with what its DOCX or PPTX has.

    Raises:
        ValueError: another format.
    """
    if fmt not in {"docx", "pptx"}:
        raise ValueError(f"no structure is read from {fmt}")
    root = parse_html(corpora.reference_html(sample))
    wanted = _of_source(root, levels=fmt == "docx")
    there, text = (_of_docx(path), docx_text(path)) if fmt == "docx" else (_of_pptx(path, wanted), pptx_text(path))
    if not words(visible_text(root)):
        there.rows["heading"] = []  # an empty deck has a title slide all the same
    tp, fp, fn, differences = {}, {}, {}, []
    for kind in KINDS:
        one, other = wanted.rows[kind], there.rows[kind]
        if kind == "alt":  # a picture that cannot be had is named in the text
            other = [row for row in one if row in other or row[0] in " ".join(words(text))]
        other = [_without_pictures(row, wanted.pictured) for row in other]
        one, other = ([row for row in rows if row[-1] or kind == "table"] for rows in (one, other))
        if kind == "emphasis":
            common = sum((Counter(one) & Counter(other)).values())
        else:
            common = len(common_subsequence(one, other))
        tp[kind], fp[kind], fn[kind] = common, len(other) - common, len(one) - common
        differences += [f"missing {kind} {row}" for row in (Counter(one) - Counter(other)).elements()]
        differences += [f"extra {kind} {row}" for row in (Counter(other) - Counter(one)).elements()]
    return StructureScore(tp, fp, fn, tuple(differences[:NAMED_MAX]))


def _without_pictures(row: Any, pictured: dict[Any, set[str]]) -> Any:
    """A row of a file with the text that its source has, if the file only names a picture beside it."""
    *key, text = row
    there = Counter(text.split())
    for wanted in pictured.get(tuple(key), ()):
        if wanted != text and not Counter(wanted.split()) - there:
            return (*key, wanted)
    return row


def _said(text: str) -> str:
    return " ".join(words(text))


def _address(href: str) -> str:
    return unquote(href).strip().rstrip("/").casefold()


# ---- sources ----


def _of_source(root: Any, *, levels: bool) -> Structure:
    found = Structure()
    places = {name.casefold() for name in root.xpath("//@id | //@name")} | set(_anchors(root))
    pieces: list[Piece] = []
    stack: list[Any] = [(root, 0, frozenset())]
    while stack:
        element, depth, marks = stack.pop()
        if isinstance(element, str):
            pieces.append((element, marks))
            continue
        if not is_visible(element):
            continue
        _note(found, element, depth, places, levels=levels)
        name = element.tag
        inner = depth + (name in {"ul", "ol"})
        within = marks | {_MARKS[name]} if name in _MARKS else marks
        if name in _UNMARKED:
            within |= {"unmarked"}
        if name in {"pre", "blockquote"}:
            found.dressed |= {_said(line) for line in "".join(element.itertext()).split("\n")}
            found.dressed |= {_said("".join(item.itertext())) for item in element.iter("p", "li")}
        for child in reversed(element):
            stack += [(child.tail or "", 0, within), (child, inner, within)]
        stack.append((("" if name in INLINE else "\n") + (element.text or ""), 0, within))
    _add_marks(found, [(text, frozenset() if "unmarked" in marks else marks) for text, marks in pieces])
    return found


def _anchors(root: Any) -> Iterator[str]:
    """What links to headings are called, as GitHub and others make it from their text."""
    count: Counter[str] = Counter()
    for heading in root.iter(*_HEADINGS):
        name = re.sub(r"[^\w\- ]", "", "".join(heading.itertext()).strip().casefold()).replace(" ", "-")
        yield f"{name}-{count[name]}" if count[name] else name
        count[name] += 1


def _note(found: Structure, element: Any, depth: int, places: set[str], *, levels: bool) -> None:
    name, text = element.tag, "".join(element.itertext())
    if name in {"a", *_HEADINGS} and not words(text):
        text = " ".join(image.get("alt") or "" for image in element.iter("img"))
    if name == "a":
        href = element.get("href") or ""
        if href.startswith("#") and unquote(href[1:]).casefold() in places:
            found.add("link", "#", _said(text))
        elif _WEB.match(href) and href[0] != "#":
            found.add("link", _address(href), _said(text))
    elif name in _HEADINGS and words(text):
        found.add("heading", int(name[1]) if levels else 0, _said(text))
    elif name == "li" and depth:
        own = _said(_own_text(element))
        box = next(iter(element.xpath("./input[@type='checkbox'] | ./p[1]/input[@type='checkbox']")), None)
        kind = "task" if box is not None else "ordered" if element.getparent().tag == "ol" else "bullet"
        if own:
            found.add("list", kind, 0 if box is not None else depth, own)
    elif name == "table":
        _note_table(found, element)
    elif name == "img" and words(element.get("alt") or ""):
        found.add("alt", _said(element.get("alt")))
    if name == "img":
        address = unquote((element.get("src") or "").rpartition("/")[2])
        found.pictures.append(Counter(words(element.get("alt") or "") or words(address)))
    if next(element.iter("img"), None) is not None:
        for kind in {"a": ["link"], "li": ["list"]}.get(name, ["heading"] if name in _HEADINGS else []):
            *key, said = found.rows[kind][-1] if found.rows[kind] else ("",)
            found.pictured.setdefault(tuple(key), set()).add(said)


def _own_text(item: Any) -> str:
    """What stands on the first line of a list item."""
    pieces = [item.text or ""]
    for child in item:
        if child.tag in _BLOCKS:
            if not words("".join(pieces)) and child.tag == "p":
                pieces.append("".join(child.itertext()))
            break
        pieces += ["".join(child.itertext()) if isinstance(child.tag, str) else "", child.tail or ""]
    return "".join(pieces)


def _note_table(found: Structure, table: Any) -> None:
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    taken: set[tuple[int, int]] = set()
    cells = []
    for line, row in enumerate(rows):
        column = 0
        for cell in row:
            if cell.tag not in {"td", "th"}:
                continue
            while (line, column) in taken:
                column += 1
            across, down = (max(1, int(re.sub(r"\D", "", cell.get(key) or "") or 1)) for key in ("colspan", "rowspan"))
            taken |= {(line + y, column + x) for y in range(min(down, len(rows) - line)) for x in range(across)}
            said = _said("".join(cell.itertext()))
            cells.append((line, column, said))
            if next(cell.iter("img"), None) is not None:
                found.pictured.setdefault((line, column), set()).add(said)
            column += across
    for cell in cells:
        found.add("table", *cell)


# ---- DOCX ----


def _of_docx(path: Path) -> Structure:
    with zipfile.ZipFile(path) as package:
        parts = {name: etree.fromstring(package.read(name)) for name in package.namelist() if name.startswith("word/") and name.endswith((".xml", ".rels"))}  # noqa: S320, E501 - our own files
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
        self.names = {item.get(f"{W}styleId"): item.find(f"{W}name").get(f"{W}val") for item in styles.iter(f"{W}style")}
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
                if words(text) and _WEB.match(target):
                    self.found.add("link", _address(target), _said(text))
            elif words(element.get("descr") or ""):
                self.found.add("alt", _said(element.get("descr")))

    def _paragraph(self, paragraph: Any) -> None:
        properties = paragraph.find(f"{W}pPr")
        style = self.styles.name(properties, "pStyle")
        text = _word_text(paragraph)
        level = re.fullmatch(r"heading ([1-6])", style, re.IGNORECASE)
        if level and words(text):
            self.found.add("heading", int(level[1]), _said(text))
        number = properties.find(f"{W}numPr") if properties is not None else None
        if text.strip()[:1] in tuple(_TICKS):
            self.found.add("list", "task", 0, _said(text))
        elif number is not None and words(text):
            depth = number.find(f"{W}ilvl").get(f"{W}val")
            kind = self.styles.formats.get((number.find(f"{W}numId").get(f"{W}val"), depth), "none")
            if kind != "none":
                row = ("bullet" if kind == "bullet" else "ordered", int(depth) + 1, _said(text))
                self.found.add("list", *row)
        header = next(iter(paragraph.xpath("ancestor::w:tr[1]/w:trPr/w:tblHeader", namespaces={"w": W[1:-1]})), None)
        if not level and header is None and not _MONO.search(style) and style != "TableHeader":
            self._marks(paragraph)

    def _marks(self, paragraph: Any) -> None:
        pieces: list[Piece] = []
        for run in paragraph.iter(f"{W}r"):
            properties = run.find(f"{W}rPr")
            marks = set()
            if properties is not None:
                flags = {"b": "bold", "i": "italic", "strike": "strike"}
                marks = {mark for tag, mark in flags.items() if _is_on(properties.find(f"{W}{tag}"))}
                fonts = properties.find(f"{W}rFonts")
                font = fonts.get(f"{W}ascii") or "" if fonts is not None else ""
                if _MONO.search(font) or _MONO.search(self.styles.name(properties, "rStyle")):
                    marks.add("code")
            pieces.append((_word_text(run), frozenset(marks)))
        _add_marks(self.found, pieces)

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
                    self.found.add("table", line, column, _said(_word_text(cell)))
                column += int(span.get(f"{W}val")) if span is not None else 1


def _word_text(element: Any) -> str:
    pieces = []
    for item in element.iter(f"{W}t", f"{W}br", f"{W}tab", f"{W}p"):
        pieces.append((item.text or "") if item.tag == f"{W}t" else " ")
    return "".join(pieces)


def _is_on(flag: Any) -> bool:
    return flag is not None and flag.get(f"{W}val") not in {"0", "false", "none"}


def _add_marks(found: Structure, pieces: list[Piece]) -> None:
    """Notes marked words; neighbours of the same marks are one text, whatever runs they are in."""
    for mark in ("bold", "italic", "strike", "code"):
        text = "".join(piece if mark in marks else "\0" for piece, marks in pieces)
        for part in text.split("\0"):
            for word in words(part):
                found.add("emphasis", mark, word)


# ---- PPTX ----


def _of_pptx(path: Path, wanted: Structure) -> Structure:
    found = Structure()
    for slide in Presentation(str(path)).slides:
        targets = {key: relation for key, relation in slide.part.rels.items()}
        for shape in _shapes(slide.shapes):
            _read_shape(found, shape, targets, wanted)
    return found


def _shapes(shapes: Any) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        else:
            yield shape


def _read_shape(found: Structure, shape: Any, targets: dict[str, Any], wanted: Structure) -> None:
    description = next(shape.element.iter("{*}cNvPr")).get("descr") or ""
    if words(description):
        found.add("alt", _said(description))
    if getattr(shape, "has_table", False) and shape.has_table:
        _read_table(found, shape)
    kind = str(shape.placeholder_format.type) if shape.is_placeholder else ""
    for row, paragraph in _paragraphs(shape):
        _read_paragraph(found, paragraph, kind, wanted, is_header=row == 0)
        _read_links(found, paragraph, targets)


def _read_table(found: Structure, shape: Any) -> None:
    """The cells of a table; one with the first row of the table before goes on where that ended."""
    rows = [
        [(column, _said("\n".join(paragraph_text(item) for item in cell.iter(f"{A}p"))))
         for column, cell in enumerate(row.findall(f"{A}tc")) if cell.get("hMerge") is None and cell.get("vMerge") is None]
        for row in shape.element.iter(f"{A}tr")
    ]  # fmt: skip
    before = found.rows["table"]
    starts = [index for index, (line, column, _) in enumerate(before) if line == column == 0]
    head = [(0, *cell) for cell in rows[0]] if rows else []
    goes_on = bool(starts) and before[starts[-1] : starts[-1] + len(head)] == head
    first = before[-1][0] if goes_on else 0
    for line, row in enumerate(rows[1:] if goes_on else rows, first + goes_on):
        for column, text in row:
            found.add("table", line, column, text)


def _paragraphs(shape: Any) -> Iterator[tuple[int, Any]]:
    rows = list(shape.element.iter(f"{A}tr"))
    for paragraph in shape.element.iter(f"{A}p"):
        row = next(paragraph.iterancestors(f"{A}tr"), None)
        yield (rows.index(row) if row is not None else -1), paragraph


def _read_paragraph(found: Structure, paragraph: Any, kind: str, wanted: Structure, *, is_header: bool) -> None:
    text = _said(paragraph_text(paragraph))
    title = "TITLE" in kind and "SUB" not in kind
    pieces = [
        ("\n", frozenset[str]()) if item.tag == f"{A}br" else (item.findtext(f"{A}t") or "", _pptx_marks(item))
        for item in paragraph.iter(f"{A}r", f"{A}br")
    ]
    bold = bool(pieces) and all("bold" in marks for piece, marks in pieces if piece.strip())
    if text and (title or (bold and (0, text) in wanted.rows["heading"])):
        own = re.sub(r" \d+ \d+$", "", text) if (0, text) not in wanted.rows["heading"] else text
        if own == text or (0, own) not in found.rows["heading"][-1:]:  # not a slide that goes on
            found.add("heading", 0, own)
    elif not is_header:
        _add_marks(found, _undressed(pieces, wanted))
    properties = paragraph.find(f"{A}pPr")
    bullet = next((item for item in properties if item.tag in {f"{A}buChar", f"{A}buAutoNum", f"{A}buBlip"}), None) if properties is not None else None
    none = properties is not None and properties.find(f"{A}buNone") is not None
    inherited = bullet is None and not none and kind.startswith(("BODY", "OBJECT"))
    if text and not title and (bullet is not None or inherited):
        depth = int((properties.get("lvl") if properties is not None else None) or 0) + 1
        char = (bullet.get("char") or "") if bullet is not None else ""
        if char and char in _TICKS:
            found.add("list", "task", 0, text)
        else:
            ordered = bullet is not None and bullet.tag == f"{A}buAutoNum"
            found.add("list", "ordered" if ordered else "bullet", depth, text)


def _undressed(pieces: list[Piece], wanted: Structure) -> list[Piece]:
    """Runs without the marks that all of a line of code or of a quotation has: those are the theme's."""
    pieces = [(piece, marks if not wanted.names_picture(piece) else frozenset()) for piece, marks in pieces]
    lines = {_said(line) for line in "".join(piece for piece, _ in pieces).split("\n")}
    shared = [marks for piece, marks in pieces if piece.strip()]
    dressed = frozenset.intersection(*shared) if shared and lines <= wanted.dressed else frozenset()
    return [(piece, marks - dressed) for piece, marks in pieces]


def _read_links(found: Structure, paragraph: Any, targets: dict[str, Any]) -> None:
    last, text = "", ""
    for run in [*paragraph.iter(f"{A}r"), None]:
        click = run.find(f"{A}rPr/{A}hlinkClick") if run is not None else None
        relation = targets.get(click.get(f"{R}id")) if click is not None else None
        target = "" if relation is None else relation.target_ref if relation.is_external else "#"
        if target != last:
            if words(text) and _WEB.match(last):
                found.add("link", _address(last), _said(text))
            last, text = target, ""
        text += (run.findtext(f"{A}t") or "") if run is not None else ""


def _pptx_marks(run: Any) -> frozenset[str]:
    properties = run.find(f"{A}rPr")
    if properties is None:
        return frozenset()
    marks = {mark for key, mark in (("b", "bold"), ("i", "italic")) if properties.get(key) in {"1", "true"}}
    if properties.get("strike") not in {None, "noStrike"}:
        marks.add("strike")
    font = properties.find(f"{A}latin")
    if font is not None and _MONO.search(font.get("typeface") or ""):
        marks.add("code")
    return frozenset(marks)
