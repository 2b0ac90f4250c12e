"""The deck that slides are put into: python-pptx's own template made 16:9, with our theme, layouts and type."""

import io
import re
from dataclasses import dataclass
from typing import Any

from PIL import Image
from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.oxml import parse_xml
from pptx.util import Emu
from render.font_families import shown_face
from render.model import Theme
from render.pptx.drawingml_style import NAMESPACES, Palette, emu, xml_attribute
from render.slides.canvas import slide_factor, slide_height, slide_width
from render.slides.css import BODY_SIZE, MARGIN_TOP, MARGIN_X, TITLE_SIZE, is_dark, section_look, title_look
from render.slides.model import WIDTH
from render.weasy.box_style import Paint

Place = tuple[float, float, float, float]
"""Left, top, width, height."""

_RETAINED = {"title": 0, "content": 1, "section": 2, "title-only": 5, "blank": 6}
_LEVELS = 9
_SCRIPTS = '<a:ea typeface=""/><a:cs typeface="Arial"/>' + "".join(
    f'<a:font script="{script}" typeface="{face}"/>'
    for script, face in (
        ("Jpan", "Yu Gothic"), ("Hang", "Malgun Gothic"), ("Hans", "Microsoft YaHei"), ("Hant", "Microsoft JhengHei"),
        ("Arab", "Arial"), ("Hebr", "Arial"), ("Thai", "Tahoma"), ("Deva", "Mangal"),
    )
)  # fmt: skip
"""Fonts of other scripts, as Office has them."""


def title_place(layout: str) -> Place | None:
    """Where a layout has its title."""
    middle, inner = slide_height() / 2, slide_width() - 2 * MARGIN_X
    top = (MARGIN_X, MARGIN_TOP, inner, TITLE_SIZE * 1.15)
    places: dict[str, Place] = {
        "title": (104, middle - 90, slide_width() - 208, 132),
        "content": top,
        "section": (104, middle - 60, slide_width() - 208, 64),
        "title-only": top,
    }
    return _enlarged(places.get(layout))


def body_place(layout: str) -> Place | None:
    """Where a layout has its text."""
    middle, wide = slide_height() / 2, slide_width() - 208
    places: dict[str, Place] = {
        "title": (104, middle + 60, wide, 120),
        "content": (MARGIN_X, 132, slide_width() - 2 * MARGIN_X, slide_height() - 184),
        "section": (104, middle + 20, wide, 90),
    }
    return _enlarged(places.get(layout))


def number_place() -> Place:
    """Where slides have their numbers, in pixels of layout."""
    return (slide_width() - MARGIN_X - 80, slide_height() - 44, 80, 24)


def _foot_place(kind: str) -> Place | None:
    """Where slides have their small print."""
    top, middle = slide_height() - 44, slide_width() / 2
    wide = min(440.0, slide_width() - 2 * MARGIN_X - 400)
    places: dict[str, Place] = {
        "dt": (MARGIN_X, top, 180 if slide_width() < WIDTH else 220, 24),
        "ftr": (middle - wide / 2, top, wide, 24),
        "sldNum": number_place(),
    }
    return _enlarged(places.get(kind))


def _enlarged(place: Place | None) -> Place | None:
    if place is None:
        return None
    left, top, width, height = (value * slide_factor() for value in place)
    return left, top, width, height


@dataclass(slots=True)
class Deck:
    """A presentation without slides, and its layouts by name."""

    presentation: Any
    layouts: dict[str, Any]
    decorated: bool
    """Whether the theme's bars, grounds and logo are on it: an author's own design goes without."""


