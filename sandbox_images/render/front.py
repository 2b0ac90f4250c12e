"""From a request to a document: the source is parsed, cleaned, and its marks are made, in this order."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from typing import Any
from xml.etree.ElementTree import Element

from render.assets import check_assets
from render.charts import make_charts
from render.citations import resolve_citations
from render.diagrams import draw_diagrams, is_diagram
from render.document import Document, Metadata, RenderRequest
from render.emoji import wrap_emoji
from render.formulas import set_formulas
from render.headings import mark_headings
from render.highlighting import highlight_code
from render.html_source import clean_text, parse_html, unfence
from render.markdown_source import read_markdown
from render.normalise import normalise
from render.sanitise import sanitise
from render.themes import load_theme
from render.tree_edits import body_of, head_of, make, text_of

_FENCES = {
    "markdown": ("", "md", "markdown"),
    "html": ("", "html", "htm", "xml"),
    "mermaid": ("", "mermaid"),
    "svg": ("", "svg", "xml", "html"),
}
TITLE_CHARACTERS_MAX = 300


def open_document(request: RenderRequest) -> Document:
    """Reads the source of a request.

    Returns:
        The document, ready for any writer.

    Raises:
        RenderError: ``content_too_large``, ``too_many_elements``, ``missing_assets`` (strict only), ``unknown_theme``.
    """
    tree, front_matter = _parse(request)
    theme = load_theme(_theme_name(request, front_matter), request.root)
    document = Document(request, request.metadata, theme, tree)
    tree.set("data-front-matter", json.dumps(front_matter, default=str))
    if front_matter.get("marp"):
        tree.set("data-marp", "true")
    steps: tuple[Callable[[Document], None], ...] = (
        sanitise,
        normalise,
        resolve_citations,
        draw_diagrams,
        make_charts,
        set_formulas,
        lambda document: highlight_code(document.tree),
        check_assets,
        mark_headings,
        lambda document: wrap_emoji(document.tree),
    )
    for step in steps:
        step(document)
    document.metadata = _metadata(document, front_matter)
    _write_head(document)
    return document


def _parse(request: RenderRequest) -> tuple[Element, dict[str, Any]]:
    text = unfence(clean_text(request.content), _FENCES[request.source_format])
    if request.source_format == "markdown":
        if is_diagram(text):  # what a model calls Markdown and is a bare diagram
            return parse_html(""), {}
        read = read_markdown(text)
        return parse_html(read.html), read.front_matter
    return parse_html(text), {}
