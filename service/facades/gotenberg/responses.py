"""Responses with a file of a request's folder, which is removed when they are sent."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import unquote

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from proofbox.service.artifacts.content_disposition import content_disposition
from proofbox.service.facades.gotenberg.work import Made
from proofbox.service.file_content import FileContent
from proofbox.service.visible_text import visible_line

MEDIA_TYPES = {
    "pdf": "application/pdf",
    "zip": "application/zip",
    "png": "image/png",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
}
_NAME_CHARS_MAX = 200
_WARNINGS_MAX = 10
_WARNING_CHARS_MAX = 200
_NOT_QUOTED = re.compile(r'[^\x20-\x7e]|["\\]')


class StagedFileResponse(StreamingResponse):
    """A file; its folder is removed when it was sent or the client went away.

    Args:
        path: the file.
        headers: the headers, without its length.
        folder: closes the folder.
    """

    def __init__(self, path: Path, headers: Mapping[str, str], folder: AsyncExitStack) -> None:
        content = FileContent(path)
        size_bytes = content.size()
        pieces: AsyncIterator[bytes] = content.pieces(size_bytes)
        super().__init__(pieces, 200, {**headers, "Content-Length": str(size_bytes)})
        self._folder = folder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it."""
        async with self._folder:
            await super().__call__(scope, receive, send)


def file_headers(made: Made, output_name: str) -> dict[str, str]:
    """The headers of a file.

    Args:
        made: the file.
        output_name: the value of ``Gotenberg-Output-Filename``, without an extension.
    """
    stem = _stem(output_name)
    name = f"{stem}.{made.kind}" if stem else made.name or f"result.{made.kind}"
    return {
        "Content-Disposition": content_disposition(name),
        "Content-Type": MEDIA_TYPES[made.kind],
        "Cache-Control": "no-store",
    }


def _stem(given: str) -> str:
    """A file name without folders, as upstream takes it."""
    name = visible_line(unquote(given)).replace("\\", "/").rpartition("/")[2].strip()
    return "" if name in {".", ".."} else name[:_NAME_CHARS_MAX]


def warning_headers(warnings: Sequence[str]) -> dict[str, str]:
    """The header ``Warning``: what has no effect, and what the renderer noticed."""
    if not warnings:
        return {}
    shown = (_NOT_QUOTED.sub("?", warning)[:_WARNING_CHARS_MAX] for warning in warnings[:_WARNINGS_MAX])
    return {"Warning": ", ".join(f'199 proofbox "{text}"' for text in shown)}
