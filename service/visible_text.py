"""Makes characters visible that a reader cannot see: names of files may hold them, and hide words for a model.

These are format characters (marks of direction, tags, zero-width marks), control characters, separators of lines
and paragraphs, variation selectors, blank letters and what Unicode has not assigned. A stored name keeps them.
"""

import unicodedata
from collections.abc import Collection
from itertools import islice

_HIDDEN_CATEGORIES = frozenset({"Cf", "Cc", "Cn", "Co", "Cs", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_VARIATION_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
_KEPT = frozenset("\n\t")
_KNOWN_MAX = 4_096  # characters whose form is remembered; names may hold all that there are


class _Table(dict[int, int | str]):
    """What `str.translate` puts in place of each character: an escape for a hidden one, else the same."""

    def __missing__(self, code: int) -> int | str:
        shown = _escape(code) if is_hidden(chr(code)) else code
        if len(self) < _KNOWN_MAX:
            self[code] = shown
        return shown


def is_hidden(character: str) -> bool:
    """Whether a reader cannot see a character; line feeds and tabs are none of these."""
    return character not in _KEPT and (
        unicodedata.category(character) in _HIDDEN_CATEGORIES
        or character in _BLANK_LETTERS
        or any(first <= ord(character) <= last for first, last in _VARIATION_SELECTORS)
    )


def _escape(code: int) -> str:
    units = chr(code).encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


_TABLE = _Table()


def visible_text(text: str) -> str:
    r"""A text with ``\u202e`` in place of each hidden character; line feeds and tabs stay.

    JSON text stays JSON of the same value.
    """
    return text if text.isascii() and text.isprintable() else text.translate(_TABLE)


def visible_line(text: str) -> str:
    """A text as `visible_text` shows it, on one line."""
    return visible_text(text).replace("\n", "\\n").replace("\t", "\\t")


def list_first(names: Collection[str], shown_max: int) -> str:
    """The first of some names, each on the one line, and how many more there are."""
    more = len(names) - shown_max
    return ", ".join(map(visible_line, islice(names, shown_max))) + (f" and {more} more" if more > 0 else "")


def without_hidden(text: str, mark: str) -> str:
    """A text with ``mark`` in place of each hidden character, line feeds and tabs included."""
    return "".join(mark if character in _KEPT or is_hidden(character) else character for character in text)
