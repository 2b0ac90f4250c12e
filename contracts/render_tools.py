"""The rendering tools: ``rendering_tools.write_*``, their parameters in the order of the protocol."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from proofbox.contracts.bounded_text import limit_utf8, parse_list
from proofbox.contracts.paths import FilePath, UnsafePathError

RENDER_TOOL_PREFIX = "rendering_tools.write_"
CONTENT_BYTES_MAX = 10 * 1024 * 1024
ATTACHMENTS_MAX = 20
SHEETS_MAX = 100
PARTS_MAX = 64


class OutputFormat(StrEnum):
    """A format that can be rendered: one member, one entry of `RENDER_PARAMS`, one writer in the sandbox image."""

    PDF = "pdf"
    DOCX = "docx"
    PPTX = "pptx"
    PNG = "png"
    XLSX = "xlsx"


class PdfVariant(StrEnum):
    """A standard that a PDF keeps; PDF/UA-1 is the tagged one for readers of any kind, PDF/A is for archives."""

    UA_1 = "pdf/ua-1"
    A_2B = "pdf/a-2b"
    A_3B = "pdf/a-3b"


class PdfPermission(StrEnum):
    """Something that a PDF lets its readers do; text is always open to programs that read it aloud."""

    PRINT = "print"
    COPY = "copy"
    MODIFY = "modify"
    ANNOTATE = "annotate"
    FILL_FORMS = "fill_forms"
    ASSEMBLE = "assemble"


_METADATA = ("author", "subject", "keywords", "language", "date")
_Path = Annotated[str, Field(min_length=1, max_length=2_048)]
# A blank one is the model's mistake, which the tool answers in its own words.
_Content = Annotated[str, AfterValidator(limit_utf8(CONTENT_BYTES_MAX))]
_Text = Annotated[str, Field(max_length=1_000)]
_Css = Annotated[str, Field(max_length=100_000)]
_Template = Annotated[str, Field(max_length=2_048)]
_Parts = Annotated[list[_Path], BeforeValidator(parse_list), Field(max_length=PARTS_MAX)]
_LENGTH = r"^\d{1,5}(\.\d{1,3})?(mm|cm|in|pt|px)$"


def _is_length(value: str) -> str:
    if not re.fullmatch(_LENGTH, value):
        raise ValueError("is no length such as 20mm (units: mm, cm, in, pt, px)")
    return value


Length = Annotated[str, AfterValidator(_is_length), WithJsonSchema({"type": "string", "pattern": _LENGTH})]
RunningText = Annotated[str, Field(max_length=500)]


class Margins(BaseModel):
    """Margins of a page; a side that is left out keeps the default."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        f"margin{side}": side for side in ("top", "right", "bottom", "left")
    }

    top: Length | None = None
    right: Length | None = None
    bottom: Length | None = None
    left: Length | None = None


class RunningLine(BaseModel):
    """What stands above or below the text of each page, in up to three places."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    left: RunningText = ""
    center: RunningText = ""
    right: RunningText = ""


def _physical(path: str) -> str:
    """A path as text in which file names are found: in quotes, for names may have spaces."""
    try:
        return f'"{FilePath.from_logical(path.strip()).physical}"'
    except UnsafePathError:
        return f'"{path.strip()}"'


def _all_sides(value: Any) -> Any:
    return dict.fromkeys(("top", "right", "bottom", "left"), _is_length(value)) if isinstance(value, str) else value


def _in_the_middle(value: Any) -> Any:
    return {"center": value} if isinstance(value, str) else value


_Margins = Annotated[Margins, BeforeValidator(_all_sides, json_schema_input_type=Length | Margins)]
_Line = Annotated[RunningLine, BeforeValidator(_in_the_middle, json_schema_input_type=RunningText | RunningLine)]


OTHER_NAMES: Mapping[str, str] = {
    "body": "content", "html": "content", "markdown": "content", "source": "content", "text": "content",
    "file": "path", "filename": "path", "filepath": "path", "name": "path", "output": "path", "outputpath": "path",
    "inputformat": "format", "sourceformat": "format", "type": "format",
    "paper": "page_size", "paperformat": "page_size", "papersize": "page_size", "size": "page_size",
    "orientation": "landscape", "margin": "margins", "pagemargins": "margins",
    "headertemplate": "header", "footertemplate": "footer", "displayheaderfooter": "header",
    "tableofcontents": "toc", "numbersections": "numbered_sections", "pageranges": "pages",
    "dpi": "device_scale_factor", "scale": "device_scale_factor", "fullpage": "fit", "omitbackground": "background",
    "padding": "padding_px", "lang": "language", "tags": "keywords", "style": "theme",
    "coverpage": "cover", "titlepage": "cover", "extracss": "css", "stylesheet": "css", "styles": "css",
    "userpassword": "password", "ownerpassword": "password", "stamp": "watermark",
    "sheetnames": "sheets", "sheetname": "sheets", "worksheets": "sheets", "tabs": "sheets", "csv": "content",
    "append": "merge", "documents": "merge", "files": "merge", "parts": "merge", "sources": "merge",
    "mergepdfs": "merge", "referencedoc": "template", "referencedocument": "template", "templatepath": "template",
    "master": "template", "slidesize": "slide_size", "aspectratio": "slide_size", "layout": "slide_size",
}  # fmt: skip
"""Parameters under the names that browsers' tools and converters have for them, without underscores."""


