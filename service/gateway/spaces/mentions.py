"""The ``@handle`` mentions of a text."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

# A line with backticks after its opening ones is no fence, but has a code span.
_OPENING = re.compile(r"((?:[ \t]*(?:>|(?:[-*+]|[0-9]{1,9}[.)])(?=[ \t])))*)([ \t]*)(`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r"([ \t>]*)(`{3,}|~{3,})[ \t\r]*$")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)")
_INDENT_MAX = 3  # of a fence that is not in a list; with more it is code without fences
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


@dataclass(frozen=True, slots=True)
class _Fence:
    """Fenced code that is open.

    Attributes:
        mark: the backticks or tildes that opened it.
        is_quoted: whether it is in a quote, and so ends with it.
        in_list: whether it is in an item of a list, and so ends with it.
    """

    mark: str
    is_quoted: bool
    in_list: bool

    @classmethod
    def opened_by(cls, found: re.Match[str], *, in_list: bool) -> "_Fence | None":
        """Return the fence of a line; None if its indent makes the line code without fences."""
        markers, indent, mark = found.groups()
        if not (markers or in_list) and len(indent.expandtabs(4)) > _INDENT_MAX:
            return None
        return cls(mark, ">" in markers, in_list)

    def contains(self, line: str) -> bool:
        """Whether a line belongs to it, also as its end."""
        if self.is_quoted:
            return line.lstrip(" \t").startswith(">")
        return not self.in_list or line[:1] in (" ", "\t") or not line.strip()

    def is_closed_by(self, line: str) -> bool:
        """Whether a line ends it."""
        found = _CLOSING.match(line)
        if found is None or found[2][0] != self.mark[0] or len(found[2]) < len(self.mark):
            return False
        is_nested = self.is_quoted or self.in_list
        return is_nested or (">" not in found[1] and len(found[1].expandtabs(4)) <= _INDENT_MAX)


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
    """Return the parts of a text outside of fenced code, which may be in a quote or an item of a list."""
    parts: list[list[str]] = [[]]
    fence, in_list = None, False
    for line in text.split("\n"):
        if fence is not None and fence.contains(line):
            if fence.is_closed_by(line):
                fence = None
            continue
        found = _OPENING.match(line)
        is_indented = line[:1] in (" ", "\t") or not line.strip()
        in_list = _ITEM.match(line) is not None or (in_list and is_indented)
        fence = None if found is None else _Fence.opened_by(found, in_list=in_list)
        if fence is None:
            parts[-1].append(line)
        else:
            parts.append([])
    return ["\n".join(lines) for lines in parts]


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
