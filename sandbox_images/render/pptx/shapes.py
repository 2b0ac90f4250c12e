"""Shapes of a slide as PresentationML."""

import io
import math
from dataclasses import dataclass, replace
from typing import Any

from pptx.oxml import parse_xml
from render.model import Document
from render.pptx.charts import add_chart
from render.pptx.deck import Place, body_place, number_place, title_place
from render.pptx.drawingml_style import NAMESPACES, Palette, emu, xml_text
from render.pptx.media import Media
from render.pptx.text import TextWriter
from render.slides.canvas import slide_factor
from render.slides.contrast import soft_on
from render.slides.geometry_checks import overlap, solid
from render.slides.model import (
    ChartShape,
    LineShape,
    Para,
    PictureShape,
    Piece,
    Shape,
    Slide,
    TableCell,
    TableShape,
    TextShape,
)
from render.slides.post_process import name_of_slide
from render.slides.px_to_slide import scaled
from render.weasy.box_style import Border, Paint

_ROUND_LEAST = 0.5
_NEAR = 1.5
_CORNER = 1 - math.sqrt(0.5)
"""The part of a corner's radius that the text of a round shape leaves free."""
_TURNED = 0.05
_MARGIN_MAX = 2_000_000
_HIDDEN_PLACE: Place = (72, -120, 1136, 46)


