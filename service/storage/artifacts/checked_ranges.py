"""Parts of stored files, checked: a client that asks for a range gets no changed bytes either."""

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial

from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.storage.artifacts.blob_port import CHANGED, BlobStore

_HASHES_MAX = 100_000  # of all files together; some 70 bytes each


class CheckedRanges:
    """The hashes of the pieces of files, made while a whole file is read and found to be sound.

    A file is read once before its first range is served; then each piece is checked when it is read.

    Args:
        files: the bytes.
        run: runs a blocking call of ``files``.
    """

    def __init__(self, files: BlobStore, run: Callable[[Callable[[], bytes]], Awaitable[bytes]]) -> None:
        self._files = files
        self._run = run
        self._known: dict[str, list[bytes]] = {}  # the oldest first

    async def learn(self, sha256: str, size_bytes: int) -> None:
        """Read a whole file, unless its pieces are known.

        Raises:
            DamagedBytesError: its bytes are missing or have changed.
        """
        if sha256 in self._known:
            return
        whole, hashes = hashlib.sha256(), list[bytes]()
        for at in range(0, size_bytes, self._files.piece_bytes):
            hashes.append(await self._run(partial(self._hash_of, sha256, at, size_bytes, whole)))
        if whole.hexdigest() != sha256:
            raise DamagedBytesError(CHANGED)
        self._known[sha256] = hashes
        while len(self._known) > 1 and sum(map(len, self._known.values())) > _HASHES_MAX:
            del self._known[next(iter(self._known))]

    async def piece(self, sha256: str, size_bytes: int, at: int, end: int) -> bytes:
        """Bytes from ``at`` on, at most to ``end``, of a file that `learn` has read.

        Raises:
            DamagedBytesError: they are missing or have changed since.
        """
        number, behind = divmod(at, self._files.piece_bytes)
        known = self._known.get(sha256)
        if known is None:  # others took its place
            await self.learn(sha256, size_bytes)
            known = self._known[sha256]
        piece = await self._run(partial(self._read, sha256, at - behind, size_bytes))
        if hashlib.sha256(piece).digest() != known[number]:
            self._known.pop(sha256, None)
            raise DamagedBytesError(CHANGED)
        return piece[behind : end - at + behind]

    def _hash_of(self, sha256: str, at: int, size_bytes: int, whole: "hashlib._Hash") -> bytes:
        piece = self._read(sha256, at, size_bytes)
        whole.update(piece)
        return hashlib.sha256(piece).digest()

    def _read(self, sha256: str, at: int, size_bytes: int) -> bytes:
        """One piece, whole but for the last one of a file; blocking."""
        piece, wanted = b"", min(self._files.piece_bytes, size_bytes - at)
        while (left := wanted - len(piece)) > 0:
            piece += self._files.piece(sha256, at + len(piece), left)
        return piece
