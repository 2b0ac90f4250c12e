"""Fonts: the header, and every table of the directory within the file; no glyph is drawn."""

from __future__ import annotations

from model import Problem, Subject

_VERSIONS = {
    "ttf": (b"\x00\x01\x00\x00", b"true", b"OTTO"),
    "otf": (b"OTTO", b"\x00\x01\x00\x00"),
    "woff": (b"wOFF",),
    "woff2": (b"wOF2",),
}
_DIRECTORY_BYTES, _ENTRY_BYTES = 12, 16


def inspect(subject: Subject) -> None:
    """Read the directory of tables, or the length that a web font states."""
    head = subject.head(_DIRECTORY_BYTES)
    if not head.startswith(_VERSIONS[subject.extension]):
        raise subject.wrong_format()
    if subject.extension in {"woff", "woff2"}:
        if int.from_bytes(head[8:12]) != subject.size:
            raise Problem("is cut off or damaged: it has another length than its header states")
        return
    tables = int.from_bytes(head[4:6])
    subject.file.seek(_DIRECTORY_BYTES)
    directory = subject.file.read(tables * _ENTRY_BYTES)
    if tables == 0 or len(directory) < tables * _ENTRY_BYTES:
        raise Problem("is cut off: its directory of tables is not whole")
    for at in range(0, len(directory), _ENTRY_BYTES):
        offset, length = (int.from_bytes(directory[at + low : at + low + 4]) for low in (8, 12))
        if offset + length > subject.size:
            raise Problem("is cut off: a table of it lies behind the end of the file")
