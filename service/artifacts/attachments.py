"""The story of an attachment: bytes of the user become a file of a turn and a row of the sources pool."""

import asyncio
import errno
import hashlib
import mimetypes
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from contracts.media_types import is_inline_binary
from contracts.paths import FilePath, Namespace, UnsafePathError
from contracts.tool_calls import Attachment
from service.artifacts.attachment_blocks import attachment_blocks
from service.artifacts.port import ArtifactStore, NewArtifact, SourcePool, StoredArtifact
from service.errors import BodyTooLargeError, StoreFailedError, StoreFullError, UnsafeNameError
from service.identity import ConversationKey
from service.timeline.port import TimelineStore

# Hashing and writing leave the event loop once for so many bytes: a thread for each 64 KB piece of a socket would
# cost more than its work.
WRITE_BYTES = 1024 * 1024
UNKNOWN_MIME = "application/octet-stream"
# The formats that agents are handed most often and that Python's own table does not know, or names oddly.
_MIME_OF_SUFFIX = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".parquet": "application/vnd.apache.parquet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".webp": "image/webp",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
_MIME_OF_ENCODING = {
    "br": "application/x-brotli",
    "bzip2": "application/x-bzip2",
    "compress": "application/x-compress",
    "gzip": "application/gzip",
    "xz": "application/x-xz",
}
# An instance of its own: the module's functions also read whatever tables the machine happens to have.
_PYTHONS_TABLE = mimetypes.MimeTypes()


@dataclass(frozen=True, slots=True)
class AttachmentStored:
    """What became of an upload.

    Attributes:
        attachment: the attachment as it is stored now.
        created: a version was added; False if its latest version has the very same bytes.
    """

    attachment: Attachment
    created: bool


class Attachments:
    """Takes attachments of users in.

    Args:
        artifacts: where the bytes go.
        sources: where their row goes.
        timelines: where the conversation remembers them.
        bytes_max: the largest attachment, in bytes.
        inline_bytes_max: the largest PDF or image that its block carries, in bytes.
    """

    def __init__(
        self,
        artifacts: ArtifactStore,
        sources: SourcePool,
        timelines: TimelineStore,
        *,
        bytes_max: int,
        inline_bytes_max: int,
    ) -> None:
        self._artifacts = artifacts
        self._sources = sources
        self._timelines = timelines
        self.bytes_max = bytes_max
        self._inline_bytes_max = inline_bytes_max

    async def store(
        self, scope: ConversationKey, turn_id: str, name: str, content: AsyncIterator[bytes], mime: str | None
    ) -> AttachmentStored:
        """Stores an attachment of a turn under its name; other bytes under a known name are a new version.

        Args:
            scope: whose conversation.
            turn_id: the turn it came with.
            name: its file name, without a slash.
            content: its bytes, in pieces.
            mime: its media type (``type/subtype``); None to go by the name.

        Raises:
            UnsafeNameError: the name or the turn id is refused; nothing was read.
            BodyTooLargeError: there are more bytes than ``bytes_max``; nothing is stored.
            StoreFullError: no space is left; nothing is stored.
            StoreFailedError: the store failed.
        """
        path = attachment_path(turn_id, name)
        async with self._artifacts.staging() as folder:
            source = folder / "attachment"
            size_bytes, sha256 = await _receive(content, source, self.bytes_max)
            stored = await self._artifacts.latest(scope, path)
            created = not _is_same(stored, sha256, mime)
            if created or stored is None:
                upload = NewArtifact(
                    path=path,
                    source=source,
                    size_bytes=size_bytes,
                    sha256=sha256,
                    mime=mime or mime_of_name(name),
                    visibility="external",
                    description="",
                    tool_call_id=None,
                )
                [stored] = await self._artifacts.save(scope, [upload])
        # It is a source already, unless an earlier release stored it and died before that.
        row = await self._sources.add_file(scope, stored)
        if created:
            blocks = attachment_blocks(stored, await self._inline(scope, stored), row.sid)
            await self._timelines.append(scope, blocks)
        return AttachmentStored(_as_answer(stored, row.sid), created)

    async def _inline(self, scope: ConversationKey, stored: StoredArtifact) -> bytes | None:
        """The bytes of a PDF or an image that its block carries."""
        if not is_inline_binary(stored.mime) or stored.size_bytes > self._inline_bytes_max:
            return None
        return b"".join([piece async for piece in self._artifacts.read(scope, stored, 0, stored.size_bytes)])