@dataclass(slots=True)
class SlideWriter:
    """Writes one slide's shapes.

    Attributes:
        slide: python-pptx's slide, empty.
        layout: name of its layout.
        text: writes its text.
        palette: the theme's colours.
        media: reads its pictures.
        document: for warnings and the theme.
    """

    slide: Any
    layout: str
    text: TextWriter
    palette: Palette
    media: Media
    document: Document
    _next: int = 2

    def write(self, content: Slide) -> None:
        """Writes all shapes in reading order, then the slide's number."""
        if not any(isinstance(shape, TextShape) and shape.role == "title" for shape in content.shapes):
            self._hidden_title(name_of_slide(content))
        for shape in content.shapes:
            if isinstance(shape, TextShape):
                self._text(shape)
            elif isinstance(shape, LineShape):
                self._bar(shape)
            elif isinstance(shape, TableShape):
                self._table(shape)
            elif isinstance(shape, PictureShape):
                self._picture(shape)
            elif isinstance(shape, ChartShape):
                self._chart(shape)
        if content.number:
            self._number(content)

    def _append(self, xml: str) -> None:
        self.slide.shapes._spTree.append(parse_xml(xml))  # noqa: SLF001 - python-pptx makes no shapes from XML
        self._next += 1

    def _id(self) -> int:
        """An id that no shape of the slide has; python-pptx takes the highest one plus one for its own."""
        ids = [int(value) for value in self.slide.shapes._spTree.xpath(".//p:cNvPr/@id")] if self._next < 0 else []  # noqa: SLF001
        return max([self._next, *ids])

    # ---- text ----

    def _hidden_title(self, words: str) -> None:
        """A title above the slide: what outlines and screen readers call a slide without a heading.

        It's hidden too, for readers that show what is beside a slide.
        """
        number = self._id()
        self._append(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="Title {number}" hidden="1"/>'
            f'<p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr>'
            f"<p:spPr>{self._transform(TextShape(*_HIDDEN_PLACE))}</p:spPr>"
            f"<p:txBody><a:bodyPr/><a:lstStyle/><a:p><a:r>"
            f'<a:rPr lang="{self.text.language}"/><a:t>{xml_text(words)}</a:t></a:r></a:p></p:txBody></p:sp>'
        )

    def _text(self, shape: TextShape) -> None:
        placeholder, place = self._role(shape)
        click = self._take_link(shape)
        left = shape.x + shape.insets[0]
        name = {
            "title": "Title",
            "subtitle": "Subtitle",
            "body": "Content",
            "code": "Code",
            "footnotes": "Notes",
        }.get(shape.role, "Text" if shape.paragraphs else "Shape")
        number = self._id()
        drawn = not placeholder
        properties = (
            '<p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr>'
            if placeholder
            else ('<p:cNvSpPr txBox="1"/>' if shape.fill is None and shape.border is None else "<p:cNvSpPr/>")
        )
        geometry = self._transform(shape) if shape.turn or not _same(shape, place) else ""
        fill = "" if not drawn and shape.fill is None else self.palette.fill(shape.fill)
        outline = "" if not drawn and shape.border is None else self.palette.line(shape.border)
        preset = _preset(shape) if drawn or shape.fill is not None else ""
        paragraphs = self.text.paragraphs(shape.paragraphs, left, heading=shape.role == "title", exact=shape.exact)
        self._append(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="{name} {number}">{click}</p:cNvPr>'
            f"{properties}<p:nvPr>{placeholder}</p:nvPr>"
            f"</p:nvSpPr><p:spPr>{geometry}{preset}{fill}{outline}{self.palette.shadow(shape.shadow)}</p:spPr>"
            f"<p:txBody>{_body(shape)}<a:lstStyle/>{paragraphs}</p:txBody></p:sp>"
        )

    def _take_link(self, shape: TextShape) -> str:
        """The link of a button, which its shape has: on text, readers underline one."""
        pieces = [piece for para in shape.paragraphs for piece in para.pieces if piece.text.strip()]
        links = {piece.link for piece in pieces}
        plain = not any(piece.underline for piece in pieces)
        if (shape.fill is None and shape.border is None) or len(links) != 1 or not plain:
            return ""
        attributes = self.text.link(links.pop())
        if not attributes:
            return ""
        for para in shape.paragraphs:
            para.pieces = [replace(piece, link="") for piece in para.pieces]
        return f"<a:hlinkClick {attributes}/>"

    def _role(self, shape: TextShape) -> tuple[str, Place | None]:
        if shape.role == "title":
            kind = "ctrTitle" if self.layout == "title" else "title"
            return f'<p:ph type="{kind}"/>', title_place(self.layout)
        if shape.role == "subtitle":
            kind = ' type="subTitle"' if self.layout == "title" else ' type="body"'
            return f'<p:ph{kind} idx="1"/>', body_place(self.layout)
        if shape.role == "body":
            return '<p:ph idx="1"/>', body_place(self.layout)
        return "", None

    @staticmethod
    def _transform(shape: Shape, tag: str = "a:xfrm") -> str:
        turn = f' rot="{round(shape.turn * 60000) % 21_600_000}"' if abs(shape.turn) > _TURNED else ""
        return (
            f'<{tag}{turn}><a:off x="{emu(shape.x)}" y="{emu(shape.y)}"/>'
            f'<a:ext cx="{max(1, emu(shape.width))}" cy="{max(1, emu(shape.height))}"/></{tag}>'
        )

    def _bar(self, shape: LineShape) -> None:
        number = self._id()
        self._append(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="Line {number}"/><p:cNvSpPr/>'
            f"<p:nvPr/></p:nvSpPr>"
            f'<p:spPr>{self._transform(shape)}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
            f"{self.palette.fill(shape.paint)}<a:ln><a:noFill/></a:ln></p:spPr></p:sp>"
        )

    def _number(self, content: Slide) -> None:
        """The slide's number, unless something stands in its place."""
        place = scaled([TextShape(*number_place())], slide_factor())[0]
        if any(solid(shape) and overlap(shape, place) for shape in content.shapes):
            return
        muted = self.document.theme.colours["muted"].lstrip("#").lower()
        soft = soft_on(content.background, muted)
        fill = f"<a:solidFill>{self.palette.colour(Paint(soft))}</a:solidFill>" if soft != muted else ""
        number = self._id()
        self._append(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="Slide Number {number}"/>'
            f'<p:cNvSpPr><a:spLocks noGrp="1"/>'
            f'</p:cNvSpPr><p:nvPr><p:ph type="sldNum" sz="quarter" idx="12"/></p:nvPr></p:nvSpPr>'
            f"<p:spPr/><p:txBody><a:bodyPr/>"
            f'<a:lstStyle/><a:p><a:fld id="{{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}}" type="slidenum">'
            f'<a:rPr lang="{self.text.language}">{fill}</a:rPr><a:t>\u2039#\u203a</a:t></a:fld></a:p></p:txBody></p:sp>'
        )

    # ---- tables ----

    def _table(self, shape: TableShape) -> None:
        number = self._id()
        grid = "".join(f'<a:gridCol w="{max(1, emu(width))}"/>' for width in shape.columns)
        cells = {(cell.row, cell.column): cell for cell in shape.cells}
        covered: dict[tuple[int, int], str] = {}
        for cell in shape.cells:
            for down in range(cell.rowspan):
                for right in range(cell.colspan):
                    if down or right:
                        mark = (' hMerge="1"' if right else "") + (' vMerge="1"' if down else "")
                        covered[cell.row + down, cell.column + right] = mark
        rows = []
        for row, height in enumerate(shape.rows):
            parts = []
            for column in range(len(shape.columns)):
                found = cells.get((row, column))
                if (row, column) in covered:
                    parts.append(
                        f"<a:tc{covered[row, column]}><a:txBody><a:bodyPr/><a:lstStyle/><a:p/>"
                        f"</a:txBody><a:tcPr/></a:tc>"
                    )
                else:
                    parts.append(self._cell(found) if found else _EMPTY_CELL)
            rows.append(f'<a:tr h="{max(1, emu(height))}">{"".join(parts)}</a:tr>')
        head = ' firstRow="1"' if shape.header_rows else ""
        self._append(
            f'<p:graphicFrame {NAMESPACES}><p:nvGraphicFramePr><p:cNvPr id="{number}" name="Table {number}"/>'
            f'<p:cNvGraphicFramePr><a:graphicFrameLocks noGrp="1"/></p:cNvGraphicFramePr><p:nvPr/>'
            f"</p:nvGraphicFramePr>"
            f"{self._transform(shape, 'p:xfrm')}<a:graphic>"
            f'<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table">'
            f"<a:tbl><a:tblPr{head}/><a:tblGrid>{grid}</a:tblGrid>{''.join(rows)}</a:tbl>"
            f"</a:graphicData></a:graphic></p:graphicFrame>"
        )

    def _cell(self, cell: TableCell) -> str:
        spans = (f' rowSpan="{cell.rowspan}"' if cell.rowspan > 1 else "") + (
            f' gridSpan="{cell.colspan}"' if cell.colspan > 1 else ""
        )
        left = min((para.x for para in cell.paragraphs), default=0.0)
        paragraphs = (
            self.text.paragraphs(cell.paragraphs, left, exact=any(para.lines > 1 for para in cell.paragraphs))
            if cell.paragraphs
            else '<a:p><a:endParaRPr sz="800"/></a:p>'
        )
        names = ("marL", "marT", "marR", "marB")
        margins = " ".join(
            f'{name}="{min(_MARGIN_MAX, emu(value))}"' for name, value in zip(names, cell.margins, strict=True)
        )
        sides = ("a:lnL", "a:lnR", "a:lnT", "a:lnB")
        lines = "".join(self._edge(tag, border) for tag, border in zip(sides, cell.borders, strict=True))
        anchor = ' anchor="ctr"' if cell.middle else ""
        return (
            f"<a:tc{spans}><a:txBody><a:bodyPr/><a:lstStyle/>{paragraphs}</a:txBody>"
            f"<a:tcPr {margins}{anchor}>{lines}{self.palette.fill(cell.fill)}</a:tcPr></a:tc>"
        )

    def _edge(self, tag: str, border: Border | None) -> str:
        return self.palette.line(border, tag)

    # ---- pictures and charts ----

    def _picture(self, shape: PictureShape) -> None:
        found = self.media.picture(shape.element, shape.width) if shape.element is not None else None
        if found is None:
            self._text(_notice(shape, self.document.theme.colours["muted"]))
            return
        data, svg = found
        place = (emu(shape.x), emu(shape.y), max(1, emu(shape.width)), max(1, emu(shape.height)))
        try:
            picture = self.slide.shapes.add_picture(io.BytesIO(data), *place)
        except Exception:  # noqa: BLE001 - python-pptx reads headers of its own accord, and fails in its own ways
            self._text(_notice(shape, self.document.theme.colours["muted"]))
            return
        properties = picture._element.nvPicPr.cNvPr  # noqa: SLF001
        properties.set("descr", " ".join(shape.alt.split())[:1000])
        self._next = max(self._next, int(properties.get("id"))) + 1
        _fill_place(picture, shape)
        picture.rotation = shape.turn
        if shape.opacity < 1:
            blip = picture._element.blipFill.find("{*}blip")  # noqa: SLF001
            blip.insert(0, parse_xml(f'<a:alphaModFix {NAMESPACES} amt="{round(shape.opacity * 100000)}"/>'))
        if shape.radius >= _ROUND_LEAST:
            old = picture._element.spPr.find("{*}prstGeom")  # noqa: SLF001
            old.getparent().replace(
                old, parse_xml(_preset(shape).replace("<a:prstGeom", f"<a:prstGeom {NAMESPACES}", 1))
            )
        if shape.shadow:
            effects = self.palette.shadow(shape.shadow).replace("<a:effectLst", f"<a:effectLst {NAMESPACES}", 1)
            picture._element.spPr.append(parse_xml(effects))  # noqa: SLF001
        if svg:
            self.media.add_svg(self.slide, picture, svg)
        link = self.text.link(shape.link) if shape.link else ""
        if link:
            properties.append(parse_xml(f"<a:hlinkClick {NAMESPACES} {link}/>"))

    def _chart(self, shape: ChartShape) -> None:
        try:
            done = add_chart(self.slide, shape, self.document.theme)
        except (ValueError, TypeError, IndexError, AttributeError, KeyError) as exc:
            self.document.warn("chart_failed", f"A chart could not be drawn: {str(exc)[:200]}")
            done = False
        self._next += 1
        if done:
            frames = self.slide.shapes._spTree.xpath(".//p:cNvPr/@id")  # noqa: SLF001
            self._next = max(self._next, *(int(value) for value in frames)) + 1
            return
        inner = (
            next(
                (item for item in shape.element.iter() if str(item.tag).rpartition("}")[2] in {"img", "svg"}), None
            )
            if (shape.element is not None)
            else None
        )
        if inner is not None:
            self._picture(PictureShape(shape.x, shape.y, shape.width, shape.height, inner, inner.get("alt", "")))


