"""Documents to slides: cut, laid out, fitted, and written as native shapes."""

import sys
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree.ElementTree import Element

from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.oxml import parse_xml
from render.frontend.assets import BASE_URL
from render.frontend.element_tree import body_of, parents_of, remove, text_of
from render.frontend.links import SCHEMES
from render.model import Document, RenderError, Theme
from render.pptx.deck import Deck, add_logo, new_deck
from render.pptx.drawingml_style import NAMESPACES, Palette, slide_theme
from render.pptx.media import Media
from render.pptx.shapes import SlideWriter
from render.pptx.template import PptxTemplate, load_pptx_template
from render.pptx.template_slides import house_writer, put_in_area
from render.pptx.text import TextWriter
from render.slides.arrange import arrange
from render.slides.author_css import BODY_TAG, author_rules, of_body, tame
from render.slides.canvas import sized_slides, slide_factor, slide_size, slide_width
from render.slides.css import ROOMY_STEPS, STEPS, deck_css, plain_css, section_look, title_look
from render.slides.design import Design, design_of
from render.slides.fit import Fitted, fit
from render.slides.layout import Sheet, Stage, own_ground
from render.slides.model import Slide
from render.slides.post_process import finish
from render.slides.prepare_tree import add_marp_styles, drafts_of
from render.slides.px_to_slide import scaled
from render.slides.splitting.slide_content import title_of
from render.slides.splitting.split_document import Draft
from render.weasy.box_style import Gradient, Paint
from render.weasy.boxes import Layouter
from render.weasy.engine import AssetFetcher, noticing

STACK_BYTES = 512 * 1024 * 1024
RECURSION_MAX = 60_000
_SCHEMES = SCHEMES | {""}
_WORDS_SHOWN, _LETTERS_SHOWN = 12, 160
SLIDES_MAX = 2_000
"""Some minutes of layout; nobody shows more."""
_URL_MAX = 2000
_NOTES_MAX = 60_000
_SAFE = "/:?#@!$&'()*+,;=%-._~"
_SLIDE_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/slide"


def write_pptx(document: Document, target: str) -> dict[str, Any]:
    """Writes a document as a deck of slides.

    Args:
        document: its tree is taken apart.
        target: path of the file to write.

    Returns:
        ``slides``, ``splits`` (drafts that became several slides), ``scaled`` (slides with smaller type).

    Raises:
        RenderError: ``too_many_slides``, ``layout_failed``, ``invalid_slide_size``.
    """
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["facts"] = _write(document, target)
        except BaseException as exc:  # noqa: BLE001 - handed to the caller's thread
            outcome["error"] = exc

    if threading.current_thread().name == "pptx" or sys.getrecursionlimit() >= RECURSION_MAX:
        run()
    else:
        _on_big_stack(run)
    error = outcome.get("error")
    if isinstance(error, (RenderError, MemoryError, OSError)):
        raise error
    if error is not None:
        raise RenderError(
            "layout_failed", f"The slides could not be made: {type(error).__name__}: {error}"[:300]
        ) from error
    facts: dict[str, Any] = outcome["facts"]
    return facts


def _on_big_stack(run: Any) -> None:
    """Layout recurses with the depth of the document: a thread with a big stack takes what the main one cannot."""
    size, limit = threading.stack_size(STACK_BYTES), sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION_MAX)
    try:
        thread = threading.Thread(target=run, name="pptx")
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)


def _write(document: Document, target: str) -> dict[str, Any]:
    template = load_pptx_template(document)
    if template is None:
        with sized_slides(*slide_size(document.request.options)):
            return _write_sized(document, target)
    if document.request.options.get("slide_size"):
        raise RenderError("invalid_option", "slide_size: the template has a size of its own; leave slide_size out.")
    with sized_slides(*template.whole):
        return _write_sized(document, target, template)


@dataclass(frozen=True, slots=True)
class _Deck:
    """What is laid out: slides before layout, and the rules that are about them."""

    drafts: list[Draft]
    css: str
    extra: str
    width: float
    html: dict[str, str]
    body: dict[str, str]
    design: Design


def _write_sized(document: Document, target: str, template: PptxTemplate | None = None) -> dict[str, Any]:
    theme = slide_theme(document.theme) if template is None else template.theme
    source = _source_of(document)
    styled = source.design.styled
    if not styled:
        arrange(source.drafts)
    if template is None or styled:
        slides, facts = _laid_out(document, theme, source, template)
    else:
        with sized_slides(*template.canvas):
            slides, facts = _laid_out(document, theme, source, template)
    document = replace_theme(document, theme)
    if template is not None and not styled:
        for item in slides:
            put_in_area(item.slide, template)
    elif slide_factor() != 1.0:
        for item in slides:
            scaled(item.slide.shapes, slide_factor())
    deck = new_deck(theme, decorated=not (styled or source.design.tinted)) if template is None else template.deck()
    _fill(document, deck, slides, None if styled else template)
    _properties(document, deck)
    deck.presentation.save(target)
    return facts


