"""Bounds of style sheets: what would keep a layout engine at work without end is taken out before it is read.

A few hundred characters are enough for that: variables that are each ten times the one before, rules nested within
each other (each level multiplies the selectors), a million grid tracks, a number padded to a hundred million digits.
"""

import re

from render.limits import (
    CSS_CHAIN_MAX,
    CSS_DEPTH_MAX,
    CSS_EXPANSION_CHARACTERS_MAX,
    CSS_GRID_CHARACTERS_MAX,
    CSS_NESTED_SELECTORS_MAX,
    CSS_TRACKS_MAX,
    STYLE_CHARACTERS_MAX,
)
from render.model import Document

_ESCAPE = re.compile(r"\\\\|\\([0-9a-fA-F]{1,6})[ \t\n]?|\\([g-zG-Z])")
_TOKEN = re.compile(
    r"/\*.*?(?:\*/|$)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|\\.|[\[({})\];,&]|[\s>+~]+", re.DOTALL
)
_TRACKS = re.compile(r"(grid[\w-]*\s*:)([^;{}]*)", re.IGNORECASE)
_SIZE = r"(\d[\d.]*(?:px|rem|em|ch|pt|mm|cm|in))"
_LEAST = re.compile(
    rf"(minmax\(\s*)(?:min|max)\((?:\s*{_SIZE}\s*,\s*[^(),]{{1,40}}|\s*[^(),]{{1,40}},\s*{_SIZE}\s*)\)",
    re.IGNORECASE,
)
"""The least size of a track that is one of two: the layout engine reads a single size, and the fixed one is meant."""
_LARGE = re.compile(r"(?<![\w.#])\d{4,}(?![\d.]*[a-z%])", re.IGNORECASE)
_PAD = re.compile(r"(\bpad\s*:[^;{}]*?)\d{3,}", re.IGNORECASE)
_VARIABLE = re.compile(r"(--[\w-]+)\s*:([^;}]*)")
_USE = re.compile(r"var\(\s*(--[\w-]+)", re.IGNORECASE)
SEARCHED_RULES_MAX = 300
"""Rules of a style sheet beyond bounds that may set variables; further ones are left out."""
_OPENING = frozenset("([{")
_CLOSING = {"}": "{", ")": "(", "]": "["}


def bound_css(document: Document, css: str) -> str:
    """A style sheet, or a style attribute, that can be laid out in bounded time; empty if there is none in it."""
    if len(css) > STYLE_CHARACTERS_MAX:
        document.warn(
            "dropped_css",
            f"Of a style sheet of {len(css):,} characters the first {STYLE_CHARACTERS_MAX:,} were read; shorten it.",
        )
        css = css[:STYLE_CHARACTERS_MAX]
    css = plain_letters(css)
    if _reason(document, css) is not None:
        css = _within_bounds(document, css)
    css = _TRACKS.sub(_fewer_tracks, _LEAST.sub(r"\1\2\3", css))
    return _PAD.sub(rf"\g<1>{CSS_TRACKS_MAX}", css)


def _reason(document: Document, css: str) -> str | None:
    """What in a style sheet is beyond bounds."""
    reason = _fault(css)
    return _variables(document, css) if reason is None and "--" in css else reason


def _within_bounds(document: Document, css: str) -> str:
    """The rules of a style sheet, or the declarations of an attribute, that are within bounds."""
    usable = []
    for number, rule in enumerate(rules_of(css)):
        # Variables are searched in each other, so the time of the search grows with the square of their number.
        crowded = number >= SEARCHED_RULES_MAX and "--" in rule
        reason = f"there are more than {SEARCHED_RULES_MAX:,} before it" if crowded else _reason(document, rule)
        if reason is None:
            usable.append(rule)
        else:
            document.warn("dropped_css", f"A rule of a style sheet was left out: {reason}.")
    return "\n".join(usable)


def rules_of(css: str) -> list[str]:
    """The rules of a style sheet as they are written; of a style attribute, its declarations."""
    rules: list[str] = []
    stack: list[str] = []
    start = 0
    for match in _TOKEN.finditer(css):
        piece = match[0]
        if piece in _OPENING:
            stack.append(piece)
        elif stack and _CLOSING.get(piece) == stack[-1]:
            stack.pop()
        if not stack and piece in {";", "}"}:
            rules.append(css[start : match.end()])
            start = match.end()
    return [rule for rule in [*rules, css[start:]] if rule.strip()]