def attachment_path(turn_id: str, name: str) -> FilePath:
    """The path of an attachment.

    Raises:
        UnsafeNameError: the name has a slash, or it or the turn id is refused at every door.
    """
    if "/" in name:
        raise UnsafeNameError("the name of an attachment has no slash; give the file's own name")
    try:
        return FilePath(turn_id, Namespace.ATTACHMENTS, name)
    except UnsafePathError as exc:
        raise UnsafeNameError(str(exc)) from exc


def mime_of_name(name: str) -> str:
    """The media type that a file name promises; ``application/octet-stream`` if it promises none.

    The answer is the same on every machine.
    """
    known = _MIME_OF_SUFFIX.get(Path(name).suffix.lower())
    if known is not None:
        return known
    mime, encoding = _PYTHONS_TABLE.guess_type(f"file{Path(name).suffix}".lower())
    if encoding is not None:
        return _MIME_OF_ENCODING.get(encoding, UNKNOWN_MIME)
    return mime or UNKNOWN_MIME


def _is_same(stored: StoredArtifact | None, sha256: str, mime: str | None) -> bool:
    """Whether the latest version is this upload; the same bytes under a corrected media type are a new version."""
    return stored is not None and stored.sha256 == sha256 and mime in {None, stored.mime}


async def _receive(content: AsyncIterator[bytes], target: Path, bytes_max: int) -> tuple[int, str]:
    """Writes the bytes to a new file as they come; their number and their SHA-256 in hex."""
    digest = hashlib.sha256()
    size_bytes = 0
    pending = bytearray()
    sink = await asyncio.to_thread(_open, target)
    try:
        async for piece in content:
            size_bytes += len(piece)
            if size_bytes > bytes_max:
                raise BodyTooLargeError(
                    f"the attachment is larger than {bytes_max} bytes, the most that the operator allows"
                )
            pending += piece
            if len(pending) >= WRITE_BYTES:
                await asyncio.to_thread(_append, sink, digest, bytes(pending))
                pending.clear()
        await asyncio.to_thread(_append, sink, digest, bytes(pending))
    finally:
        await asyncio.to_thread(_close, sink)
    return size_bytes, digest.hexdigest()


def _open(target: Path) -> BinaryIO:
    try:
        # Unbuffered: the pieces are large, and what a full disk refuses is refused by the write, not by the close.
        return target.open("xb", buffering=0)
    except OSError as exc:
        raise _store_error(exc) from exc


def _append(sink: BinaryIO, digest: "hashlib._Hash", piece: bytes) -> None:
    digest.update(piece)
    rest = memoryview(piece)
    try:
        while rest:
            rest = rest[sink.write(rest) :]
    except OSError as exc:
        raise _store_error(exc) from exc


def _close(sink: BinaryIO) -> None:
    try:
        sink.close()
    except OSError as exc:
        raise _store_error(exc) from exc


def _store_error(exc: OSError) -> StoreFullError | StoreFailedError:
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StoreFullError("the store has no space left for the attachment; try again later")
    return StoreFailedError("the store could not take the attachment; try again later")


def _as_answer(stored: StoredArtifact, sid: int) -> Attachment:
    return Attachment(
        logical_path=stored.path.logical,
        physical_path=stored.path.physical,
        sid=sid,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        mime=stored.mime,
    )
