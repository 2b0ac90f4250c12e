"""Colours, fonts and lengths as DrawingML writes them."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from render.font_families import shown_face
from render.model import Theme
from render.weasy.box_style import Border, Gradient, Paint, Shadow

EMU = 9525
"""English metric units per CSS pixel."""

NAMESPACES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)

_MEASURED = {
    "Calibri": "Carlito",
    "Arial": "Liberation Sans",
    "Cambria": "Caladea",
    "Times New Roman": "Liberation Serif",
}
NATURAL = {"Calibri": 1.2207, "Arial": 1.149, "Cambria": 1.172, "Times New Roman": 1.149}
"""Height of a line as the font itself has it, in ems."""


def emu(pixels: float) -> int:
    """A length in English metric units."""
    return round(pixels * EMU)


def measured_face(family: str) -> str:
    """The font that text in such a family is measured with."""
    return _MEASURED.get(shown_face(family), family)


def slide_theme(theme: Theme) -> Theme:
    """A theme with fonts that readers of slides have: slides carry no fonts of their own."""
    return Theme(
        theme.name,
        theme.css,
        theme.colours,
        measured_face(theme.body_font),
        measured_face(theme.heading_font),
        theme.mono_font,
        theme.logo,
    )


@dataclass(frozen=True, slots=True)
class Palette:
    """A theme's colours by their slots.

    Attributes:
        slots: slot (``tx1``, ``bg1``, ``accent1``, …) by ``rrggbb``.
        body, heading: the theme's fonts, as slides name them.
    """

    slots: dict[str, str]
    body: str
    heading: str

    @classmethod
    def of(cls, theme: Theme) -> "Palette":
        """Reads a theme."""
        c = theme.colours
        rows = (
            ("surface", "bg2"),
            ("heading", "tx2"),
            ("accent", "accent1"),
            ("background", "bg1"),
            ("text", "tx1"),
        )
        slots = {c[name].lstrip("#").lower(): slot for name, slot in rows if name in c}
        return cls(slots, shown_face(theme.body_font), shown_face(theme.heading_font))

    def colour(self, paint: Paint) -> str:
        """A colour's element: the theme's slot if it has that colour."""
        alpha = f'<a:alpha val="{round(paint.alpha * 100000)}"/>' if paint.alpha < 0.995 else ""  # noqa: PLR2004
        slot = self.slots.get(paint.rgb)
        if slot:
            return f'<a:schemeClr val="{slot}">{alpha}</a:schemeClr>'
        return f'<a:srgbClr val="{paint.rgb.upper()}">{alpha}</a:srgbClr>'

    def fill(self, fill: Paint | Gradient | None) -> str:
        """A fill's element."""
        if fill is None:
            return "<a:noFill/>"
        if isinstance(fill, Paint):
            return f"<a:solidFill>{self.colour(fill)}</a:solidFill>"
        stops = "".join(f'<a:gs pos="{round(at * 100000)}">{self.colour(paint)}</a:gs>' for at, paint in fill.stops)
        if fill.centre is not None:
            left, top = (round(part * 100000) for part in fill.centre)
            place = f'l="{left}" t="{top}" r="{100000 - left}" b="{100000 - top}"'
            way = f'<a:path path="circle"><a:fillToRect {place}/></a:path>'
        else:
            way = f'<a:lin ang="{round(fill.angle * 60000) % 21_600_000}" scaled="0"/>'
        return f'<a:gradFill rotWithShape="1"><a:gsLst>{stops}</a:gsLst>{way}</a:gradFill>'

    def line(self, border: Border | None, tag: str = "a:ln") -> str:
        """An outline's element."""
        if border is None:
            return f"<{tag}><a:noFill/></{tag}>"
        dash = {"dashed": "dash", "dotted": "sysDot"}.get(border.style, "solid")
        width = max(3175, min(emu(border.width), 20_000_000))
        return (
            f'<{tag} w="{width}"><a:solidFill>{self.colour(border.paint)}</a:solidFill>'
            f'<a:prstDash val="{dash}"/></{tag}>'
        )

    def shadow(self, shadow: Shadow | None) -> str:
        """A shadow's element; "" for none."""
        if shadow is None:
            return ""
        angle = round(math.degrees(math.atan2(shadow.y, shadow.x)) * 60000) % 21_600_000
        distance = emu(math.hypot(shadow.x, shadow.y))
        return (
            f'<a:effectLst><a:outerShdw blurRad="{emu(shadow.blur)}" dist="{distance}" dir="{angle}" algn="ctr" '
            f'rotWithShape="0">{self.colour(shadow.paint)}</a:outerShdw></a:effectLst>'
        )

    def face(self, family: str) -> str:
        """A run's font elements; nothing for the theme's body font."""
        shown = shown_face(family)
        if not shown or shown == self.body or shown.lower() in {"sans-serif", "serif", "system-ui", "inherit"}:
            return ""
        if shown == self.heading:
            return '<a:latin typeface="+mj-lt"/>'
        fixed = ' pitchFamily="49"' if "mono" in shown.lower() or shown in {"Consolas", "Courier New"} else ""
        name = quoteattr(shown[:60])
        return f"<a:latin typeface={name}{fixed}/><a:cs typeface={name}{fixed}/>"


def xml_text(text: str) -> str:
    """Text as XML content."""
    return escape(text)


def xml_attribute(text: str) -> str:
    """Text as an XML attribute, with its quotes."""
    return quoteattr(" ".join(text.split()))
