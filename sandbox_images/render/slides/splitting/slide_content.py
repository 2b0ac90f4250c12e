"""What a slide shows: its elements without speaker notes, whether there is any, and its title."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, name_of, text_of

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NOTES_CLASSES = frozenset(
    {"pb-notes", "notes", "speaker-notes", "speaker_notes", "slide-notes", "presenter-notes"}
)
SKIPPED = frozenset({"head", "style", "script", "link", "meta", "title", "template"})
_HEADER_WORDS_MAX = 14
_TITLE_CLASSES = frozenset({"title", "slide-title"})
_HEADER_CLASSES = frozenset({"header", "slide-header", "heading", "headline", "slide-heading"})


def is_notes(element: Element) -> bool:
    """Whether an element is a speaker note."""
    return bool(_NOTES_CLASSES.intersection(classes_of(element))) and "footnotes" not in classes_of(element)


def flow(element: Element, *, items: bool = True) -> Iterator[Element]:
    """An element and what is in it (``items``: in items of lists too), without notes and what isn't shown."""
    stack = [element]
    while stack:
        current = stack.pop()
        yield current
        if current.tag == "li" and not items:
            continue
        stack.extend(child for child in reversed(current) if name_of(child) not in SKIPPED and not is_notes(child))


def has_content(element: Element) -> bool:
    """Whether there is anything to see in it."""
    for inner in flow(element):
        if name_of(inner).rpartition("}")[2] in {"img", "svg", "hr", "table", "input"} and inner is not element:
            return True
        if (inner.text or "").strip() or (inner is not element and (inner.tail or "").strip()):
            return True
        if "pb-chart" in classes_of(inner) or inner.get("style", "").find("background") >= 0:
            return True
    return False


def title_of(root: Element) -> Element | None:
    """The slide's title: the first h1 or h2, else a lone heading, else what is called a title."""
    headings = [item for item in flow(root, items=False) if item.tag in HEADINGS and has_content(item)]
    for item in headings:
        if item.tag in {"h1", "h2"}:
            return item
    if headings and (
        headings[0] is _first(root) or sum(1 for item in headings if item.tag == headings[0].tag) == 1
    ):
        return headings[0]
    for names in (_TITLE_CLASSES, _HEADER_CLASSES):
        for item in flow(root):
            known = names & set(classes_of(item)) and item is not root and not _has_blocks(item)
            if known and 0 < len(text_of(item).split()) <= _HEADER_WORDS_MAX:
                return item
    return None


def _first(root: Element) -> Element | None:
    return next((child for child in root if has_content(child)), None)


def _has_blocks(element: Element) -> bool:
    return any(child.tag in {"div", "p", "ul", "ol", "table", "section"} for child in element)