def _fewer_tracks(match: re.Match[str]) -> str:
    if len(match[2]) > CSS_GRID_CHARACTERS_MAX:
        return f"{match[1]} none"
    return match[1] + _LARGE.sub(str(CSS_TRACKS_MAX), match[2])


def plain_letters(css: str) -> str:
    r"""Letters that are written as escapes (``\75rl``) as themselves; it means the same."""

    def letter(match: re.Match[str]) -> str:
        if match[2]:
            return match[2]
        number = int(match[1], 16) if match[1] else 0
        return chr(number) if number < 128 and chr(number).isalpha() else match[0]  # noqa: PLR2004 - ASCII

    return _ESCAPE.sub(letter, css) if "\\" in css else css


def _fault(css: str) -> str | None:
    """What in the brackets and selectors of a style sheet is beyond bounds."""
    scan = _Scan()
    for match in _TOKEN.finditer(css):
        piece = match[0]
        if piece in "([{":
            fault = scan.open(piece)
            if fault:
                return fault
        elif piece in _CLOSING:
            scan.close(piece)
        elif piece == ";":
            scan.start()
        else:
            scan.count(piece)
    return None


class _Scan:
    """Where a reader of a style sheet is: the open brackets, and what the selector before the next ``{`` has."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, int]] = []  # brackets, and how many selectors a rule in them has
        self.start()

    def start(self) -> None:
        self.parts = self.references = self.alternatives = 1

    def open(self, bracket: str) -> str | None:
        selectors = self.stack[-1][1] if self.stack else 1
        if bracket == "{":
            if self.parts > CSS_CHAIN_MAX:
                return f"a selector has more than {CSS_CHAIN_MAX} parts"
            selectors *= self.references * (self.alternatives if self.stack else 1)
            self.start()
        if selectors > CSS_NESTED_SELECTORS_MAX:
            return f"its nested rules make more than {CSS_NESTED_SELECTORS_MAX:,} selectors"
        if len(self.stack) >= CSS_DEPTH_MAX:
            return f"its brackets are nested more than {CSS_DEPTH_MAX} deep"
        self.stack.append((bracket, selectors))
        return None

    def close(self, bracket: str) -> None:
        if self.stack and self.stack[-1][0] == _CLOSING[bracket]:
            self.stack.pop()
        if bracket == "}":
            self.start()

    def count(self, piece: str) -> None:
        within = bool(self.stack) and self.stack[-1][0] != "{"
        if piece == "&":
            self.references += 1
        elif piece == ",":
            self.alternatives += 1
            if not within:
                self.parts = 1
        elif piece[0] in " \t\n\r\f>+~" and not within:
            self.parts += 1


def _variables(document: Document, css: str) -> str | None:
    """Whether custom properties, with those of the sheets before, grow beyond bounds when they are replaced."""
    known = dict(document.css_variables)
    for match in _VARIABLE.finditer(css):
        value = match[2]
        if len(value) > len(known.get(match[1], "")):
            known[match[1]] = value
    sizes: dict[str, int] = {}
    for name in known:
        if _expanded(name, known, sizes) > CSS_EXPANSION_CHARACTERS_MAX:
            return f"its variable {name[:60]} grows beyond {CSS_EXPANSION_CHARACTERS_MAX:,} characters"
    document.css_variables.update(known)
    return None


def _expanded(start: str, values: dict[str, str], sizes: dict[str, int]) -> int:
    """The length of a custom property once the others are put into it; those in a circle count as nothing."""
    stack = [start]
    opened: set[str] = set()
    while stack:
        name = stack[-1]
        uses = [use for use in _USE.findall(values[name]) if use in values]
        waiting = [use for use in uses if use not in sizes and use not in opened] if name not in opened else []
        opened.add(name)
        if waiting:
            stack.extend(dict.fromkeys(waiting))
            continue
        stack.pop()
        total = len(values[name]) + sum(sizes.get(use, 0) for use in uses)
        sizes[name] = min(total, CSS_EXPANSION_CHARACTERS_MAX + 1)
    return sizes[start]
