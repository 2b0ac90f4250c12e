"""A house template of a PPTX: its layouts by what they are for, where their text goes, and how large it is."""

import io
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree
from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from render.font_families import shown_face
from render.model import Document, RenderError, Theme
from render.pptx.deck import Deck
from render.pptx.drawingml_style import EMU, Palette
from render.slides.css import BODY_SIZE, MARGIN_BOTTOM, MARGIN_X, is_dark
from render.slides.model import HEIGHT
from render.template.package import open_template, packed
from render.template.theme import slot_colour, theme_of
from render.to_ir.style import mix

Place = tuple[float, float, float, float]
"""Left, top, width, height in pixels of the slide."""
TOP = 132
"""Where the content of a slide begins in layout, in pixels: below the title."""
BODY_POINTS_MIN, BODY_POINTS_MAX = 12.0, 28.0
"""Text of more points is set in these: a slide of a model has more words than fit."""
_DEFAULT_POINTS = 18.0
_SIDE_PX_MIN = 240.0
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_TYPES = {"title": "title", "obj": "content", "tx": "content", "secHead": "section", "titleOnly": "title-only"}
_SMALL = frozenset({"dt", "ftr", "sldNum"})
_WIDE = ("verdana", "century gothic", "dejavu", "tahoma")
_SERIFS = ("serif", "georgia", "garamond", "palatino", "baskerville", "book antiqua", "bookman", "times", "didot")
_MEASURED = {
    "calibri": "Carlito", "arial": "Liberation Sans", "helvetica": "Liberation Sans", "cambria": "Caladea",
    "times new roman": "Liberation Serif", "aptos": "Noto Sans", "segoe ui": "Noto Sans",
}  # fmt: skip
"""Faces of the image that are as wide as those of templates, or a little wider."""


@dataclass(frozen=True, slots=True)
class HouseLayout:
    """A layout of the template.

    Attributes:
        layout: as python-pptx has it.
        title: index of its title's placeholder; None if it has none.
        body: index of its text's placeholder.
        small: kinds of its small print, with their placeholders.
    """

    layout: Any
    title: Any = None
    body: Any = None
    small: tuple[tuple[str, Any], ...] = ()


@dataclass(slots=True)
class PptxTemplate:
    """A template that slides are put into.

    Attributes:
        presentation: the template without its slides.
        layouts: title, content, section, title-only.
        theme: its colours and fonts; fonts as the image has them.
        palette: its slots of colours.
        area: where content goes.
        points: size of body text in it.
        is_own_size: whether that is the size that the template has.
        link: ``rrggbb`` of links.
    """

    presentation: Any
    layouts: dict[str, HouseLayout]
    theme: Theme
    palette: Palette
    area: Place
    points: float
    is_own_size: bool
    link: str

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the slides in pixels."""
        return self.presentation.slide_width / EMU, self.presentation.slide_height / EMU

    @property
    def scale(self) -> float:
        """Pixels of the slide per pixel of layout: text of the deck's usual size gets the template's."""
        return self.points / (BODY_SIZE * 0.75)

    @property
    def canvas(self) -> tuple[float, float]:
        """Width and height for layout, whose room for content is that of the template."""
        inner = (side / self.scale for side in self.area[2:])
        width, height = next(inner) + 2 * MARGIN_X, next(inner) + TOP + MARGIN_BOTTOM
        return width, height

    @property
    def whole(self) -> tuple[float, float, float]:
        """Width and height for layout of slides with a design of their own, and how much larger the slides are."""
        factor = min(self.size) / HEIGHT
        return self.size[0] / factor, self.size[1] / factor, factor

    def deck(self) -> Deck:
        """The template as a deck without slides."""
        return Deck(
            self.presentation, {name: house.layout for name, house in self.layouts.items()}, decorated=False
        )

    def css(self, steps: tuple[float, ...]) -> str:
        """The deck's rules for the template: the title takes no room, the content begins where its area does."""
        kind = ".pb-slide:not(.pb-kind-title):not(.pb-kind-section)"
        rows = [
            "html,body,.pb-slide{line-height:1.2}",
            f"{kind} .pb-title{{font-size:10px;line-height:1;overflow:hidden}} {kind} .pb-title *{{font-size:10px}}",
        ]
        for step in steps:
            name = f".pb-z{round(step * 100)}"
            rows.append(
                f"{kind}{name} .pb-title{{height:{46 / step:.1f}px;margin:0 0 {26 / step:.1f}px;padding:0}}"
                f"{kind}{name}{{padding:{60 / step:.1f}px {MARGIN_X / step:.1f}px {MARGIN_BOTTOM / step:.1f}px}}"
            )
        return "\n".join(rows)