def new_deck(theme: Theme, *, decorated: bool) -> Deck:
    """Makes the deck.

    Args:
        theme: with fonts that slides have.
        decorated: whether layouts have bars and grounds of their own, which an author's own design goes without.
    """
    presentation = Presentation()
    presentation.slide_width, presentation.slide_height = (
        Emu(emu(side * slide_factor())) for side in (slide_width(), slide_height())
    )
    presentation.part._element.sldSz.attrib.pop("type", None)  # noqa: SLF001
    # The template's printer settings are those of a printer that nobody has.
    for key, relation in list(presentation.part.rels.items()):
        if relation.reltype.endswith("/printerSettings"):
            presentation.part.rels.pop(key)
    master = presentation.slide_master
    layouts = {name: presentation.slide_layouts[index] for name, index in _RETAINED.items()}
    for layout in list(presentation.slide_layouts):
        if all(layout is not retained for retained in layouts.values()):
            presentation.slide_layouts.remove(layout)
    _theme_part(master, theme)
    _master(master, theme)
    for name, layout in layouts.items():
        _layout(name, layout, theme, decorated=decorated)
    return Deck(presentation, layouts, decorated)


def _theme_part(master: Any, theme: Theme) -> None:
    """Writes colours and fonts into the theme's part."""
    part = master.part.part_related_by(RT.THEME)
    c = theme.colours
    dark = is_dark(c["background"])
    back, text = c["background"], c["text"]
    surface, heading = c["surface"], c.get("heading", c["text"])
    rows = [("dk1", back if dark else text), ("lt1", text if dark else back)]
    rows += [("dk2", surface if dark else heading), ("lt2", heading if dark else surface)]
    accents = [c["accent"], *(c.get(f"series_{index}", "") for index in range(2, 7))]
    spare = ["#1f5fa8", "#e07b39", "#3a9a7a", "#8c5fb0", "#c7485b", "#6b7a8c"]
    rows += [(f"accent{index + 1}", accents[index] or spare[index]) for index in range(6)]
    rows += [("hlink", c["accent"]), ("folHlink", c["muted"])]
    colours = "".join(
        f'<a:{name}><a:srgbClr val="{value.lstrip("#").upper()}"/></a:{name}>' for name, value in rows
    )
    name = xml_attribute(f"Proofbox {theme.name}"[:60])
    text_xml = part.blob.decode("utf-8")
    text_xml = re.sub(
        r"<a:clrScheme.*?</a:clrScheme>",
        f"<a:clrScheme name={name}>{colours}</a:clrScheme>",
        text_xml,
        flags=re.DOTALL,
    )
    for tag, family in (("majorFont", theme.heading_font), ("minorFont", theme.body_font)):
        fonts = f"<a:latin typeface={xml_attribute(shown_face(family))}/>{_SCRIPTS}"
        text_xml = re.sub(f"<a:{tag}>.*?</a:{tag}>", f"<a:{tag}>{fonts}</a:{tag}>", text_xml, flags=re.DOTALL)
    text_xml = re.sub(r'(<a:fontScheme name=)"[^"]*"', lambda match: match[1] + name, text_xml)
    text_xml = re.sub(r'(<a:theme [^>]*name=)"[^"]*"', lambda match: match[1] + name, text_xml, count=1)
    part._blob = text_xml.encode("utf-8")  # noqa: SLF001 - a part without a class of its own has only its bytes
    mapping = master._element.find("{http://schemas.openxmlformats.org/presentationml/2006/main}clrMap")  # noqa: SLF001
    for slot, light, dim in (
        ("bg1", "lt1", "dk1"),
        ("tx1", "dk1", "lt1"),
        ("bg2", "lt2", "dk2"),
        ("tx2", "dk2", "lt2"),
    ):
        mapping.set(slot, dim if dark else light)


def _place(shape: Any, place: Place | None) -> None:
    if place is not None:
        shape.left, shape.top, shape.width, shape.height = (Emu(emu(value)) for value in place)


def _master(master: Any, theme: Theme) -> None:
    for shape in master.placeholders:
        kind = shape._element.ph.get("type", "body")  # noqa: SLF001
        if kind == "title":
            _place(shape, title_place("content"))
        elif kind == "body":
            _place(shape, body_place("content"))
        elif _foot_place(kind) is not None:
            _place(shape, _foot_place(kind))
            _small(shape, theme, "r" if kind == "sldNum" else "l" if kind == "dt" else "ctr")
        if kind in {"title", "body"}:
            _insets(shape)
    element = master._element  # noqa: SLF001
    old = element.find("{http://schemas.openxmlformats.org/presentationml/2006/main}txStyles")
    element.replace(old, parse_xml(_text_styles()))