_EMPTY_CELL = '<a:tc><a:txBody><a:bodyPr/><a:lstStyle/><a:p><a:endParaRPr sz="100"/></a:p></a:txBody><a:tcPr marT="0" marB="0"/></a:tc>'


def _notice(shape: PictureShape, colour: str) -> TextShape:
    """What stands in place of a picture that cannot be had."""
    paint = Paint(colour.lstrip("#"))
    words = shape.alt.strip() or "Missing picture"
    size = max(9.0, min(18.0, shape.height / 3))
    para = Para(
        [Piece(words[:200], size=size, italic=True, colour=paint)], x=shape.x + 6, line=size * 1.3, align="center"
    )
    border = Border(1.0, paint, "dashed")
    return TextShape(
        shape.x, shape.y, shape.width, shape.height, [para], border=border, insets=(6, 0, 6, 0), anchor="ctr"
    )


def _fill_place(picture: Any, shape: PictureShape) -> None:
    """Cuts a picture that covers its place, or makes its place smaller if it's to be seen whole."""
    wide, tall = picture.image.size
    if shape.fit == "fill" or not wide or not tall or shape.width <= 0 or shape.height <= 0:
        return
    ratio = (wide / tall) / (shape.width / shape.height)
    if shape.fit == "cover":
        cut = (1 - 1 / ratio) / 2 if ratio > 1 else (1 - ratio) / 2
        if ratio > 1:
            picture.crop_left = picture.crop_right = cut
        else:
            picture.crop_top = picture.crop_bottom = cut
        return
    width, height = (shape.width, shape.height / ratio) if ratio > 1 else (shape.width * ratio, shape.height)
    picture.left, picture.top = emu(shape.x + (shape.width - width) / 2), emu(shape.y + (shape.height - height) / 2)
    picture.width, picture.height = max(1, emu(width)), max(1, emu(height))


