"""The rendering tools: ``rendering_tools.write_*``, their parameters in the order of the protocol."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from contracts.texts import as_list, utf8_at_most

RENDER_TOOL_PREFIX = "rendering_tools.write_"
CONTENT_BYTES_MAX = 10 * 1024 * 1024
ATTACHMENTS_MAX = 20


class OutputFormat(StrEnum):
    """A format that can be rendered: one member, one entry of `RENDER_PARAMS`, one writer in the sandbox image."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    PNG = "png"


class PdfVariant(StrEnum):
    """A standard that a PDF keeps; PDF/UA-1 is the tagged one for readers of any kind, PDF/A is for archives."""

    UA_1 = "pdf/ua-1"
    A_2B = "pdf/a-2b"
    A_3B = "pdf/a-3b"


_METADATA = ("author", "subject", "keywords", "language")
_Path = Annotated[str, Field(min_length=1, max_length=2_048)]
# A blank one is the model's mistake, which the tool answers in its own words.
_Content = Annotated[str, AfterValidator(utf8_at_most(CONTENT_BYTES_MAX))]
_Text = Annotated[str, Field(max_length=1_000)]
Length = Annotated[str, Field(pattern=r"^\d{1,5}(\.\d{1,3})?(mm|cm|in|pt|px)$")]
RunningText = Annotated[str, Field(max_length=500)]


class Margins(BaseModel):
    """Margins of a page; a side that is left out keeps the default."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    top: Length | None = None
    """Above the text."""
    right: Length | None = None
    """Right of it."""
    bottom: Length | None = None
    """Below it."""
    left: Length | None = None
    """Left of it."""


class RunningLine(BaseModel):
    """What stands above or below the text of each page, in up to three places."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    left: RunningText = ""
    """At the left edge."""
    center: RunningText = ""
    """In the middle."""
    right: RunningText = ""
    """At the right edge."""


def _all_sides(value: Any) -> Any:
    return dict.fromkeys(("top", "right", "bottom", "left"), value) if isinstance(value, str) else value


def _in_the_middle(value: Any) -> Any:
    return {"center": value} if isinstance(value, str) else value


_Margins = Annotated[Margins, BeforeValidator(_all_sides, json_schema_input_type=Length | Margins)]
_Line = Annotated[RunningLine, BeforeValidator(_in_the_middle, json_schema_input_type=RunningText | RunningLine)]


class _Shared(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)

    path: _Path
    """The file to write, below the current turn's ``files/``."""
    content: _Content
    """The document, the deck, or what the picture shows; or the path of a text, ``fi:<turn_id>.files/<name>``."""
    theme: _Text = "plain"
    """``plain``, ``dark``, ``brand``, ``paper``, or the path of a theme file in the conversation."""
    author: _Text = ""
    """Who wrote it."""
    subject: _Text = ""
    """What it is about."""
    keywords: Annotated[list[_Text], BeforeValidator(as_list), Field(max_length=100)] = []
    """Words that it is found by."""
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    """Its language, as a BCP 47 tag."""
    strict: bool = False
    """True: a missing asset is an error, not a placeholder."""

    def mentions(self) -> str:
        """All text in which files of the conversation can be named."""
        return f"{self.content}\n{self.theme}"

    def options(self) -> dict[str, Any]:
        """What the writer of the format wants to know beyond path, content, format and title."""
        return self.model_dump(exclude={"path", "content", "format", "title", "theme", "strict", *_METADATA})


class _Paged(_Shared):
    page_size: Annotated[str, Field(max_length=64)] | None = None
    """``A4``, ``A3``, ``A5``, ``Letter``, ``Legal``, ``Tabloid``, or two lengths as in ``148mm 210mm``; else A4."""
    margins: _Margins = Margins()
    """One length for all sides, or one for each; 20 mm where none is given."""
    header: _Line = RunningLine()
    """A line above the text of each page, with ``{page}``, ``{pages}``, ``{title}``, ``{date}``, ``{author}``."""
    footer: _Line | None = None
    """A line below it; None for page numbers."""
    page_numbers: bool = True
    """Whether pages are numbered below the text where no ``footer`` is given."""
    toc: bool = False
    """Whether a table of contents stands in front."""
    numbered_sections: bool = False
    """Whether headings are numbered: 1, 1.1, 1.1.1."""


class WritePdfParams(_Paged):
    """Parameters of ``rendering_tools.write_pdf``."""

    format: Literal["markdown", "html", "mermaid"] = "markdown"
    """What ``content`` is."""
    title: _Text = ""
    """The document's title."""
    include_sources_section: bool = True
    """Whether the cited sources are listed at the end."""
    landscape: bool = False
    """Whether pages lie on their long side."""
    pages: Annotated[str, Field(pattern=r"^[0-9, -]*$", max_length=256)] = ""
    """Which pages are written, such as ``1-3,7``; empty for all."""
    pdf_variant: PdfVariant = PdfVariant.UA_1
    """The standard that the file keeps."""
    attachments: Annotated[list[_Path], BeforeValidator(as_list), Field(max_length=ATTACHMENTS_MAX)] = []
    """Files of the conversation that are embedded in the PDF."""

    def mentions(self) -> str:
        """All text in which files of the conversation can be named."""
        return "\n".join([super().mentions(), *self.attachments])


class WriteDocxParams(_Paged):
    """Parameters of ``rendering_tools.write_docx``."""

    format: Literal["markdown", "html"] = "markdown"
    """What ``content`` is."""
    title: _Text = ""
    """The document's title."""
    include_sources_section: bool = True
    """Whether the cited sources are listed at the end."""
    landscape: bool = False
    """Whether pages lie on their long side."""


class WritePptxParams(_Shared):
    """Parameters of ``rendering_tools.write_pptx``."""

    format: Literal["html", "markdown"] = "html"
    """What ``content`` is."""
    title: _Text = ""
    """The deck's title."""
    include_sources_slide: bool = False
    """Whether the cited sources are listed on a slide of their own."""
    page_numbers: bool = False
    """Whether slides are numbered; a Marp deck says so itself, with ``paginate``."""


class WritePngParams(_Shared):
    """Parameters of ``rendering_tools.write_png``."""

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
    names = dict.fromkeys(("path", "content", *model.__annotations__, *model.model_fields))
    schema["properties"] = {name: schema["properties"][name] for name in names}
    return schema