def _insets(shape: Any) -> None:
    """A frame without margins, with text at its top: what layout measured."""
    body = shape._element.txBody.bodyPr  # noqa: SLF001
    for child in list(body):
        body.remove(child)
    for name in ("lIns", "tIns", "rIns", "bIns"):
        body.set(name, "0")
    body.set("anchor", "t")
    body.append(parse_xml(f"<a:noAutofit {NAMESPACES}/>"))


def _small(shape: Any, theme: Theme, align: str) -> None:
    """Type of the small print at a slide's foot."""
    muted = theme.colours["muted"].lstrip("#").upper()
    styles = shape._element.txBody.find("{http://schemas.openxmlformats.org/drawingml/2006/main}lstStyle")  # noqa: SLF001
    for child in list(styles):
        styles.remove(child)
    styles.append(
        parse_xml(
            f'<a:lvl1pPr {NAMESPACES} algn="{align}"><a:defRPr sz="{_points(1100 / 75)}"><a:solidFill>'
            f'<a:srgbClr val="{muted}"/></a:solidFill></a:defRPr></a:lvl1pPr>'
        )
    )


def _points(pixels: float) -> int:
    """A size of type in hundredths of a point."""
    return round(pixels * 75 * slide_factor())


def _text_styles() -> str:
    def level(number: int, size: float, font: str, colour: str, extra: str = "") -> str:
        margin = emu((34 + 32 * (number - 1)) * slide_factor())
        hang = emu(27 * slide_factor())
        bullet = f'marL="{margin}" indent="-{hang}" ' if not extra else 'marL="0" indent="0" '
        marks = extra or '<a:buFont typeface="Arial"/><a:buChar char="•"/>'
        bold = ' b="1"' if font == "+mj" else ""
        return (
            f'<a:lvl{number}pPr {bullet}algn="l" defTabSz="914400" rtl="0" eaLnBrk="1" '
            f'latinLnBrk="0" hangingPunct="1">'
            f'<a:lnSpc><a:spcPct val="110000"/></a:lnSpc><a:spcBef><a:spcPts val="600"/></a:spcBef>{marks}'
            f'<a:defRPr sz="{_points(size)}"{bold} kern="1200"><a:solidFill>'
            f'<a:schemeClr val="{colour}"/></a:solidFill>'
            f'<a:latin typeface="{font}-lt"/><a:ea typeface="{font}-ea"/>'
            f'<a:cs typeface="{font}-cs"/></a:defRPr></a:lvl{number}pPr>'
        )

    body = "".join(
        level(number, max(18.7, BODY_SIZE - 2 * (number - 1)), "+mn", "tx1") for number in range(1, _LEVELS + 1)
    )
    other = "".join(level(number, 24, "+mn", "tx1", "<a:buNone/>") for number in range(1, _LEVELS + 1))
    title = level(1, TITLE_SIZE, "+mj", "tx2", "<a:buNone/>")
    return (
        f"<p:txStyles {NAMESPACES}><p:titleStyle>{title}</p:titleStyle><p:bodyStyle>{body}</p:bodyStyle>"
        f"<p:otherStyle>{other}</p:otherStyle></p:txStyles>"
    )


def _layout(name: str, layout: Any, theme: Theme, *, decorated: bool) -> None:
    for shape in list(layout.placeholders):
        kind = shape._element.ph.get("type", "body")  # noqa: SLF001
        if kind in {"title", "ctrTitle"}:
            _place(shape, title_place(name))
        elif kind in {"body", "subTitle", "obj"} and body_place(name) is not None:
            _place(shape, body_place(name))
        elif _foot_place(kind) is not None:
            _place(shape, _foot_place(kind))
            continue
        styles = shape._element.txBody.find("{http://schemas.openxmlformats.org/drawingml/2006/main}lstStyle")  # noqa: SLF001
        for child in list(styles):
            styles.remove(child)
        _insets(shape)
        if name in {"title", "section"}:
            styles.append(parse_xml(_cover_level(name, kind, theme, decorated=decorated)))
    if decorated:
        _decorate(name, layout, theme)


