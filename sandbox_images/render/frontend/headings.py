"""Headings: an anchor for each, their numbers where asked for, and the table of contents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, classes_of, make, name_of, text_of
from render.model import Document

LEVELS = ("h1", "h2", "h3", "h4", "h5", "h6")
ENTRIES_MAX = 2_000
TOC_LEVEL = 3
"""Levels below this make a table of contents longer than what it lists."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the table of contents."""

    level: int
    text: str
    anchor: str


def mark_headings(document: Document) -> None:
    """Give every heading an ``id``, its number if ``numbered_sections`` asks for it, and links their headings."""
    taken = {element.get("id", "") for element in document.tree.iter()}
    found = list(headings_of(document.tree))
    for heading in found:
        if not heading.get("id"):
            heading.set("id", _free(slug_of(text_of(heading)), taken))
    _mend_links(document.tree, found)
    if document.request.options.get("numbered_sections"):
        _number(document.tree, found)


def _number(tree: Element, found: list[Element]) -> None:
    """Number headings from the highest level below that of the document's title."""
    title = _title_among(tree, found)
    rows = [
        item
        for item in found
        if item is not title and "unnumbered" not in classes_of(item) and "pb-sources" not in item.get("id", "")
    ]
    top = min((int(item.tag[1]) for item in rows), default=1)
    counts = [0] * 6
    for heading in rows:
        level = int(heading.tag[1]) - top
        counts[level] += 1
        counts[level + 1 :] = [0] * (5 - level)
        number = ".".join(str(count) for count in counts[: level + 1])
        heading.insert(0, make("span", {"class": "pb-number"}, f"{number} "))
        heading[0].tail, heading.text = heading.text, None


def _title_among(tree: Element, found: list[Element]) -> Element | None:
    """The heading that is the document's title: the only one of the first level, unless a title block has it."""
    tops = [heading for heading in found if heading.tag == "h1"]
    if len(tops) != 1 or any("pb-doc-title" in classes_of(item) for item in tree.iter("h1")):
        return None
    return tops[0]


def _mend_links(tree: Element, found: list[Element]) -> None:
    """Lead links to places that are not there to the heading whose words they have: each tool makes its own anchors."""
    links = [
        link for link in tree.iter("a") if link.get("href", "").startswith("#") and len(link.get("href", "")) > 1
    ]
    if not links:
        return
    named = {element.get("id") or element.get("name") or "" for element in tree.iter()}
    by_words: dict[str, str] = {}
    for heading in found:
        by_words.setdefault(_words(text_of(heading)), heading.get("id", ""))
    for link in links:
        name = unquote(link.get("href", "")[1:])
        target = by_words.get(_words(name.removeprefix("user-content-"))) if name not in named else None
        if target:
            link.set("href", f"#{target}")


def _words(text: str) -> str:
    """What all spellings of a heading's anchor have in common."""
    return re.sub(r"[\W_]+", "", text.lower())


def headings_of(tree: Element) -> Iterator[Element]:
    """The headings of a body, in order, without those of notes and of contents."""
    stack = [body_of(tree)]
    while stack:
        element = stack.pop()
        classes = element.get("class") or ""
        if element.tag in LEVELS:
            if "pb-doc-title" not in classes:
                yield element
        elif name_of(element) and "pb-notes" not in classes and "pb-toc" not in classes:
            stack.extend(reversed(element))


def entries_of(tree: Element, deepest: int = TOC_LEVEL) -> list[Entry]:
    """The lines of the table of contents; the document's title, where it is the only ``h1``, is none of them."""
    found = [heading for heading in headings_of(tree) if text_of(heading)]
    title = _title_among(tree, found) if len(found) > 1 else None
    found = [heading for heading in found if heading is not title and "unlisted" not in classes_of(heading)]
    if not found:
        return []
    top = min(int(heading.tag[1]) for heading in found)
    rows = [Entry(int(heading.tag[1]) - top + 1, text_of(heading), heading.get("id", "")) for heading in found]
    return [row for row in rows if row.level <= deepest][:ENTRIES_MAX]


def fill_contents(document: Document) -> None:
    """Writes the lines into every ``nav.pb-toc`` of the tree."""
    for contents in [nav for nav in document.tree.iter("nav") if "pb-toc" in (nav.get("class") or "")]:
        contents[:] = []
        contents.text = None
        contents.append(make("p", {"class": "pb-toc-title"}, contents.get("data-title") or "Contents"))
        rows = make("ul")
        for entry in entries_of(document.tree):
            link = make("a", {"href": f"#{entry.anchor}"}, entry.text)
            rows.append(make("li", {"class": f"pb-toc-{entry.level}"}, None, link))
        contents.append(rows)


def slug_of(text: str) -> str:
    """The anchor that GitHub gives to a heading: a dash for every blank."""
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())[:80] or "section"


def _free(slug: str, taken: set[str]) -> str:
    anchor, number = slug, 1
    while anchor in taken:
        anchor, number = f"{slug}-{number}", number + 1
    taken.add(anchor)
    return anchor
