"""Cutting within text, where a block is too tall for any slide."""

import math
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from render.frontend.element_tree import name_of
from render.slides.splitting.split_after_layout import append_mark, append_text, whole_copy

_TEXT_MIN = 120


def cut_text(root: Element, title: Element | None, count: int) -> list[tuple[Element, Element | None]]:
    """Copies of a slide with equal shares of its text, for a unit that is too tall for any slide.

    Args:
        root: the slide's element.
        title: its title.
        count: how many copies.

    Returns:
        The copies with their titles; an empty list if there is too little text to share.
    """
    total = sum(len(text) for text in _texts(root, title))
    count = min(count, total // _TEXT_MIN + 1, 400)
    if count < 2 or total < _TEXT_MIN:  # noqa: PLR2004 - one part is no cut
        return []
    made = []
    for page in range(count):
        found: list[Element] = []
        copy = _share(root, (page / count, (page + 1) / count), title, found, _Counter(total))
        heading = found[0] if found else None
        if heading is not None:
            append_mark(heading)
        made.append((copy, heading))
    return made


@dataclass(slots=True)
class _Counter:
    total: int
    seen: int = 0


def _texts(element: Element, title: Element | None) -> list[str]:
    if element is title or element.tag == "thead":
        return []
    texts = [element.text or ""]
    for child in element:
        texts.extend(_texts(child, title))
        texts.append(child.tail or "")
    return texts


def _share(
    element: Element, share: tuple[float, float], title: Element | None, found: list[Element], counter: _Counter
) -> Element:
    """A copy with the text between two shares of all text; cells of a row are shared each by itself."""
    if element is title or element.tag == "thead":
        copy = whole_copy(element)
        if element is title:
            found.append(copy)
        return copy
    if element.tag == "pre":
        return _share_lines(element, share, counter)
    copy = Element(element.tag, dict(element.attrib))
    if element.tag in {"td", "th"}:
        counter = _Counter(sum(len(text) for text in _texts(element, title)))
    if element.tag == "li" and share[0] > 0:
        copy.set("class", f"{copy.get('class', '')} pb-continued".strip())
    copy.text = _slice(element.text, share, counter)
    for child in element:
        before = counter.seen
        inner = _share(child, share, title, found, counter)
        tail = _slice(child.tail, share, counter)
        empty = not "".join(inner.itertext()).strip() and name_of(child) not in {"td", "th"}
        outside = before / max(1, counter.total) >= share[1] or counter.seen / max(1, counter.total) < share[0]
        if empty and (outside or len(child) or child.text) and child is not title:
            if tail:
                append_text(copy, tail)
            continue
        inner.tail = tail
        copy.append(inner)
    return copy


def _share_lines(block: Element, share: tuple[float, float], counter: _Counter) -> Element:
    """A share of a code block's lines."""
    text = "".join(_texts(block, None))
    counter.seen += len(text)
    starts = [0, *(place + 1 for place, character in enumerate(text) if character == "\n")]
    first, last = (round(part * len(starts)) for part in share)
    end = starts[last] if last < len(starts) else len(text)
    return _between(block, starts[first] if first < len(starts) else len(text), end, _Counter(len(text)))


def _between(element: Element, first: int, last: int, counter: _Counter) -> Element:
    """A copy with the characters between two places."""

    def cut(text: str | None) -> str | None:
        start, counter.seen = counter.seen, counter.seen + len(text or "")
        return text[max(0, first - start) : max(0, last - start)] if text else text

    copy = Element(element.tag, dict(element.attrib))
    copy.text = cut(element.text)
    for child in element:
        before = counter.seen
        inner = _between(child, first, last, counter)
        tail = cut(child.tail)
        if counter.seen > first and before < last and (inner.text or len(inner)):
            inner.tail = tail
            copy.append(inner)
        elif tail:
            append_text(copy, tail)
    return copy


def _slice(text: str | None, share: tuple[float, float], counter: _Counter) -> str | None:
    if not text:
        return text
    start, counter.seen = counter.seen, counter.seen + len(text)
    first, last = (_edge(text, math.floor(part * counter.total) - start) for part in share)
    return text[first:last]


def _edge(text: str, place: int) -> int:
    """The end of the word, or of the line in code, at a place."""
    if place <= 0:
        return 0
    if place >= len(text):
        return len(text)
    for blank in ("\n", " "):
        found = text.find(blank, place, place + (400 if blank == "\n" else 60))
        if found >= 0:
            return found + 1
    return place
