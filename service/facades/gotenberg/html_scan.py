"""Find tags, comments and rules in hostile pages: each scan is one pass, whatever the text holds.

A search that fails ends its scan, so no search starts again in front of the same text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FLAGS = re.IGNORECASE | re.ASCII
_COMMENT, _COMMENT_END = "<!--", "-->"
_PAGE_RULE = re.compile(r"@page", _FLAGS)
_PAGE_SELECTOR_CHARS_MAX = 200
_PAGE_RULES_MAX = 10_000
_BRACE = re.compile(r"[{}]")
_SIZE = re.compile(r"\bsize\s*:", _FLAGS)


@dataclass(frozen=True, slots=True)
class Element:
    """An element: offsets in its page.

    Attributes:
        start: its first tag.
        inner_start: what is between its tags.
        inner_end: its last tag.
        end: the text after it.
    """

    start: int
    inner_start: int
    inner_end: int
    end: int


def tag_pattern(names: str) -> re.Pattern[str]:
    """The beginning of a tag: ``body``, ``/?(?:html|body)``."""
    return re.compile(rf"<{names}\b", _FLAGS)


def end_of_tag(text: str, tag: re.Pattern[str]) -> int | None:
    """The offset after the first such tag that is not in a comment; None if there is none."""
    scan = re.compile(f"{_COMMENT}|{tag.pattern}", _FLAGS)
    at = 0
    while (match := scan.search(text, at)) is not None:
        if match[0] != _COMMENT:
            end = text.find(">", match.end())
            return None if end < 0 else end + 1
        at = _end_of_comment(text, match.start())
    return None


def without_comments(text: str) -> str:
    """The text without comments; one without an end reaches to the end of the text."""
    pieces = []
    at = 0
    while (start := text.find(_COMMENT, at)) >= 0:
        pieces.append(text[at:start])
        at = _end_of_comment(text, start)
    return "".join((*pieces, text[at:]))


def _end_of_comment(text: str, start: int) -> int:
    end = text.find(_COMMENT_END, start + 2)  # "<!-->" is a whole comment
    return len(text) if end < 0 else end + len(_COMMENT_END)


def without_tags(text: str, tag: re.Pattern[str]) -> str:
    """The text without such tags; what is between them stays."""
    pieces = []
    at = 0
    while (match := tag.search(text, at)) is not None:
        end = text.find(">", match.end())
        if end < 0:
            break
        pieces.append(text[at : match.start()])
        at = end + 1
    return "".join((*pieces, text[at:]))


def elements(text: str, name: str) -> Iterator[Element]:
    """The elements of a name that have both tags; none is in another one."""
    first, last = tag_pattern(name), re.compile(rf"</{name}\s*>", _FLAGS)
    at = 0
    while (opened := first.search(text, at)) is not None:
        inner = text.find(">", opened.end()) + 1
        closed = last.search(text, inner) if inner else None
        if closed is None:
            return
        yield Element(opened.start(), inner, closed.start(), closed.end())
        at = closed.end()


def without_elements(text: str, name: str) -> str:
    """The text without the elements of a name."""
    pieces = []
    at = 0
    for element in elements(text, name):
        pieces.append(text[at : element.start])
        at = element.end
    return "".join((*pieces, text[at:]))


def has_page_size(text: str) -> bool:
    """Whether a rule ``@page`` of a style sheet or a page has the property ``size``; true beyond 10,000 rules."""
    at, searched = 0, -1
    for _ in range(_PAGE_RULES_MAX):
        rule = _PAGE_RULE.search(text, at)
        if rule is None:
            return False
        at = rule.end()
        opened = text.find("{", at, at + _PAGE_SELECTOR_CHARS_MAX + 1)
        if opened in {-1, searched}:
            continue
        searched = opened
        closed = _BRACE.search(text, opened + 1)
        if _SIZE.search(text, opened + 1, closed.start() if closed else len(text)) is not None:
            return True
    return True
