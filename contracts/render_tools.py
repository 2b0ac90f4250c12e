"""The rendering tools: ``rendering_tools.write_*``, their parameters in the order of the protocol."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

RENDER_TOOL_PREFIX = "rendering_tools.write_"
CONTENT_CHARS_MAX = 20_000_000


class OutputFormat(StrEnum):
    """A format that can be rendered: one member, one entry of `RENDER_PARAMS`, one writer in the sandbox image."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    PNG = "png"


class _RenderParams(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    def options(self) -> dict[str, Any]:
        """What the writer of the format wants to know beyond path, content, format and title."""
        return self.model_dump(exclude={"path", "content", "format", "title", "theme", "strict", *_METADATA})


_METADATA = ("author", "subject", "keywords", "language")
_Path = Annotated[str, Field(min_length=1, max_length=2_048)]
_Content = Annotated[str, Field(min_length=1, max_length=CONTENT_CHARS_MAX)]
_Text = Annotated[str, Field(max_length=1_000)]


class _Shared(_RenderParams):
    theme: _Text = "plain"
    """A built-in theme (``plain``, ``dark``, ``brand``) or the path of a theme file in the conversation."""
    author: _Text = ""
    """Who wrote it."""
    subject: _Text = ""
    """What it is about."""
    keywords: Annotated[list[_Text], Field(max_length=100)] = []
    """Words that it is found by."""
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    """Its language, as a BCP 47 tag."""
    strict: bool = False
    """True: a missing asset is an error, not a placeholder."""


class WritePdfParams(_Shared):
    """Parameters of ``rendering_tools.write_pdf``."""

    path: _Path
    """The file to write, below the current turn's ``files/``."""
    content: _Content
    """The document."""
    format: Literal["markdown", "html", "mermaid"] = "markdown"
    """What ``content`` is."""
    title: _Text = ""
    """The document's title."""
    include_sources_section: bool = True
    """Whether the cited sources are listed at the end."""
    landscape: bool = False
    """Whether pages lie on their long side."""
    page_size: Annotated[str, Field(max_length=64)] = "A4"
    """``A4``, ``Letter``, ``A3``, or a CSS size such as ``148mm 210mm``."""
    toc: bool = False
    """Whether a table of contents stands in front."""
    pdf_variant: Literal["pdf/ua-1", "pdf/a-2b", "pdf/a-3b"] = "pdf/ua-1"
    """What it conforms to: PDF/UA-1 for accessibility, or PDF/A for archives."""


class WriteDocxParams(_Shared):
    """Parameters of ``rendering_tools.write_docx``."""

    path: _Path
    """The file to write, below the current turn's ``files/``."""
    content: _Content
    """The document."""
    format: Literal["markdown", "html"] = "markdown"
    """What ``content`` is."""
    title: _Text = ""
    """The document's title."""
    include_sources_section: bool = True
    """Whether the cited sources are listed at the end."""
    landscape: bool = False
    """Whether pages lie on their long side."""
    toc: bool = False
    """Whether a table of contents stands in front."""


class WritePptxParams(_Shared):
    """Parameters of ``rendering_tools.write_pptx``."""

    path: _Path
    """The file to write, below the current turn's ``files/``."""
    content: _Content
    """The deck."""
    format: Literal["html", "markdown"] = "html"
    """What ``content`` is."""
    title: _Text = ""
    """The deck's title."""
    include_sources_slide: bool = False
    """Whether the cited sources are listed on a slide of their own."""


class WritePngParams(_Shared):
    """Parameters of ``rendering_tools.write_png``."""

    path: _Path
    """The file to write, below the current turn's ``files/``."""
    content: _Content
    """What the picture shows."""
    format: Literal["html", "markdown", "mermaid", "svg"] = "html"
    """What ``content`` is."""
    title: _Text = ""
    """The document's title."""
    fit: Literal["content", "viewport", "page"] = "content"
    """What is in the picture: the content's own box, the viewport, or the whole page."""
    selector: Annotated[str, Field(max_length=256)] | None = None
    """A simple CSS selector: only that element is in the picture."""
    padding_px: Annotated[int, Field(ge=0, le=1_000)] = 32
    """Space around the content, in CSS pixels."""
    background: Annotated[str, Field(max_length=64)] = "white"
    """``white``, ``transparent`` or a CSS colour."""
    width: Annotated[int, Field(ge=16, le=10_000)] = 1280
    """Width of the viewport, in CSS pixels."""
    height: Annotated[int, Field(ge=16, le=10_000)] = 800
    """Height of the viewport, in CSS pixels."""
    device_scale_factor: Annotated[float, Field(ge=1, le=4)] = 2.0
    """Pixels of the picture for each CSS pixel."""


RenderParams = WritePdfParams | WriteDocxParams | WritePptxParams | WritePngParams
RENDER_PARAMS: dict[OutputFormat, type[RenderParams]] = {
    OutputFormat.PDF: WritePdfParams,
    OutputFormat.DOCX: WriteDocxParams,
    OutputFormat.PPTX: WritePptxParams,
    OutputFormat.PNG: WritePngParams,
}


def render_format(tool_id: str) -> OutputFormat | None:
    """The format that a rendering tool writes; None if ``tool_id`` is no rendering tool."""
    name = tool_id.removeprefix(RENDER_TOOL_PREFIX)
    return OutputFormat(name) if name != tool_id and name in set(OutputFormat) else None


def render_params_schema(output: OutputFormat) -> dict[str, Any]:
    """The JSON Schema of a rendering tool's parameters, the protocol's own first and in its order."""
    model = RENDER_PARAMS[output]
    schema = model.model_json_schema()
    shared = set(_Shared.model_fields)
    own = {name: spec for name, spec in schema["properties"].items() if name not in shared}
    schema["properties"] = own | {name: schema["properties"][name] for name in _Shared.model_fields}
    return schema
