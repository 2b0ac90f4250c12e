"""Reads a file as the text that it must be: UTF-8 without NUL, piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from verdict import Problem, Subject

_CHUNK_BYTES = 1_048_576


def text_chunks(subject: Subject) -> Iterator[str]:
    """Yield the decoded text; a byte order mark at the start is left in.

    Raises:
        Problem: A NUL byte, or a byte that is not UTF-8, with its offset.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    offset = 0
    while chunk := subject.file.read(_CHUNK_BYTES):
        nul = chunk.find(b"\x00")
        if nul >= 0:
            raise Problem(f"is not text: it has a NUL byte at offset {offset + nul:,}")
        pending = len(decoder.getstate()[0])
        try:
            yield decoder.decode(chunk)
        except UnicodeDecodeError as error:
            where = offset - pending + error.start
            raise Problem(f"is not UTF-8: the byte at offset {where:,} does not belong there") from error
        offset += len(chunk)
    if decoder.getstate()[0]:
        raise Problem("is not UTF-8: its last character is cut off")


def whole_text(subject: Subject) -> str:
    """Return all of the text; raises as ``text_chunks`` does."""
    return "".join(text_chunks(subject))
