"""The ``Range`` header (RFC 9110 §14): one range is served, several are answered with the whole."""

import re
from dataclasses import dataclass

from proofbox.service.errors import RangeNotSatisfiableError

# More than any reader of a file asks for; so many are an attack (RFC 9110 §17.15).
RANGES_MAX = 32
# No file has more bytes than 19 digits count.
_RANGE = re.compile(r"[ \t]*([0-9]{0,19})-([0-9]{0,19})[ \t]*")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """The bytes from ``start`` to before ``end``."""

    start: int
    end: int


def requested_range(header: str | None, size_bytes: int) -> ByteRange | None:
    """The one range that a header asks for; None where the whole is the answer.

    A header that is not understood (another unit, bad numbers, several ranges) counts as none.

    Raises:
        RangeNotSatisfiableError: the range has no byte of the file, or there are too many ranges.
    """
    unit, _, wanted = (header or "").partition("=")
    if unit.strip().lower() != "bytes":
        return None
    if wanted.count(",") >= RANGES_MAX:
        raise RangeNotSatisfiableError(f"the request asks for more than {RANGES_MAX} ranges; ask for one")
    match = _RANGE.fullmatch(wanted)
    if match is None or match[1] == match[2] == "":
        return None
    if match[1] == "":
        start, end = max(0, size_bytes - int(match[2])), size_bytes
    else:
        start = int(match[1])
        end = min(int(match[2]) + 1, size_bytes) if match[2] else size_bytes
        if match[2] and int(match[2]) < start:
            return None
    if start >= size_bytes:
        raise RangeNotSatisfiableError(f"the file has {size_bytes} bytes, the range begins behind its end")
    return ByteRange(start, end)
