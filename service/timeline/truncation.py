"""Several texts in one JSON block: each gets its fair share of the room."""

import json
from collections.abc import Sequence

from proofbox.contracts.blocks import TRUNCATED_SUFFIX


def json_bytes(value: object) -> int:
    """How long a value is as JSON, in bytes of UTF-8."""
    return len(json.dumps(value, ensure_ascii=False).encode())


def truncate_evenly(texts: Sequence[str], room_bytes: int) -> list[str]:
    """The texts, cut so that they take at most ``room_bytes`` as JSON strings together.

    A text that needs less than an equal share leaves the rest to the others. A cut one ends with
    ``...[truncated]``; one that has no room for that is empty.
    """
    # Every character takes a byte at least, so what lies behind the room is not read.
    needs = [json_bytes(text[: room_bytes + 1]) - 2 for text in texts]
    shares = [0] * len(texts)
    left = room_bytes
    for rank, index in enumerate(sorted(range(len(texts)), key=needs.__getitem__)):
        shares[index] = min(needs[index], max(left, 0) // (len(texts) - rank))
        left -= shares[index]
    return [
        text if needs[index] <= shares[index] else _cut(text, shares[index]) for index, text in enumerate(texts)
    ]


def _cut(text: str, room_bytes: int) -> str:
    room = room_bytes - (json_bytes(TRUNCATED_SUFFIX) - 2)
    low, high = 0, max(0, min(len(text), room))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if json_bytes(text[:middle]) - 2 <= room else (low, middle - 1)
    return text[:low] + TRUNCATED_SUFFIX if low else ""
