"""Single files that are compressed (gzip, bzip2, xz): unpacked to their end, within a bound, and not stored."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from typing import IO, cast

from model import Problem, Subject, counted

_CHUNK_BYTES = 1_048_576
_MAGIC_AND_NAME = {
    "application/gzip": (b"\x1f\x8b", "gzip"),
    "application/x-bzip2": (b"BZh", "bzip2"),
    "application/x-xz": (b"\xfd7zXZ\x00", "xz"),
}
UNPACKING_ERRORS = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError, EOFError)


def inspect(subject: Subject) -> None:
    """Unpack the file (``facts.unpacked_bytes``), which compares its checksums; blank if nothing is in it."""
    unpacked, left = 0, subject.limits.unpacked_bytes_max
    try:
        stream = unpacked_stream(subject)
        while chunk := stream.read(_CHUNK_BYTES):
            unpacked += len(chunk)
            if unpacked > left:
                raise Problem(f"unpacks to more than {counted(left, 'byte')}, the most that are checked")
    except UNPACKING_ERRORS as error:
        raise unpacking_problem(subject, error) from error
    subject.facts["unpacked_bytes"] = unpacked
    if unpacked == 0 and subject.must_not_be_blank():
        raise Problem("is blank: nothing is in it")


def unpacked_stream(subject: Subject) -> IO[bytes]:
    """Return what is in the file, to be read from front to back; the file itself if it is not a compressed one."""
    subject.file.seek(0)
    match subject.format.mime:
        case "application/gzip":
            return cast("IO[bytes]", gzip.GzipFile(fileobj=subject.file))
        case "application/x-bzip2":
            return bz2.BZ2File(subject.file)
        case "application/x-xz":
            return lzma.LZMAFile(subject.file)
    return subject.file


def unpacking_problem(subject: Subject, error: Exception) -> Problem:
    """Return the problem of a file that does not unpack."""
    if subject.format.mime not in _MAGIC_AND_NAME:
        return Problem(f"is damaged or cut off: {error}")
    magic, name = _MAGIC_AND_NAME[subject.format.mime]
    if subject.head(len(magic)) != magic:
        return subject.wrong_format()
    if isinstance(error, EOFError):
        return Problem(f"is cut off: its {name} data ends too early")
    return Problem(f"is damaged: its {name} data does not unpack: {error}")
