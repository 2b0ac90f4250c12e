"""How many of a document's visible words a file shows, in their order.

What is expected is read from the source by another parser than ours; what is there, by readers of other makers.
"""

import re
import unicodedata
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pypdfium2
from lxml import etree
from pptx import Presentation

from bench.render import corpora
from bench.render.model import Sample

NAMED_MAX = 12
GAP_MAX = 400
_WORD = re.compile(r"[^\W_]+")
_BROKEN = re.compile("[\x02\u00ad\ufffe](?:\r?\n)?|[\u200b-\u200f\u2060\ufeff]")
"""Where a reader of PDF says that a word goes on in the next line, and marks that nobody sees."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNSEEN = frozenset({
    "head", "script", "style", "template", "title", "svg", "math", "iframe", "video", "audio", "object", "embed",
    "canvas", "textarea", "option", "noframes", "noembed", "rp", "datalist",
})  # fmt: skip
INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font", "i",
    "ins",
    "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
    "var", "wbr",
})  # fmt: skip
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden")
W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@dataclass(frozen=True, slots=True)
class WordScore:
    """Words expected, and how many of them were found in order; ``missing`` names the first that were not."""

    expected: int
    found: int
    missing: tuple[str, ...] = ()


def score(sample: Sample, path: Path, fmt: str) -> WordScore:
    """Scores a file; a format without text has nothing to be found.

    Raises:
        Exception: the file cannot be read by the reader of its format.
    """
    if fmt not in READERS:
        return WordScore(0, 0)
    return compare(expected_words(sample), words(READERS[fmt](path)))


def expected_words(sample: Sample) -> list[str]:
    """The words that a reader of a document should see, in order."""
    return words(visible_text(parse_html(corpora.reference_html(sample))))


def words(text: str) -> list[str]:
    """Runs of letters and digits, without case."""
    return _WORD.findall(unicodedata.normalize("NFKC", _BROKEN.sub("", text)).casefold())


def compare(expected: Sequence[str], found: Sequence[str]) -> WordScore:
    """Matches two rows of words in order; a word that a line break cuts, or that joins its neighbour, is found."""
    pairs = [(-1, -1), *common_subsequence(expected, found), (len(expected), len(found))]
    kept = {first for first, _ in pairs}
    for (left, other_left), (right, other_right) in pairwise(pairs):
        if right - left > 1 and other_right - other_left > 1:
            kept |= _rejoined(expected, found, range(left + 1, right), range(other_left + 1, other_right))
    missing = [word for index, word in enumerate(expected) if index not in kept]
    return WordScore(len(expected), len(expected) - len(missing), tuple(missing[:NAMED_MAX]))


def common_subsequence(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[int, int]]:
    """The index pairs of a longest common subsequence, by Hyyrö's bit-parallel algorithm.

    Each row of the classic table is one integer, so 10,000 by 10,000 words take about a second.
    """
    start = 0
    while start < min(len(first), len(second)) and first[start] == second[start]:
        start += 1
    pairs = [(index, index) for index in range(start)]
    places: dict[Any, int] = {}
    for index in range(start, len(first)):
        places[first[index]] = places.get(first[index], 0) | 1 << (index - start)
    ones = (1 << (len(first) - start)) - 1
    row, rows = ones, [ones]
    for item in second[start:]:
        both = row & places.get(item, 0)
        row = ((row + both) | (row - both)) & ones
        rows.append(row)
    column, line, found = len(first) - start, len(second) - start, []
    while column and line:
        bit = 1 << (column - 1)
        if rows[line] & bit:
            column -= 1
        elif not rows[line - 1] & bit:
            line -= 1
        else:
            column, line = column - 1, line - 1
            found.append((column + start, line + start))
    return pairs + found[::-1]


def _rejoined(expected: Sequence[str], found: Sequence[str], wanted: range, there: range) -> set[int]:
    """Expected words in a gap whose letters stand there as other words; both runs begin and end with whole ones."""
    kept: set[int] = set()
    if len(wanted) > GAP_MAX or len(there) > GAP_MAX:
        return kept
    first, second = wanted.start, there.start
    while first < wanted.stop:
        for begin in range(second, there.stop):
            ends = _same_letters(expected, found, (first, wanted.stop), (begin, there.stop))
            if ends:
                kept |= set(range(first, ends[0]))
                first, second = ends
                break
        else:
            first += 1
    return kept


def _same_letters(
    expected: Sequence[str], found: Sequence[str], wanted: tuple[int, int], there: tuple[int, int]
) -> tuple[int, int] | None:
    """Where two runs of words from here on have had the same letters; None if they differ before that."""
    (left, left_end), (right, right_end) = wanted, there
    one, other = expected[left], found[right]
    while True:
        if one == other:
            return left + 1, right + 1
        if len(one) < len(other):
            left += 1
            if left == left_end or not other.startswith(one):
                return None
            one += expected[left]
        else:
            right += 1
            if right == right_end or not one.startswith(other):
                return None
            other += found[right]


# ---- sources ----


@cache
def parse_html(text: str) -> Any:
    """A page as a tree, read as browsers do."""
    corpora.use_wheels()
    import html5lib  # noqa: PLC0415 - fetched at run time

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of elements that XML has not
        return html5lib.parse(_CONTROL.sub("", text), treebuilder="lxml", namespaceHTMLElements=False).getroot()


def visible_text(element: Any) -> str:
    """What a page shows; blocks are on lines of their own."""
    return "".join(_pieces(element))


def _pieces(element: Any) -> Iterator[str]:
    stack: list[Any] = [element]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        apart = "" if isinstance(item.tag, str) and item.tag in INLINE else "\n"
        if is_visible(item):
            stack.append(apart)
            for child in reversed(item):
                stack.extend((child.tail or "", child))
            stack.append(item.text or "")
            stack.append(apart)


def is_visible(element: Any) -> bool:
    """Whether an element is shown, as far as it says itself."""
    if not isinstance(element.tag, str) or element.tag.rpartition("}")[2] in _UNSEEN:
        return False
    notes = element.tag == "aside" and "notes" in (element.get("class") or "")
    return not notes and element.get("hidden") is None and not _HIDDEN.search(element.get("style") or "")


# ---- files ----


def docx_text(path: Path) -> str:
    """The text of a Word document: its body, then its footnotes."""
    with zipfile.ZipFile(path) as package:
        names = [name for name in ("word/document.xml", "word/footnotes.xml") if name in package.namelist()]
        return "\n".join("".join(_word_pieces(etree.fromstring(package.read(name)))) for name in names)


def _word_pieces(root: Any) -> Iterator[str]:
    apart = {f"{W}p", f"{W}br", f"{W}tab", f"{W}cr", f"{W}tc"}
    for event, element in etree.iterwalk(root, events=("start", "end")):
        if element.tag == f"{W}t" and event == "start" and not _is_fallback(element):
            yield element.text or ""
        elif element.tag in apart:
            yield "\n"
        elif element.tag == f"{W}noBreakHyphen":
            yield "-"


def _is_fallback(element: Any) -> bool:
    return any(str(parent.tag).endswith("}Fallback") for parent in element.iterancestors())


def pptx_text(path: Path) -> str:
    """The text of a deck: slides in order, shapes in the order of their tree."""
    return "\n".join(text for slide in Presentation(str(path)).slides for text in _shape_texts(slide.shapes))


def _shape_texts(shapes: Iterable[Any]) -> Iterator[str]:
    for shape in shapes:
        if next(shape.element.iter("{*}cNvPr")).get("hidden") == "1":  # a title for screen readers
            continue
        if shape.shape_type is not None and hasattr(shape, "shapes"):
            yield from _shape_texts(shape.shapes)
        elif shape.has_text_frame:
            yield from (paragraph.text for paragraph in shape.text_frame.paragraphs)
        elif getattr(shape, "has_table", False) and shape.has_table:
            yield from (paragraph_text(item) for item in shape.element.iter("{*}p"))


def paragraph_text(paragraph: Any) -> str:
    """The text of an ``a:p``."""
    return "".join(
        (item.text or "") if item.tag.endswith("}t") else "\n" for item in paragraph.iter("{*}t", "{*}br")
    )


def pdf_text(path: Path) -> str:
    """The text of a PDF as PDFium reads it."""
    with pypdfium2.PdfDocument(path) as document:
        return "\n".join(page.get_textpage().get_text_bounded() for page in document)


READERS = {"docx": docx_text, "pptx": pptx_text, "pdf": pdf_text}
