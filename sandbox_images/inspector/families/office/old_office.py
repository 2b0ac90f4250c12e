"""Old binary Office files (.doc, .xls, .ppt): the header of their container, and the stream that makes them one."""

from __future__ import annotations

from model import Problem, Subject

_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HEADER_BYTES = 512
_STREAMS = {
    "doc": ("WordDocument",),
    "xls": ("Workbook", "Book"),
    "ppt": ("PowerPoint Document",),
}
_NAME_BYTES = 64


def inspect(subject: Subject) -> None:
    """Find the stream's name in a directory entry ([MS-CFB], 2.6.1); what is in it is not read."""
    if subject.head(len(_MAGIC)) != _MAGIC:
        raise subject.wrong_format()
    if subject.size < 2 * _HEADER_BYTES:
        raise Problem("is cut off: only the header of the file is there")
    data = subject.file.read()
    names = [name.encode("utf-16-le").ljust(_NAME_BYTES, b"\x00") for name in _STREAMS[subject.extension]]
    if not any(name in data for name in names):
        raise Problem(f"is not {subject.format.name}: it has no part of the name {_STREAMS[subject.extension][0]}")
