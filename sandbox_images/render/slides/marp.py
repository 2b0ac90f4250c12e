"""What Marp's front matter and comments ask for, as far as slides have it."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

_COLOUR = re.compile(r"[#\w(),.%/ -]{1,60}")


@dataclass(frozen=True, slots=True)
class Directives:
    """Directives of a slide.

    Attributes:
        classes: names such as ``lead`` and ``invert``.
        colour, background: CSS colours, or "".
        paginate: whether the slide shows its number; None if nothing was said.
        header, footer: text at the edges.
    """

    classes: tuple[str, ...] = ()
    colour: str = ""
    background: str = ""
    paginate: bool | None = None
    header: str = ""
    footer: str = ""


def from_front_matter(matter: dict[str, Any]) -> Directives:
    """Directives of a whole deck."""
    return (
        _apply(Directives(), {str(key): value for key, value in matter.items()})
        if matter.get("marp")
        else Directives()
    )


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
        text = "" if value is None else " ".join(value) if isinstance(value, list) else str(value)
        if key == "class":
            changed = replace(changed, classes=tuple(text.split()[:20]))
        elif key in {"color", "backgroundColor"} and _COLOUR.fullmatch(text):
            changed = replace(changed, colour=text) if key == "color" else replace(changed, background=text)
        elif key == "paginate":
            changed = replace(changed, paginate=text.strip().lower() in {"true", "hold", "yes", "1"})
        elif key in {"header", "footer"}:
            changed = replace(changed, header=text) if key == "header" else replace(changed, footer=text)
    return changed
