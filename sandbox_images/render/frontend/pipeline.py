"""From a request to a document: the source is parsed, cleaned, and its marks are made, in this order."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.assets import AssetRefused, check_assets, find_file
from render.frontend.blank import warn_blank
from render.frontend.canonical_marks import normalise
from render.frontend.citations import resolve_citations
from render.frontend.content_format import recognised
from render.frontend.element_tree import body_of, head_of, make, text_of
from render.frontend.figures.charts import make_charts
from render.frontend.figures.diagrams import draw_diagrams, is_diagram
from render.frontend.figures.emoji import wrap_emoji
from render.frontend.figures.formulas import set_formulas
from render.frontend.figures.highlighting import highlight_code
from render.frontend.headings import headings_of, mark_headings
from render.frontend.html import clean_text, parse_html, unfence
from render.frontend.limits_layout import bound_nested_layouts
from render.frontend.long_words import split_long_words
from render.frontend.markdown import read_markdown
from render.frontend.merge import append_parts, read_merge
from render.frontend.reveal_markdown import read_reveal_markdown
from render.frontend.sanitise import sanitise, scrub_css
from render.frontend.title_block import add_title_block, word, words
from render.model import Document, Metadata, RenderError, RenderRequest
from render.request import METADATA_CHARACTERS_MAX
from render.themes import BUILT_IN, load_theme

_FENCES = {
    "markdown": ("", "md", "markdown"),
    "html": ("", "html", "htm", "xml"),
    "mermaid": ("", "mermaid"),
    "svg": ("", "svg", "xml", "html"),
    "csv": ("", "csv", "tsv"),
}
_NAMES = {"markdown": "Markdown", "html": "HTML", "mermaid": "a Mermaid diagram", "svg": "an SVG", "csv": "CSV"}
TITLE_CHARACTERS_MAX = 300
_SVG_START = re.compile(r"<(?:[A-Za-z][\w-]{0,30}:)?svg[\s>/]", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")


def open_document(request: RenderRequest) -> Document:
    """Reads the source of a request.

    Returns:
        The document, ready for any writer.

    Raises:
        RenderError: ``content_too_large``, ``too_many_elements``, ``invalid_svg``, ``invalid_part``, ``unknown_theme``,
            ``missing_assets`` (strict).
    """
    request, parts = read_merge(request)
    given = request.source_format
    request = replace(request, source_format=recognised(request.content, given, request.output))
    tree, front_matter = _parse(request)
    append_parts(tree, request, parts, _parse)
    is_workbook = request.output == "xlsx"
    theme = load_theme(_theme_name(request, front_matter), request.root, str(Path(request.target).parent))
    document = Document(request, request.metadata, theme, tree)
    if request.source_format != given:
        found, other = _NAMES[request.source_format], _NAMES[given]
        document.warn(
            "format_recognised",
            f"The content is {found}, not {other}, and was read as {found}; give format={request.source_format}.",
        )
    tree.set("data-front-matter", json.dumps(front_matter, default=str))
    if front_matter.get("marp"):
        tree.set("data-marp", "true")
    steps: tuple[Callable[[Document], None], ...] = (
        (
            sanitise,
            normalise,
            resolve_citations,
        )
        if is_workbook
        else (
            sanitise,
            _add_css,
            lambda document: add_title_block(document, front_matter),
            normalise,
            resolve_citations,
            make_charts,
            draw_diagrams,
            set_formulas,
            lambda document: highlight_code(document.tree),
            check_assets,
            mark_headings,
            lambda document: wrap_emoji(document.tree),
            split_long_words,
            bound_nested_layouts,
            warn_blank,
        )
    )
    for step in steps:
        step(document)
    document.metadata = _metadata(document, front_matter)
    _write_head(document)
    return document


def _parse(request: RenderRequest) -> tuple[Element, dict[str, Any]]:
    if request.source_format == "csv":  # the writer of workbooks reads it: a tree would take ten times the memory
        return parse_html(""), {}
    text = unfence(clean_text(request.content), _FENCES[request.source_format])
    if request.source_format == "markdown":
        if is_diagram(text):  # what a model calls Markdown and is a bare diagram
            return _one_diagram(text), {}
        is_file = partial(_is_file, request)
        read = read_markdown(text, has_cell_formulas=request.output == "xlsx", is_file=is_file)
        # A comment that comes first would stand outside of the body, where nobody reads a directive.
        start = "<body>" if read.html.lstrip().startswith("<!--") else ""
        return parse_html(start + read.html), read.front_matter
    if request.source_format == "mermaid":
        return _one_diagram(text), {}
    if request.source_format == "svg":
        drawing = _SVG_START.search(text)
        if drawing is None:
            raise RenderError("invalid_svg", "content has no <svg> element; give the drawing, or another format.")
        text = text[drawing.start() :]
    tree = parse_html(text)
    read_reveal_markdown(tree)
    return tree, {}


def _is_file(request: RenderRequest, address: str) -> bool:
    try:
        find_file(request, address)
    except AssetRefused:
        return False
    return True


def _one_diagram(text: str) -> Element:
    tree = parse_html("")
    body_of(tree).append(make("pre", {"class": "mermaid"}, text))
    return tree


def _theme_name(request: RenderRequest, front_matter: dict[str, Any]) -> str:
    """The theme of the request; a front matter may choose a built-in one while that is the default."""
    named = front_matter.get("theme")
    if request.theme in BUILT_IN:
        return named if request.theme == "plain" and named in BUILT_IN else request.theme
    try:
        return find_file(request, request.theme.strip())
    except AssetRefused:
        return request.theme  # refused by the loader, with the reason


def _metadata(document: Document, front_matter: dict[str, Any]) -> Metadata:
    """What the document declares about itself: front matter, request, its own head, its first heading."""
    given = document.request.metadata
    tree = document.tree
    metas = {
        (meta.get("name") or "").lower(): (meta.get("content") or "")[:METADATA_CHARACTERS_MAX]
        for meta in tree.iter("meta")
    }
    head_title = next((text_of(title) for title in head_of(tree).iter("title")), "")
    heading = next((text_of(item) for item in headings_of(tree)), "")
    language = word(front_matter.get("lang") or front_matter.get("language")) or tree.get("lang", "")
    keywords = (
        words(front_matter.get("keywords") or front_matter.get("tags"))
        or given.keywords
        or words(metas.get("keywords"))
    )
    language = language if _LANGUAGE.fullmatch(language) else given.language
    title = word(front_matter.get("title")) or given.title or head_title or heading or "Document"
    return replace(
        given,
        title=title[:TITLE_CHARACTERS_MAX],
        author=", ".join(words(front_matter.get("author") or front_matter.get("authors")))
        or given.author
        or metas.get("author", ""),
        subject=word(front_matter.get("subject") or front_matter.get("description"))
        or given.subject
        or metas.get("description", ""),
        keywords=keywords,
        language=language if _LANGUAGE.fullmatch(language) else "en",
        date=word(front_matter.get("date")) or given.date,
    )


def _add_css(document: Document) -> None:
    """Put the rules of the request behind those of the document, which is no more authored for them."""
    css = document.request.options.get("css")
    if isinstance(css, str) and css.strip():
        body_of(document.tree).append(make("style", {"data-pb": "extra"}, scrub_css(document, css)))


def _write_head(document: Document) -> None:
    """Puts what the document declares about itself where a layout engine reads it."""
    head = head_of(document.tree)
    metadata = document.metadata
    ours = {"author": metadata.author, "description": metadata.subject, "keywords": ", ".join(metadata.keywords)}
    for item in list(head):
        if item.tag == "title" or (item.tag == "meta" and (item.get("name") or "").lower() in ours):
            head.remove(item)
    head.insert(0, make("title", None, metadata.title))
    for name, content in ours.items():
        if content:
            head.append(make("meta", {"name": name, "content": content}))
    document.tree.set("lang", metadata.language)
