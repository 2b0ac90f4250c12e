"""MP3: two frames of MPEG audio, one behind the other, after the tag that may stand before them."""

from __future__ import annotations

from typing import BinaryIO

from model import Problem, Subject

_ID3_HEAD_BYTES = 10
_ID3_SHIFTS = (21, 14, 7, 0)
_SEARCHED_BYTES = 8_192
_FRAME_HEAD_BYTES = 4
_SYNC = b"\xff\xe0"
_MPEG_1, _RESERVED_VERSION, _LAYER_3, _RESERVED_RATE = 3, 1, 1, 3
_KBITS_MPEG_1 = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
_KBITS_MPEG_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
_RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}


def inspect(subject: Subject) -> None:
    """Find the first two frames. A file with a frame is not blank."""
    head = subject.head(_ID3_HEAD_BYTES)
    data = _read(subject.file, _tag_bytes(head)).lstrip(b"\x00")
    length = _frame_bytes(data)
    is_last = length is not None and len(data) < length + _FRAME_HEAD_BYTES
    if length is not None and (is_last or _frame_bytes(data[length:]) is not None):
        return
    if head.startswith(b"ID3"):
        raise Problem("is damaged: no sound follows its tag")
    raise subject.wrong_format()


def _tag_bytes(head: bytes) -> int:
    """Return the length of the ID3v2 tag that a file begins with; 0 if there is none."""
    if not head.startswith(b"ID3") or len(head) < _ID3_HEAD_BYTES:
        return 0
    sizes = zip(head[6:10], _ID3_SHIFTS, strict=True)
    return _ID3_HEAD_BYTES + sum((byte & 0x7F) << shift for byte, shift in sizes)


def _read(file: BinaryIO, offset: int) -> bytes:
    file.seek(offset)
    return file.read(_SEARCHED_BYTES)


def _frame_bytes(data: bytes) -> int | None:
    """Return the length of the frame that data begins with; None if none does (ISO/IEC 11172-3, 2.4.1.3)."""
    if len(data) < _FRAME_HEAD_BYTES or data[0] != _SYNC[0] or data[1] & _SYNC[1] != _SYNC[1]:
        return None
    version, layer = data[1] >> 3 & 3, data[1] >> 1 & 3
    kbits, rate = data[2] >> 4, data[2] >> 2 & 3
    table = _KBITS_MPEG_1 if version == _MPEG_1 else _KBITS_MPEG_2
    if version == _RESERVED_VERSION or layer != _LAYER_3 or rate == _RESERVED_RATE or not 0 < kbits < len(table):
        return None
    samples_per_kbit = 144_000 if version == _MPEG_1 else 72_000
    return samples_per_kbit * table[kbits] // _RATES[version][rate] + (data[2] >> 1 & 1)