class _Written(BaseModel):
    """What every format has."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
    OTHER_NAMES: ClassVar[Mapping[str, str]] = OTHER_NAMES

    path: _Path
    """The file, below ``files/``."""
    content: _Content
    """The text, in ``format``; or the path of a text, ``fi:…``."""
    theme: _Text = "plain"
    """``plain``, ``dark``, ``brand``, ``paper``, or the path of a theme file."""
    author: _Text = ""

    def documents(self) -> str:
        """The text in which files are named whose own text names files: a theme, documents to append."""
        return "\n".join([self.theme, *map(_physical, getattr(self, "merge", ()))])

    def mentions(self) -> str:
        """All text in which files of the conversation can be named."""
        rest = (getattr(self, "css", ""), _physical(getattr(self, "template", "")))
        lines = (getattr(self, name, None) or RunningLine() for name in ("header", "footer"))
        shown = (text for line in lines for text in (line.left, line.center, line.right))
        return "\n".join([self.content, self.documents(), *rest, *shown])

    def options(self) -> dict[str, Any]:
        """What the writer of the format wants to know beyond path, content, format and title."""
        return self.model_dump(exclude={"path", "content", "format", "title", "theme", "strict", *_METADATA})

    def metadata(self) -> dict[str, Any]:
        """The properties of the document: title, author and, where the format has them, subject and so on."""
        return {name: getattr(self, name, "") for name in ("title", *_METADATA)}

    def is_strict(self) -> bool:
        """Whether a missing picture is an error."""
        return bool(getattr(self, "strict", False))

    def checks(self) -> dict[str, Any]:
        """What a check of the file needs to open it."""
        password = getattr(self, "password", "")
        return {"password": password} if password else {}


class _Shared(_Written):
    """What documents and pictures have."""

    subject: _Text = ""
    keywords: Annotated[list[_Text], BeforeValidator(parse_list), Field(max_length=100)] = []
    language: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en"
    strict: bool = False
    """A missing picture is an error."""


class _Paged(_Shared):
    page_size: Annotated[str, Field(max_length=64)] | None = None
    """``A4`` (default), ``A3``, ``Letter``, and so on, or ``148mm 210mm``."""
    margins: _Margins = Margins()
    """``20mm`` (default), or for each side; mm, cm, in, pt, px."""
    header: _Line = RunningLine()
    """On each page: ``{page}``, ``{pages}``, ``{title}``, ``{date}``, ``{author}``, ``![](logo.png)``."""
    footer: _Line | None = None
    """As ``header``; default: page numbers."""
    page_numbers: bool = True
    """Number pages if no ``footer`` is given."""
    toc: bool = False
    cover: bool = False
    """Title page in front."""
    subtitle: _Text = ""
    date: _Text = ""
    css: _Css = ""
    """Added after all other rules."""
    numbered_sections: bool = False
    watermark: Annotated[str, Field(max_length=60)] = ""
    """Across each page, such as ``DRAFT``."""


class WritePdfParams(_Paged):
    """Parameters of ``rendering_tools.write_pdf``."""

    format: Literal["markdown", "html", "mermaid"] = "markdown"
    title: _Text = ""
    include_sources_section: bool = True
    """List the cited sources at the end."""
    landscape: bool = False
    pages: Annotated[str, Field(pattern=r"^[0-9, -]*$", max_length=256)] = ""
    """Such as ``1-3,7``."""
    pdf_variant: PdfVariant = PdfVariant.UA_1
    """PDF/UA is accessible, PDF/A is for archives."""
    password: Annotated[str, Field(max_length=127)] = ""
    """To open the PDF."""
    permissions: Annotated[list[PdfPermission], BeforeValidator(parse_list)] | None = None
    merge: _Parts = []
    """Paths of documents to append."""
    attachments: Annotated[list[_Path], BeforeValidator(parse_list), Field(max_length=ATTACHMENTS_MAX)] = []
    """Paths of files to embed."""

    @model_validator(mode="after")
    def _is_not_locked_archive(self) -> Self:
        is_locked = bool(self.password) or self.permissions is not None
        if is_locked and self.pdf_variant is not PdfVariant.UA_1:
            raise ValueError(
                f"pdf_variant {self.pdf_variant} has neither password nor permissions: a file for archives "
                "is open to all; leave one of them out"
            )
        return self

    def mentions(self) -> str:
        """All text in which files of the conversation can be named."""
        return "\n".join([super().mentions(), *map(_physical, self.attachments)])


class WriteDocxParams(_Paged):
    """Parameters of ``rendering_tools.write_docx``."""

    format: Literal["markdown", "html"] = "markdown"
    title: _Text = ""
    include_sources_section: bool = True
    """List the cited sources at the end."""
    template: _Template = ""
    """Path of a DOCX whose look is taken."""
    merge: _Parts = []
    """Paths of documents to append."""
    landscape: bool = False


class WritePptxParams(_Shared):
    """Parameters of ``rendering_tools.write_pptx``."""

    format: Literal["html", "markdown"] = "html"
    title: _Text = ""
    include_sources_slide: bool = False
    """List the cited sources at the end."""
    template: _Template = ""
    """Path of a PPTX whose look is taken."""
    merge: _Parts = []
    """Paths of documents to append."""
    slide_size: Annotated[str, Field(max_length=64)] = ""
    """``16:9``, ``4:3``, ``A4``, or ``254mm 143mm``."""
    css: _Css = ""
    """Added after all other rules."""
    page_numbers: bool = False
    """Marp decks have ``paginate`` for it."""


class WritePngParams(_Shared):
    """Parameters of ``rendering_tools.write_png``."""

    format: Literal["html", "markdown", "mermaid", "svg"] = "html"
    title: _Text = ""
    fit: Literal["content", "viewport", "page"] = "content"
    selector: Annotated[str, Field(max_length=256)] | None = None
    """Simple CSS selector: only that element."""
    padding_px: Annotated[int, Field(ge=0, le=1_000)] = 32
    """Around the content."""
    background: Annotated[str, Field(max_length=64)] = "white"
    """``transparent`` or a CSS colour."""
    width: Annotated[int, Field(ge=16, le=10_000)] = 1280
    """Of the viewport."""
    height: Annotated[int, Field(ge=16, le=10_000)] = 800
    device_scale_factor: Annotated[float, Field(ge=1, le=4)] = 2.0
    """Pixels for each CSS pixel."""
    css: _Css = ""
    """Added after all other rules."""


class WriteXlsxParams(_Written):
    """Parameters of ``rendering_tools.write_xlsx``."""

    format: Literal["markdown", "html", "csv"] = "markdown"
    title: _Text = ""
    sheets: Annotated[list[_Text], BeforeValidator(parse_list), Field(max_length=SHEETS_MAX)] = []
    """Names; default: captions or headings."""


RenderParams = WritePdfParams | WriteDocxParams | WritePptxParams | WritePngParams | WriteXlsxParams
RENDER_PARAMS: dict[OutputFormat, type[RenderParams]] = {
    OutputFormat.PDF: WritePdfParams,
    OutputFormat.DOCX: WriteDocxParams,
    OutputFormat.PPTX: WritePptxParams,
    OutputFormat.PNG: WritePngParams,
    OutputFormat.XLSX: WriteXlsxParams,
}


_IN_DOCUMENTS = (
    "Pictures are named by path (files/<name>, <turn_id>/attachments/<name>), sources are cited by [[S:n]]; "
    "nothing is fetched from a network."
)
RENDER_DESCRIPTIONS: dict[OutputFormat, str] = {
    OutputFormat.PDF: f"Renders a document to PDF. {_IN_DOCUMENTS}",
    OutputFormat.DOCX: "Renders a document to DOCX; all else as in write_pdf.",
    OutputFormat.PPTX: "Renders a deck to PPTX; all else as in write_pdf.",
    OutputFormat.PNG: "Renders HTML, Markdown, a diagram or an SVG to PNG; all else as in write_pdf.",
    OutputFormat.XLSX: ("Writes tables and charts to a workbook, each to a sheet from A1 on; = begins a formula."),
}
"""What each tool does, for the model."""


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
