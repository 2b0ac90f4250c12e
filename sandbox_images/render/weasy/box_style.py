"""The computed style of a box, in the words of slides: colours with alpha, points, borders, bullets."""

import math
import re
from dataclasses import dataclass
from typing import Any

from tinycss2.color4 import parse_color


@dataclass(frozen=True, slots=True)
class Paint:
    """A colour.

    Attributes:
        rgb: ``rrggbb``.
        alpha: 0 (nothing to see) to 1.
    """

    rgb: str
    alpha: float = 1.0


@dataclass(frozen=True, slots=True)
class Gradient:
    """A gradient over the whole of a box.

    Attributes:
        angle: degrees clockwise from "to the right", as slides count; of a linear one.
        stops: position 0 to 1 and colour.
        centre: of a radial one, in shares of the box; its position 1 is the corner that is farthest off.
    """

    angle: float
    stops: tuple[tuple[float, Paint], ...]
    centre: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Border:
    """One side of a border: width in pixels, colour, and the dash pattern's name (solid, dashed, dotted)."""

    width: float
    paint: Paint
    style: str


@dataclass(frozen=True, slots=True)
class Shadow:
    """A shadow: how far to the right and down it falls, how far it's blurred (all in pixels), its colour."""

    x: float
    y: float
    blur: float
    paint: Paint


_SHADOW_PARTS = re.compile(r"[\w-]+\([^()]*\)|[^\s,]+|,")
_PIXELS = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:px)?|-?0")
MEASURED = frozenset(
    {"arial", "helvetica", "liberation sans", "times new roman", "times", "liberation serif"}
    | {"courier new", "courier", "liberation mono", "calibri", "carlito", "cambria", "caladea"}
    | {"dejavu sans", "dejavu serif", "dejavu sans mono", "noto sans", "noto serif", "noto sans mono"}
)
"""Families that the image has, or has with the same widths under another name; text in any other is measured with
what fontconfig takes for it."""

_OFFICE = frozenset(
    {"georgia", "verdana", "tahoma", "trebuchet ms", "segoe ui", "garamond", "palatino linotype", "century gothic"}
    | {"consolas", "candara", "corbel", "constantia", "book antiqua", "bookman old style", "franklin gothic medium"}
    | {"gill sans mt", "impact", "lucida console", "rockwell", "aptos"}
)
"""Families that readers of office files commonly have."""
_GENERIC = {"serif": "Times New Roman", "monospace": "Courier New", "ui-monospace": "Courier New"}
_BLACK = Paint("000000")
_UNSEEN = 0.005
_OVAL = 50
"""Per cent of both sides that make corners an ellipse."""


def paint_of(colour: Any, current: Paint = _BLACK) -> Paint:
    """A colour as WeasyPrint has it, in any colour space, as RGB.

    Args:
        colour: what WeasyPrint computed.
        current: what ``currentcolor`` is.
    """
    if isinstance(colour, str):
        return Paint(current.rgb, 0.0) if colour == "transparent" else current
    try:
        red, green, blue = (min(1.0, max(0.0, float(part or 0))) for part in colour.to("srgb").coordinates[:3])
        alpha = float(colour.alpha)
    except (AttributeError, NotImplementedError, TypeError, ValueError):
        return current
    if not all(math.isfinite(part) for part in (red, green, blue, alpha)):
        return current
    return Paint(
        f"{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}", min(1.0, max(0.0, alpha))
    )


def shadow_of(text: str, current: Paint) -> Shadow | None:
    """The first shadow of a ``box-shadow`` that isn't an inner one."""
    lengths: list[float] = []
    paint, inner = current, False
    for part in [*_SHADOW_PARTS.findall(text[:500]), ","]:
        if part == ",":
            if len(lengths) >= 2 and not inner and paint.alpha > 0 and any(lengths):  # noqa: PLR2004 - right and down
                return Shadow(lengths[0], lengths[1], max(0.0, lengths[2]) if len(lengths) > 2 else 0.0, paint)  # noqa: PLR2004
            lengths, paint, inner = [], current, False
        elif part == "inset":
            inner = True
        elif _PIXELS.fullmatch(part):
            lengths.append(max(-500.0, min(500.0, float(part.removesuffix("px")))))
        else:
            colour = parse_color(part)
            paint = paint_of(colour, current) if colour else paint
    return None


