"""Which files have a preview, by their media types, and of which kind."""

from dataclasses import dataclass
from typing import Literal

from proofbox.contracts.media_types import MIME_ALIASES, MIME_BY_EXTENSION
from proofbox.service.errors import NoPreviewError

Shape = Literal["pages", "table"]


@dataclass(frozen=True, slots=True)
class PreviewKind:
    """How files of a format are shown.

    Attributes:
        name: the format.
        shape: as pictures of pages, or as the rows of a table.
        program: the program that reads it.
    """

    name: str
    shape: Shape
    program: str


_PROGRAMS: dict[str, tuple[Shape, str]] = {
    "pdf": ("pages", "pdf"),
    "docx": ("pages", "docx_pages"),
    "pptx": ("pages", "pptx_pages"),
    "html": ("pages", "html_pages"),
    "svg": ("pages", "picture"),
    "png": ("pages", "picture"),
    "jpg": ("pages", "picture"),
    "gif": ("pages", "picture"),
    "webp": ("pages", "picture"),
    "bmp": ("pages", "picture"),
    "tiff": ("pages", "picture"),
    "csv": ("table", "table"),
    "tsv": ("table", "table"),
    "xlsx": ("table", "table"),
    "parquet": ("table", "table"),
}
KINDS = {MIME_BY_EXTENSION[name]: PreviewKind(name, shape, program) for name, (shape, program) in _PROGRAMS.items()}
"""The kinds by media type; the media types of other names are in `MIME_ALIASES`."""
_DOCUMENT_TEXTS = {MIME_BY_EXTENSION[name]: name for name in ("docx", "pdf", "pptx", "xlsx")}
_TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/xml",
        "application/yaml",
        "application/toml",
        "application/sql",
        "message/rfc822",
    }
)


def preview_kind(mime: str) -> PreviewKind | None:
    """How a file of a media type is shown; None if it has no preview."""
    return KINDS.get(MIME_ALIASES.get(mime, mime))


def require_preview_kind(mime: str) -> PreviewKind:
    """How a file of a media type is shown.

    Raises:
        NoPreviewError: it has no preview.
    """
    kind = preview_kind(mime)
    if kind is None:
        raise NoPreviewError(f"preview: {mime} has none; download the file")
    return kind


def text_kind(mime: str) -> str | None:
    """How the text of a file is read: ``text``, or the name of a kind of document; None if it has none."""
    mime = MIME_ALIASES.get(mime, mime)
    if mime.startswith("text/") or mime in _TEXT_TYPES or mime.endswith(("+json", "+xml")):
        return "text"
    return _DOCUMENT_TEXTS.get(mime)
