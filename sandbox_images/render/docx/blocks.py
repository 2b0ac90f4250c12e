"""Blocks of DOCX: each kind of block as native paragraphs and tables."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from render.docx.borders import framed, paragraph_frame, side_by_side, spacer
from render.docx.contents import contents_xml
from render.docx.height_estimate import height_of_all
from render.docx.images import picture
from render.docx.inline import formula_xml, inlines_xml, run_xml
from render.docx.numbering import LEVELS, STEP
from render.docx.package import safe_url
from render.docx.pages import field
from render.docx.parts import SYMBOLS
from render.docx.tables import table_xml
from render.docx.writer_state import Place, State
from render.docx.xml import hexa, is_rtl
from render.ir import (
    RIGHT_TAB,
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
    Frame,
    Heading,
    Image,
    Inline,
    Line,
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
from render.to_ir.flatten import plain
from render.to_ir.style import mix

_CHUNK = 150
"""Lines of code in a paragraph."""
_BAR, _THIN = 3.0, 0.7
"""Pixels: widths of the line beside a quotation or callout, and of that around code."""
_FRAME_SPACE = 100
"""Twips between the edge of the text and that of a ground."""
_FRAMED_POINTS = 450
"""What is higher than this is too long for a box."""
_TICKED, _OPEN = "\u2611", "\u2610"
_COUNTED = re.compile(r"(Figure|Table|Chart|Listing|Abbildung|Tabelle|Figura|Tabla|Tableau)\s+(\d{1,4})(?![\d.])")
"""Captions that begin with a label and a number."""
_LIST_STYLE = "ListParagraph"
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
        before: what comes before the numbering: keepNext, pageBreakBefore.
        number: its numbering.
        frame: its ground and lines.
        ind: its indent, instead of the place's.
        after: its alignment.
        rtl: whether it runs from right to left.
        tabbed: whether its lines have a tab stop at the right edge.
    """

    style: str = ""
    before: str = ""
    number: str = ""
    frame: Frame | None = None
    ind: str = ""
    after: str = ""
    rtl: bool = False
    tabbed: bool = False


def paragraph(place: Place, inner: str, shape: Shape) -> str:
    """A paragraph of runs; its properties in the order of the schema."""
    name = shape.style or place.style
    parts = f'<w:pStyle w:val="{name}"/>' if name else ""
    parts += "<w:keepNext/>" if place.keep and "keepNext" not in shape.before else ""
    parts += shape.before + shape.number
    frame = shape.frame or (Frame(place.ground, left=place.bar) if place.ground or place.bar else None)
    parts += paragraph_frame(frame) if frame else ""
    parts += f'<w:tabs><w:tab w:val="right" w:pos="{place.width}"/></w:tabs>' if shape.tabbed else ""
    parts += "<w:bidi/>" if shape.rtl else ""
    inside = f' w:right="{_FRAME_SPACE}"' if frame and frame.background else ""
    left = place.indent + (_FRAME_SPACE if inside else 0)
    parts += shape.ind or (f'<w:ind w:left="{left}"{inside}/>' if left else "")
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
    rtl = is_rtl(plain(block.inlines)) if block.rtl is None else block.rtl
    if isinstance(block, Heading):
        inner = inlines_xml(state, place, block.inlines)
        target = state.headings.get(id(block))
        inner = state.mark(target.bookmark, inner) if target else inner
        style = f"Heading{min(max(block.level, 1), 6)}"
    else:
        if len(block.inlines) == 1 and getattr(block.inlines[0], "display", False):
            return _formula(state, place, FormulaBlock(block.inlines[0]))  # type: ignore[arg-type]
        inner = inlines_xml(state, place, block.inlines)
        style = block.style
    tabbed = any(inline is RIGHT_TAB for inline in block.inlines)
    after = "" if tabbed else alignment(block.align or place.align, rtl=rtl)
    return paragraph(place, inner, Shape(style, before, number, block.frame, ind, after, rtl, tabbed))


def _list(state: State, place: Place, block: ListBlock) -> str:
    level = min(place.level, LEVELS - 1)
    numbering = state.numbering
    if block.ordered and block.marker != "none":
        number = numbering.ordered(block.marker, level, block.start)
    else:
        number = numbering.uncounted("none" if block.marker == "none" else "bullet")
    kind = block.marker if block.ordered else "bullet"
    around = "" if place.style == _LIST_STYLE else place.style
    marked = around or state.numbering.list_style(kind, level)
    moved = deeper(place, state.numbering.step(kind, level))
    inside = replace(moved, level=place.level + 1, style=around or _LIST_STYLE)
    return "".join(
        _item(state, inside, item, number, marked if item.checked is None else "") for item in block.items
    )


