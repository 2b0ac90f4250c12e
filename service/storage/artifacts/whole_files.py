"""Small files, read whole."""

import hashlib
from collections.abc import Sequence

from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.storage.artifacts.blob_port import CHANGED, BlobStore
from proofbox.service.storage.artifacts.rows import ArtifactRow


def read_whole(files: BlobStore, found: Sequence[ArtifactRow]) -> dict[str, bytes]:
    """The bytes of files by their SHA-256, which is checked; DamagedBytesError where one is missing or damaged."""
    contents = {}
    for row in found:
        try:
            contents[row.sha256] = _whole(files, row)
        except DamagedBytesError as exc:
            exc.path = row.path.logical
            raise
    return contents


def _whole(files: BlobStore, row: ArtifactRow) -> bytes:
    content = b""
    while (left := row.size_bytes - len(content)) > 0:
        content += files.piece(row.sha256, len(content), left)
    if hashlib.sha256(content).hexdigest() != row.sha256:
        raise DamagedBytesError(CHANGED)
    return content
