"""The content of a file on its way to the store or into a sandbox."""

import asyncio
import hashlib
import io
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class FileContent:
    """The bytes of a small file in memory, or a local file.

    All methods raise OSError if the local file cannot be read.

    Attributes:
        source: the bytes, or the path of the local file.
    """

    source: bytes | Path = field(repr=False)

    @property
    def path(self) -> Path | None:
        """The local file; None for bytes in memory."""
        return self.source if isinstance(self.source, Path) else None

    @property
    def data(self) -> bytes | None:
        """The bytes in memory; None for a local file."""
        return self.source if isinstance(self.source, bytes) else None

    def open(self) -> io.BytesIO | io.BufferedReader:
        """The bytes as a stream, from their beginning."""
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else self.source.open("rb")

    def read(self, start: int = 0, size: int = -1) -> bytes:
        """``size`` bytes from ``start`` on; by default all."""
        if isinstance(self.source, bytes):
            return self.source[start : None if size < 0 else start + size]
        with self.source.open("rb") as file:
            file.seek(start)
            return file.read(size)

    def measure(self) -> tuple[int, str]:
        """The size, and the SHA-256 in hex."""
        if isinstance(self.source, bytes):
            return len(self.source), hashlib.sha256(self.source).hexdigest()
        with self.source.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
            return file.tell(), digest.hexdigest()

    def size(self) -> int:
        """The size in bytes."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def has_size(self, size_bytes: int) -> bool:
        """Whether it has that size; a local file must be a regular file and not a link."""
        if isinstance(self.source, bytes):
            return len(self.source) == size_bytes
        status = self.source.lstat()
        return stat.S_ISREG(status.st_mode) and status.st_size == size_bytes

    async def pieces(self, end: int) -> AsyncIterator[bytes]:
        """The bytes before ``end``, in pieces of at most 256 KiB."""
        for start in range(0, end, _PIECE_BYTES):
            size = min(_PIECE_BYTES, end - start)
            piece = self.read(start, size) if self.path is None else await asyncio.to_thread(self.read, start, size)
            yield piece