def _item(state: State, place: Place, item: ListItem, number: int, style: str) -> str:
    """An item; ``style`` is that of its first paragraph if it is another than that of the rest."""
    first = item.blocks[0] if item.blocks else None
    ind = f'<w:ind w:left="{place.indent}" w:hanging="{min(STEP, place.indent)}"/>'
    mark = (
        f'<w:numPr><w:ilvl w:val="{min(place.level, LEVELS) - 1}"/><w:numId w:val="{number}"/></w:numPr>'
        if item.checked is None
        else ""
    )
    rest = item.blocks
    if isinstance(first, Heading | Paragraph) and not getattr(first.inlines[0], "display", False):
        rest = item.blocks[1:]
        if item.checked is None:
            head = _text(state, replace(place, style=style or place.style), first, number=mark, ind=ind)
        else:
            inner = check_box(checked=item.checked) + inlines_xml(state, place, first.inlines)
            head = paragraph(place, inner, Shape(ind=ind, rtl=is_rtl(plain(first.inlines))))
    else:
        box = "" if item.checked is None else check_box(checked=item.checked)
        if isinstance(first, Code) and mark:
            return _code(state, place, first, mark, ind) + blocks_xml(state, place, item.blocks[1:])
        head = paragraph(place, box, Shape(number=mark, ind=ind))
    return head + blocks_xml(state, place, rest)


