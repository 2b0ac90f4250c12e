"""Slides in a house template: titles and text go into its placeholders and have its look; the rest is drawn."""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from lxml import etree
from pptx.oxml import parse_xml
from render.pptx.drawingml_style import NAMESPACES, xml_text
from render.pptx.shapes import SlideWriter
from render.pptx.template import TOP, HouseLayout, PptxTemplate
from render.slides.css import MARGIN_X
from render.slides.model import TICKS, Para, PictureShape, Piece, Shape, Slide, TextShape
from render.slides.px_to_slide import move_down, scaled

_SMALL_PRINT = frozenset({"footnotes", "code"})
_TITLE_CHARACTERS = 70
"""A longer title is set smaller, so that it takes as many lines as one of so many letters."""
_TITLE_SMALLEST = 60
"""Per cent."""
_EDGE = 12.0
"""Pixels between small print and the lower edge of a slide."""
_NUMBER_EMU = 514_350
"""Room for the number of a list item, as PowerPoint gives it."""


@dataclass  # slots would break super()
class HouseSlideWriter(SlideWriter):
    """Writes one slide's shapes.

    Attributes:
        house: its layout.
        inherited: whether text has the template's size; else each run has its own.
        plain: colours that text has without a word about it.
    """

    house: HouseLayout = field(default_factory=lambda: HouseLayout(None))
    inherited: bool = True
    plain: frozenset[str] = frozenset()

    def write(self, content: Slide) -> None:
        """Writes the placeholders, then what is drawn, then the small print of the layout."""
        frames = [shape for shape in content.shapes if isinstance(shape, TextShape)]
        title = next((frame for frame in frames if frame.role == "title"), None)
        rest = [shape for shape in content.shapes if shape is not title]
        if title is None or self.house.title is None:
            super().write(_without_number(content))
        else:
            self._placeholder(self.house.title, title.paragraphs, "Title", is_title=True)
            texts = self._body(content.kind, rest)
            if texts and self.house.body is not None:
                paragraphs = [para for shape in texts for para in shape.paragraphs]
                self._placeholder(self.house.body, paragraphs, "Content")
                rest = [shape for shape in rest if all(shape is not text for text in texts)]
            for shape in rest:
                if isinstance(shape, TextShape) and shape.role in {"body", "subtitle"}:
                    shape.role = "text"
            # Without a title among its shapes a slide would get a hidden one.
            super().write(replace(_without_number(content), shapes=[_WRITTEN, *rest]))
        self._small_print(number=content.number)

    def _body(self, kind: str, shapes: list[Shape]) -> list[TextShape]:
        """The text that the layout's placeholder takes: all of a title slide, else the body if it is alone."""
        frames = [shape for shape in shapes if isinstance(shape, TextShape) and shape.paragraphs]
        if kind in {"title", "section"}:
            return [frame for frame in frames if frame.fill is None and frame.role not in _SMALL_PRINT]
        body = [frame for frame in frames if frame.role == "body"]
        others = [shape for shape in shapes if not _is_text(shape, "body") and not _is_text(shape, "footnotes")]
        return body if len(body) == 1 and not others else []

    def _text(self, shape: TextShape) -> None:
        if shape is not _WRITTEN:
            super()._text(shape)

    def _placeholder(self, place: Any, paragraphs: list[Para], name: str, *, is_title: bool = False) -> None:
        number = self._id()
        mark = copy.deepcopy(place._element.ph)  # noqa: SLF001
        attributes = " ".join(
            f'{key}="{mark.get(key)}"' for key in ("type", "idx", "sz", "orient") if mark.get(key)
        )
        words = sum(len(para.text) for para in paragraphs)
        fit = "<a:normAutofit/>"
        scale = 100
        if is_title and words > _TITLE_CHARACTERS:
            scale = max(_TITLE_SMALLEST, round(100 * (_TITLE_CHARACTERS / words) ** 0.5))
            fit = f'<a:normAutofit fontScale="{scale * 1000}"/>'
        is_text = is_title or (place._element.ph.get("type") == "subTitle")  # noqa: SLF001
        inner = "".join(self._house_paragraph(para, is_text=is_text, is_title=is_title) for para in paragraphs)
        self._append(
            f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{number}" name="{name} {number}"/>'
            f'<p:cNvSpPr><a:spLocks noGrp="1"/></p:cNvSpPr><p:nvPr><p:ph {attributes}/></p:nvPr></p:nvSpPr><p:spPr/>'
            f"<p:txBody><a:bodyPr>{fit}</a:bodyPr><a:lstStyle/>{inner or '<a:p/>'}</p:txBody></p:sp>"
        )

    def _house_paragraph(self, para: Para, *, is_text: bool, is_title: bool) -> str:
        """A paragraph whose level, bullet and space are the template's; ``is_text``: it has no bullets anyway."""
        properties = ""
        if para.bullet is not None:
            level = f' lvl="{min(para.level, 8)}"' if para.level else ""
            bullet = ""
            if para.bullet.scheme:
                start = f' startAt="{para.bullet.number}"' if para.bullet.number > 1 else ""
                bullet = f'<a:buFont typeface="+mj-lt"/><a:buAutoNum type="{para.bullet.scheme}"{start}/>'
                level = f' marL="{_NUMBER_EMU * (para.level + 1)}" indent="-{_NUMBER_EMU}"' + level
            elif para.bullet.character in TICKS:
                bullet = f'<a:buFont typeface="Segoe UI Symbol"/><a:buChar char="{para.bullet.character}"/>'
            properties = f"<a:pPr{level}>{bullet}</a:pPr>" if level or bullet else ""
        elif not is_text:
            properties = '<a:pPr marL="0" indent="0"><a:buNone/></a:pPr>'
        if para.rtl:
            properties = properties.replace("<a:pPr", '<a:pPr rtl="1"', 1) or '<a:pPr rtl="1"/>'
        runs = "".join(self._house_run(piece, is_title=is_title, is_text=is_text) for piece in para.pieces)
        return f"<a:p>{properties}{runs}</a:p>"

    def _house_run(self, piece: Piece, *, is_title: bool, is_text: bool) -> str:
        full = parse_xml(self.text.properties(piece).replace("<a:rPr", f"<a:rPr {NAMESPACES}", 1))
        if self.inherited or is_text:
            full.attrib.pop("sz", None)
        if is_title or not piece.bold:
            full.attrib.pop("b", None)
        own = piece.colour.rgb if piece.colour is not None else ""
        for fill in full.findall("{*}solidFill") if is_text or own in self.plain else []:
            full.remove(fill)
        for face in full.findall("{*}latin") + full.findall("{*}cs"):
            if not piece.family or "mono" not in piece.family.lower():
                full.remove(face)
        properties = etree.tostring(full, encoding="unicode")
        parts = piece.text.split("\n")
        runs = [f"<a:r>{properties}<a:t>{xml_text(part)}</a:t></a:r>" if part else "" for part in parts]
        return f"<a:br>{properties}</a:br>".join(runs)

    def _small_print(self, *, number: bool) -> None:
        """The footer of the layout, if it has words, and the slide's number, if that is asked for."""
        for kind, shape in self.house.small:
            words = shape.text_frame.text.strip() if shape.has_text_frame else ""
            if kind == "ftr" and words:
                inner = f'<a:r><a:rPr lang="{self.text.language}"/><a:t>{xml_text(words[:300])}</a:t></a:r>'
            elif kind == "sldNum" and number:
                inner = (
                    '<a:fld id="{B6F15528-21DE-4FAA-801E-634DDDAF4B2B}" type="slidenum">'
                    f'<a:rPr lang="{self.text.language}"/><a:t>\u2039#\u203a</a:t></a:fld>'
                )
            else:
                continue
            name = "Footer" if kind == "ftr" else "Slide Number"
            identity = self._id()
            index = shape._element.ph.get("idx", "0")  # noqa: SLF001
            self._append(
                f'<p:sp {NAMESPACES}><p:nvSpPr><p:cNvPr id="{identity}" name="{name} {identity}"/><p:cNvSpPr>'
                f'<a:spLocks noGrp="1"/></p:cNvSpPr><p:nvPr><p:ph type="{kind}" sz="quarter" idx="{index}"/></p:nvPr>'
                f"</p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/><a:p>{inner}</a:p></p:txBody></p:sp>"
            )


