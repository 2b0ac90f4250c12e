"""A file of an unknown kind: all that can be asked is whether it holds anything but zero bytes."""

from __future__ import annotations

from model import Problem, Subject

_CHUNK_BYTES = 1_048_576


def inspect(subject: Subject) -> None:
    """Look for one byte that is not zero, if the contract asks for it."""
    if not subject.must_not_be_blank():
        return
    while chunk := subject.file.read(_CHUNK_BYTES):
        if chunk.strip(b"\x00"):
            return
    raise Problem("is blank: it holds nothing but zero bytes")
