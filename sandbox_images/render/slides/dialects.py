"""Words of other makers of slides, which they read as instructions: Slidev's front matter and slots, Marp's ``fit``."""

import re
from xml.etree.ElementTree import Element

from render.frontend.element_tree import add_class, classes_of, make, parents_of, remove, text_of

_KEYS = re.compile(
    r"(?:layout|class|background|backgroundSize|transition|image|theme|hideInToc|level|clicks|zoom|routeAlias|title|"
    r"name|src|color|align|dragPos|preload|disabled|hide|fonts|css|url)\s*:\s*\S*"
)
_FIRST = re.compile(r"(?:layout|class|background|transition|image|theme|hideInToc|level|clicks|zoom|src)\s*:")
_SLOT = re.compile(r"::(\w+)::")
_COLUMN_NAMES = frozenset(
    {"two-column", "two-columns", "twocolumn", "columns", "cols", "two-cols", "split", "col-2"}
)
_HEADINGS = frozenset({"h1", "h2", "h3"})
_PIECES_MOST = 4
_NUMBER = r"\s*(?:Slide|Folie|Diapositive|Diapositiva|Slajd)\s+\d{1,3}\s*[:.\u2013\u2014-]"
_NUMBERED = re.compile(_NUMBER + r"\s+(?=\S)")
_NUMBER_ALONE = re.compile(_NUMBER + r"\s*")
_EMPHASIS = frozenset({"strong", "b", "em", "i", "span", "u", "mark"})
_NOTES = re.compile(r"\s*(?:speaker|presenter)(?:['\u2019]?s)?\s+notes?\s*:", re.IGNORECASE)


def read_slidev(body: Element) -> None:
    """Takes the front matter of single slides out of the text, and puts slots side by side, in place.

    Keys stand between two rules, which makes them a heading to Markdown: one of the underlined kind, behind a rule or
    first of all. Headings of HTML, and those with number signs, are never keys.
    """
    for index, child in enumerate(body):
        if child.get("data-underlined") and child.tag == "h2" and _is_matter("".join(child.itertext())):
            body[index] = make("hr")
    _place_slots(body)


def _is_matter(text: str) -> bool:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return bool(lines) and bool(_FIRST.match(lines[0])) and all(_KEYS.match(line) for line in lines)


def _place_slots(body: Element) -> None:
    """What stands before and after ``::right::`` on a slide becomes two columns; a lone heading stays above them."""
    slides: list[list[Element]] = [[]]
    for child in body:
        if child.tag == "hr":
            slides.append([])
        else:
            slides[-1].append(child)
    for blocks in slides:
        marks = [block for block in blocks if block.tag == "p" and _SLOT.fullmatch(text_of(block).strip())]
        if not marks:
            continue
        columns: list[list[Element]] = [[]]
        for block in blocks:
            if block in marks:
                columns.append([])
            else:
                columns[-1].append(block)
        columns = [column for column in columns if column]
        headed = [bool(column) and column[0].tag in _HEADINGS for column in columns]
        above = [columns[0].pop(0)] if headed[:1] == [True] and not any(headed[1:]) else []
        for column in columns if headed and all(headed) else ():
            add_class(column[0], "pb-column-title")
        index = list(body).index(blocks[0])
        for block in blocks:
            body.remove(block)
        cells = [make("div", {"class": "pb-column"}, None, *column) for column in columns if column]
        for offset, block in enumerate([*above, make("div", {"class": "pb-columns"}, None, *cells)]):
            body.insert(index + offset, block)


def strip_slide_numbers(body: Element) -> None:
    """Takes "Slide 3:" off headings: models write it in front of the title where they list the slides of a deck."""
    found = []
    for heading in body.iter():
        if heading.tag in _HEADINGS:
            holder = _first_words(heading)
            if _NUMBERED.match(holder.text or "") or _is_number_alone(heading, holder):
                found.append((heading, holder))
    if len(found) < 2:  # noqa: PLR2004 - one may be a title of its own
        return
    for heading, holder in found:
        if _is_number_alone(heading, holder):
            holder.tail = (holder.tail or "").lstrip()
            remove(heading, holder)
        else:
            holder.text = _NUMBERED.sub("", holder.text or "", count=1)


def _first_words(heading: Element) -> Element:
    """The element that the first words of a heading are in: itself, or one that emphasises them."""
    holder = heading
    while not (holder.text or "").strip() and len(holder) and holder[0].tag in _EMPHASIS:
        holder = holder[0]
    return holder


def _is_number_alone(heading: Element, holder: Element) -> bool:
    """Whether an emphasised number stands in front of the words of its heading."""
    has_words = bool((holder.tail or "").strip())
    is_first = holder is not heading and heading[0] is holder and not len(holder)
    return is_first and has_words and bool(_NUMBER_ALONE.fullmatch(holder.text or ""))


def mark_notes(body: Element) -> None:
    """Makes notes of the paragraphs and quotations that are called speaker notes."""
    for block in body:
        if block.tag in {"p", "blockquote"} and _NOTES.match(text_of(block)):
            add_class(block, "pb-notes")


def read_marp_headings(body: Element) -> None:
    """Takes the comment ``fit`` out of headings, which are as large as there is room for."""
    parents = parents_of(body)
    for note in [item for item in body.iter("aside") if "pb-notes" in classes_of(item)]:
        parent = parents.get(note)
        if parent is not None and parent.tag in _HEADINGS and text_of(note).strip() == "fit":
            remove(parent, note)


def name_columns(body: Element, css: str) -> None:
    """Marks what is called columns but has no rules that would make it so, in place."""
    for element in body.iter():
        names = _COLUMN_NAMES & set(classes_of(element))
        if not names or any(f".{name}" in css for name in names) or "display" in (element.get("style") or ""):
            continue
        if 2 <= len(element) <= _PIECES_MOST and not (element.text or "").strip():  # noqa: PLR2004 - one is no column
            add_class(element, "pb-columns")
            for child in element:
                add_class(child, "pb-column")
