"""Audio and video: judged by their headers and by the lengths of their parts; no frame is decoded."""

from __future__ import annotations

from model import Problem, Subject, counted

_PARTS_MAX = 100_000
_LARGE_SIZE = 1
_HEAD_BYTES, _LARGE_HEAD_BYTES = 8, 16
_FIRST_KINDS = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
_INDEX_KINDS = frozenset({b"moov", b"moof"})
_RIFF_FORMS = {"wav": (b"WAVE", (b"fmt ", b"data")), "avi": (b"AVI ", (b"LIST",))}
_MAGIC = {
    "flac": b"fLaC",
    "ogg": b"OggS",
    "webm": b"\x1a\x45\xdf\xa3",
    "mkv": b"\x1a\x45\xdf\xa3",
}
_DOCTYPES = {"webm": b"webm", "mkv": b"matroska"}
_EBML_HEAD_BYTES = 64
_UNKNOWN_SIZE = 0xFFFFFFFF


def inspect(subject: Subject) -> None:
    """Judge the header and walk through the parts; blank if there is no byte of sound or of picture."""
    match subject.extension:
        case "wav" | "avi":
            content = _judge_riff(subject)
        case "mp4" | "m4v" | "m4a" | "mov":
            content = _judge_parts(subject)
        case _:
            content = _judge_magic(subject)
    if content == 0 and subject.must_not_be_blank():
        raise Problem("is blank: it holds no sound and no picture")


def _judge_parts(subject: Subject) -> int:
    """Walk through the parts of ISO/IEC 14496-12; returns the bytes of media data."""
    at, content = 0, 0
    seen: set[bytes | int] = set()
    while at < subject.size:
        if len(seen) > _PARTS_MAX:
            raise Problem(f"has more than {_PARTS_MAX:,} boxes, the most that are checked")
        head = _at(subject, at, _LARGE_HEAD_BYTES)
        size, kind = int.from_bytes(head[:4]), head[4:8]
        if at == 0 and (len(head) < _HEAD_BYTES or kind not in _FIRST_KINDS):
            raise subject.wrong_format()
        if size == _LARGE_SIZE:
            size = int.from_bytes(head[8:16])
        elif size == 0:
            size = subject.size - at  # the last one, to the end of the file
        if size < _HEAD_BYTES or at + size > subject.size:
            raise Problem(f"is cut off or damaged: the box at offset {at:,} does not fit into the file")
        content += size - _HEAD_BYTES if kind == b"mdat" else 0
        seen.add(kind if kind in _INDEX_KINDS else at)
        at += size
    if not _INDEX_KINDS & seen:
        raise Problem("is cut off: it has no moov box, which says what is in it")
    return content


def _judge_riff(subject: Subject) -> int:
    """Walk through the chunks of a RIFF file; returns the bytes of its data."""
    form, needed = _RIFF_FORMS[subject.extension]
    head = subject.head(12)
    if head[:4] not in {b"RIFF", b"RF64"} or head[8:12] != form:
        raise subject.wrong_format()
    at, content = 12, 0
    seen: set[bytes] = set()
    parts = 0
    while at + 8 <= subject.size and parts < _PARTS_MAX:
        parts += 1
        chunk = _at(subject, at, 8)
        kind, size = chunk[:4], int.from_bytes(chunk[4:], "little")
        left = subject.size - at - 8
        if kind == b"data" and size == _UNKNOWN_SIZE:
            size = left  # a program that could not go back to write it
        if size > left:
            raise Problem(f"is cut off: a part claims {counted(size, 'byte')}, and {left:,} are left")
        content += size if kind in {b"data", b"LIST"} else 0
        seen.add(kind)
        at += 8 + size + size % 2
    missing = [kind.decode().strip() for kind in needed if kind not in seen]
    if missing:
        raise Problem(f"is damaged: its part {missing[0]} is missing")
    return content


def _judge_magic(subject: Subject) -> int:
    head = subject.head(_EBML_HEAD_BYTES)
    magic = _MAGIC[subject.extension]
    if not head.startswith(magic):
        raise subject.wrong_format()
    doctype = _DOCTYPES.get(subject.extension)
    if doctype is not None and doctype not in head:
        raise Problem(f"is not {subject.format.name}: its header names another type")
    return subject.size - len(magic)


def _at(subject: Subject, offset: int, count: int) -> bytes:
    subject.file.seek(offset)
    return subject.file.read(count)
