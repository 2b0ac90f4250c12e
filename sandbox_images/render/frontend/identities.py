"""Identities of elements: where several documents become one, those that another has too get other names."""

import re
from collections.abc import Mapping
from urllib.parse import unquote
from xml.etree.ElementTree import Element

_LISTS = frozenset(
    {"for", "headers", "list", "form", "itemref", "popovertarget", "commandfor"}
    | {"aria-activedescendant", "aria-controls", "aria-describedby", "aria-details", "aria-errormessage"}
    | {"aria-flowto", "aria-labelledby", "aria-owns"}
)
"""Attributes that name elements by their identities."""
_URL = re.compile(r"""(url\(\s*["']?#)([^"'()\s]+)""", re.IGNORECASE)
_CSS_PIECE = re.compile(
    r"""/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|url\([^)]*\)?|[{};]|(?:(?!url\()[^/"'{};])+|.""",
    re.DOTALL | re.IGNORECASE,
)
_HASH = re.compile(r"#((?:[\w-]|[^\x00-\x7f]|\\[^\n0-9a-fA-F])+)")
_ESCAPE = re.compile(r"\\(.)")


def rename_ids(tree: Element, known: set[str | None], prefix: str) -> None:
    """Gives elements whose identity other documents have too other ones, and what refers to them, in place.

    Args:
        tree: of a document.
        known: identities of the documents before; grows by those of the tree.
        prefix: of new identities.
    """
    renamed: dict[str, str] = {}
    for item in tree.iter():
        identity = item.get("id")
        if identity and identity in known:
            renamed[identity] = prefix + identity
            item.set("id", prefix + identity)
    known.update(item.get("id") for item in tree.iter() if item.get("id"))
    if not renamed:
        return
    for item in tree.iter():
        for key, value in item.attrib.items():
            found = _renamed_value(key, value, renamed)
            if found != value:
                item.set(key, found)
        if item.tag == "style" or str(item.tag).endswith("}style"):
            for part in item.iter():
                part.text = renamed_css(part.text or "", renamed)


def _renamed_value(key: str, value: str, renamed: Mapping[str, str]) -> str:
    """The value of an attribute with other identities in it."""
    if key in _LISTS:
        words = value.split()
        return " ".join(renamed.get(word, word) for word in words) if renamed.keys() & set(words) else value
    if "#" not in value:
        return value
    if key.rpartition("}")[2].rpartition(":")[2] == "href":
        target = value.strip()
        name = target[1:] if target.startswith("#") else ""
        found = renamed.get(name) or renamed.get(unquote(name))
        return f"#{found}" if found else value
    return _renamed_urls(value, renamed)


def _renamed_urls(text: str, renamed: Mapping[str, str]) -> str:
    return _URL.sub(lambda found: found[1] + renamed.get(found[2], found[2]), text)


def renamed_css(css: str, renamed: Mapping[str, str]) -> str:
    """A style sheet with other identities in its selectors and addresses; colours stay what they are."""
    made: list[str] = []
    start = 0
    """Where in ``made`` what may be a selector begins."""
    for piece in _CSS_PIECE.findall(css):
        if piece == "{":
            made[start:] = [_renamed_selector(part, renamed) for part in made[start:]]
        is_address = piece[:4].lower() == "url("
        made.append(_renamed_urls(piece, renamed) if is_address else piece)
        if piece in {"{", "}", ";"}:
            start = len(made)
    return "".join(made)


def _renamed_selector(part: str, renamed: Mapping[str, str]) -> str:
    if part[:1] in {'"', "'"} or part.startswith("/*"):
        return part

    def name(found: re.Match[str]) -> str:
        identity = _ESCAPE.sub(r"\1", found[1])
        new = renamed.get(identity)
        return found[0] if new is None else f"#{new.removesuffix(identity)}{found[1]}"

    return _HASH.sub(name, part)