def check_box(*, checked: bool) -> str:
    """A box to tick, that Word ticks when it is clicked."""
    shown = _TICKED if checked else _OPEN
    name = SYMBOLS
    font = f'<w:rPr><w:rFonts w:ascii="{name}" w:eastAsia="{name}" w:hAnsi="{name}" w:cs="{name}"/></w:rPr>'
    states = "".join(
        f'<w14:{state}State w14:val="{ord(letter):X}" w14:font="{name}"/>'
        for state, letter in (("checked", _TICKED), ("unchecked", _OPEN))
    )
    return (
        f'<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val="{int(checked)}"/>{states}</w14:checkbox></w:sdtPr>'
        f"<w:sdtContent><w:r>{font}<w:t>{shown}</w:t></w:r></w:sdtContent></w:sdt><w:r><w:tab/></w:r>"
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


def _code(state: State, place: Place, block: Code, number: str = "", ind: str = "") -> str:
    colours = state.content.theme.colours
    frame = Frame(colours["code_background"], *[Line(_THIN, colours["border"])] * 4)
    parts = []
    for start in range(0, len(block.lines), _CHUNK):
        runs: list[Inline] = []
        for index, line in enumerate(block.lines[start : start + _CHUNK]):
            if index:
                runs.append(LineBreak())
            runs.extend(line)
        shape = Shape("CodeBlock", number=number, frame=frame, ind=ind)
        parts.append(paragraph(place, inlines_xml(state, place, runs), shape))
        number = ""
    return ("" if ind else spacer(60)) + "".join(parts) + spacer(200)


def _figure(state: State, place: Place, block: Figure) -> str:
    keep = "<w:keepNext/>" if block.caption else ""
    centre = alignment("center", rtl=False)
    result = paragraph(place, inlines_xml(state, place, [block.image]), Shape(before=keep, after=centre))
    return result + _caption(state, place, block.caption, after=centre)


def _caption(state: State, place: Place, caption: list[Inline], before: str = "", after: str = "") -> str:
    if not caption:
        return ""
    rtl = is_rtl(plain(caption))
    first = caption[0]
    counted = _COUNTED.match(first.text) if isinstance(first, Run) else None
    if counted and isinstance(first, Run):  # a number that Word can count on, where the author counts
        label, number = run_xml(state, replace(first, text=counted[1] + " ")), counted[2]
        rest = [replace(first, text=first.text[counted.end() :]), *caption[1:]]
        asked = "" if state.number(f"SEQ {counted[1]}") == int(number) else f" \\r {number}"
        inner = label + field(f"SEQ {counted[1]} \\* ARABIC{asked}", number) + inlines_xml(state, place, rest)
    else:
        inner = inlines_xml(state, place, caption)
    return paragraph(place, inner, Shape(style="Caption", before=before, after=after, rtl=rtl))


def _table(state: State, place: Place, block: Table) -> str:
    shown = table_xml(state, place, block, blocks_xml)
    if block.caption_below:
        return shown + _caption(state, place, block.caption)
    return _caption(state, place, block.caption, before="<w:keepNext/>") + shown


def _drawn(state: State, place: Place, svg: str, alt: str) -> str:
    image = Image(svg.encode("utf-8", "replace"), "image/svg+xml", alt)
    shown = picture(state, place, image)
    return paragraph(place, shown, Shape(after=alignment("center", rtl=False))) if shown else ""


def _diagram(state: State, place: Place, block: Diagram) -> str:
    drawn = _drawn(state, place, block.svg, block.alt or " ".join(block.source.split())[:200])
    return drawn or _code(state, place, Code("mermaid", [[Run(line)] for line in block.source.split("\n")]))


def _chart(state: State, place: Place, block: Chart) -> str:
    from render.docx.charts import chart_text, chart_xml  # noqa: PLC0415 - most documents have no chart

    text = chart_text(block)
    native = chart_xml(state, place, block, text) if block.data else ""
    if native:
        return paragraph(place, native, Shape(after=alignment("center", rtl=False)))
    drawn = _drawn(state, place, block.svg, text) if block.svg else ""
    return drawn or paragraph(place, run_xml(state, Run(text)), Shape())


def _formula(state: State, place: Place, block: FormulaBlock) -> str:
    shown = formula_xml(state, place, block.formula)
    if shown.startswith("<m:oMath>"):
        return paragraph(place, f"<m:oMathPara>{shown}</m:oMathPara>", Shape())
    return paragraph(place, shown, Shape(after=alignment("center", rtl=False)))


def _quote(state: State, place: Place, block: Quote) -> str:
    bar = Line(_BAR, state.content.theme.colours["border"])
    return blocks_xml(state, replace(deeper(place, 320), style=place.style or "Quote", bar=bar), block.blocks)


def _callout(state: State, place: Place, block: Callout) -> str:
    colours = state.content.theme.colours
    accent = colours.get(block.kind, colours["note"])
    frame = Frame(mix(accent, colours["background"], 0.1), left=Line(_BAR, accent))
    title: list[Inline] = [Run(block.title, bold=True, colour=accent)]
    head: list[Block] = [Paragraph(title)] if block.title else []
    return _box(state, place, Box([*head, *block.blocks], frame))


def _box(state: State, place: Place, block: Box) -> str:
    plain_text = all(isinstance(inner, Paragraph | Heading) and not inner.frame for inner in block.blocks)
    if plain_text and block.blocks and not place.bar:
        return _framed_text(state, place, block)
    tall = height_of_all(block.blocks, place.width / 20) > _FRAMED_POINTS
    if tall or any(isinstance(inner, PageBreak) for inner in block.blocks):
        # No cell of a table should be longer than a page, and no page break works in one.
        inside = replace(place, ground=block.frame.background or place.ground, bar=block.frame.left or place.bar)
        return blocks_xml(state, inside, block.blocks)
    return framed(place, lambda inner: blocks_xml(state, inner, block.blocks), block.frame)


def _framed_text(state: State, place: Place, block: Box) -> str:
    """Paragraphs with the same frame: word processors draw one around all of them."""
    texts = [replace(part, frame=block.frame) for part in block.blocks if isinstance(part, Paragraph | Heading)]
    together = replace(place, keep=place.keep or height_of_all(block.blocks, place.width / 20) < _FRAMED_POINTS)
    first = "".join(_text(state, together, part) for part in texts[:-1])
    return first + _text(state, place, texts[-1]) + spacer(120)


def _columns(state: State, place: Place, block: Columns) -> str:
    columns: list[tuple[Callable[[Place], str], Frame | None]] = []
    for blocks in block.columns:
        only = blocks[0] if len(blocks) == 1 else None
        if isinstance(only, Box):
            columns.append((partial(_within, state, only.blocks), only.frame))
        else:
            columns.append((partial(_within, state, blocks), None))
    return side_by_side(place, columns, block.widths)


def _within(state: State, blocks: list[Block], place: Place) -> str:
    return blocks_xml(state, place, blocks)


def _sources(state: State, place: Place, block: Sources) -> str:
    muted = state.content.theme.colours["muted"]
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
    border = hexa(state.content.theme.colours["border"])
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
