"""Headings: an anchor for each, their numbers where asked for, and the table of contents."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from render.document import Document
from render.source.tree_edits import body_of, make, name_of, text_of

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
    """Gives every heading an ``id``, and its number if the request's ``numbered_sections`` asks for it."""
    taken = {element.get("id", "") for element in document.tree.iter()}
    numbered = bool(document.request.options.get("numbered_sections"))
    counts = [0] * 6
    found = list(headings_of(document.tree))
    single = sum(1 for heading in found if heading.tag == "h1") == 1
    for heading in found:
        level = int(heading.tag[1]) - (2 if single else 1)
        if not heading.get("id"):
            heading.set("id", _free(_slug(text_of(heading)), taken))
        if numbered and level >= 0 and "pb-sources" not in heading.get("id", ""):
            counts[level] += 1
            counts[level + 1 :] = [0] * (5 - level)
            number = ".".join(str(count) for count in counts[: level + 1])
            heading.insert(0, make("span", {"class": "pb-number"}, f"{number} "))
            heading[0].tail, heading.text = heading.text, None


def headings_of(tree: Element) -> Iterator[Element]:
    """The headings of a body, in order, without those of notes and of contents."""
    stack = [body_of(tree)]
    while stack:
        element = stack.pop()
        classes = element.get("class") or ""
        if element.tag in LEVELS:
            yield element
        elif name_of(element) and "pb-notes" not in classes and "pb-toc" not in classes:
            stack.extend(reversed(element))


def entries_of(tree: Element, deepest: int = TOC_LEVEL) -> list[Entry]:
    """The lines of the table of contents; the document's title, where it is the only ``h1``, is none of them."""
    found = [heading for heading in headings_of(tree) if text_of(heading)]
    tops = [heading for heading in found if heading.tag == "h1"]
    if len(tops) == 1 and len(found) > 1:
        found = [heading for heading in found if heading is not tops[0]]
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


def _slug(text: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())[:80] or "section"


def _free(slug: str, taken: set[str]) -> str:
    anchor, number = slug, 1
    while anchor in taken:
        anchor, number = f"{slug}-{number}", number + 1
    taken.add(anchor)
    return anchor
