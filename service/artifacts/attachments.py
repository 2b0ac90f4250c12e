"""Store attachments: bytes of the user become a file of a turn, a row of the sources pool and two blocks."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast
from weakref import WeakValueDictionary

from proofbox.contracts.media_types import guess_mime, is_inline_binary, is_text
from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError
from proofbox.contracts.tool_call_response import Attachment
from proofbox.service.access.quotas import Allowances
from proofbox.service.access_errors import LinkUsedError
from proofbox.service.artifacts.attachment_blocks import build_attachment_blocks
from proofbox.service.artifacts.conversation_files import NAMES_MAX
from proofbox.service.artifacts.port import (
    ArtifactStore,
    NewArtifact,
    SourcePool,
    StoredArtifact,
    VersionTakenError,
)
from proofbox.service.errors import (
    BodyTooLargeError,
    StoreFailedError,
    StoreFullError,
    UnsafeNameError,
    build_store_error,
)
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.text_encoding import SNIFFED_BYTES, UTF_8, find_encoding

# Hashing and writing leave the event loop once for so many bytes: a thread for each 64 KB piece of a socket would
# cost more than its work.
WRITE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UploadTarget:
    """What a link lets its holder store.

    Attributes:
        scope: the conversation.
        turn_id: the turn of the attachment.
        name: the name of the attachment.
        bytes_max: the largest file.
        stored_bytes_max: the storage quota of the caller that asked for the link; 0: none.
        replaces: the number of the latest version of that name when the link was made; 0: there was none. The link
            stores the next version only.
        own: the limits of the caller's key.
    """

    scope: ConversationKey
    turn_id: str
    name: str
    bytes_max: int
    stored_bytes_max: int = 0
    replaces: int = 0
    own: Allowances = field(default_factory=Allowances)


@dataclass(frozen=True, slots=True)
class AttachmentStored:
    """What became of an upload.

    Attributes:
        attachment: the attachment as it is stored now.
        created: a version was added; False if its latest version has the same bytes, and no program removed it.
    """

    attachment: Attachment
    created: bool


_LINK_USED = "link: the name has other bytes that were stored after the link was made; request a new link"


@dataclass(frozen=True, slots=True)
class _Received:
    """The bytes of an upload in a staging folder, and their media type; None to go by the name."""

    source: Path
    size_bytes: int
    sha256: str
    mime: str | None


class Attachments:
    """Stores the attachments of users.

    Args:
        artifacts: the store of the bytes, rows and blocks.
        sources: the sources pool.
        bytes_max: the largest attachment, in bytes.
        inline_bytes_max: the largest PDF or image that its block carries, in bytes.
    """

    def __init__(
        self,
        artifacts: ArtifactStore,
        sources: SourcePool,
        *,
        bytes_max: int,
        inline_bytes_max: int,
    ) -> None:
        self._artifacts = artifacts
        self._sources = sources
        self.bytes_max = bytes_max
        self._inline_bytes_max = inline_bytes_max
        self._turns: WeakValueDictionary[tuple[ConversationKey, FilePath], asyncio.Lock] = WeakValueDictionary()

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
        return await self.store_at(scope, parse_attachment_path(turn_id, name), content, mime)

    async def store_at(
        self, scope: ConversationKey, path: FilePath, content: AsyncIterator[bytes], mime: str | None
    ) -> AttachmentStored:
        """Stores an attachment at a path, which may have folders. Raises as `store`, but for names."""
        async with self._artifacts.staging() as folder:
            received = await self._receive(content, folder, mime)
            return await self._store(scope, path, received)

    async def store_linked(
        self, target: UploadTarget, content: AsyncIterator[bytes], mime: str | None
    ) -> AttachmentStored:
        """Stores an attachment by its link. Raises as `store`.

        Raises:
            LinkUsedError: the name has other bytes that were stored after the link was made.
        """
        scope, path = target.scope, parse_attachment_path(target.turn_id, target.name)
        async with self._artifacts.staging() as folder:
            received = await self._receive(content, folder, mime)
            # Of two requests at the same time the second one must find the version of the first one.
            async with self._turns.setdefault((scope, path), asyncio.Lock()):
                return await self._store(scope, path, received, target.replaces)

    async def _receive(self, content: AsyncIterator[bytes], folder: Path, mime: str | None) -> "_Received":
        source = folder / "attachment"
        size_bytes, sha256 = await _receive(content, source, self.bytes_max)
        return _Received(source, size_bytes, sha256, mime)

    async def _store(
        self, scope: ConversationKey, path: FilePath, received: "_Received", replaces: int | None = None
    ) -> AttachmentStored:
        stored = await self._artifacts.latest(scope, path)
        is_used = replaces is not None and replaces != (0 if stored is None else stored.number)
        is_same = stored is not None and _is_same(stored, received.sha256, received.mime)
        if stored is not None and is_same and (is_used or not await self._is_gone(scope, path.rel)):
            row = await self._sources.add_file(scope, stored)  # added with the first version
            return AttachmentStored(_as_answer(stored, row.sid), created=False)
        if is_used:
            raise LinkUsedError(_LINK_USED)
        upload = NewArtifact(
            path=path,
            source=FileContent(received.source),
            size_bytes=received.size_bytes,
            sha256=received.sha256,
            mime=received.mime or guess_mime(path.rel),
            visibility="external",
            description="",
            tool_call_id=None,
        )
        inline = await self._inline(upload, received.source)
        encoding = await asyncio.to_thread(_find_encoding, received.source) if is_text(upload.mime) else None
        try:
            [stored] = await self._artifacts.save(
                scope,
                [upload],
                lambda saved: build_attachment_blocks(saved[0], inline, encoding),
                replaces=replaces,
            )
        except VersionTakenError as exc:
            latest = await self._artifacts.latest(scope, path)
            if latest is None or not _is_same(latest, received.sha256, received.mime):
                raise LinkUsedError(_LINK_USED) from exc
            row = await self._sources.add_file(scope, latest)
            return AttachmentStored(_as_answer(latest, row.sid), created=False)
        sid = cast("int", stored.sid)  # external files have one
        return AttachmentStored(_as_answer(stored, sid), created=True)

    async def _is_gone(self, scope: ConversationKey, name: str) -> bool:
        """Whether a program removed what a name meant last: the same bytes bring it back as a new version."""
        newest = await self._artifacts.newest_of_names(scope, NAMES_MAX)
        return any(each.removed for each in newest if each.path.rel == name)

    async def _inline(self, upload: NewArtifact, source: Path) -> bytes | None:
        """The bytes of a PDF or an image that its block carries."""
        if not is_inline_binary(upload.mime) or upload.size_bytes > self._inline_bytes_max:
            return None
        try:
            return await asyncio.to_thread(source.read_bytes)
        except OSError as exc:
            raise _store_error(exc) from exc


def parse_attachment_path(turn_id: str, name: str) -> FilePath:
    """The path of an attachment.

    Raises:
        UnsafeNameError: the name has a slash, or it or the turn id is not allowed.
    """
    if "/" in name:
        raise UnsafeNameError("the name of an attachment has no slash; give the file's own name")
    try:
        return FilePath(turn_id, Namespace.ATTACHMENTS, name)
    except UnsafePathError as exc:
        raise UnsafeNameError(str(exc)) from exc


def _is_same(stored: StoredArtifact, sha256: str, mime: str | None) -> bool:
    """Whether the latest version is this upload; the same bytes under a corrected media type are a new version."""
    return stored.sha256 == sha256 and mime in {None, stored.mime}


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


def _find_encoding(source: Path) -> str | None:
    """The encoding of a text that is not UTF-8."""
    try:
        with source.open("rb") as file:
            head = file.read(SNIFFED_BYTES + 1)
    except OSError as exc:
        raise _store_error(exc) from exc
    found = find_encoding(head, is_whole=len(head) <= SNIFFED_BYTES)
    return None if found == UTF_8 else found


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
    return build_store_error(
        exc,
        full="the store has no space left for the attachment; try again later",
        failed="the store could not take the attachment; try again later",
    )


def _as_answer(stored: StoredArtifact, sid: int) -> Attachment:
    return Attachment(
        logical_path=stored.path.logical,
        physical_path=stored.path.physical,
        sid=sid,
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        mime=stored.mime,
    )