def _source_of(document: Document) -> _Deck:
    """The slides of a document before layout, with its rules made fit for slides."""
    add_marp_styles(document)
    if any("first-letter" in (style.text or "") for style in document.tree.iter("style")):
        document.warn(
            "dropped_css", "`::first-letter` has no counterpart on slides; the letter is set like the rest."
        )
    extra = _take_extra(document.tree)
    css, width = author_rules(document.tree)
    html, body = dict(document.tree.attrib), dict(body_of(document.tree).attrib)
    drafts = drafts_of(document, css)
    if any(draft.root.tag == BODY_TAG for draft in drafts):
        css = of_body(css)
    if len(drafts) > SLIDES_MAX:
        raise RenderError(
            "too_many_slides",
            f"The deck has {len(drafts):,} slides before any is split; at most {SLIDES_MAX:,} are made. Make several decks.",
        )
    design = design_of(css, drafts, markup=document.request.source_format == "html")
    return _Deck(drafts, css, tame(extra, width), width, html, body, design)


def _take_extra(tree: Element) -> str:
    """Takes the rules of the request out of a tree: they make no design of a document's own."""
    parents = parents_of(tree)
    styles = [style for style in tree.iter("style") if style.get("data-pb") == "extra" and style in parents]
    for style in styles:
        remove(parents[style], style)
    return "\n".join(style.text or "" for style in styles)


def _laid_out(
    document: Document, theme: Theme, source: _Deck, template: PptxTemplate | None
) -> tuple[list[Fitted], dict[str, Any]]:
    """The finished slides, and the facts about them."""
    design = source.design
    width = source.width if design.styled else slide_width()
    rules = deck_css(theme, design, width)
    if template is not None and not design.styled:
        rules += template.css((*ROOMY_STEPS, *STEPS))
    layouter = Layouter(rules, AssetFetcher(document), BASE_URL)
    paper = theme.colours["background"].lstrip("#").lower()
    stage = Stage(
        layouter, f"{source.css}\n{source.extra}", width, source.html, source.body,
        paper=paper, design=design, plain_css=plain_css(theme),
    )  # fmt: skip
    sheets = [Sheet(draft, draft.root, title_of(draft.root), fixed=draft.authored) for draft in source.drafts]
    for sheet in sheets:  # text of a template has the template's size
        sheet.roomy = template is not None
    with noticing(document):
        slides = fit(stage, sheets)
    for rule in stage.dropped:
        document.warn("styles_dropped", f"A rule could not be laid out and was left out: {rule}")
    for sheet in stage.lost:
        words = " ".join(sheet.root.itertext()).split()
        shown = " ".join(words[:_WORDS_SHOWN])[:_LETTERS_SHOWN] + (" \u2026" if len(words) > _WORDS_SHOWN else "")
        document.warn(
            "content_lost",
            f"Most words of a slide are not shown: {shown}; give its elements more room, or show them.",
        )
    return slides, _finished(replace_theme(document, theme), slides, styled=design.styled or design.tinted)


def replace_theme(document: Document, theme: Any) -> Document:
    """The document with the fonts that slides have; its warnings are shared."""
    return replace(document, theme=theme)


def _finished(document: Document, slides: list[Fitted], *, styled: bool) -> dict[str, Any]:
    """Numbers the parts, finishes every slide, notes warnings."""
    parts: dict[int, list[Slide]] = {}
    for item in slides:
        parts.setdefault(id(item.sheet.draft), []).append(item.slide)
    splits = scaled = 0
    for number, item in enumerate(slides, 1):
        slide, siblings = item.slide, parts[id(item.sheet.draft)]
        slide.part, slide.parts = next(i for i, other in enumerate(siblings, 1) if other is slide), len(siblings)
        name = text_of(item.sheet.title).replace("(0/0)", "").strip() if item.sheet.title is not None else ""
        if slide.zoom < 1:
            scaled += 1
            document.warn(
                "slide_scaled",
                f"Slide {number} is too full: its type was scaled to {round(slide.zoom * 100)} %.",
                slide=number, title=name[:100], scale=slide.zoom,
            )  # fmt: skip
        if slide.parts > 1 and slide.part == 1:
            splits += 1
            document.warn(
                "slide_split",
                f"Slide {number} was too full and became {slide.parts} slides.",
                slide=number, title=name[:100], parts=slide.parts,
            )  # fmt: skip
        directives = item.sheet.draft.directives
        asked = document.request.options.get("page_numbers") if directives.paginate is None else directives.paginate
        slide.number = bool(asked) and slide.kind not in {"title", "section"}
        covered = not styled and slide.kind in {"title", "section"} and _is_plain(item.sheet.draft)
        colours = document.theme.colours
        own = (title_look(colours) if slide.kind == "title" else section_look(colours))[0]
        back, ground = (colour.lstrip("#").lower() for colour in (colours["background"], own))
        if finish(slide, back, ground, covered=covered):
            document.warn(
                "contrast_changed",
                f"Slide {number} has text of nearly the colour of its ground; the text became black or white.",
                slide=number, title=name[:100],
            )  # fmt: skip
    return {"slides": len(slides), "splits": splits, "scaled": scaled}


