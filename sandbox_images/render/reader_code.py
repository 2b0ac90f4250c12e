"""Code blocks: pygments' short classes become colours, lines become lists of runs."""

from functools import lru_cache

from pygments.styles import get_style_by_name
from pygments.token import STANDARD_TYPES, Token

from render.ir import Inline, LineBreak, Run

_LIGHT, _DARK = "default", "monokai"


def is_dark(colour: str) -> bool:
    """Whether white text reads better than black text on a ``#rrggbb``."""
    red, green, blue = (int(colour[index : index + 2], 16) for index in (1, 3, 5))
    return red * 0.299 + green * 0.587 + blue * 0.114 < 128  # noqa: PLR2004 - half of white


@lru_cache(maxsize=2)
def token_looks(*, dark: bool) -> dict[str, tuple[str | None, bool, bool]]:
    """Colour, bold and italic by pygments' short class."""
    style = get_style_by_name(_DARK if dark else _LIGHT)
    looks: dict[str, tuple[str | None, bool, bool]] = {}
    for token, short in STANDARD_TYPES.items():
        if short and token in style.styles | STANDARD_TYPES:
            found = style.style_for_token(token)
            colour = f"#{found['color']}" if found["color"] and token is not Token.Text else None
            looks[short] = (colour, bool(found["bold"]), bool(found["italic"]))
    return looks


def lines(inlines: list[Inline]) -> list[list[Run]] | None:
    """Splits what stood in a ``pre`` at its line breaks; None if there is more in it than text."""
    result: list[list[Run]] = [[]]
    for inline in inlines:
        if isinstance(inline, LineBreak):
            result.append([])
        elif isinstance(inline, Run):
            result[-1].append(inline)
        else:
            return None
    while len(result) > 1 and not result[-1]:
        result.pop()
    return result