def _cover_level(name: str, kind: str, theme: Theme, *, decorated: bool) -> str:
    heading = kind in {"title", "ctrTitle"}
    size = (76 if name == "title" else 56) if heading else 30
    colours = theme.colours
    if decorated:
        _, text, soft = (
            title_look(colours) if name == "title" else (*section_look(colours), section_look(colours)[1])
        )
        colour = Palette.of(theme).colour(Paint((text if heading else soft).lstrip("#").lower()))
    else:
        colour = f'<a:schemeClr val="{"tx2" if heading else "tx1"}"/>'
    return (
        f'<a:lvl1pPr {NAMESPACES} marL="0" indent="0" algn="l"><a:buNone/>'
        f'<a:defRPr sz="{_points(size)}" b="{int(heading)}">'
        f"<a:solidFill>{colour}</a:solidFill></a:defRPr></a:lvl1pPr>"
    )


def _decorate(name: str, layout: Any, theme: Theme) -> None:
    """Bars and grounds of a layout."""
    palette = Palette.of(theme)
    tree = layout.shapes._spTree  # noqa: SLF001
    bars: dict[str, Place] = {
        "content": (MARGIN_X, 36, 56, 6),
        "title-only": (MARGIN_X, 36, 56, 6),
    }
    dark = is_dark(theme.colours["background"])
    if dark:
        bars["section"] = (0, 0, 28, slide_height())
    if name in bars:
        x, y, width, height = (emu(value * slide_factor()) for value in bars[name])
        tree.insert(2, parse_xml(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="90" name="Accent"/><p:cNvSpPr/>'
            f'<p:nvPr userDrawn="1"/></p:nvSpPr>'
            f'<p:spPr><a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>'
            f'<a:prstGeom prst="rect"><a:avLst/></a:prstGeom><a:solidFill>'
            f'<a:schemeClr val="accent1"/></a:solidFill>'
            f"<a:ln><a:noFill/></a:ln></p:spPr></p:sp>"
        ))  # fmt: skip
    if name in {"title", "section"}:
        colour = (title_look(theme.colours) if name == "title" else section_look(theme.colours))[0]
        fill = palette.fill(Paint(colour.lstrip("#").lower()))
        ground = parse_xml(f"<p:bg {NAMESPACES}><p:bgPr>{fill}<a:effectLst/></p:bgPr></p:bg>")
        layout._element.cSld.insert(0, ground)  # noqa: SLF001
        layout._element.set("showMasterSp", "0")  # noqa: SLF001 - a logo is drawn for the theme's own ground


def add_logo(deck: Deck, data: bytes | None) -> None:
    """Puts a logo at the upper right of every slide, by the master; one that can't be read is left out."""
    if data is None:
        return
    try:
        with Image.open(io.BytesIO(data)) as picture:
            wide, tall = picture.size
    except (OSError, ValueError):
        return
    factor = slide_factor()
    height = 30.0
    width = min(260.0, height * wide / max(1, tall))
    height = width * tall / max(1, wide)
    master = deck.presentation.slide_master
    _, relation = master.part.get_or_add_image_part(io.BytesIO(data))
    master.shapes._spTree.append(parse_xml(  # noqa: SLF001
        f'<p:pic {NAMESPACES}><p:nvPicPr><p:cNvPr id="91" name="Logo" descr="Logo"/><p:cNvPicPr>'
        f'<a:picLocks noChangeAspect="1"/>'
        f'</p:cNvPicPr><p:nvPr userDrawn="1"/></p:nvPicPr><p:blipFill><a:blip r:embed="{relation}"/>'
        f'<a:stretch><a:fillRect/></a:stretch>'
        f'</p:blipFill><p:spPr><a:xfrm><a:off x="{emu((slide_width() - MARGIN_X - width) * factor)}" y="{emu(20 * factor)}"/>'
        f'<a:ext cx="{emu(width * factor)}" cy="{emu(height * factor)}"/>'
        f'</a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>'
    ))  # fmt: skip
