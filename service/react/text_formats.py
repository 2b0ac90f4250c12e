"""Names and media types of files that are written as text."""

from pathlib import PurePosixPath
from typing import Literal

from proofbox.contracts.codes import ToolCode
from proofbox.contracts.media_types import is_text, mime_of_name
from proofbox.contracts.paths import FilePath
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.calls.direct_tool import ToolRefusedError

_SVG = "image/svg+xml"  # an image by its type, and text all the same
_UNKNOWN = "application/octet-stream"
_RENDERED = frozenset({"pdf", "docx", "pptx", "png"})
# Formats that are not text and that the protocol's table of media types does not know.
_BINARY = frozenset(
    "7z aac apk avif avro bin class dll dmg dylib eot exe feather heic ico iso jar mpeg msg pickle pkl psd pyc "  # noqa: SIM905 - a word list
    "rar so wasm whl xlsb xlsm zst".split()
)
_SHOWN_IN_TIMELINE = frozenset({"", "md", "markdown", "txt"})


def choose_text_mime(path: FilePath, kind: Literal["display", "file"]) -> str:
    """The media type of a text file.

    An extension that nobody knows is plain text: the content was given as text. So is a name without extension
    (``Makefile``), unless it is shown: then it is Markdown. The name stays as it is in any case.
    """
    mime = mime_of_name(path.rel)
    if mime != _UNKNOWN:
        return mime
    extension = _extension(path)
    if extension == "mermaid":
        return mime_of_name("a.mmd")
    return "text/markdown" if kind == "display" and not extension else "text/plain"


def refuse_format(path: FilePath, channel: str | None, kind: Literal["display", "file"]) -> None:
    """Refuses what cannot be written as text, or not be shown where it is to be shown.

    Raises:
        ToolRefusedError: ``binary_format`` or ``channel_format``.
    """
    extension, mime = _extension(path), mime_of_name(path.rel)
    if extension in _BINARY or (mime not in {_UNKNOWN, _SVG} and not is_text(mime)):
        rendered = extension in _RENDERED
        tool = RENDER_TOOL_PREFIX + extension if rendered else exec_tool_id(Language.PYTHON)
        raise ToolRefusedError(
            ToolCode.BINARY_FORMAT,
            f"'{path.rel}' cannot be written as text: a .{extension} file is made by {tool}",
            tool=tool,
        )
    if channel == "timeline_text" and kind == "display" and extension not in _SHOWN_IN_TIMELINE:
        raise ToolRefusedError(
            ToolCode.CHANNEL_FORMAT,
            f"the channel timeline_text shows .md and .txt; show '{path.rel}' on the channel canvas",
            channel="canvas",
        )


def _extension(path: FilePath) -> str:
    return PurePosixPath(path.rel).suffix[1:].lower()
