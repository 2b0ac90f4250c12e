"""Writes DOCX: a package of its own making, with native headings, lists, tables, notes, formulas and pictures."""

import gc
import os
import tempfile
from pathlib import Path
from typing import Any

from render.document import Document, RenderError
from render.docx.blocks import blocks_xml
from render.docx.images import logo_run
from render.docx.package import Part, write_package
from render.docx.parts import (
    app_xml,
    core_xml,
    fonts_xml,
    footnotes_xml,
    margin_xml,
    relationships,
    settings_xml,
    theme_xml,
)
from render.docx.state import Place, State
from render.docx.styles import styles_xml
from render.docx.xml import DECLARATION, NAMESPACES, hexa
from render.ir import Paragraph, Run, Table
from render.reading.flat import walk
from render.reading.reader import read
from render.reading.style import length

_PAPERS = {
    "a4": (11906, 16838),
    "letter": (12240, 15840),
    "legal": (12240, 20160),
    "a3": (16838, 23811),
    "a5": (8391, 11906),
}
_MARGIN = 1304
_LEAST_TEXT = 2880
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml."
_FOOTER = "{page} / {pages}"


def write_docx(document: Document, target: str) -> dict[str, Any]:
    """Writes a document as DOCX.

    Options of the request: ``landscape``, ``page_size`` (A4, Letter, Legal, A3, A5), ``margins`` (a CSS length for
    all sides), ``page_numbers`` (true by default), ``header`` and ``footer`` (texts in which ``{page}``,
    ``{pages}``, ``{title}`` and ``{date}`` are filled in).

    Args:
        document: what to write.
        target: path of the file; it appears whole or not at all.

    Returns:
        ``bytes`` of the file; ``headings``, ``tables``, ``images``, ``footnotes``: how many there are.

    Raises:
        RenderError: ``document_too_complex`` or ``write_failed``.
    """
    collects = gc.isenabled()
    # A long table makes a hundred thousand objects, none of them in a circle: looking for one takes half the time.
    gc.disable()
    try:
        content = read(document)
        state = State(document, content)
        state.survey()
        parts, types = _parts(state)
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
        "images": state.counters.get("drawing", 0),
        "footnotes": state.counters.get("note", 0),
    }


def _parts(state: State) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """All parts of the package, and the media types of those that are not pictures."""
    document = state.document
    options = document.request.options
    metadata, theme = document.metadata, document.theme
    wide, tall, margin = page(options)
    width = wide - 2 * margin
    main = Part("word/document.xml")
    notes = Part("word/footnotes.xml")
    body = blocks_xml(state, Place(main, width), state.content.blocks)
    section = _section(state, main, (wide, tall, margin))
    background = theme.colours["background"].lower() != "#ffffff"
    ground = f'<w:background w:color="{hexa(theme.colours["background"])}"/>' if background else ""
    parts: dict[str, str | bytes] = {}
    parts["word/document.xml"] = (
        f"{DECLARATION}<w:document {NAMESPACES}>{ground}<w:body>{body or '<w:p/>'}{section}</w:body></w:document>"
    )
    parts["word/footnotes.xml"] = footnotes_xml(_notes(state, notes, width))
    parts["word/styles.xml"] = styles_xml(theme, metadata.language, width)
    parts["word/numbering.xml"] = state.numbering.xml()
    parts["word/settings.xml"] = settings_xml(metadata.language, background=background)
    parts["word/fontTable.xml"] = fonts_xml(theme)
    types = {
        f"word/{name}.xml": f"{_MAIN}{name}+xml"
        for name in ("footnotes", "styles", "numbering", "settings", "fontTable")
    }
    types["word/document.xml"] = f"{_MAIN}document.main+xml"
    for tag, name, text in _margins(options, theme.logo):
        part = Part(f"word/{name}.xml")
        runs = logo_run(state, Place(part, width)) if tag == "hdr" and not text else ""
        parts[part.name] = margin_xml(tag, text, metadata, runs)
        types[part.name] = f"{_MAIN}{name}+xml"
        relationships(part, parts)
    for name in ("footnotes", "styles", "numbering", "settings", "fontTable"):
        main.link(name, f"{name}.xml")
    main.link("theme", "theme/theme1.xml")
    parts["word/theme/theme1.xml"] = theme_xml(theme)
    types["word/theme/theme1.xml"] = "application/vnd.openxmlformats-officedocument.theme+xml"
    relationships(main, parts)
    relationships(notes, parts)
    _frame(parts, types, state)
    parts.update(state.media.files)
    return parts, types


def _frame(parts: dict[str, str | bytes], types: dict[str, str], state: State) -> None:
    """The properties, and what the package begins with."""
    parts["docProps/core.xml"] = core_xml(state.document.metadata)
    parts["docProps/app.xml"] = app_xml()
    types["docProps/core.xml"] = "application/vnd.openxmlformats-package.core-properties+xml"
    types["docProps/app.xml"] = "application/vnd.openxmlformats-officedocument.extended-properties+xml"
    root = Part("")
    root.link("officeDocument", "word/document.xml")
    root.link(
        "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties", "docProps/core.xml"
    )
    root.link("extended-properties", "docProps/app.xml")
    parts["_rels/.rels"] = root.relationships()


def page(options: dict[str, Any]) -> tuple[int, int, int]:
    """Width, height and margin of the page, in twips."""
    wide, tall = _PAPERS.get(str(options.get("page_size") or "a4").lower(), _PAPERS["a4"])
    if options.get("landscape"):
        wide, tall = tall, wide
    given = options.get("margins") or options.get("margin")
    pixels = length(str(given)) if isinstance(given, str | int | float) else None
    margin = _MARGIN if pixels is None else int(pixels * 15)
    return wide, tall, max(min(margin, (min(wide, tall) - _LEAST_TEXT) // 2), 0)


def _margins(options: dict[str, Any], logo: str | None) -> list[tuple[str, str, str]]:
    """Header and footer that the document has: element, part, text; a header without text has the logo."""
    found = []
    header, footer = options.get("header"), options.get("footer")
    if isinstance(header, str) and header.strip():
        found.append(("hdr", "header", header[:500]))
    elif logo:
        found.append(("hdr", "header", ""))
    if isinstance(footer, str) and footer.strip():
        found.append(("ftr", "footer", footer[:500]))
    elif options.get("page_numbers", True) is not False:
        found.append(("ftr", "footer", _FOOTER))
    return found


def _section(state: State, main: Part, paper: tuple[int, int, int]) -> str:
    wide, tall, margin = paper
    links = "".join(
        f'<w:{name}Reference w:type="default" r:id="{main.link(name, f"{name}.xml")}"/>'
        for _, name, _ in _margins(state.document.request.options, state.document.theme.logo)
    )
    turned = ' w:orient="landscape"' if wide > tall else ""
    edge = min(margin, 640)
    return (
        f'<w:sectPr>{links}<w:pgSz w:w="{wide}" w:h="{tall}"{turned}/><w:pgMar w:top="{margin}" w:right="{margin}" '
        f'w:bottom="{margin}" w:left="{margin}" w:header="{edge}" w:footer="{edge}" w:gutter="0"/></w:sectPr>'
    )


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
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".render-", suffix=".docx")
        try:
            with os.fdopen(handle, "wb") as file:
                write_package(file, parts, types)
            Path(name).chmod(0o644)
            os.replace(name, path)  # noqa: PTH105 - the same
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return path.stat().st_size
    except OSError as exc:
        raise RenderError("write_failed", f"The file could not be written: {exc.strerror or exc}.") from exc
