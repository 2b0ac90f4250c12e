"""What all writers start from: the request, the sanitised tree of the document, and what was noticed on the way.

The tree is `xml.etree.ElementTree` as tinyhtml5 makes it (no namespaces), ``html`` at its root. These marks, and no
others, carry what HTML has no element for:

| mark | what it is |
|---|---|
| ``a.pb-cite[data-sid][href]`` | a citation; its text is the number of the source in the document |
| ``span.pb-math[data-tex]``, ``div.pb-math[data-tex]`` | a formula; its child: an ``img`` of an SVG data URI |
| ``figure.pb-diagram[data-source]`` | a Mermaid diagram; the child is an ``img`` with the SVG as a data URI |
| ``figure.pb-chart[data-chart]`` | JSON {kind, title, categories, series: [{name, values}]}; an ``img`` of an SVG |
| ``pre.pb-code[data-language]`` | highlighted code: ``code`` with ``span`` children of pygments' short classes |
| ``span.pb-missing[data-path]`` | what stands in place of an asset that cannot be had |
| ``aside.pb-callout[data-kind]`` | a callout: note, tip, important, warning, caution |
| ``aside.pb-notes`` | speaker notes, shown on slides' notes pages only |
| ``div.pb-columns`` with ``div.pb-column`` children | columns side by side |
| ``section.pb-sources`` | the list of cited sources, at the end |
| ``section.footnotes`` with ``li[id]``; ``a.pb-footnote-ref[href]`` | footnotes and where they are called |
| ``nav.pb-toc`` | where the table of contents stands |
| ``div.pb-page-break`` | a page break; with ``data-document``: where a document begins that is appended |
| ``div.pb-pdf-part[data-part]`` | where the pages of an appended PDF stand: its place in ``merge`` |
"""

from dataclasses import dataclass, field
from typing import Any, Literal
from xml.etree.ElementTree import Element

Format = Literal["pdf", "png", "docx", "pptx", "xlsx"]
SourceFormat = Literal["markdown", "html", "mermaid", "svg", "csv"]


@dataclass(frozen=True, slots=True)
class Source:
    """A row of the sources pool, as far as a document shows it."""

    sid: int
    title: str
    url: str | None = None
    path: str | None = None
    """OUT_DIR-relative path of a file or attachment that was put in place."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a document declares about itself; front matter of a Markdown source overrides the request."""

    title: str = ""
    author: str = ""
    subject: str = ""
    keywords: tuple[str, ...] = ()
    language: str = "en"
    date: str = ""


@dataclass(frozen=True, slots=True)
class Theme:
    """How a document looks in every format.

    Attributes:
        name: its name.
        css: style sheet for layout (PDF, PNG, slides), with ``--pb-*`` variables defined.
        colours: ``text, muted, accent, background, surface, border, code_background, heading``, the kinds of callouts
            and ``series_1`` and so on, as ``#rrggbb``.
        body_font: family of text, as the image has it.
        heading_font: family of headings.
        mono_font: family of code.
        logo: path of a logo, or a data URI, or None.
        page_css: typography of its own, for pages of documents that bring no style sheet.
    """

    name: str
    css: str
    colours: dict[str, str]
    body_font: str
    heading_font: str
    mono_font: str
    logo: str | None = None
    page_css: str = ""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """One document to render.

    Attributes:
        output: the format to write.
        source_format: what ``content`` is.
        content: the source.
        root: OUT_DIR; every asset has to lie below it.
        target: OUT_DIR-relative path of the file to write.
        metadata: title and so on, as the call gave them.
        theme: name of a built-in theme or OUT_DIR-relative path of a theme file.
        sources: the sources pool.
        missing: OUT_DIR-relative paths that the service could not have.
        names: the OUT_DIR-relative path of the newest version of each name that the document may mean.
        encodings: of texts that are not UTF-8, by their OUT_DIR-relative paths.
        options: the tool's own parameters: landscape, include_sources_section, fit, selector, padding_px, …
        strict: a missing asset is an error.
    """

    output: Format
    source_format: SourceFormat
    content: str
    root: str
    target: str
    metadata: Metadata = Metadata()
    theme: str = "plain"
    sources: tuple[Source, ...] = ()
    missing: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    encodings: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the field's own word
    """Something that a reader of the result should know: ``missing_asset``, ``script_ignored`` and so on."""

    code: str
    message: str
    details: dict[str, Any] = field(default_factory=dict)


class RenderError(Exception):
    """A document that cannot be rendered: a typed code, and a sentence for the model."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(slots=True)
class Document:
    """A document on its way to a writer.

    Attributes:
        request: what was asked.
        metadata: what the document declares about itself.
        theme: how it looks.
        tree: the sanitised tree, with the marks of this module.
        cited: the cited sources, in the order of their numbers.
        warnings: what was noticed.
        css_variables: the longest value of each custom property of its style sheets, to bound what they grow to.
    """

    request: RenderRequest
    metadata: Metadata
    theme: Theme
    tree: Element
    cited: list[Source] = field(default_factory=list)
    warnings: list[Warning] = field(default_factory=list)
    css_variables: dict[str, str] = field(default_factory=dict)

    def warn(self, code: str, message: str, **details: Any) -> None:
        """Notes a warning once."""
        warning = Warning(code, message, details)
        if warning not in self.warnings:
            self.warnings.append(warning)
