"""Uploads: multipart forms whose files go to the disk, each part and the number of parts bounded."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from proofbox.contracts.media_types import OCTET_STREAM, is_mime
from proofbox.service.facades.librechat.errors import RefusedError

FILES_MAX = 200
"""The files of one form; further ones are ignored, and the response shows that."""
_PARTS_MAX = 2_000
_FIELDS_MAX = 50
_FIELD_BYTES_MAX = 16 * 1024
_IN_MEMORY_BYTES_MAX = 64 * 1024
_PIECE_BYTES = 256 * 1024
_FILE_FIELDS = frozenset({"file", "files", "files[]", "file[]"})


@dataclass(frozen=True, slots=True)
class Form:
    """A parsed form.

    Attributes:
        fields: its text fields; of several with one name the last.
        files: its files.
        is_cut: whether it had more files than are read.
    """

    fields: dict[str, str]
    files: list[UploadFile]
    is_cut: bool


class _Ignored(UploadFile):
    """A file beyond the limit: its bytes are read and dropped."""

    async def write(self, data: bytes) -> None:
        """Do nothing."""

    async def seek(self, offset: int) -> None:
        """Do nothing."""


class _DiskParser(MultiPartParser):
    """Starlette's parser; files above 64 KiB are on the disk, so that many small ones do not fill the memory."""

    spool_max_size = _IN_MEMORY_BYTES_MAX
    is_cut = False

    def on_part_begin(self) -> None:
        super().on_part_begin()
        # RFC 7578 5.1.2: forms are UTF-8. Other codecs that a client may name fail in other ways, or are slow.
        self._charset = "utf-8"

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        file = self._current_part.file
        if file is None or self._current_files <= FILES_MAX:
            return
        if self._current_files > _PARTS_MAX:
            raise MultiPartException(f"Too many files. Maximum number of files is {FILES_MAX}.")
        self.is_cut = True
        self._files_to_close_on_error.pop().close()
        self._current_part.file = _Ignored(file.file, filename=file.filename)


@asynccontextmanager
async def read_form(request: Request) -> AsyncIterator[Form]:
    """Parse the form of a request; its files are open as long as the block lasts.

    Raises:
        RefusedError: the body is not a multipart form, or has too many or too large parts.
        BodyTooLargeError: the body is too large.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise RefusedError("Invalid content type. Must be multipart/form-data.")
    parser = _DiskParser(
        request.headers,
        request.stream(),
        max_files=math.inf,
        max_fields=_FIELDS_MAX,
        max_part_size=_FIELD_BYTES_MAX,
    )
    try:
        form = await parser.parse()
    except MultiPartException as exc:
        raise RefusedError(f"body: {exc.message}") from exc
    try:
        yield _form(form, is_cut=parser.is_cut)
    finally:
        await form.close()


def _form(form: FormData, *, is_cut: bool) -> Form:
    items = form.multi_items()
    return Form(
        {name: value for name, value in items if isinstance(value, str)},
        [
            value
            for name, value in items
            if isinstance(value, UploadFile) and not isinstance(value, _Ignored) and name in _FILE_FIELDS
        ],
        is_cut,
    )


async def pieces_of(file: UploadFile) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, in pieces."""
    while piece := await file.read(_PIECE_BYTES):
        yield piece


def mime_of(file: UploadFile) -> str | None:
    """Return the media type that the client sent, without parameters; None for a default."""
    given = (file.content_type or "").partition(";")[0].strip().lower()
    return given if given != OCTET_STREAM and is_mime(given) else None
