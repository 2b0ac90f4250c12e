"""Parse a multipart form: its files are streamed to disk, everything else is bounded."""

import asyncio
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from proofbox.contracts.paths import UnsafePathError, relative_path
from proofbox.service.artifacts.staging import build_staging_error
from proofbox.service.facades.gotenberg.errors import InvalidFormError, RequestRefusedError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FILES_MAX = 200
FIELDS_MAX = 200
FIELD_BYTES_MAX = 1024 * 1024
FIELDS_BYTES_MAX = 4 * 1024 * 1024
"""Names and values of all fields, and names of all files: a request has them in memory while it waits."""
_HEADER_BYTES_MAX = 8 * 1024
_BOUNDARY_BYTES_MAX = 200


@dataclass(frozen=True, slots=True)
class FormFile:
    """An uploaded file.

    Attributes:
        field: the field that it came in.
        name: its name, without folders.
        path: where its bytes are.
    """

    field: str
    name: str
    path: Path


@dataclass(slots=True)
class Form:
    """A parsed form.

    Attributes:
        fields: the values by the names of their fields.
        files: the files, in the order in which they came.
    """

    fields: dict[str, str] = field(default_factory=dict)
    files: list[FormFile] = field(default_factory=list)


async def read_form(content_type: str, body: AsyncIterator[bytes], folder: Path) -> Form:
    """Reads a form; its files are written into ``folder``.

    Raises:
        RequestRefusedError: it is not a multipart form, or it exceeds a bound.
        ServiceError: the body is too large or too slow, or the folder cannot be written.
    """
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= _BOUNDARY_BYTES_MAX:
        raise RequestRefusedError(
            415, "Invalid 'Content-Type' header: send the form as multipart/form-data with a boundary"
        )
    reader = _Reader(folder)
    parser = MultipartParser(boundary, reader.callbacks())
    try:
        async for piece in body:
            if piece:
                await asyncio.to_thread(parser.write, piece)
        await asyncio.to_thread(parser.finalize)
    except FormParserError as exc:
        raise RequestRefusedError(400, f"Invalid form data: the body is not a multipart form: {exc}") from exc
    except OSError as exc:
        raise build_staging_error(exc) from exc
    finally:
        reader.close()
    if not reader.is_whole:
        raise RequestRefusedError(400, "Invalid form data: the body ends before the form does; send it whole")
    return reader.form


class _Reader:
    """Takes the events of the parser."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._value = bytearray()
        self._header_name = bytearray()
        self._header_value = bytearray()
        self._headers: dict[bytes, bytes] = {}
        self._form_bytes = 0
        self._name = ""
        self._skips = False
        self.form = Form()
        self.is_whole = False

    def callbacks(self) -> "MultipartCallbacks":
        """What the parser calls."""
        return {
            "on_part_begin": self._begin_part,
            "on_header_field": self._take_header_name,
            "on_header_value": self._take_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._open_part,
            "on_part_data": self._take_data,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }

    def close(self) -> None:
        """Closes the file that is being written."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin_part(self) -> None:
        self._headers, self._value, self._skips = {}, bytearray(), False

    def _take_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]
        self._require_small_header()

    def _take_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]
        self._require_small_header()

    def _require_small_header(self) -> None:
        if len(self._header_name) + len(self._header_value) > _HEADER_BYTES_MAX:
            raise InvalidFormError([f"a part has a header of more than {_HEADER_BYTES_MAX} bytes; shorten it"])

    def _count(self, size_bytes: int) -> None:
        self._form_bytes += size_bytes
        if self._form_bytes > FIELDS_BYTES_MAX:
            raise InvalidFormError(
                [f"the fields of the form have more than {FIELDS_BYTES_MAX} bytes together; shorten them"]
            )

    def _end_header(self) -> None:
        self._headers[bytes(self._header_name).lower()] = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _open_part(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        name_bytes = options.get(b"name", b"")
        self._name = _text(name_bytes)
        if b"filename" not in options:
            self._count(len(name_bytes))
            if len(self.form.fields) >= FIELDS_MAX:
                raise InvalidFormError([f"the form has more than {FIELDS_MAX} fields; send fewer"])
            if self._name in self.form.fields:
                raise InvalidFormError([f"form field '{self._name[:80]}' stands more than once; send it once"])
            return
        if not options[b"filename"]:
            self._skips = True  # a browser's file input without a file
            return
        if len(self.form.files) >= FILES_MAX:
            raise InvalidFormError([f"the form has more than {FILES_MAX} files; send fewer"])
        self._count(len(name_bytes) + len(options[b"filename"]))
        name = _file_name(_text(options[b"filename"]))
        if any(
            file.name == name and (file.field == "embeds") == (self._name == "embeds") for file in self.form.files
        ):
            raise InvalidFormError([f"form file '{name[:80]}' stands more than once; give each file its own name"])
        path = self._folder / f"upload-{len(self.form.files)}"
        self._file = path.open("xb")
        self.form.files.append(FormFile(self._name, name, path))

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
        elif not self._skips:
            self._value += data[start:end]
            if len(self._value) > FIELD_BYTES_MAX:
                shown = self._name[:80]
                raise InvalidFormError([f"form field '{shown}' has more than {FIELD_BYTES_MAX} bytes; shorten it"])
            self._count(end - start)

    def _end_part(self) -> None:
        if self._file is not None:
            self.close()
        elif not self._skips:
            self.form.fields[self._name] = _text(bytes(self._value))

    def _end(self) -> None:
        self.is_whole = True


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _file_name(given: str) -> str:
    """The name of a file without folders, which some clients send.

    Raises:
        InvalidFormError: it cannot be the name of a file.
    """
    name = unicodedata.normalize("NFC", given.replace("\\", "/").rpartition("/")[2])
    try:
        return relative_path(name)
    except UnsafePathError as exc:
        raise InvalidFormError([f"form file '{given[:80]!a}' cannot be stored: {exc}"]) from exc
