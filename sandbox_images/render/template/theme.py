"""The theme of a house template as one of ours: its colours and fonts."""

from dataclasses import replace

from lxml import etree
from render.model import Theme
from render.template.package import parse_part
from render.to_ir.style import mix

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_FACE_MAX = 60


def theme_of(data: bytes | None, theme: Theme) -> Theme:
    """A theme with the colours and fonts of a theme part; without one, as it is.

    Args:
        data: the part.
        theme: what it has no counterpart of is taken from here.
    """
    if data is None:
        return theme
    root = parse_part(data)
    slots = {name: colour for name in _SLOTS if (colour := _colour(root, name))}
    if not {"dk1", "lt1", "accent1"} <= set(slots):
        return theme
    text, ground, accent = slots["dk1"], slots["lt1"], slots["accent1"]
    series = {f"series_{number}": slots[f"accent{number}"] for number in range(1, 7) if f"accent{number}" in slots}
    own = {
        "text": text, "background": ground, "accent": accent, "heading": slots.get("dk2", text),
        "muted": mix(text, ground, 0.65), "border": mix(text, ground, 0.22), "surface": mix(accent, ground, 0.1),
        "code_background": mix(text, ground, 0.05),
    }  # fmt: skip
    colours = {key: value for key, value in theme.colours.items() if not key.startswith("series_")}
    fonts = _font(root, "minorFont") or theme.body_font, _font(root, "majorFont") or theme.heading_font
    return replace(
        theme,
        colours={**colours, **own, **series},
        body_font=fonts[0],
        heading_font=fonts[1],
        logo=None,
        name="template",
    )


def slot_colour(data: bytes | None, slot: str) -> str:
    """The colour of a slot of a theme part as ``#rrggbb``; "" if it has none."""
    return "" if data is None else _colour(parse_part(data), slot)


_SLOTS = ("dk1", "lt1", "dk2", "lt2", *(f"accent{number}" for number in range(1, 7)))


def _colour(root: etree._Element, slot: str) -> str:
    found = root.find(f".//{_A}clrScheme/{_A}{slot}")
    inner = found[0] if found is not None and len(found) else None
    value = "" if inner is None else inner.get("lastClr") or inner.get("val") or ""
    digits = len(value) == 6 and all(digit in "0123456789abcdefABCDEF" for digit in value)  # noqa: PLR2004 - RRGGBB
    return f"#{value.lower()}" if digits else ""


def _font(root: etree._Element, kind: str) -> str:
    found = root.find(f".//{_A}fontScheme/{_A}{kind}/{_A}latin")
    return "" if found is None else " ".join((found.get("typeface") or "").split())[:_FACE_MAX]
