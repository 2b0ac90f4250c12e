"""Where the bytes of a file are on their way to the store or a sandbox: in a local file or, if few, in memory."""

import io
from pathlib import Path
from typing import BinaryIO

FileBytes = Path | bytes


def opened(source: FileBytes) -> BinaryIO:
    """The bytes, to be read from their beginning.

    Raises:
        OSError: the local file cannot be opened.
    """
    return io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")


def all_of(source: FileBytes) -> bytes:
    """The bytes.

    Raises:
        OSError: the local file cannot be read.
    """
    return source if isinstance(source, bytes) else source.read_bytes()