def load_pptx_template(document: Document) -> PptxTemplate | None:
    """The template of a request; None if it has none.

    Raises:
        RenderError: ``invalid_template``.
    """
    package = open_template(document, "pptx")
    if package is None:
        return None
    try:
        presentation = Presentation(io.BytesIO(packed(package)))
        return _read(presentation, document.theme)
    except RenderError:
        raise
    except Exception as exc:  # python-pptx fails in its own ways on packages that are not what they claim
        raise RenderError(
            "invalid_template",
            f"template: {package.name} cannot be used: {type(exc).__name__}: {str(exc)[:120]}; open it in PowerPoint "
            "and save it again as .pptx",
        ) from exc


def _read(presentation: Any, theme: Theme) -> PptxTemplate:
    _drop_slides(presentation)
    if not len(presentation.slide_masters):
        raise ValueError("it has no master")
    master = presentation.slide_masters[0]
    layouts = _layouts(master)
    content = layouts["content"]
    area = _place_of(content.body, presentation) if content.body is not None else None
    width, height = presentation.slide_width / EMU, presentation.slide_height / EMU
    if area is None or area[2] < _SIDE_PX_MIN / 2 or area[3] < _SIDE_PX_MIN / 2:
        area = width * 0.08, height * 0.25, width * 0.84, height * 0.62
    wanted = _points(content.body, master, "bodyStyle")
    points = min(max(wanted, BODY_POINTS_MIN), BODY_POINTS_MAX, area[2] / _SIDE_PX_MIN * BODY_SIZE * 0.75)
    own, palette, link = _looks(master, content.layout, theme)
    return PptxTemplate(presentation, layouts, own, palette, area, points, points == wanted, link)


def _drop_slides(presentation: Any) -> None:
    """Take out what is left of slides: their parts were not taken."""
    element = presentation.part._element  # noqa: SLF001
    for name in ("custShowLst", "extLst", "modifyVerifier", "custDataLst", "photoAlbum"):
        for child in element.findall(f"{_P}{name}"):
            element.remove(child)


def _layouts(master: Any) -> dict[str, HouseLayout]:
    """The layouts by what they are for: by their types, else by their placeholders, else the nearest that there is."""
    found: dict[str, HouseLayout] = {}
    known = [(layout, _layout_of(layout)) for layout in master.slide_layouts]
    if not known:
        raise ValueError("it has no layouts")
    for layout, house in known:
        name = _TYPES.get(layout._element.get("type") or "")  # noqa: SLF001
        if (
            name
            and name not in found
            and house.title is not None
            and (house.body is not None or name == "title-only")
        ):
            found[name] = house
    for _, house in known:
        bodies = _bodies(house.layout)
        kinds = {_kind(shape) for shape in house.layout.placeholders}
        if house.title is None:
            continue
        name = (
            "title"
            if "ctrTitle" in kinds or "subTitle" in kinds
            else ("title-only", "content")[min(len(bodies), 1)]
        )
        if len(bodies) <= 1:
            found.setdefault(name, house)
    first = next((house for _, house in known if house.title is not None), known[0][1])
    found.setdefault("content", found.get("title-only", first))
    found.setdefault("title-only", found["content"])
    found.setdefault("title", found["content"])
    found.setdefault("section", found["title"])
    return found


def _layout_of(layout: Any) -> HouseLayout:
    shapes = list(layout.placeholders)
    title = next((shape for shape in shapes if _kind(shape) in {"title", "ctrTitle"}), None)
    small = tuple((_kind(shape), shape) for shape in shapes if _kind(shape) in _SMALL)
    return HouseLayout(layout, title, next(iter(_bodies(layout)), None), small)


def _bodies(layout: Any) -> list[Any]:
    """The placeholders of text, the largest first."""
    shapes = [shape for shape in layout.placeholders if _kind(shape) in {"obj", "body", "subTitle"}]
    return sorted(shapes, key=lambda shape: -(shape.width or 0) * (shape.height or 0))


def _kind(shape: Any) -> str:
    kind: str = shape._element.ph.get("type", "obj")  # noqa: SLF001
    return kind


