"""Attributes in braces, as pandoc reads them: ``## Costs {#costs .wide}``, ``![a](a.png){width=50%}``."""

import re
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_WORD = re.compile(
    r"\s*(?:#(?P<id>[^\s{}#=\"']+)|\.(?P<name>[A-Za-z_][^\s{}.=\"']*)|(?P<plain>-)(?=\s|$)"
    r"|(?P<key>[A-Za-z][\w:-]*)=(?:\"(?P<long>[^\"]*)\"|'(?P<quoted>[^']*)'|(?P<short>[^\s{}\"']+)))"
)
_AT_END = re.compile(r"\{([^{}\n]{1,500})\}[ \t]*$")
_AT_START = re.compile(r"[ \t]?\{([^{}\n]{1,500})\}")
_FENCE = re.compile(r"\{[ \t]*\.?([\w+#-]+)([^{}\n]*)\}")
_LENGTH = re.compile(r"\d{1,5}(?:\.\d{1,4})?(?:%|px|cm|mm|in|pt|em|rem)?")
_ELEMENTS = {"mark": "mark", "underline": "u", "ul": "u", "kbd": "kbd"}
_SIZES = ("width", "height")


def pandoc_attributes_plugin(parser: MarkdownIt) -> None:
    """Read attributes at the end of headings and captions, behind pictures and spans, and in the line of a fence."""
    parser.core.ruler.before("text_join", "pandoc_attributes", _read)  # an escaped brace is a token of its own


def attributes_of(text: str) -> dict[str, str] | None:
    """The attributes between two braces; None if the text is something else."""
    found: dict[str, str] = {}
    names: list[str] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None:
            return None
        at = match.end()
        if match["id"]:
            found["id"] = match["id"]
        elif match["key"]:
            values = (match["long"], match["quoted"], match["short"])
            found[match["key"].lower()] = next((value for value in values if value is not None), "")
        else:
            names.append(match["name"] or "unnumbered")
    if names:
        found["class"] = " ".join(names)
    return found or None


def _read(state: StateCore) -> None:
    for index, token in enumerate(state.tokens):
        if token.type == "fence":
            _fence(token)
        elif token.type == "inline" and token.children and "{" in token.content:
            _behind_pictures(token.children)
            _name_spans(token.children)
            before = state.tokens[index - 1]
            if before.type == "heading_open" or (
                before.type == "paragraph_open" and token.content.startswith((": ", "Table: "))
            ):
                _at_end(before, token.children)


def _fence(token: Token) -> None:
    """A language in braces, with or without a dot, is the language of the fence."""
    match = _FENCE.match(token.info.strip())
    if match:
        token.info = match[1]


def _at_end(owner: Token, children: list[Token]) -> None:
    last = children[-1]
    match = _AT_END.search(last.content) if last.type == "text" else None
    found = attributes_of(match[1]) if match else None
    if match and found and last.content[: match.start()][-1:] in {"", " ", "\t"}:
        last.content = _without_closing(last.content[: match.start()].rstrip(" \t"))
        _set(owner, found)


def _without_closing(text: str) -> str:
    """The text of a heading without the number signs that close it."""
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare[-1:] in {" ", "\t"} else text


def _behind_pictures(children: list[Token]) -> None:
    for token, after in pairwise(children):
        match = _AT_START.match(after.content) if token.type == "image" and after.type == "text" else None
        found = attributes_of(match[1]) if match else None
        if match and found:
            after.content = after.content[match.end() :]
            _set(token, found)


def _name_spans(children: list[Token]) -> None:
    """Give spans of a class that HTML has an element for that element."""
    opened: list[str] = []
    for token in children:
        if token.type == "span_open":
            names = str(token.attrs.get("class", "")).split()
            opened.append(next((_ELEMENTS[name] for name in names if name in _ELEMENTS), token.tag))
            token.tag = opened[-1]
        elif token.type == "span_close" and opened:
            token.tag = opened.pop()


def _set(token: Token, found: dict[str, Any]) -> None:
    """Puts attributes on an element; a size becomes a style, since HTML's own sizes have no units."""
    sizes = [f"{name}:{_with_unit(found[name])}" for name in _SIZES if _LENGTH.fullmatch(found.get(name, ""))]
    for name, value in found.items():
        if name == "class":
            token.attrJoin("class", value)
        elif name == "style":
            sizes.insert(0, value)
        elif name not in _SIZES and not name.startswith("on"):
            token.attrSet(name if name in {"id", "alt", "title", "lang", "dir"} else f"data-{name}", value)
    if sizes:
        token.attrSet("style", ";".join(sizes))


def _with_unit(length: str) -> str:
    return f"{length}px" if length[-1].isdecimal() else length
