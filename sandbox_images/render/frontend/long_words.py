"""Long words: places where they may break, which a layout engine needs and looks for within one text only."""

import re
from unicodedata import category
from xml.etree.ElementTree import Element

from render.frontend.element_tree import LITERAL, Pieces, body_of, edit_texts, make, name_of
from render.model import Document

WORD_PART = 250
"""Letters between two places where a very long word may break: some two lines of a page."""
LONG_RUN = 30
"""A word of so many letters may break where an element begins or ends in it."""
_LONG_WORD = re.compile(r"[^ \t\n\r\f]{1500,}")
"""No-break spaces are letters here: a line does not break at them."""
_LETTERS = re.compile(r"[^\s\u1100-\u1dff\u2e80-\U0010ffff]*")
"""Scripts from Hangul on break between letters, or have rules of their own."""
_IN_ADDRESSES = frozenset("/\\@&#")
_IN_LINE = frozenset({
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "ins", "kbd", "mark", "q",
    "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var",
})  # fmt: skip
_SKIPPED = LITERAL - _IN_LINE


def split_long_words(document: Document) -> None:
    """Give words of thousands of letters places to break: the time of a line grows with their square."""
    body = body_of(document.tree)
    if any(_LONG_WORD.search(text) for text in document.tree.itertext()):
        edit_texts(body, {"script", "style", "template", "textarea", "title"}, _with_breaks)
    for element, places in _boundaries(body).items():
        _break_before_texts(element, places)


def _with_breaks(text: str, _parent: Element) -> Pieces | None:
    if not _LONG_WORD.search(text):
        return None
    pieces: Pieces = []
    end = 0
    for match in _LONG_WORD.finditer(text):
        pieces.append(text[end : match.start()])
        for start in range(match.start(), match.end(), WORD_PART):
            pieces += [text[start : min(start + WORD_PART, match.end())], make("wbr")]
        end = match.end()
    return [*pieces, text[end:]]


def _boundaries(body: Element) -> dict[Element, set[int]]:
    """Where texts begin that go on with a long word: by element, the numbers of children that they stand behind."""
    found: dict[Element, set[int]] = {}
    steps: list[tuple[Element, Element | None, int]] = [(body, None, 0)]
    run = 0
    while steps:
        element, child, place = steps.pop()
        text = (element.text if child is None else child.tail) or ""
        if name_of(element if child is None else child) not in _IN_LINE:
            run = 0
        first, last = _ends(text)
        if run and first and run + first >= LONG_RUN and not _closes(text):
            found.setdefault(element, set()).add(place)
        run = run + last if last == len(text) else last
        if child is None:
            for number, inner in reversed(list(enumerate(element, 1))):
                steps.append((element, inner, number))
                if name_of(inner) and name_of(inner) not in _SKIPPED:
                    steps.append((inner, None, 0))
    return found


def _ends(text: str) -> tuple[int, int]:
    """How many letters a text begins and ends with, that no line breaks between."""
    first = _LETTERS.match(text)
    last = _LETTERS.match(text[::-1])
    return (first.end() if first else 0), (last.end() if last else 0)


def _closes(text: str) -> bool:
    """Whether a text begins with a sign that no line may begin with."""
    return category(text[0]) in {"Pe", "Pf", "Po"} and text[0] not in _IN_ADDRESSES


def _break_before_texts(element: Element, places: set[int]) -> None:
    """Puts breaks behind the children of these numbers; 0 is before the first."""
    children: list[Element] = []
    if 0 in places:
        children.append(make("wbr"))
        children[-1].tail, element.text = element.text, None
    for number, child in enumerate(element, 1):
        children.append(child)
        if number in places:
            children.append(make("wbr"))
            children[-1].tail, child.tail = child.tail, None
    element[:] = children
