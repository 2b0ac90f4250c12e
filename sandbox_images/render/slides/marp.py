"""What Marp's front matter, comments and picture keywords ask for, as far as slides have it."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make, parents_of
from tinycss2.color3 import parse_color

_CSS = re.compile(r"[#\w(),.%/ -]{1,60}")
_ADDRESS = re.compile(r"""url\(\s*(["']?)(.{1,2000}?)\1\s*\)""", re.DOTALL)
_GRADIENT = re.compile(r"(?:repeating-)?(?:linear|radial)-gradient\([^;{}]{1,500}\)")
_MARKS = re.compile(r"(\*\*|__|\*|_|`|~~)(?=\S)(.+?)(?<=\S)\1")
_SIDE = re.compile(r"(left|right)(?::(\d{1,3}(?:\.\d+)?)%)?")
_LENGTH = re.compile(r"(w|width|h|height):(auto|\d{1,5}(?:\.\d+)?(?:px|%|em|rem|cm|mm|in|pt)?)")
_FILTER = re.compile(
    r"(?:blur|brightness|contrast|drop-shadow|grayscale|hue-rotate|invert|opacity|saturate|sepia)(?::.+)?"
)
_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|(?:rgb|hsl)a?\([^()]{1,60}\)|\b[a-zA-Z]{3,20}\b(?!-|\()")
_SHARE_LEAST, _SHARE_MOST = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives of a slide.

    Attributes:
        classes: names such as ``lead`` and ``invert``.
        colour, background: CSS colours, or "".
        image: a CSS gradient behind the slide, or "".
        paginate: whether the slide shows its number; None if it is not set.
        header, footer: text at the edges.
        divider: level of heading that slides begin at; 0 for rules only, None for pandoc's rule.
    """

    classes: tuple[str, ...] = ()
    colour: str = ""
    background: str = ""
    image: str = ""
    paginate: bool | None = None
    header: str = ""
    footer: str = ""
    divider: int | None = None
    picture: str = ""
    """Address of a picture behind the slide."""


@dataclass(slots=True)
class Backdrops:
    """Pictures behind a slide: ``![bg](x)``; beside its text with ``left`` or ``right``.

    Attributes:
        pictures: elements with how they fill their place (cover, contain, fill).
        side: left, right or "" for the whole slide.
        share: of the slide's width that they take.
        stacked: whether several stand one below the other.
    """

    pictures: list[tuple[Element, str]] = field(default_factory=list)
    side: str = ""
    share: float = 1.0
    stacked: bool = False


def from_front_matter(matter: dict[str, Any]) -> Directives:
    """Directives of a whole deck."""
    if not matter.get("marp"):
        return Directives()
    return _apply(Directives(divider=0), {str(key): value for key, value in matter.items()})


def read_directive(row: str, lasting: Directives, once: Directives) -> tuple[Directives, Directives]:
    """Reads a comment's directives: ``class`` lasts from here on, ``_class`` is for this slide only.

    Args:
        row: the JSON of the comment.
        lasting: what holds so far.
        once: what holds for this slide so far.

    Returns:
        What holds from here on, and what holds for this slide.
    """
    try:
        value = json.loads(row)
    except (ValueError, RecursionError):
        return lasting, once
    if not isinstance(value, dict):
        return lasting, once
    from_here = {key: item for key, item in value.items() if not key.startswith("_")}
    here = {key.lstrip("_"): item for key, item in value.items()}
    return _apply(lasting, from_here), _apply(once, here)


def _apply(directives: Directives, values: dict[str, Any]) -> Directives:
    changed = directives
    for key, value in values.items():
        text = (
            ""
            if value is None
            else " ".join(str(item) for item in value)
            if isinstance(value, list)
            else str(value)
        )
        if key == "class":
            changed = replace(changed, classes=tuple(text.split()[:20]))
        elif key == "color" and _CSS.fullmatch(text):
            changed = replace(changed, colour=text)
        elif key == "backgroundColor" and _CSS.fullmatch(text):
            changed = replace(changed, background=text)
        elif key == "backgroundImage":
            address = _ADDRESS.search(text)
            gradient = _GRADIENT.search(text)
            changed = replace(changed, image=gradient[0] if gradient else "", picture=address[2] if address else "")
        elif key == "paginate":
            changed = replace(changed, paginate=text.strip().lower() in {"true", "hold", "yes", "1"})
        elif key == "header":
            changed = replace(changed, header=text)
        elif key == "footer":
            changed = replace(changed, footer=text)
        elif key == "headingDivider":
            levels = [int(level) for level in re.findall(r"[1-6]", text)]
            changed = replace(changed, divider=max(levels, default=0))
    return changed


def from_attributes(element: Element, directives: Directives) -> Directives:
    """Directives with the ground that ``data-background`` and its kin, of reveal.js, ask for."""
    given = {
        name: (element.get(f"data-background{name}") or "").strip()
        for name in ("", "-color", "-gradient", "-image")
    }
    colour = given["-color"] or (given[""] if _CSS.fullmatch(given[""]) and "." not in given[""] else "")
    picture = given["-image"] or (given[""] if not colour and not _GRADIENT.search(given[""]) else "")
    gradient = _GRADIENT.search(given["-gradient"] or given[""])
    if colour and _CSS.fullmatch(colour):
        directives = replace(directives, background=colour)
    if gradient:
        directives = replace(directives, image=gradient[0])
    if (colour or gradient) and not directives.colour and _is_dark(gradient[0] if gradient else colour):
        directives = replace(directives, colour="#ffffff")
    if picture and not picture.startswith(("#", "rgb", "hsl")):
        address = _ADDRESS.search(picture)
        directives = replace(directives, picture=address[2] if address else picture)
    return directives


def _is_dark(ground: str) -> bool:
    """Whether a colour, or the colours of a gradient, are dark in the mean: reveal.js has light text on them."""
    found = [parse_color(part) for part in _COLOUR.findall(ground)]
    shades = [0.299 * one.red + 0.587 * one.green + 0.114 * one.blue for one in found if hasattr(one, "red")]
    return bool(shades) and sum(shades) / len(shades) < 0.5  # noqa: PLR2004 - the middle


def small_print(tag: str, attributes: dict[str, str], text: str) -> Element:
    """A header or footer: Marp reads Markdown there, of which emphasis is what people use."""
    element = make(tag, attributes)
    end = 0
    for match in _MARKS.finditer(text):
        _add_text(element, text[end : match.start()])
        element.append(
            make({"**": "strong", "__": "strong", "`": "code", "~~": "s"}.get(match[1], "em"), None, match[2])
        )
        end = match.end()
    _add_text(element, text[end:])
    return element


def _add_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = text
    else:
        element.text = text


def take_backdrops(root: Element, directives: Directives) -> Backdrops:
    """Takes the pictures behind a slide out of it, and gives the others the sizes that their keywords ask for."""
    found = Backdrops()
    if directives.picture:
        found.pictures.append((make("img", {"src": directives.picture, "alt": ""}), "cover"))
    parents = parents_of(root)
    for image in [item for item in root.iter("img") if item.get("alt") is not None]:
        words = (image.get("alt") or "").split()
        if "bg" in words:
            if found.pictures and directives.picture == found.pictures[0][0].get("src"):
                found.pictures.clear()
            _add_backdrop(found, image, words)
            _remove(parents, image)
        elif any(_LENGTH.fullmatch(word) for word in words):
            rows = [match for word in words if (match := _LENGTH.fullmatch(word))]
            sizes = "".join(f";{'width' if row[1][0] == 'w' else 'height'}:{_css_length(row[2])}" for row in rows)
            image.set("style", f"{image.get('style') or ''}{sizes}")
            image.set("alt", _alt(words))
    _move_notices(root, parents)
    return found


def _move_notices(root: Element, parents: dict[Element, Element]) -> None:
    """The notice of a missing background is at the slide's end, without Marp's keywords."""
    for notice in [item for item in root.iter("span") if "pb-missing" in classes_of(item)]:
        alt, mark, rest = (notice.text or "").partition(" \u2014 ")
        if mark and "bg" in alt.split():
            notice.text = mark.join(part for part in (_alt(alt.split()), rest) if part)
            _remove(parents, notice)
            root.append(make("p", None, None, notice))


def _css_length(text: str) -> str:
    return f"{text}px" if text[-1].isdigit() else text


def _alt(words: list[str]) -> str:
    """What is left of an alternative text without keywords."""
    keywords = {"bg", "cover", "contain", "fit", "auto", "vertical", "horizontal"}
    return " ".join(
        word
        for word in words
        if not (
            word in keywords or any(rule.fullmatch(word) for rule in (_SIDE, _LENGTH, _FILTER)) or _is_share(word)
        )
    )


def _is_share(word: str) -> bool:
    return bool(re.fullmatch(r"\d{1,3}(?:\.\d+)?%", word))


def _add_backdrop(found: Backdrops, image: Element, words: list[str]) -> None:
    for word in words:
        side = _SIDE.fullmatch(word)
        if side:
            share = float(side[2]) / 100 if side[2] else 0.5
            found.side, found.share = side[1], min(_SHARE_MOST, max(_SHARE_LEAST, share))
    found.stacked = found.stacked or "vertical" in words
    image.set("alt", _alt(words))
    image.tail = None
    found.pictures.append((image, "contain" if {"contain", "fit"} & set(words) else "cover"))


def _remove(parents: dict[Element, Element], image: Element) -> None:
    """Takes a picture out of its paragraph, and the paragraph if nothing else is in it."""
    parent = parents[image]
    parent.remove(image)
    if parent.tag == "p" and not len(parent) and not (parent.text or "").strip() and parent in parents:
        tail = parent.tail
        parents[parent].remove(parent)
        if tail and tail.strip():
            _add_text(parents[parent], tail)