def _same(shape: Shape, place: Place | None) -> bool:
    return place is not None and all(
        abs(one - other) < _NEAR
        for one, other in zip((shape.x, shape.y, shape.width, shape.height), place, strict=True)
    )


def _preset(shape: TextShape | PictureShape) -> str:
    side = min(shape.width, shape.height)
    if shape.radius < _ROUND_LEAST or side <= 0:
        return '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
    round_ = abs(shape.width - shape.height) < _NEAR and shape.radius >= side / 2 - 1
    if round_ or shape.radius > side / 2 + 1:
        return '<a:prstGeom prst="ellipse"><a:avLst/></a:prstGeom>'
    share = min(50_000, round(shape.radius / side * 100_000))
    return f'<a:prstGeom prst="roundRect"><a:avLst><a:gd name="adj" fmla="val {share}"/></a:avLst></a:prstGeom>'


def _text_margins(shape: TextShape) -> tuple[float, float, float, float]:
    """How far the text of a shape stays away from its sides of its own accord: its corners are round."""
    preset = _preset(shape)
    if "ellipse" in preset:
        wide, tall = shape.width / 2 * _CORNER, shape.height / 2 * _CORNER
    elif "roundRect" in preset:
        wide = tall = min(shape.radius, min(shape.width, shape.height) / 2) * _CORNER
    else:
        wide = tall = 0.0
    return wide, tall, wide, tall


def _body(shape: TextShape) -> str:
    names = ("lIns", "tIns", "rIns", "bIns")
    rounded = _text_margins(shape)
    insets = " ".join(
        f'{name}="{emu(max(0.0, value - own))}"'
        for name, value, own in zip(names, shape.insets, rounded, strict=True)
    )
    wrap = "square" if shape.wrap else "none"
    return f'<a:bodyPr wrap="{wrap}" {insets} rtlCol="0" anchor="{shape.anchor}"><a:noAutofit/></a:bodyPr>'
