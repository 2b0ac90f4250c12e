"""How much of a document's structure is in a DOCX or PPTX file: precision and recall of each kind.

Each side becomes rows of what it has (links with their text, headings with their level, list items with depth and
order, tables with their grid, emphasised words, texts of pictures), and rows are compared in order. Neither side is
read with our own code.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bench.render import corpora
from bench.render.model import Sample
from bench.render.structure_docx import of_docx
from bench.render.structure_pptx import of_pptx
from bench.render.structure_rows import KINDS, WEB, ShownBlock, Structure, add_marks, plain_address, plain_words
from bench.render.words import (
    INLINE,
    common_subsequence,
    docx_text,
    is_visible,
    parse_html,
    pptx_text,
    visible_text,
    words,
)

NAMED_MAX = 8
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MARKS = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "del": "strike", "s": "strike",
    "strike": "strike",
    "code": "code", "kbd": "code", "samp": "code", "tt": "code",
}  # fmt: skip
_UNMARKED = frozenset({"pre", "th", *_HEADINGS})
_BLOCKS = frozenset({"ul", "ol", "p", "pre", "blockquote", "table", "dl", "div", "hr", "section", *_HEADINGS})


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
    there, text = (of_docx(path), docx_text(path)) if fmt == "docx" else (of_pptx(path, wanted), pptx_text(path))
    if not words(visible_text(root)):
        there.rows["heading"] = []  # an empty deck has a title slide all the same
    tp, fp, fn, differences = {}, {}, {}, []
    for kind in KINDS:
        one, other = wanted.rows[kind], there.rows[kind]
        if kind == "alt":  # a picture that cannot be had is named in the text
            other = [row for row in one if row in other or row[0] in " ".join(words(text))]
        if kind != "alt":
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


def _of_source(root: Any, *, levels: bool) -> Structure:
    found = Structure()
    places = {name.casefold() for name in root.xpath("//@id | //@name")} | set(_anchors(root))
    pieces: list[ShownBlock] = []
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
            found.dressed |= {plain_words(line) for line in "".join(element.itertext()).split("\n")}
            found.dressed |= {plain_words("".join(item.itertext())) for item in element.iter("p", "li")}
        for child in reversed(element):
            stack += [(child.tail or "", 0, within), (child, inner, within)]
        stack.append((("" if name in INLINE else "\n") + (element.text or ""), 0, within))
    add_marks(found, [(text, frozenset() if "unmarked" in marks else marks) for text, marks in pieces])
    return found


def _anchors(root: Any) -> Iterator[str]:
    """What links to headings are called, as GitHub and others make it from their text."""
    count: Counter[str] = Counter()
    for heading in root.iter(*_HEADINGS):
        name = re.sub(r"[^\w\- ]", "", "".join(heading.itertext()).strip().casefold()).replace(" ", "-")
        yield f"{name}-{count[name]}" if count[name] else name
        count[name] += 1


def _note(found: Structure, element: Any, depth: int, places: set[str], *, levels: bool) -> None:
    name = element.tag
    if name == "a":
        _note_link(found, element, places)
    elif name in _HEADINGS and words(_text(element)):
        found.add("heading", int(name[1]) if levels else 0, plain_words(_text(element)))
    elif name == "li" and depth:
        own = plain_words(_own_text(element))
        box = next(iter(element.xpath("./input[@type='checkbox'] | ./p[1]/input[@type='checkbox']")), None)
        kind = "task" if box is not None else "ordered" if element.getparent().tag == "ol" else "bullet"
        if own:
            found.add("list", kind, 0 if box is not None else depth, own)
    elif name == "table":
        _note_table(found, element)
    elif name == "img":
        alt = element.get("alt") or ""
        if words(alt):
            found.add("alt", plain_words(alt))
        found.pictures.append(Counter(words(alt) or words(unquote((element.get("src") or "").rpartition("/")[2]))))
    kind = {"a": "link", "li": "list"}.get(name, "heading" if name in _HEADINGS else "")
    if kind and next(element.iter("img"), None) is not None:
        *key, said = found.rows[kind][-1] if found.rows[kind] else ("",)
        found.pictured.setdefault(tuple(key), set()).add(said)


def _text(element: Any) -> str:
    """The text of an element, or the texts of its pictures if it has no other."""
    text = "".join(element.itertext())
    return text if words(text) else " ".join(image.get("alt") or "" for image in element.iter("img"))


def _note_link(found: Structure, link: Any, places: set[str]) -> None:
    href = link.get("href") or ""
    if href.startswith("#") and unquote(href[1:]).casefold() in places:
        found.add("link", "#", plain_words(_text(link)))
    elif WEB.match(href) and href[0] != "#":
        found.add("link", plain_address(href), plain_words(_text(link)))


def _own_text(item: Any) -> str:
    """What stands in the first block of a list item, or on its first line of code."""
    pieces = [item.text or ""]
    for child in item:
        if child.tag in _BLOCKS:
            if not words("".join(pieces)) and child.tag not in {"ul", "ol"}:
                if child.tag in {"blockquote", "div", "section"}:
                    return _own_text(child)
                inner = "".join(child.itertext())
                return inner if child.tag == "p" or child.tag in _HEADINGS else inner.strip().split("\n")[0]
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
            across, down = (
                max(1, int(re.sub(r"\D", "", cell.get(key) or "") or 1)) for key in ("colspan", "rowspan")
            )
            taken |= {(line + y, column + x) for y in range(min(down, len(rows) - line)) for x in range(across)}
            said = plain_words("".join(cell.itertext()))
            cells.append((line, column, said))
            if next(cell.iter("img"), None) is not None:
                found.pictured.setdefault((line, column), set()).add(said)
            column += across
    for cell in cells:
        found.add("table", *cell)
