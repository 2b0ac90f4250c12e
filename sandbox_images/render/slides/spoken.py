"""Words for the speaker in the Markdown of a deck: what follows ``Note:`` on a slide, as reveal.js has it."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make, text_of
from render.frontend.sanitise import SPOKEN
from render.model import Document

_ENDS = frozenset({"hr", "h1", "h2", "section"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SPOKEN_BLOCKS = frozenset({"p", "ul", "ol", "blockquote", "h4", "h5", "h6", "aside"})
_CONTENT_BLOCKS = frozenset({"ul", "ol", "blockquote"})
"""What follows words of a note and is more often the content of the slide than a part of the note."""
_NAME_MAX = 60
_NAMES_MAX = 5


def take_spoken(document: Document, body: Element) -> None:
    """Makes a paragraph that begins with ``Note:``, and what follows it on its slide, notes, in place.

    Where a table, a picture or code follows, the words are meant for the slide. Where a list or a quotation follows
    words of the note, or only a heading stands above it, what follows stays on the slide.
    """
    if document.request.source_format != "markdown" or not any(_is_note(child) for child in body):
        return
    children: list[Element] = []
    named: list[str] = []
    for slide in _slides(body):
        found, count = _with_notes(slide)
        if count:
            named.append(_name(slide))
        children.extend(found)
    if not named:
        return
    body[:] = children
    names = ", ".join(f'"{name}"' for name in named[:_NAMES_MAX])
    more = f" and {len(named) - _NAMES_MAX} more" if len(named) > _NAMES_MAX else ""
    document.warn(
        "notes_recognised",
        f"What follows `Note:` became the speaker's notes on {names}{more}; begin it with another word to show it.",
    )


def _is_note(block: Element) -> bool:
    return block.tag == "p" and SPOKEN.match((block.text or "").lstrip()) is not None


def _slides(body: Element) -> Iterator[list[Element]]:
    """The blocks of each slide, what it begins with being one of them."""
    blocks: list[Element] = []
    for child in body:
        if child.tag in _ENDS or "pb-page-break" in classes_of(child):
            yield blocks
            blocks = []
        blocks.append(child)
    yield blocks


def _with_notes(slide: list[Element]) -> tuple[list[Element], int]:
    """The blocks of a slide with the notes among them, and how many these are."""
    if not any(_is_note(block) for block in slide):
        return slide, 0
    places = range(len(slide))
    last_shown = max((index for index in places if index and not _can_be_spoken(slide[index])), default=-1)
    last_content = max((index for index in places if slide[index].tag in _CONTENT_BLOCKS), default=-1)
    made: list[Element] = []
    count, has_content = 0, False
    for index, block in enumerate(slide):
        if index < last_shown or not _is_note(block):
            made.append(block)
            has_content = has_content or _is_content(block)
            continue
        count += 1
        block.text = SPOKEN.sub("", (block.text or "").lstrip(), count=1).lstrip()
        has_words = bool(text_of(block).strip())
        is_alone = has_words and (index < last_content or not has_content)
        spoken = [item for item in ([block] if is_alone else slide[index:]) if len(item) or text_of(item)]
        made.append(make("aside", {"class": "pb-notes"}, None, *spoken))
        if not is_alone:
            break
    return made, count


def _can_be_spoken(block: Element) -> bool:
    return block.tag in _SPOKEN_BLOCKS and block.find(".//img") is None


def _is_content(block: Element) -> bool:
    """Whether a slide with this block alone would have more than its title."""
    if block.tag in _HEADINGS or block.tag in {"hr", "aside"} or "pb-page-break" in classes_of(block):
        return False
    return bool(len(block) or text_of(block).strip())


def _name(slide: list[Element]) -> str:
    """The title of a slide; its first words if it has none."""
    words = next((words for block in slide if (words := " ".join(text_of(block).split()))), "a slide")
    return words if len(words) <= _NAME_MAX else f"{words[:_NAME_MAX]}\u2026"
