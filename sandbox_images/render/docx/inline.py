"""Inlines of DOCX: runs, links, pictures, formulas, calls of footnotes, bookmarks."""

import re

from render.docx.images import picture
from render.docx.math import MathError, omml
from render.docx.package import safe_url
from render.docx.styles import language_xml, mono, size_xml
from render.docx.writer_state import Place, State
from render.docx.xml import attribute, escape, has_rtl, hexa, text_elements
from render.ir import Anchor, Formula, Image, Inline, LineBreak, Missing, NoteRef, Run
from render.to_ir.flatten import flat

_PIECES = re.compile(
    "([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc][\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\\s\\d.,:;!?()-]*)"
)
_ALARM = "#b3452c"


def inlines_xml(state: State, place: Place, inlines: list[Inline]) -> str:
    """The content of a paragraph."""
    if len(inlines) == 1 and isinstance(inlines[0], Run) and not inlines[0].link and inlines[0].cites is None:
        return run_xml(state, inlines[0])  # what most cells of tables hold
    parts: list[str] = []
    link: tuple[str | None, int | None] = (None, None)
    linked: list[str] = []
    for inline in inlines:
        own: tuple[str | None, int | None] = (None, None)
        if isinstance(inline, Run | Missing):
            own = (inline.link, inline.cites if isinstance(inline, Run) else None)
        if isinstance(inline, LineBreak) and link != (None, None):
            own = link
        if own != link:
            parts.append(_link(state, place, link, linked))
            link, linked = own, []
        linked.append(_inline(state, place, inline))
    parts.append(_link(state, place, link, linked))
    return "".join(parts)


def _inline(state: State, place: Place, inline: Inline) -> str:
    if isinstance(inline, Run):
        return run_xml(state, inline, linked=_opening(state, place, inline.link, inline.cites) is not None)
    if isinstance(inline, LineBreak):
        return "<w:r><w:br/></w:r>"
    if isinstance(inline, Image):
        return picture(state, place, inline) or run_xml(state, Run(f"[{inline.alt or 'image'}]", italic=True))
    if isinstance(inline, Formula):
        return formula_xml(state, place, inline)
    if isinstance(inline, NoteRef):
        return _note_ref(state, place, inline)
    if isinstance(inline, Missing):
        return run_xml(state, Run(inline.text or f"Missing image: {inline.path}", colour=_ALARM))
    if isinstance(inline, Anchor):
        name = state.bookmarks.get(inline.name)
        return state.mark(name) if name else ""
    return ""


def _opening(state: State, place: Place, link: str | None, cites: int | None) -> str | None:
    """The start tag of a link; None if it leads nowhere."""
    if cites is not None and cites in state.sources:
        return f'<w:hyperlink w:anchor="{state.sources[cites]}" w:history="1">'
    if not link:
        return None
    if link.startswith("#"):
        name = state.bookmarks.get(link[1:]) or state.bookmarks.get(_unquoted(link[1:]))
        return f'<w:hyperlink w:anchor="{name}" w:history="1">' if name else None
    url = safe_url(link)
    if url is None:
        state.document.warn(
            "dropped_link", f"The link {link[:200]!r} is not one that Word opens; its text is kept."
        )
        return None
    number = place.part.link("hyperlink", url, external=True)
    return f'<w:hyperlink r:id="{number}" w:history="1">'


def _unquoted(text: str) -> str:
    from urllib.parse import unquote  # noqa: PLC0415

    return unquote(text)


def _link(state: State, place: Place, link: tuple[str | None, int | None], parts: list[str]) -> str:
    inner = "".join(parts)
    opening = _opening(state, place, *link) if inner else None
    return f"{opening}{inner}</w:hyperlink>" if opening else inner


