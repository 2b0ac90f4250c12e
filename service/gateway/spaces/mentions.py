"""The ``@handle`` mentions of a text."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

# A line with backticks after its opening ones is no fence, but has a code span.
_FENCE = re.compile(r"^ {0,3}(`{3,}(?=[^`\n]*$)|~{3,})[^\n]*$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_TICKS = re.compile(r"`+")
# Not after a letter or digit: an address such as ann@example.com mentions nobody.
_MENTION = re.compile(r"(?<![^\W_])@([A-Za-z][\w-]*)")
_HANDLE_CHARACTERS_MAX = 64


@dataclass(frozen=True, slots=True)
class Mentions:
    """The mentions of a text.

    Attributes:
        known: the handles that it mentions, case folded, in their order, each once.
        unknown: what follows other ``@`` signs, as it is written, each once.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...]


def find_mentions(text: str, handles: Iterable[str]) -> Mentions:
    """Find the mentions in a text, but not those in code spans and fenced code.

    The longest handle wins, and case is ignored. A handle may end before a ``-`` or ``_``, never before a letter or
    digit: ``@ann-'s`` mentions ``ann``, ``@anna`` does not.

    Args:
        text: Markdown.
        handles: the handles of the members.
    """
    folded = {handle.casefold() for handle in handles}
    known: dict[str, None] = {}
    unknown: dict[str, None] = {}
    for match in _MENTION.finditer(_without_code(text)):
        written = match[1]
        found = _longest(written.casefold(), folded)
        if found is None:
            unknown[written] = None
        else:
            known[found] = None
    return Mentions(tuple(known), tuple(unknown))


def _longest(written: str, handles: set[str]) -> str | None:
    for end in range(min(len(written), _HANDLE_CHARACTERS_MAX), 0, -1):
        is_boundary = end == len(written) or not written[end].isalnum()
        if is_boundary and written[:end] in handles:
            return written[:end]
    return None


def _without_code(text: str) -> str:
    """Replace fenced code and code spans by line feeds and blanks."""
    paragraphs = (part for outside in _outside_fences(text) for part in _BLANK_LINE.split(outside))
    return "\n".join(_without_spans(paragraph) for paragraph in paragraphs)


def _outside_fences(text: str) -> list[str]:
    parts, at = [], 0
    while (opening := _FENCE.search(text, at)) is not None:
        mark = opening[1]
        parts.append(text[at : opening.start()])
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t\r]*$", re.MULTILINE)
        found = closing.search(text, opening.end())
        if found is None:
            return parts
        at = found.end()
    return [*parts, text[at:]]


def _without_spans(text: str) -> str:
    """Replace code spans by blanks: a run of backticks ends at the next run of the same length."""
    runs = list(_TICKS.finditer(text))
    by_length: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        by_length.setdefault(len(run[0]), []).append(number)
    pieces, at, number = [], 0, 0
    while number < len(runs):
        same = by_length[len(runs[number][0])]
        position = bisect_right(same, number)
        if position >= len(same):
            number += 1
            continue
        closing = same[position]
        pieces.append(text[at : runs[number].start()])
        at, number = runs[closing].end(), closing + 1
    return " ".join([*pieces, text[at:]])