def _is_plain(draft: Draft) -> bool:
    """Whether a slide has the ground that its layout has."""
    return not own_ground(draft) and not draft.directives.colour and "invert" not in draft.directives.classes


def _layout_name(slide: Slide) -> str:
    roles = {getattr(shape, "role", "") for shape in slide.shapes}
    if "title" not in roles:
        return "title-only"
    if slide.kind in {"title", "section"}:
        return slide.kind
    return "content" if "body" in roles else "title-only"


def _fill(document: Document, deck: Deck, slides: list[Fitted], template: PptxTemplate | None = None) -> None:
    """Adds all slides, then their shapes: links within the deck need every slide to be there."""
    theme = document.theme
    palette = Palette.of(theme) if template is None else template.palette
    media = Media(document)
    if theme.logo and deck.decorated:
        add_logo(deck, media.read(theme.logo))
    made = []
    anchors: dict[str, Any] = {}
    for item in slides:
        layout = _layout_name(item.slide)
        slide = deck.presentation.slides.add_slide(deck.layouts[layout])
        for shape in list(slide.placeholders):
            shape._element.getparent().remove(shape._element)  # noqa: SLF001
        made.append((slide, layout))
        for anchor in item.slide.anchors:
            anchors.setdefault(anchor, slide)
    for (slide, layout), item in zip(made, slides, strict=True):
        links = _Links(slide, anchors)
        links_of = theme.colours["accent"].lstrip("#").lower() if template is None else template.link
        default = theme.colours["text"].lstrip("#").lower()
        text = TextWriter(palette, document.metadata.language or "en", links.attributes, links_of, default)
        if item.slide.background is not None:
            _background(slide, item.slide.background, palette)
        writer = SlideWriter(slide, layout, text, palette, media, document)
        if template is not None:
            writer = house_writer(template, writer, item.slide)
        writer.write(item.slide)
        _notes(slide, item)


def _background(slide: Any, fill: Paint | Gradient, palette: Palette) -> None:
    slide._element.cSld.insert(  # noqa: SLF001
        0, parse_xml(f"<p:bg {NAMESPACES}><p:bgPr>{palette.fill(fill)}<a:effectLst/></p:bgPr></p:bg>")
    )


class _Links:
    """Links of one slide, each a relationship once."""

    def __init__(self, slide: Any, anchors: dict[str, Any]) -> None:
        self._slide = slide
        self._anchors = anchors
        self._known: dict[str, str] = {}

    def attributes(self, link: str) -> str:
        """The attributes of ``a:hlinkClick``; "" for a link that leads nowhere."""
        if link not in self._known:
            self._known[link] = self._make(link.strip())
        return self._known[link]

    def _make(self, link: str) -> str:
        if not link or len(link) > _URL_MAX:
            return ""
        if link.startswith("#"):
            target = self._anchors.get(link[1:])
            if target is None:
                return ""
            relation = self._slide.part.relate_to(target.part, _SLIDE_REL)
            return f'r:id="{relation}" action="ppaction://hlinksldjump"'
        try:
            parts = urlsplit(link)
        except ValueError:
            return ""
        if parts.scheme.lower() not in _SCHEMES or (parts.scheme in {"http", "https"} and not parts.netloc):
            return ""
        address = quote(link, safe=_SAFE)
        return f'r:id="{self._slide.part.relate_to(address, RT.HYPERLINK, is_external=True)}"'


def _notes(slide: Any, item: Fitted) -> None:
    """The speaker's notes, a paragraph per block, on the first part of a split slide."""
    draft: Draft = item.sheet.draft
    if not draft.notes or item.slide.part != 1:
        return
    lines: list[str] = []
    for block in draft.notes:
        leaves = [inner for inner in block.iter() if inner.tag in {"p", "li", "h1", "h2", "h3", "h4", "pre"}]
        texts = [text_of(leaf) for leaf in leaves]
        lines.extend(texts if text_of(block).split() == " ".join(texts).split() else [text_of(block)])
    words = "\n".join(line for line in lines if line)[:_NOTES_MAX]
    if words:
        frame = slide.notes_slide.notes_text_frame
        if frame is not None:
            frame.text = words


def _properties(document: Document, deck: Deck) -> None:
    data = document.metadata
    core = deck.presentation.core_properties
    core.title, core.author = data.title[:255], data.author[:255]
    core.subject, core.keywords = data.subject[:255], ", ".join(data.keywords)[:255]
    core.language = data.language[:40]
    core.last_modified_by = data.author[:255]
    core.created = core.modified = datetime.now(UTC).replace(tzinfo=None)
    core.revision = 1
