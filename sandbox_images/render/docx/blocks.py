"""Blocks of DOCX: each kind of block as native paragraphs and tables."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from render.docx.contents import contents_xml
from render.docx.images import picture
from render.docx.inline import formula_xml, inlines_xml, run_xml
from render.docx.numbering import LEVELS, STEP
from render.docx.package import safe_url
from render.docx.state import Place, State
from render.docx.tables import framed, side_by_side, spacer, table_xml
from render.docx.xml import hexa, is_rtl, mix
from render.ir import (
    Block,
    Box,
    Callout,
    Chart,
    Code,
    Columns,
    Contents,
    DefinitionList,
    Diagram,
    Figure,
    FormulaBlock,
    Heading,
    Image,
    Inline,
    LineBreak,
    ListBlock,
    ListItem,
    PageBreak,
    Paragraph,
    Quote,
    Rule,
    Run,
    Sources,
    SpeakerNotes,
    Table,
)  # fmt: skip
from render.reading.flat import plain

_CHUNK = 150
"""Lines of code in a paragraph."""
_INDENT_MAX = 0.6
"""Share of the room that indents may take."""


def blocks_xml(state: State, place: Place, blocks: list[Block]) -> str:
    """The paragraphs and tables of blocks; a page break goes into the paragraph behind it, where there is one."""
    parts: list[str] = []
    broken = False
    for block in blocks:
        if isinstance(block, PageBreak):
            broken = bool(parts) and not place.nested and not place.note
            continue
        if isinstance(block, Heading | Paragraph):
            parts.append(_text(state, place, block, "<w:pageBreakBefore/>" if broken else ""))
        else:
            if broken:
                parts.append('<w:p><w:r><w:br w:type="page"/></w:r></w:p>')
            parts.append(WRITERS[type(block)](state, place, block))
        broken = broken and not parts[-1]
    return "".join(parts)


def deeper(place: Place, by: int) -> Place:
    """A place moved in, as far as there is room."""
    return replace(place, indent=min(place.indent + by, int(place.width * _INDENT_MAX)))


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a paragraph besides those of its place.

    Attributes:
        style: its style, instead of the place's.
        before: what comes before the numbering: keepNext, pageBreakBefore, and the lines and ground of code.
        number: its numbering.
        ind: its indent, instead of the place's.
        after: its alignment.
        rtl: whether it runs from right to left.
    """

    style: str = ""
    before: str = ""
    number: str = ""
    ind: str = ""
    after: str = ""
    rtl: bool = False


def paragraph(place: Place, inner: str, shape: Shape) -> str:
    """A paragraph of runs; its properties in the order of the schema."""
    name = shape.style or place.style
    parts = f'<w:pStyle w:val="{name}"/>' if name else ""
    parts += shape.before + shape.number
    if place.bar:
        parts += f'<w:pBdr><w:left w:val="single" w:sz="18" w:space="10" w:color="{hexa(place.bar)}"/></w:pBdr>'
    parts += "<w:bidi/>" if shape.rtl else ""
    parts += shape.ind or (f'<w:ind w:left="{place.indent}"/>' if place.indent else "")
    parts += shape.after
    return f"<w:p><w:pPr>{parts}</w:pPr>{inner}</w:p>" if parts else f"<w:p>{inner}</w:p>"


def alignment(align: str | None, *, rtl: bool) -> str:
    """``w:jc``; in paragraphs from right to left, Word means the other side by left and right."""
    if not align:
        return ""
    named = {"justify": "both"}.get(align, align)
    if rtl:
        named = {"left": "right", "right": "left"}.get(named, named)
    return f'<w:jc w:val="{named}"/>'


def _text(
    state: State, place: Place, block: Heading | Paragraph, before: str = "", number: str = "", ind: str = ""
) -> str:
    own = plain(block.inlines)
    rtl = is_rtl(own)
    if isinstance(block, Heading):
        inner = inlines_xml(state, place, block.inlines)
        target = state.headings.get(id(block))
        inner = state.mark(target.bookmark, inner) if target else inner
        style = f"Heading{min(max(block.level, 1), 6)}"
        align = None
    else:
        if len(block.inlines) == 1 and getattr(block.inlines[0], "display", False):
            return _formula(state, place, FormulaBlock(block.inlines[0]))  # type: ignore[arg-type]
        inner = inlines_xml(state, place, block.inlines)
        style, align = "", block.align
    after = alignment(align or place.align, rtl=rtl)
    return paragraph(place, inner, Shape(style=style, before=before, number=number, ind=ind, after=after, rtl=rtl))


