"""Files on their way into a sandbox and out of it: read, hashed and written off the event loop, many at a time."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from proofbox.service.artifacts.staging import Staging, build_staging_error
from proofbox.service.concurrency import run_in_thread, wait_to_end
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.port import InputFile
from proofbox.service.sandbox.runner.frames import Frame, encode

T = TypeVar("T")

PIECE_BYTES = 256 * 1024
_BATCH_BYTES = 1024 * 1024  # what one trip to a thread reads or writes
_STAY_BYTES_MAX = 4 * 1024 * 1024  # of one call
_WRITTEN_BEFORE_SYNC_BYTES = 8 * 1024 * 1024


async def file_frames(files: Sequence[InputFile], nonce: bytes) -> AsyncGenerator[bytearray, None]:
    """The DATA frames of inputs, in their order, some in one piece; exactly their sizes or StoreFailedError."""
    frames = _read(files, nonce)
    try:
        while (piece := await run_in_thread(None, partial(next, frames, None))) is not None:
            yield piece
    finally:
        frames.close()


def _read(files: Sequence[InputFile], nonce: bytes) -> Generator[bytearray, None, None]:
    batch = bytearray()
    for file in files:
        for piece in _pieces(file):
            batch += encode(Frame.DATA, nonce, piece)
            if len(batch) >= _BATCH_BYTES:
                yield batch
                batch = bytearray()
    if batch:
        yield batch


def _pieces(file: InputFile) -> Iterator[bytes]:
    left = file.size_bytes
    try:
        with file.source.open() as source:
            while left > 0:
                piece = source.read(min(left, PIECE_BYTES))
                if not piece:
                    raise StoreFailedError(f"{file.path.physical} is shorter in the store than its record says")
                left -= len(piece)
                yield piece
    except OSError as exc:
        raise StoreFailedError(f"{file.path.physical} cannot be read from the store") from exc


@dataclass(slots=True)
class Received:
    """One file that comes out of a sandbox.

    Attributes:
        source: where it is written; of a file that stays in memory its bytes, once nothing is left.
        left: how many bytes are still to come.
        sha256: the hash of its bytes, in hex; empty until `ReceivedFiles.all_written`.
    """

    source: FileContent
    left: int
    sha256: str = ""
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256, repr=False)
    _handle: int = -1
    _unsynced: int = 0
    _begun: bytearray = field(default_factory=bytearray, repr=False)

    def due(self, piece: bytes) -> bytes | None:
        """What is to be written when a piece has come: the piece, or of a file in memory all of it at its end."""
        if self.source.path is not None or len(piece) == self.left:
            return piece
        self._begun += piece
        if len(self._begun) < self.left:
            return None
        whole, self._begun = bytes(self._begun), bytearray()
        return whole

    def write(self, piece: bytes) -> None:
        """Adds a piece that was due; blocking. Raises OSError."""
        self._digest.update(piece)
        if self.source.path is None:
            self.source = FileContent(piece)
        else:
            self._write(self.source.path, piece)
        self.left -= len(piece)
        if self.left == 0:
            self.sha256 = self._digest.hexdigest()
            self.close()

    def _write(self, local: Path, piece: bytes) -> None:
        if self._handle < 0:
            self._handle = os.open(local, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        view = memoryview(piece)
        while view:
            view = view[os.write(self._handle, view) :]
        self._unsynced += len(piece)
        if len(piece) >= self.left or self._unsynced >= _WRITTEN_BEFORE_SYNC_BYTES:
            # The store is about to sync it: the disk may begin now.
            os.posix_fadvise(self._handle, 0, 0, os.POSIX_FADV_DONTNEED)
            self._unsynced = 0

    def close(self) -> None:
        """Lets go of the file; blocking."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class ReceivedFiles:
    """Takes files in one after the other; while some pieces are written the next ones come.

    Files of one piece stay in memory, up to 4 MiB of them: most of them are small, and those that the store has
    already are never written. Beside them are in memory at most the pieces that are written and as many again.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._count = 0
        self._newest: Received | None = None
        self._pieces: list[tuple[Received, bytes]] = []
        self._held = 0
        self._stay_bytes = 0
        self._writing: asyncio.Future[None] | None = None

    async def begin(self, size_bytes: int) -> Received:
        """The next file; its name is ours, never one that a program made.

        Raises:
            StoreFailedError, StoreFullError: there is no folder for it, or what came before cannot be written.
        """
        if size_bytes <= PIECE_BYTES and self._stay_bytes + size_bytes <= _STAY_BYTES_MAX:
            self._stay_bytes += size_bytes
            self._newest = file = Received(FileContent(b""), size_bytes)
        else:
            folder = await self._staging.folder()
            self._newest = file = Received(FileContent(folder / str(self._count)), size_bytes)
            self._count += 1
        if size_bytes == 0:
            await self.add(file, b"")
        return file

    async def add(self, file: Received, piece: bytes) -> None:
        """The next piece of the newest file. Raises as `begin`."""
        due = file.due(piece)
        if due is None:
            return
        self._pieces.append((file, due))
        self._held += len(due)
        if self._held >= _BATCH_BYTES:
            await self._write()

    async def all_written(self) -> None:
        """Waits until all is written and hashed. Raises as `begin`."""
        await self._write()
        await self._wait()

    async def close(self) -> None:
        """Ends what is under way, so that the folder can go; never raises for the file system."""
        with contextlib.suppress(StoreFailedError, StoreFullError):
            await self._wait()
        unwritten = {id(file): file for file, _ in self._pieces}
        if self._newest is not None and self._newest.left > 0:
            unwritten[id(self._newest)] = self._newest
        if unwritten:
            await run_in_thread(None, partial(_close, list(unwritten.values())))

    async def _write(self) -> None:
        await self._wait()
        pieces, self._pieces, self._held = self._pieces, [], 0
        if pieces:
            self._writing = asyncio.get_running_loop().run_in_executor(None, partial(_write, pieces))

    async def _wait(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            await wait_to_end(writing)


def _write(pieces: Sequence[tuple[Received, bytes]]) -> None:
    try:
        for file, piece in pieces:
            file.write(piece)
    except OSError as exc:
        _close([file for file, _ in pieces])
        raise build_staging_error(exc) from exc


def _close(files: Sequence[Received]) -> None:
    for file in files:
        file.close()
