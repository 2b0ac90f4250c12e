"""Text that a gradient shines through: nothing but a browser draws it, and without words it would be a bar."""

import re
from typing import Any

import tinycss2
from render.model import Document

_FILL = "-webkit-text-fill-color"
_CLEAR = re.compile(
    r"transparent|(?:rgba?|hsla?)\([^()]*[,/]\s*0?\.?0+%?\s*\)|#[0-9a-f]{6}00|#[0-9a-f]{3}0", re.IGNORECASE
)
_PLACES = re.compile(r"(?:to|at|circle|ellipse|from|in|closest-\w+|farthest-\w+)\b|[-+.\d]", re.IGNORECASE)


def plain_gradient_text(document: Document, css: str, *, attribute: bool = False) -> str:
    """Give text with a ground clipped to its letters the first colour of that ground.

    Args:
        document: gets a warning.
        css: a style sheet, or a style attribute.
        attribute: whether it is an attribute.
    """
    lower = css.lower()
    if "text" not in lower or "background" not in lower:
        return css
    tokens = tinycss2.parse_component_value_list(css)
    changed = False
    if attribute:
        tokens, changed = _declarations(tokens)
    else:
        stack = [tokens]
        while stack:
            for token in stack.pop():
                if token.type == "{} block":
                    if any(inner.type == "{} block" for inner in token.content):
                        stack.append(token.content)
                        continue
                    token.content[:], found = _declarations(token.content)
                    changed = changed or found
    if not changed:
        return css
    document.warn(
        "dropped_css", "Text with a gradient shining through is shown in the first colour of the gradient."
    )
    text: str = tinycss2.serialize(tokens)
    return text


def _declarations(content: list[Any]) -> tuple[list[Any], bool]:
    """The tokens of a block, and whether they were changed."""
    rows = [row for row in tinycss2.parse_blocks_contents(content) if row.type == "declaration"]
    if not any(_is_clip(row) for row in rows):
        return content, False
    grounds = [row for row in rows if row.lower_name in {"background", "background-image", "background-color"}]
    colours = [row for row in rows if row.lower_name in {"color", _FILL}]
    clear = [row for row in colours if _CLEAR.fullmatch(tinycss2.serialize(row.value).strip())]
    found = next((colour for row in grounds if (colour := _first_colour(row.value))), "var(--pb-accent)")
    rest = [row for row in rows if row not in grounds and row not in clear and not _is_clip(row)]
    added = "background:none!important;" + (f"color:{found}!important;" if clear else "")
    text = "".join(f"{row.serialize()};" for row in rest) + added
    return tinycss2.parse_component_value_list(text), True


def _is_clip(row: Any) -> bool:
    return row.lower_name in {"background-clip", "-webkit-background-clip", "background"} and any(
        token.type == "ident" and token.lower_value == "text" for token in row.value
    )


def _first_colour(tokens: list[Any]) -> str:
    """The first colour of a ground: of a gradient, the first of its stops."""
    for token in tokens:
        if token.type == "function" and token.lower_name.endswith("gradient"):
            parts: list[list[Any]] = [[]]
            for inner in token.arguments:
                if inner == ",":
                    parts.append([])
                elif inner.type not in {"whitespace", "comment"}:
                    parts[-1].append(inner)
            stops = [part[0].serialize() for part in parts if part]
            return next((stop for stop in stops if not _PLACES.match(stop) or stop.startswith("#")), "")
        if token.type == "hash" or (
            token.type == "function" and token.lower_name in {"var", "rgb", "rgba", "hsl", "hsla"}
        ):
            return str(token.serialize())
    words = [
        token.lower_value for token in tokens if token.type == "ident" and token.lower_value not in {"text", "none"}
    ]
    return words[0] if len(words) == 1 else ""