def _list(state: State, place: Place, block: ListBlock) -> str:
    level = min(place.level, LEVELS - 1)
    numbering = state.numbering
    number = numbering.ordered(block.marker, level, block.start) if block.ordered else numbering.bullets()
    inside = replace(deeper(place, STEP), level=place.level + 1, style=place.style or "ListParagraph")
    return "".join(_item(state, inside, item, number, level) for item in block.items)


def _item(state: State, place: Place, item: ListItem, number: int, level: int) -> str:
    first = item.blocks[0] if item.blocks else None
    ind = f'<w:ind w:left="{place.indent}" w:hanging="{min(STEP, place.indent)}"/>'
    mark = (
        f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>' if item.checked is None else ""
    )
    rest = item.blocks
    if isinstance(first, Heading | Paragraph) and not getattr(first.inlines[0], "display", False):
        rest = item.blocks[1:]
        if item.checked is None:
            head = _text(state, place, first, number=mark, ind=ind)
        else:
            inner = check_box(checked=item.checked) + inlines_xml(state, place, first.inlines)
            head = paragraph(place, inner, Shape(ind=ind, rtl=is_rtl(plain(first.inlines))))
    else:
        box = "" if item.checked is None else check_box(checked=item.checked)
        head = paragraph(place, box, Shape(number=mark, ind=ind))
    return head + blocks_xml(state, place, rest)


def check_box(*, checked: bool) -> str:
    """A box to tick, that Word ticks when it is clicked."""
    shown = "\u2612" if checked else "\u2610"
    font = (
        "<w:rPr>"
        '<w:rFonts w:ascii="MS Gothic" w:eastAsia="MS Gothic" w:hAnsi="MS Gothic" w:hint="eastAsia"/></w:rPr>'
    )
    return (
        f'<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{int(checked)}"/>'
        '<w14:checkedState w14:val="2612" w14:font="MS Gothic"/>'
        '<w14:uncheckedState w14:val="2610" w14:font="MS Gothic"/>'
        f"</w14:checkbox></w:sdtPr><w:sdtContent><w:r>{font}<w:t>{shown}</w:t></w:r></w:sdtContent></w:sdt>"
        "<w:r><w:tab/></w:r>"
    )


def _definitions(state: State, place: Place, block: DefinitionList) -> str:
    parts = []
    for item in block.items:
        if item.term:
            parts.append(
                paragraph(
                    place,
                    inlines_xml(state, place, item.term),
                    Shape(style="DefinitionTerm", rtl=is_rtl(plain(item.term))),
                )
            )
        parts.append(
            blocks_xml(state, replace(deeper(place, STEP), style=place.style or "Definition"), item.blocks)
        )
    return "".join(parts)


def _code(state: State, place: Place, block: Code) -> str:
    colours = state.document.theme.colours
    fill, border = hexa(colours["code_background"]), hexa(colours["border"])
    edges = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="4" w:color="{border}"/>'
        for side in ("top", "left", "bottom", "right")
    )
    inside = replace(place, bar=None)
    ind = f'<w:ind w:left="{place.indent + 100}" w:right="100"/>'
    parts = []
    for start in range(0, len(block.lines), _CHUNK):
        runs: list[Inline] = []
        for index, line in enumerate(block.lines[start : start + _CHUNK]):
            if index:
                runs.append(LineBreak())
            runs.extend(line)
        before = f'<w:pBdr>{edges}</w:pBdr><w:shd w:val="clear" w:color="auto" w:fill="{fill}"/>'
        parts.append(
            paragraph(inside, inlines_xml(state, place, runs), Shape(style="CodeBlock", before=before, ind=ind))
        )
    return spacer(60) + "".join(parts) + spacer(200)


def _figure(state: State, place: Place, block: Figure) -> str:
    keep = "<w:keepNext/>" if block.caption else ""
    centre = alignment("center", rtl=False)
    result = paragraph(place, inlines_xml(state, place, [block.image]), Shape(before=keep, after=centre))
    return result + _caption(state, place, block.caption, after=centre)


def _caption(state: State, place: Place, caption: list[Inline], before: str = "", after: str = "") -> str:
    if not caption:
        return ""
    rtl = is_rtl(plain(caption))
    inner = inlines_xml(state, place, caption)
    return paragraph(place, inner, Shape(style="Caption", before=before, after=after, rtl=rtl))


def _table(state: State, place: Place, block: Table) -> str:
    caption = _caption(state, place, block.caption, before="<w:keepNext/>")
    return caption + table_xml(state, place, block, blocks_xml)


def _drawn(state: State, place: Place, svg: str, alt: str) -> str:
    image = Image(svg.encode("utf-8", "replace"), "image/svg+xml", alt)
    shown = picture(state, place, image)
    return paragraph(place, shown, Shape(after=alignment("center", rtl=False))) if shown else ""