def run_xml(state: State, run: Run, *, linked: bool = False) -> str:
    """The runs of a text: letters of scripts from right to left are distinguished."""
    if not has_rtl(run.text):
        return f"<w:r>{_look(state, run, linked=linked)}{text_elements(run.text)}</w:r>"
    plain, turned = _look(state, run, linked=linked), _look(state, run, linked=linked, rtl=True)
    return "".join(
        f"<w:r>{turned if index % 2 else plain}{text_elements(piece)}</w:r>"
        for index, piece in enumerate(_PIECES.split(run.text))
        if piece
    )


def _look(state: State, run: Run, *, linked: bool, rtl: bool = False) -> str:
    key = (
        run.bold, run.italic, run.underline, run.strike, run.code, run.sub, run.sup, run.colour, run.background,
        run.size, run.language, linked, rtl,
    )  # fmt: skip
    if key not in state.looks:
        state.looks[key] = _made_look(state, run, linked=linked, rtl=rtl)
    return state.looks[key]


def _made_look(state: State, run: Run, *, linked: bool, rtl: bool) -> str:
    ground = hexa(run.background) if run.background else ""
    parts = [
        '<w:rStyle w:val="Hyperlink"/>' if linked else '<w:rStyle w:val="InlineCode"/>' if run.code else "",
        mono(state.content.theme) if run.code else "",
        "<w:b/><w:bCs/>" if run.bold else "",
        "<w:i/><w:iCs/>" if run.italic else "",
        "<w:strike/>" if run.strike else "",
        f'<w:color w:val="{hexa(run.colour)}"/>' if run.colour else "",
        size_xml(round(run.size * 1.5)) if run.size else "",
        '<w:u w:val="single"/>' if run.underline and not linked else "",
        f'<w:shd w:val="clear" w:color="auto" w:fill="{ground}"/>' if ground else "",
        '<w:vertAlign w:val="subscript"/>' if run.sub else '<w:vertAlign w:val="superscript"/>' if run.sup else "",
        "<w:rtl/>" if rtl else "",
        language_xml(run.language) if run.language else "",
    ]
    inner = "".join(parts)
    return f"<w:rPr>{inner}</w:rPr>" if inner else ""


def formula_xml(state: State, place: Place, formula: Formula) -> str:
    """A formula that can be edited; its picture or its TeX where the converters fail."""
    try:
        return omml(formula)
    except MathError as error:
        source = formula.tex or formula.mathml
        state.document.warn("formula_not_editable", f"A formula is a picture: {source[:120]} ({str(error)[:120]})")
    if formula.svg:
        shown = picture(state, place, Image(formula.svg.encode(), "image/svg+xml", formula.tex))
        if shown:
            return shown
    return run_xml(state, Run(formula.tex, code=True))


def _note_ref(state: State, place: Place, ref: NoteRef) -> str:
    blocks = state.content.notes.get(ref.note_id)
    if blocks is None:
        return ""
    if place.note:  # Word allows no footnote of a footnote
        if ref.note_id in state.notes:
            return run_xml(state, Run(str(state.notes[ref.note_id]), sup=True))
        state.notes[ref.note_id] = 0
        return run_xml(state, Run(" (")) + inlines_xml(state, place, flat(blocks)) + run_xml(state, Run(")"))
    style = '<w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr>'
    number = state.notes.get(ref.note_id)
    if number:
        instruction = f" NOTEREF _RefNote{number} \\f \\h "
        return (
            f'<w:r>{style}<w:fldChar w:fldCharType="begin"/></w:r>'
            f'<w:r>{style}<w:instrText xml:space="preserve">{instruction}</w:instrText></w:r>'
            f'<w:r>{style}<w:fldChar w:fldCharType="separate"/></w:r><w:r>{style}<w:t>{number}</w:t></w:r>'
            f'<w:r>{style}<w:fldChar w:fldCharType="end"/></w:r>'
        )
    number = state.notes[ref.note_id] = state.number("note")
    return state.mark(f"_RefNote{number}", f'<w:r>{style}<w:footnoteReference w:id="{number}"/></w:r>')


__all__ = ["attribute", "escape", "formula_xml", "inlines_xml", "run_xml"]
