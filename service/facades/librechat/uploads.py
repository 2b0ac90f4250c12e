"""Uploads: multipart forms whose files go to the disk, each part and the number of parts bounded."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from python_multipart.multipart import parse_options_header
from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from proofbox.contracts.media_types import OCTET_STREAM, is_mime
from proofbox.service.artifacts.port import ArtifactStore
from proofbox.service.artifacts.staging import build_staging_error
from proofbox.service.facades.librechat.errors import RefusedError

FILES_MAX = 200
"""The files of one form; further ones are ignored, and the response shows that."""
_PARTS_MAX = 2_000
_FIELDS_MAX = 50
_FIELD_BYTES_MAX = 16 * 1024
_BOUNDARY_CHARS_MAX = 200
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


class _Staged(UploadFile):
    """A file in the staging folder; it is open only while it is received or read."""

    def __init__(self, path: Path, filename: str | None, headers: Headers) -> None:
        super().__init__(BytesIO(), filename=filename, headers=headers)
        self._path = path
        self._open: BinaryIO | None = None

    async def write(self, data: bytes) -> None:
        """Append received bytes."""
        await asyncio.to_thread(self._append, data)

    async def seek(self, offset: int) -> None:
        """End the writing: the next read begins at the start, for it is all that a form needs."""
        del offset
        await self.close()

    async def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            StoreFailedError: the staging folder cannot be read.
        """
        try:
            return await asyncio.to_thread(self._next, size)
        except OSError as exc:
            raise build_staging_error(exc) from exc

    async def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            opened, self._open = self._open, None
            await asyncio.to_thread(opened.close)

    def _append(self, data: bytes) -> None:
        if self._open is None:
            # Unbuffered: what a full disk refuses is refused by the write, not by the close.
            self._open = self._path.open("xb", buffering=0)
        rest = memoryview(data)
        while rest:
            rest = rest[self._open.write(rest) :]

    def _next(self, size: int) -> bytes:
        if self._open is None:
            if not self._path.exists():  # an empty file
                return b""
            self._open = self._path.open("rb")
        return self._open.read(size)


class _DiskParser(MultiPartParser):
    """Starlette's parser; files are in the staging folder of the store, so that they do not fill the memory."""

    is_cut = False

    def __init__(self, folder: Path, boundary: bytes, stream: AsyncIterator[bytes]) -> None:
        # Not the header of the request: its charset could name a codec of Python that is no encoding of text.
        headers = Headers(raw=[(b"content-type", b'multipart/form-data; boundary="' + boundary + b'"')])
        super().__init__(
            headers,
            stream,  # type: ignore[arg-type]  # only iterated
            max_files=math.inf,
            max_fields=_FIELDS_MAX,
            max_part_size=_FIELD_BYTES_MAX,
        )
        self.staged: list[_Staged] = []
        self._folder = folder

    def on_headers_finished(self) -> None:
        super().on_headers_finished()
        file = self._current_part.file
        if file is None:
            return
        self._files_to_close_on_error.pop().close()  # Starlette's, in the system's folder; nothing is in it
        if self._current_files <= FILES_MAX:
            staged = _Staged(self._folder / f"upload-{len(self.staged)}", file.filename, file.headers)
            self.staged.append(staged)
            self._current_part.file = staged
            return
        if self._current_files > _PARTS_MAX:
            raise MultiPartException(f"Too many files. Maximum number of files is {FILES_MAX}.")
        self.is_cut = True
        self._current_part.file = _Ignored(file.file, filename=file.filename)


@asynccontextmanager
async def read_form(request: Request, artifacts: ArtifactStore) -> AsyncIterator[Form]:
    """Parse the form of a request; its files are in the staging folder of the store as long as the block lasts.

    Raises:
        RefusedError: the body is not a multipart form, or has too many or too large parts.
        BodyTooLargeError: the body is too large.
        StoreFailedError, StoreFullError: the staging folder cannot be written.
    """
    boundary = _boundary(request.headers.get("content-type", ""))
    async with artifacts.staging() as folder:
        parser = _DiskParser(folder, boundary, request.stream())
        try:
            form = await _parsed(parser)
            yield _form(form, is_cut=parser.is_cut)
        finally:
            for file in parser.staged:
                await file.close()


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise RefusedError("Invalid content type. Must be multipart/form-data.")
    boundary = options.get(b"boundary", b"")
    if not 0 < len(boundary) <= _BOUNDARY_CHARS_MAX or b'"' in boundary or b"\\" in boundary:
        raise RefusedError("body: Missing or invalid boundary in multipart.")
    return boundary


async def _parsed(parser: _DiskParser) -> FormData:
    try:
        return await parser.parse()
    except MultiPartException as exc:
        raise RefusedError(f"body: {exc.message}") from exc
    except OSError as exc:
        raise build_staging_error(exc) from exc


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
