"""Inline style sheets: declarations of a ``style`` attribute, colours, lengths."""

import re
from functools import lru_cache
from typing import Any

import tinycss2
from tinycss2.color4 import parse_color

_LENGTH = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)\s*([a-z%]*)\s*", re.IGNORECASE)
_PIXELS = {
    "": 1.0, "px": 1.0, "pt": 96 / 72, "pc": 16.0, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6,
    "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0,
}  # fmt: skip
_MAX_STYLE_CHARS = 20_000
_MAX_VAR_DEPTH = 8
_MAX_PIXELS = 20_000.0


@lru_cache(maxsize=4096)
def declarations(style: str) -> dict[str, str]:
    """The declarations of a ``style`` attribute, names in lower case; what does not parse is left out."""
    found: dict[str, str] = {}
    for node in tinycss2.parse_blocks_contents(style[:_MAX_STYLE_CHARS], skip_comments=True, skip_whitespace=True):
        if node.type == "declaration":
            value = tinycss2.serialize(node.value).strip()
            name = node.name if node.name.startswith("--") else node.lower_name
            if value:
                found[name] = value
    return found


def length(value: str | None) -> float | None:
    """Pixels of a CSS length or an HTML dimension; None for percentages, ``auto`` and what is no length."""
    match = _LENGTH.fullmatch(value or "")
    if match is None or match[2].lower() not in _PIXELS:
        return None
    pixels = float(match[1]) * _PIXELS[match[2].lower()]
    return min(pixels, _MAX_PIXELS) if pixels > 0 else None


def percentage(value: str | None) -> float | None:
    """The number of a percentage such as ``40%``."""
    match = _LENGTH.fullmatch(value or "")
    return float(match[1]) if match and match[2] == "%" and float(match[1]) > 0 else None


def colour(value: str | None, variables: dict[str, str]) -> str | None:
    """``#rrggbb`` of a CSS colour, over white where it lets light through; None if there is none.

    Args:
        value: a colour, a ``background`` shorthand or a gradient, whose first colour counts.
        variables: what ``var(--name)`` stands for, by name with its dashes.
    """
    if not value or len(value) > _MAX_STYLE_CHARS:
        return None
    return _colour(value, tuple(variables.items()))


@lru_cache(maxsize=4096)
def _colour(value: str, variables: tuple[tuple[str, str], ...]) -> str | None:
    return _first_colour(tinycss2.parse_component_value_list(value, skip_comments=True), dict(variables), 0)


def _first_colour(tokens: list[Any], variables: dict[str, str], depth: int) -> str | None:
    if depth > _MAX_VAR_DEPTH:
        return None
    for token in tokens:
        if token.type == "function" and token.lower_name == "var":
            found = _variable(token.arguments, variables, depth)
        else:
            found = _solid(token)
            if found is None and token.type == "function" and token.lower_name.endswith("gradient"):
                found = _first_colour(token.arguments, variables, depth + 1)
        if found is not None:
            return found
    return None


def _variable(arguments: list[Any], variables: dict[str, str], depth: int) -> str | None:
    name = next((token.value for token in arguments if token.type == "ident"), "")
    if name in variables:
        tokens = tinycss2.parse_component_value_list(variables[name], skip_comments=True)
        return _first_colour(tokens, variables, depth + 1)
    commas = [index for index, part in enumerate(arguments) if part == ","]
    return _first_colour(arguments[commas[0] + 1 :], variables, depth + 1) if commas else None


def _solid(token: Any) -> str | None:
    try:
        parsed = parse_color(token)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return None
    if parsed is None or parsed == "currentcolor":
        return None
    try:
        red, green, blue, *_ = parsed.to("srgb").coordinates
        alpha = float(parsed.alpha)
    except (ValueError, TypeError, ArithmeticError, NotImplementedError):
        return None
    if not alpha:  # ``transparent`` is no colour
        return None
    return "#" + "".join(_channel(channel, alpha) for channel in (red, green, blue))


def _channel(value: float | None, alpha: float) -> str:
    over_white = (value or 0.0) * alpha + 1.0 - alpha
    if over_white != over_white:  # noqa: PLR0124 - not a number: calc(NaN)
        over_white = 0.0
    return f"{round(min(max(over_white, 0.0), 1.0) * 255):02x}"
