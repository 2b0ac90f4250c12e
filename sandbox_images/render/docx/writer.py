"""Writes DOCX: a package of its own making, with native headings, lists, tables, notes, formulas and pictures."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from render.docx.blocks import blocks_xml
from render.docx.borders import LEAST_SPACE
from render.docx.package import Part, write_package
from render.docx.page import Page
from render.docx.pages import page_of, running_parts, section_xml, sections, watermark_header
from render.docx.parts import (
    app_xml,
    core_xml,
    fonts_xml,
    footnotes_xml,
    relationships,
    settings_xml,
    theme_xml,
)
from render.docx.styles import styles_xml
from render.docx.writer_state import FIRST_ID, Place, State
from render.docx.xml import DECLARATION, NAMESPACES, hexa
from render.ir import Paragraph, Run, Table
from render.model import Document, RenderError
from render.to_ir.flatten import walk
from render.to_ir.reader import read

if TYPE_CHECKING:
    from render.docx.template import DocxTemplate

_CHART = "application/vnd.openxmlformats-officedocument.drawingml.chart+xml"
_THEME = "application/vnd.openxmlformats-officedocument.theme+xml"
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml."


def write_docx(document: Document, target: str) -> dict[str, Any]:
    """Writes a document as DOCX.

    Options of the request: ``landscape``, ``page_size``, ``margins``, ``page_numbers``, ``header`` and ``footer``, as
    `render.page_setup` reads them; ``template``: the path of a house template.

    Args:
        document: what to write.
        target: path of the file to write.

    Returns:
        ``bytes`` of the file; ``headings``, ``tables``, ``images``, ``footnotes``: how many there are.

    Raises:
        RenderError: ``document_too_complex``, ``invalid_page_size``, ``invalid_template`` or ``write_failed``.
    """
    collects = gc.isenabled()
    # A long table makes a hundred thousand objects, none of them in a circle: looking for one takes half the time.
    gc.disable()
    try:
        template = _template_of(document)
        if template is not None:
            document = template.applied(document)
        content = read(document)
        state = State(document, content)
        if template is not None:
            state.take_template(template)
        drawn = state.counters.get("drawing", 0) + state.counters.get("logo", 0)
        state.survey()
        parts, types = _parts(state) if template is None else _house_parts(state, template)
    except RecursionError as exc:
        raise RenderError("document_too_complex", "The document is nested too deep to be written.") from exc
    finally:
        if collects:
            gc.enable()
    size = _save(target, parts, types)
    return {
        "bytes": size,
        "headings": len(state.headings),
        "tables": sum(isinstance(block, Table) for block in walk(content.blocks)),
        "images": state.counters.get("drawing", 0) - state.counters.get("logo", 0) - drawn,
        "footnotes": state.counters.get("note", 0),
    }


def _template_of(document: Document) -> "DocxTemplate | None":
    if not document.request.options.get("template"):
        return None
    from render.docx.template import load_template  # noqa: PLC0415 - few documents have one

    return load_template(document)


def _parts(state: State) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """All parts of the package, and the media types of those that are not pictures."""
    document = state.document
    metadata, theme = document.metadata, state.content.theme
    page = page_of(document.request.options)
    main = Part("word/document.xml")
    notes = Part("word/footnotes.xml")
    parts: dict[str, str | bytes] = {}
    types: dict[str, str] = {}
    body = _body(state, main, page, (parts, types))
    background = theme.colours["background"].lower() != "#ffffff"
    ground = f'<w:background w:color="{hexa(theme.colours["background"])}"/>' if background else ""
    parts["word/document.xml"] = (
        f"{DECLARATION}<w:document {NAMESPACES}>{ground}<w:body>{body}</w:body></w:document>"
    )
    parts["word/footnotes.xml"] = footnotes_xml(_notes(state, notes, page.text_width))
    parts["word/styles.xml"] = styles_xml(theme, metadata.language, page.text_width)
    parts["word/numbering.xml"] = state.numbering.xml()
    parts["word/settings.xml"] = settings_xml(metadata.language, background=background)
    parts["word/fontTable.xml"] = fonts_xml(theme)
    types |= {
        f"word/{name}.xml": f"{_MAIN}{name}+xml"
        for name in ("footnotes", "styles", "numbering", "settings", "fontTable")
    }
    types["word/document.xml"] = f"{_MAIN}document.main+xml"
    for name in ("footnotes", "styles", "numbering", "settings", "fontTable"):
        main.link(name, f"{name}.xml")
    main.link("theme", "theme/theme1.xml")
    parts["word/theme/theme1.xml"] = theme_xml(theme)
    types["word/theme/theme1.xml"] = _THEME
    relationships(main, parts)
    relationships(notes, parts)
    _frame(parts, types, state)
    parts.update(state.media.files)
    parts.update(state.charts)
    types |= {name: _CHART for name in state.charts if name.startswith("word/charts/chart")}
    return parts, types


def _house_parts(state: State, template: "DocxTemplate") -> tuple[dict[str, str | bytes], dict[str, str]]:
    """All parts of the package of a document in a house template, and their media types."""
    from render.docx.template_marks import mark_headers  # noqa: PLC0415 - few documents have one

    document = state.document
    page, name = page_of(document.request.options), template.package.main
    main, notes = Part(name), Part("word/footnotes.xml")
    parts, types = template.parts(document)
    styles = template.styles.part(state.content.theme, document.metadata.language, page.text_width)
    body = _body(state, main, page, (parts, types))
    root = template.document_root(template.styles.renamed(body, page.text_width))
    mark_headers(state, root, main, page, (parts, types))
    parts[name] = template.xml_of(root)
    parts[notes.name] = template.styles.renamed(
        footnotes_xml(_notes(state, notes, page.text_width)), page.text_width
    )
    own: dict[str, str | bytes] = {
        "styles": styles,
        "numbering": state.numbering.xml(),
        "settings": settings_xml(document.metadata.language, background=False),
        "theme": theme_xml(state.content.theme),
    }
    for kind, content in own.items():
        known = template.part_name(kind)
        if known is not None and kind in {"settings", "theme"}:
            continue
        target = known or f"word/{kind}.xml"
        parts[target] = content
        if known is None:
            main.link(kind, f"{kind}.xml")
            types[target] = _THEME if kind == "theme" else f"{_MAIN}{kind}+xml"
    main.link("footnotes", "footnotes.xml")
    types[notes.name], types[name] = f"{_MAIN}footnotes+xml", f"{_MAIN}document.main+xml"
    parts[f"word/_rels/{name.removeprefix('word/')}.rels"] = template.relationships(main.relationships())
    relationships(notes, parts)
    _frame(parts, types, state, name)
    parts.update(state.media.files)
    parts.update(state.charts)
    types |= {chart: _CHART for chart in state.charts if chart.startswith("word/charts/chart")}
    return parts, types


def _frame(
    parts: dict[str, str | bytes], types: dict[str, str], state: State, main: str = "word/document.xml"
) -> None:
    """The properties, and what the package begins with."""
    parts["docProps/core.xml"] = core_xml(state.document.metadata)
    parts["docProps/app.xml"] = app_xml()
    types["docProps/core.xml"] = "application/vnd.openxmlformats-package.core-properties+xml"
    types["docProps/app.xml"] = "application/vnd.openxmlformats-officedocument.extended-properties+xml"
    root = Part("")
    root.link("officeDocument", main)
    root.link(
        "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties", "docProps/core.xml"
    )
    root.link("extended-properties", "docProps/app.xml")
    parts["_rels/.rels"] = root.relationships()


def _body(state: State, main: Part, page: Page, package: tuple[dict[str, str | bytes], dict[str, str]]) -> str:
    """The content, section by section; the last one's page stands at the end, those of others in a last paragraph.

    Headers and footers of the pages go into the package: its parts, and their types.
    """
    template = state.template
    found = list(sections(state.content.blocks, page))
    references: dict[Page, str] = {}
    texts = []
    for number, (blocks, paper) in enumerate(found, 1):
        if paper not in references:
            references[paper] = ""
            first = 0 if template is None else FIRST_ID
            for edge, part, content in running_parts(state, paper, first + len(references)):
                target = part.name.removeprefix("word/")
                references[paper] += f'<w:{edge}Reference w:type="default" r:id="{main.link(edge, target)}"/>'
                package[0][part.name] = (
                    content if template is None else template.styles.renamed(content, paper.text_width)
                )
                package[1][part.name] = f"{_MAIN}{edge}+xml"
                relationships(part, package[0])
        covered = number == 1 and bool(state.document.request.options.get("cover"))
        cover = _cover_reference(state, main, paper, package) if covered and template is None else ""
        write = section_xml if template is None else template.section_xml
        section = write(paper, references[paper] + cover, bare_first=covered)
        texts.append(blocks_xml(state, Place(main, paper.text_width), blocks) or "<w:p/>")
        if number < len(found) or (template is not None and template.after and paper != page):
            section = f"<w:p><w:pPr>{LEAST_SPACE}{section}</w:pPr></w:p>"
        elif template is not None and template.after:
            template.end_section(section)  # which goes on behind the text
            section = ""
        texts.append(section)
    return "".join(texts)


def _cover_reference(
    state: State, main: Part, paper: Page, package: tuple[dict[str, str | bytes], dict[str, str]]
) -> str:
    """What leads to the header of the cover page, if it has one."""
    part = Part("word/header_cover.xml")
    content = watermark_header(state, part, paper)
    if not content:
        return ""
    package[0][part.name] = content
    package[1][part.name] = f"{_MAIN}header+xml"
    target = part.name.removeprefix("word/")
    return f'<w:headerReference w:type="first" r:id="{main.link("header", target)}"/>'


def _notes(state: State, part: Part, width: int) -> str:
    """The footnotes that the text calls, each with its number before its first words."""
    rows = []
    mark = (
        '<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteRef/></w:r><w:r>'
        '<w:t xml:space="preserve"> </w:t></w:r>'
    )
    place = Place(part, width, style="FootnoteText", note=True)
    called = [(number, note) for note, number in state.notes.items() if number]
    for number, note in called:
        blocks = state.content.notes[note]
        starts = bool(blocks) and isinstance(blocks[0], Paragraph)
        inner = blocks_xml(state, place, blocks if starts else [Paragraph([Run("")]), *blocks])
        at = inner.find("</w:pPr>") + len("</w:pPr>")
        inner = inner[:at] + mark + inner[at:]
        rows.append(f'<w:footnote w:id="{number}">{inner}</w:footnote>')
    return "".join(rows)


def _save(target: str, parts: dict[str, str | bytes], types: dict[str, str]) -> int:
    path = Path(target)
    try:
        with path.open("wb") as file:
            write_package(file, parts, types)
        return path.stat().st_size
    except OSError as exc:
        raise RenderError("write_failed", f"The file could not be written: {exc.strerror or exc}.") from exc
