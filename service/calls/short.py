"""What is short enough to be worked on where it is: a trip to a thread costs a tenth of a millisecond and more."""

from collections.abc import Iterable

from pydantic import BaseModel

from contracts.blocks import Block

_CHARS_MAX = 16_384  # serialised or hashed in less time than a thread costs
_VALUES_MAX = 300


def short_values(*values: object) -> bool:
    """Whether JSON values are few, and their texts short, all together; models count as long."""
    chars, left = _CHARS_MAX, _VALUES_MAX
    open_values: list[object] = list(values)
    while open_values:
        value = open_values.pop()
        left -= 1
        if isinstance(value, (str, bytes)):
            chars -= len(value)
        elif isinstance(value, dict):
            left -= len(value)
            chars -= sum(len(name) for name in value) if left >= 0 else 0
            open_values.extend(value.values() if left >= 0 else ())
        elif isinstance(value, (list, tuple)):
            left -= len(value)
            open_values.extend(value if left >= 0 else ())
        elif isinstance(value, BaseModel):
            return False
        if left < 0 or chars < 0:
            return False
    return True


def short_blocks(blocks: Iterable[Block]) -> bool:
    """Whether blocks are few and short, all together."""
    chars, left = _CHARS_MAX, _VALUES_MAX
    for block in blocks:
        left -= len(block.meta) + 10
        chars -= len(block.text or "") + len(block.base64 or "")
        if left < 0 or chars < 0 or not short_values(block.meta):
            return False
    return True
