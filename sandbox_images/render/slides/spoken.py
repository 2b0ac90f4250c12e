"""Words for the speaker in the Markdown of a deck: what follows ``Note:`` on a slide, as reveal.js has it."""

from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make, text_of
from render.frontend.sanitise import SPOKEN
from render.model import Document

_ENDS = frozenset({"hr", "h1", "h2", "section"})
_SPOKEN_BLOCKS = frozenset({"p", "ul", "ol", "blockquote", "h4", "h5", "h6", "aside"})


def take_spoken(document: Document, body: Element) -> None:
    """Makes a paragraph that begins with ``Note:``, and what follows it on its slide, notes, in place.

    Where a table, a picture or code follows, the words are meant for the slide.
    """
    if document.request.source_format != "markdown":
        return
    children = list(body)
    taken = 0
    for index, child in enumerate(children):
        if child.tag != "p" or child not in body or not SPOKEN.match((child.text or "").lstrip()):
            continue
        rest = _rest_of_slide(children[index:])
        if any(block.tag not in _SPOKEN_BLOCKS or block.find(".//img") is not None for block in rest):
            continue
        place = list(body).index(child)
        for block in rest:
            body.remove(block)
        child.text = SPOKEN.sub("", (child.text or "").lstrip(), count=1).lstrip()
        spoken = [block for block in rest if len(block) or text_of(block)]
        body.insert(place, make("aside", {"class": "pb-notes"}, None, *spoken))
        taken += 1
    if taken:
        document.warn(
            "notes_recognised",
            "What follows `Note:` on a slide became the speaker's notes; begin it with another word to show it.",
        )


def _rest_of_slide(blocks: list[Element]) -> list[Element]:
    """The blocks up to the next slide."""
    ends = (
        index for index, block in enumerate(blocks) if block.tag in _ENDS or "pb-page-break" in classes_of(block)
    )
    return blocks[: next(ends, len(blocks))]
