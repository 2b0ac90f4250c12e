"""A ZIP archive of stored files as a stream: nothing is written to the disk, and one piece is in memory."""

import io
import zipfile
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime

from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.identity import ConversationKey

_YEAR_MIN = 1980  # of times in a ZIP archive
_MODE = 0o100644 << 16
_UNIX = 3


class _Pieces(io.RawIOBase):
    """Takes what the archive writes, until it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self._taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, piece: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]  # a narrower buffer
        self._taken += piece
        return len(piece)

    def take(self) -> bytes:
        """What was written since the last time."""
        taken = bytes(self._taken)
        self._taken.clear()
        return taken


async def stream_zip(
    store: ArtifactStore, scope: ConversationKey, artifacts: Sequence[StoredArtifact]
) -> AsyncGenerator[bytes, None]:
    """Yield an archive of versions of files, below ``<turn>/files/`` and ``<turn>/attachments/``.

    Files are stored without compression: most are compressed already, and the archive keeps up with the network.
    Names are those of the files: relative paths without ``..``, backslashes and control characters.

    Raises:
        StoreFailedError: a file cannot be read; what was yielded is not a valid archive.
    """
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for artifact in artifacts:
            with archive.open(_entry(artifact), "w", force_zip64=artifact.size_bytes >= 2**31) as entry:
                async for piece in store.read(scope, artifact, 0, artifact.size_bytes):
                    entry.write(piece)
                    yield pieces.take()
            yield pieces.take()
    yield pieces.take()


def _entry(artifact: StoredArtifact) -> zipfile.ZipInfo:
    stored = datetime.fromisoformat(artifact.created)
    moment = (max(stored.year, _YEAR_MIN), stored.month, stored.day, stored.hour, stored.minute, stored.second)
    entry = zipfile.ZipInfo(artifact.path.physical, moment)
    entry.create_system = _UNIX
    entry.external_attr = _MODE
    entry.file_size = artifact.size_bytes
    return entry
