"""CSS values: declarations taken apart into single properties, colours, lengths."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import tinycss2
from render.ir import Line
from tinycss2.color5 import parse_color

Declarations = dict[str, str]
"""Values by property: shorthands opened, colours as ``#rrggbb`` or ``none``, all else as it was written."""

SIDES = ("top", "right", "bottom", "left")
VALUE_CHARACTERS_MAX = 20_000
_LENGTH = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z%]*)\s*", re.IGNORECASE)
_PIXELS = {
    "": 1.0, "px": 1.0, "pt": 96 / 72, "pc": 16.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
    "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0,
}  # fmt: skip
_PIXELS_MAX = 20_000.0
_BORDER_WIDTHS = {"thin": 1.0, "medium": 3.0, "thick": 5.0}
_BORDER_STYLES = frozenset({
    "none", "hidden", "solid", "dashed", "dotted", "double", "groove", "ridge", "inset", "outset",
})  # fmt: skip
_RETAINED = frozenset({
    "font-weight", "font-style", "font-size", "font-family", "text-align", "text-decoration-line", "text-transform",
    "vertical-align", "white-space", "display", "visibility", "width", "max-width", "height", "max-height",
    "list-style-type", "break-before", "break-after", "flex-basis", "flex-direction", "grid-template-columns",
    "direction", "float", "justify-content", "flex-wrap", "flex-flow", "content", "transform",
    "rotate", "opacity", "position",
})  # fmt: skip
_RENAMED = {"page-break-before": "break-before", "page-break-after": "break-after", "flex": "flex-basis",
            "text-decoration": "text-decoration-line", "list-style": "list-style-type"}  # fmt: skip


def longhands(name: str, tokens: list[Any]) -> Iterator[tuple[str, str]]:
    """The single properties that a declaration sets, of those that a word processor can show.

    Args:
        name: of the property or shorthand, in lower case.
        tokens: its value, with no ``var()`` left in it.
    """
    name = _RENAMED.get(name, name)
    if name in _RETAINED:
        yield name, tinycss2.serialize(tokens).strip()
    elif name in {"color", "background-color"}:
        found = first_colour(tokens) or _no_colour(tokens)
        if found:
            yield name, found
    elif name in {"background", "background-image"}:
        ground = first_colour(tokens)
        if ground or name == "background":
            yield "background-color", ground or "none"
    elif name == "font":
        yield from _font(tokens)
    elif name == "border" or name.startswith("border-"):
        yield from _border(name.split("-"), tokens)


def _no_colour(tokens: list[Any]) -> str:
    word = tinycss2.serialize(tokens).strip().lower()
    return "none" if word in {"transparent", "inherit", "initial", "unset", "currentcolor"} else ""


def _font(tokens: list[Any]) -> Iterator[tuple[str, str]]:
    words = [token for token in tokens if token.type not in {"whitespace", "comment"}]
    if len(words) < 2:  # noqa: PLR2004 - a keyword: inherit, caption
        return
    yield (
        "font-weight",
        next(
            (token.value for token in words if token.type == "ident" and token.lower_value.startswith("bold")),
            next(
                (str(token.int_value) for token in words if token.type == "number" and token.is_integer), "normal"
            ),
        ),
    )
    slanted = any(token.type == "ident" and token.lower_value in {"italic", "oblique"} for token in words)
    yield "font-style", "italic" if slanted else "normal"
    size = next((index for index, token in enumerate(words) if token.type in {"dimension", "percentage"}), None)
    if size is not None:
        yield "font-size", words[size].serialize()
        yield "font-family", " ".join(token.serialize() for token in words[size + 1 :])


def _border(words: list[str], tokens: list[Any]) -> Iterator[tuple[str, str]]:
    """``border-SIDE-PART`` of any shorthand of it."""
    sides = [word for word in words if word in SIDES] or list(SIDES)
    part = words[-1] if words[-1] in {"width", "style", "color"} else ""
    if len(words) > 1 and not part and words[-1] not in SIDES:
        return  # border-radius, border-collapse
    values = [token for token in tokens if token.type not in {"whitespace", "comment"}]
    for index, side in enumerate(sides):
        if part and values:  # one value for each side, as for margins
            count = len(values)
            order = (0, 1 % count, 2 if count > 2 else 0, 3 if count > 3 else 1 % count)  # noqa: PLR2004
            chosen = [values[order[index] if len(sides) > 1 else 0]]
        else:
            chosen = values
            yield from ((f"border-{side}-{name}", value) for name, value in (("style", "none"), ("width", "3px")))
            yield f"border-{side}-color", ""
        for token in chosen:
            kind, value = _border_part(token)
            if kind and part in {"", kind}:
                yield f"border-{side}-{kind}", value