def house_writer(template: PptxTemplate, usual: SlideWriter, content: Slide) -> HouseSlideWriter:
    """The writer of a slide in a template, in place of the usual one."""
    colours = usual.document.theme.colours
    return HouseSlideWriter(
        usual.slide, usual.layout, usual.text, usual.palette, usual.media, usual.document,
        house=template.layouts[usual.layout],
        inherited=content.zoom == 1.0 and template.is_own_size,
        plain=frozenset(colours[name].lstrip("#").lower() for name in ("text", "heading")),
    )  # fmt: skip


def put_in_area(slide: Slide, template: PptxTemplate) -> None:
    """Moves the shapes of a laid-out slide to where the template has its content, in place.

    What lies behind all of a slide, or along its side, goes to the slide's edges.
    """
    wide, tall = template.size
    behind: list[Shape] = []
    for shape in slide.shapes:
        if isinstance(shape, PictureShape) and shape.decorative and shape.height >= template.canvas[1] - 1:
            factor = wide / template.canvas[0]
            shape.x, shape.width, shape.y, shape.height = shape.x * factor, shape.width * factor, 0.0, tall
            behind.append(shape)
    left, top = template.area[:2]
    rest = [shape for shape in slide.shapes if all(shape is not other for other in behind)]
    scaled(rest, template.scale, MARGIN_X - left / template.scale, TOP - top / template.scale)
    for shape in rest:
        if shape.bottom > tall - _EDGE and _is_text(shape, "footnotes"):
            move_down(shape, tall - _EDGE - shape.bottom)


_WRITTEN = TextShape(0, 0, 0, 0, role="title")
"""Stands for a title that is written already."""


def _without_number(content: Slide) -> Slide:
    """A slide whose number is not drawn: the layout has a place for it."""
    return replace(content, number=False)


def _is_text(shape: Shape, role: str) -> bool:
    return isinstance(shape, TextShape) and shape.role == role