def _place_of(shape: Any, presentation: Any) -> Place | None:
    """Where a placeholder stands, as far as it is on the slide."""
    if shape.left is None or shape.width is None:
        return None
    left, top = max(0.0, shape.left / EMU), max(0.0, shape.top / EMU)
    width, height = presentation.slide_width / EMU, presentation.slide_height / EMU
    return left, top, min(shape.width / EMU, width - left), min(shape.height / EMU, height - top)


def _points(shape: Any, master: Any, styles: str) -> float:
    """The size of text of the first level in a placeholder."""
    elements: list[etree._Element] = []
    if shape is not None:
        elements += shape._element.iter(f"{_A}lstStyle")  # noqa: SLF001
        elements += [
            inner
            for item in master.placeholders
            if _kind(item) == "body"
            for inner in item._element.iter(f"{_A}lstStyle")  # noqa: SLF001
        ]
    elements += master._element.iter(f"{_P}{styles}")  # noqa: SLF001
    for element in elements:
        found = element.find(f"{_A}lvl1pPr/{_A}defRPr")
        size = found.get("sz", "") if found is not None else ""
        if size.isdigit():
            return int(size) / 100
    return _DEFAULT_POINTS


def _looks(master: Any, layout: Any, theme: Theme) -> tuple[Theme, Palette, str]:
    """The theme of a master with the colours that its slides have, its palette, and the colour of its links."""
    try:
        data = master.part.part_related_by(RT.THEME).blob
    except KeyError:
        data = None
    own = theme_of(data, theme)
    slots = {"dk1": own.colours["text"], "lt1": own.colours["background"], "dk2": own.colours["heading"]}
    mapping = master._element.find(f"{_P}clrMap")  # noqa: SLF001
    mapped = dict(mapping.attrib) if mapping is not None else {}
    text, ground = (
        slots.get(mapped.get("tx1", "dk1"), slots["dk1"]),
        slots.get(mapped.get("bg1", "lt1"), slots["lt1"]),
    )
    grounds = (_ground(item._element, data, mapped) for item in (layout, master))  # noqa: SLF001
    ground = next((found for found in grounds if found), ground)
    colours = dict(own.colours)
    if is_dark(ground) == is_dark(text):  # the ground is none of the theme's: text is what is read on it
        text = "#ffffff" if is_dark(ground) else "#1a1a1a"
    if (text, ground) != (own.colours["text"], own.colours["background"]):
        colours |= _on_ground(text, ground)
    measured = replace(
        own, colours=colours, body_font=_measured(own.body_font), heading_font=_measured(own.heading_font)
    )
    names = {colours["text"]: "tx1", colours["accent"]: "accent1"}
    names |= {colour: f"accent{key[-1]}" for key, colour in own.colours.items() if key.startswith("series_")}
    faces = shown_face(measured.body_font), shown_face(measured.heading_font)
    palette = Palette({key.lstrip("#").lower(): slot for key, slot in names.items()}, *faces)
    return measured, palette, (slot_colour(data, "hlink") or own.colours["accent"]).lstrip("#")


def _ground(element: etree._Element, data: bytes | None, mapped: dict[str, str]) -> str:
    """The colour behind a master or a layout as ``#rrggbb``; "" if it has none of its own, or a picture."""
    for path in (f"{_P}bgPr/{_A}solidFill", f"{_P}bgRef"):
        fill = element.find(f"{_P}cSld/{_P}bg/{path}")
        colour = fill[0] if fill is not None and len(fill) else None
        value = colour.get("val", "") if colour is not None else ""
        if colour is not None and colour.tag == f"{_A}srgbClr" and len(value) == 6:  # noqa: PLR2004 - RRGGBB
            return f"#{value.lower()}"
        if value:
            return slot_colour(data, mapped.get(value, value))
    return ""


def _on_ground(text: str, ground: str) -> dict[str, str]:
    """Colours for a ground that is not that of the theme's light slides."""
    return {
        "text": text, "background": ground, "heading": text, "muted": mix(text, ground, 0.7),
        "border": mix(text, ground, 0.3), "surface": mix(text, ground, 0.12), "code_background": mix(text, ground, 0.1),
    }  # fmt: skip


def _measured(family: str) -> str:
    """The face of the image that text is measured with."""
    name = family.strip().lower()
    known = next((face for key, face in _MEASURED.items() if name.startswith(key)), "")
    if known:
        return known
    if name.startswith(_WIDE):
        return "DejaVu Sans"
    return "Noto Serif" if any(word in name for word in _SERIFS) and "sans" not in name else "Noto Sans"