def _border_part(token: Any) -> tuple[str, str]:
    word = token.serialize().lower()
    if word in _BORDER_STYLES:
        return "style", word
    if word in _BORDER_WIDTHS:
        return "width", f"{_BORDER_WIDTHS[word]}px"
    if token.type in {"dimension", "number"}:
        return "width", word
    found = solid(token)
    return ("color", found) if found else ("color", "none") if word == "transparent" else ("", "")


def line_of(style: Declarations, side: str) -> Line | None:
    """The border at a side; None if there is none to see."""
    kind = style.get(f"border-{side}-style", "none")
    shade = style.get(f"border-{side}-color", "")
    width = length(style.get(f"border-{side}-width", "3px"))
    if kind in {"none", "hidden"} or shade == "none" or not width:
        return None
    return Line(width, shade or style.get("color", "").replace("none", "") or "#000000", kind)


def length(value: str | None, em: float = 16.0) -> float | None:
    """Pixels of a CSS length or an HTML dimension; None for percentages, ``auto`` and what is no length.

    Args:
        value: the length.
        em: the size of type where it stands, in pixels.
    """
    match = _LENGTH.fullmatch(value or "")
    if match is None or match[2].lower() not in _PIXELS:
        return None
    unit = em if match[2].lower() == "em" else _PIXELS[match[2].lower()]
    pixels = float(match[1]) * unit
    return min(pixels, _PIXELS_MAX) if pixels > 0 else None


def percentage(value: str | None) -> float | None:
    """The number of a percentage such as ``40%``."""
    match = _LENGTH.fullmatch(value or "")
    return float(match[1]) if match and match[2] == "%" and float(match[1]) > 0 else None


@lru_cache(maxsize=4096)
def colour(value: str | None) -> str | None:
    """``#rrggbb`` of a CSS colour or of an attribute such as ``bgcolor``; None if there is none."""
    if not value or len(value) > VALUE_CHARACTERS_MAX:
        return None
    return first_colour(tinycss2.parse_component_value_list(value, skip_comments=True))


def first_colour(tokens: list[Any], depth: int = 0) -> str | None:
    """The first colour of a value, or of a gradient in it: over white where it lets light through."""
    for token in tokens:
        found = solid(token)
        if found is None and token.type == "function" and token.lower_name.endswith("gradient") and not depth:
            found = first_colour(token.arguments, depth + 1)
        if found is not None:
            return found
    return None


def solid(token: Any) -> str | None:
    """``#rrggbb`` of a token; None if it is no colour or one that shows nothing."""
    try:
        parsed = parse_color(token)
        if parsed is None or isinstance(parsed, str):
            return None
        red, green, blue, *_ = parsed.to("srgb").coordinates
        alpha = float(parsed.alpha)
    except (ValueError, TypeError, ArithmeticError, AttributeError, NotImplementedError):
        return None
    if not alpha:  # ``transparent`` is no colour
        return None
    return "#" + "".join(_channel(channel, alpha) for channel in (red, green, blue))


def _channel(value: float | None, alpha: float) -> str:
    over_white = (value or 0.0) * alpha + 1.0 - alpha
    if over_white != over_white:  # noqa: PLR0124 - not a number: calc(NaN)
        over_white = 0.0
    return f"{round(min(max(over_white, 0.0), 1.0) * 255):02x}"


def mix(colour: str, ground: str, share: float) -> str:
    """A colour laid over a ground, ``share`` of it; both are ``#rrggbb``."""
    pairs = ((int(colour[at : at + 2], 16), int(ground[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(top * share + below * (1 - share)):02x}" for top, below in pairs)


def is_dark(shade: str) -> bool:
    """Whether light text is read better on a colour than dark text."""
    red, green, blue = (int(shade[at : at + 2], 16) for at in (1, 3, 5))
    return 299 * red + 587 * green + 114 * blue < 128_000  # noqa: PLR2004 - half of what white has