class Look:
    """What a box looks like; every question has an answer, whatever is in the style sheet."""

    __slots__ = ("_style",)

    def __init__(self, style: Any) -> None:
        self._style = style

    def _get(self, name: str, default: Any) -> Any:
        try:
            return self._style[name]
        except (KeyError, TypeError, ValueError, AttributeError):
            return default

    @property
    def colour(self) -> Paint:
        """Colour of text."""
        return paint_of(self._get("color", "black"))

    @property
    def background(self) -> Paint | None:
        """Colour behind the box, None if there is none."""
        paint = paint_of(self._get("background_color", "transparent"), self.colour)
        return paint if paint.alpha > 0 else None

    @property
    def opacity(self) -> float:
        """How much of the box and all in it is seen, 0 to 1.

        What is not seen at all waits for a script to show it, and counts as shown.
        """
        value = self._get("opacity", 1)
        known = isinstance(value, (int, float)) and _UNSEEN < value < 1
        return float(value) if known else 1.0

    @property
    def pictures(self) -> list[tuple[str, str]]:
        """Addresses of pictures behind the box, the lowest first, and how they fill it (cover, contain, fill)."""
        layers, sizes = self._get("background_image", ()) or (), self._get("background_size", ()) or ("auto",)
        found = []
        for index, layer in enumerate(layers):
            if isinstance(layer, tuple) and len(layer) > 1 and layer[0] == "url":
                size = sizes[index % len(sizes)]
                whole = isinstance(size, tuple) and all(str(getattr(side, "unit", "")) == "%" for side in size)
                found.append((str(layer[1]), "contain" if size == "contain" else "fill" if whole else "cover"))
        return found[::-1]

    @property
    def object_fit(self) -> str:
        """How a picture fills its own box: fill, cover or contain."""
        value = str(self._get("object_fit", "fill"))
        return value if value in {"cover", "contain"} else "contain" if value == "scale-down" else "fill"

    @property
    def shadow(self) -> Shadow | None:
        """The first shadow that falls outside of the box.

        The engine knows no ``box-shadow``: the style sheet has it in ``bookmark-label``, which slides don't use.
        """
        label = self._get("bookmark_label", ())
        text = label[0][1] if label and isinstance(label[0], tuple) and label[0][0] == "string" else ""
        return shadow_of(str(text), self.colour)

    def border(self, side: str) -> Border | None:
        """The border of a side (left, top, right, bottom), None if it isn't seen."""
        width, style = self._get(f"border_{side}_width", 0), self._get(f"border_{side}_style", "none")
        if not isinstance(width, (int, float)) or width <= 0 or style in {"none", "hidden"}:
            return None
        paint = paint_of(self._get(f"border_{side}_color", "black"), self.colour)
        return Border(float(width), paint, str(style)) if paint.alpha > 0 else None

    def radius(self, width: float, height: float) -> float:
        """The top-left corner's radius in pixels, for a box of that size; of an ellipse, half of its longer side."""
        value = self._get("border_top_left_radius", (None,))[0]
        amount = getattr(value, "value", 0) or 0
        if getattr(value, "unit", "px") == "%":
            if amount >= _OVAL:
                return max(width, height) / 2
            amount = amount / 100 * min(width, height)
        return max(0.0, min(float(amount), width / 2, height / 2))

    @property
    def size(self) -> float:
        """Size of type in pixels."""
        value = self._get("font_size", 16)
        return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else 16.0

    @property
    def family(self) -> str:
        """The family that slides name: the first that the image has, else that readers have, else one of its kind.

        A family of the web alone, which neither has, would be replaced by whatever a reader likes.
        """
        families = [str(family) for family in self._get("font_family", ()) or ("",)]
        lowered = [family.strip().lower() for family in families]
        for known in (MEASURED, _OFFICE):
            found = next((index for index, name in enumerate(lowered) if name in known), None)
            if found is not None:
                return families[found]
        return next((_GENERIC[name] for name in lowered if name in _GENERIC), families[0])

    @property
    def bold(self) -> bool:
        """Whether text is semibold or heavier."""
        weight = self._get("font_weight", 400)
        return isinstance(weight, (int, float)) and weight >= 600  # noqa: PLR2004 - CSS's own figure for semibold

    @property
    def italic(self) -> bool:
        """Whether text leans."""
        return str(self._get("font_style", "normal")) != "normal"

    @property
    def decoration(self) -> frozenset[str]:
        """``underline`` and ``line-through``, as far as this box asks for them."""
        lines = self._get("text_decoration_line", "none")
        return frozenset() if isinstance(lines, str) else frozenset(str(line) for line in lines)

    @property
    def capitals(self) -> str:
        """``all`` or ``small`` if text is shown in capitals, else ""."""
        if self._get("text_transform", "none") == "uppercase":
            return "all"
        return "small" if self._get("font_variant_caps", "normal") == "small-caps" else ""

    @property
    def spacing(self) -> float:
        """Space between letters in pixels."""
        value = self._get("letter_spacing", 0)
        return float(value) if isinstance(value, (int, float)) else float(getattr(value, "value", 0) or 0)

    @property
    def raised(self) -> int:
        """1 for superscript, -1 for subscript, else 0."""
        value = self._get("vertical_align", "baseline")
        if isinstance(value, (int, float)):  # the engine computes lengths of the keywords
            return 1 if value > 1 else -1 if value < -1 else 0
        return {"super": 1, "sub": -1}.get(value, 0) if isinstance(value, str) else 0

    @property
    def align(self) -> str:
        """Alignment of text: left, center, right or justify."""
        value = self._get("text_align_all", "start")
        rtl = self.right_to_left
        return {"start": "right" if rtl else "left", "end": "left" if rtl else "right"}.get(value, str(value))

    @property
    def right_to_left(self) -> bool:
        """Whether text runs from right to left."""
        return bool(self._get("direction", "ltr") == "rtl")

    @property
    def preformatted(self) -> bool:
        """Whether spaces and line ends are kept."""
        return str(self._get("white_space", "normal")).startswith(("pre", "break"))

    @property
    def visible(self) -> bool:
        """Whether it's painted at all."""
        return bool(self._get("visibility", "visible") == "visible")

    @property
    def inline(self) -> bool:
        """Whether the box takes part in lines of text."""
        display = self._get("display", ("inline", "flow"))
        return bool(display) and (display[0] == "inline" or display == ("contents",))

    @property
    def list_style(self) -> str:
        """Name of the list style, such as disc, decimal or none."""
        value = self._get("list_style_type", "none")
        return value if isinstance(value, str) else "disc"

    @property
    def stacked(self) -> bool:
        """Whether a flex container puts its items one below the other."""
        return str(self._get("flex_direction", "row")).startswith("column")

    @property
    def grows(self) -> bool:
        """Whether an item of a flex container takes what others leave."""
        value = self._get("flex_grow", 0)
        return isinstance(value, (int, float)) and value > 0

    @property
    def fitting_columns(self) -> tuple[float, float, bool] | None:
        """Of a grid with ``repeat(auto-fit, minmax(200px, 1fr))``: 200, the gap, and whether empty ones are left out."""
        columns = self._get("grid_template_columns", ())
        for item in columns if isinstance(columns, tuple) else ():
            if isinstance(item, tuple) and len(item) > 2 and item[0] == "repeat()" and isinstance(item[1], str):  # noqa: PLR2004
                sizes = [size for size in item[2] if isinstance(size, tuple) and size[:1] == ("minmax()",)]
                least = [getattr(size[1], "value", 0.0) for size in sizes if getattr(size[1], "unit", "") == "px"]
                gap = self._get("column_gap", 0)
                if least and least[0] > 0:
                    return float(least[0]), float(getattr(gap, "value", 0.0) or 0.0), item[1] == "auto-fit"
        return None

    @property
    def middle(self) -> bool:
        """Whether a table cell's content stands in the middle of its height."""
        return bool(self._get("vertical_align", "baseline") == "middle")
