"""Reads small files whole, in as few threads as make sense."""

import hashlib
import time
from collections.abc import Sequence

from service.errors import StoreFailedError
from service.storage.artifacts.blob_port import ArtifactFiles
from service.storage.artifacts.rows import ArtifactRow

PATIENCE_S = 0.02
"""How long one thread reads file after file before others help: a hundred files of a warm disk take 8 ms."""


def read_whole(files: ArtifactFiles, found: Sequence[ArtifactRow], within_s: float) -> dict[str, bytes]:
    """The bytes of files by their SHA-256, which is checked: of all, or of those that could be read in that time.

    At least one is read.

    Raises:
        StoreFailedError: the bytes of one are missing or damaged.
    """
    until, contents = time.monotonic() + within_s, dict[str, bytes]()
    for row in found:
        if row.sha256 not in contents:
            contents[row.sha256] = _whole(files, row)
            if time.monotonic() > until:
                break
    return contents


def _whole(files: ArtifactFiles, row: ArtifactRow) -> bytes:
    content = b""
    while (left := row.size_bytes - len(content)) > 0:
        content += files.piece(row.sha256, len(content), left)
    if hashlib.sha256(content).hexdigest() != row.sha256:
        raise StoreFailedError("the stored bytes of an artifact are damaged: their SHA-256 has changed")
    return content