def _diagram(state: State, place: Place, block: Diagram) -> str:
    drawn = _drawn(state, place, block.svg, block.alt or " ".join(block.source.split())[:200])
    return drawn or _code(state, place, Code("mermaid", [[Run(line)] for line in block.source.split("\n")]))


def _chart(state: State, place: Place, block: Chart) -> str:
    drawn = _drawn(state, place, block.svg, chart_text(block)) if block.svg else ""
    return drawn or paragraph(place, run_xml(state, Run(chart_text(block))), Shape())


def chart_text(chart: Chart) -> str:
    """A chart in words."""
    rows = []
    for series in chart.series:
        values = ", ".join(
            f"{name} {value:g}"
            for name, value in zip(chart.categories, series.values, strict=False)
            if value is not None
        )
        rows.append(f"{series.name}: {values}" if series.name else values)
    return f"{chart.title or chart.kind.capitalize() + ' chart'}. {'; '.join(rows)}"[:2000]


def _formula(state: State, place: Place, block: FormulaBlock) -> str:
    shown = formula_xml(state, place, block.formula)
    if shown.startswith("<m:oMath>"):
        return paragraph(place, f"<m:oMathPara>{shown}</m:oMathPara>", Shape())
    return paragraph(place, shown, Shape(after=alignment("center", rtl=False)))


def _quote(state: State, place: Place, block: Quote) -> str:
    bar = state.document.theme.colours["border"]
    return blocks_xml(state, replace(deeper(place, 320), style=place.style or "Quote", bar=bar), block.blocks)


def _callout(state: State, place: Place, block: Callout) -> str:
    colours = state.document.theme.colours
    accent = colours.get(block.kind, colours["note"])
    ground = mix(accent, colours["background"], 0.1)

    def inside(inner: Place) -> str:
        title = run_xml(state, Run(block.title, colour=accent)) if block.title else ""
        head = paragraph(inner, title, Shape(style="CalloutTitle", rtl=is_rtl(block.title))) if title else ""
        return head + blocks_xml(state, inner, block.blocks)

    return framed(place, inside, ground=ground, bar=accent)


def _box(state: State, place: Place, block: Box) -> str:
    plain_box = not block.background and (not block.classes or "slide" in block.classes)
    if plain_box or block.background == state.document.theme.colours["background"]:
        return blocks_xml(state, place, block.blocks)
    border = None if block.background else state.document.theme.colours["border"]
    return framed(
        place, lambda inner: blocks_xml(state, inner, block.blocks), ground=block.background, border=border
    )


def _columns(state: State, place: Place, block: Columns) -> str:
    def writer(column: list[Block]) -> Callable[[Place], str]:
        return lambda inner: blocks_xml(state, inner, column)

    return side_by_side(place, [writer(column) for column in block.columns], block.widths)


def _sources(state: State, place: Place, block: Sources) -> str:
    muted = state.document.theme.colours["muted"]
    ind = f'<w:ind w:left="{place.indent + 480}" w:hanging="480"/>'
    parts = []
    for number, source in enumerate(block.sources, 1):
        url = safe_url(source.url or "") if (source.url or "").lower().startswith(("http://", "https://")) else None
        title = source.title or url or source.path or f"Source {source.sid}"
        runs: list[Inline] = [Run(title, link=url)]
        if url and source.title:
            runs.append(Run(f" {source.url}", colour=muted))
        head = f"<w:r><w:t>{number}.</w:t></w:r><w:r><w:tab/></w:r>"
        inner = state.mark(state.sources[source.sid], head) + inlines_xml(state, place, runs)
        parts.append(paragraph(place, inner, Shape(ind=ind, rtl=is_rtl(title))))
    return "".join(parts)


def _rule(state: State, place: Place, _block: Rule) -> str:
    border = hexa(state.document.theme.colours["border"])
    edge = f'<w:pBdr><w:bottom w:val="single" w:sz="6" w:space="1" w:color="{border}"/></w:pBdr>'
    ind = f'<w:ind w:left="{place.indent}"/>' if place.indent else ""
    return f'<w:p><w:pPr>{edge}<w:spacing w:before="120" w:after="240"/>{ind}</w:pPr></w:p>'


def _nothing(_state: State, _place: Place, _block: Any) -> str:
    """Speaker notes belong to slides."""
    return ""


WRITERS: dict[type, Callable[[State, Place, Any], str]] = {
    Heading: _text, Paragraph: _text, ListBlock: _list, DefinitionList: _definitions, Table: _table, Code: _code,
    Figure: _figure, Diagram: _diagram, Chart: _chart, FormulaBlock: _formula, Quote: _quote, Callout: _callout,
    Columns: _columns, Box: _box, SpeakerNotes: _nothing, Sources: _sources, Rule: _rule, Contents: contents_xml,
}  # fmt: skip
