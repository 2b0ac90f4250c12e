"""Texts of bounded size, for fields that travel as UTF-8."""

import contextlib
import json
from collections.abc import Callable
from typing import Any


def limit_utf8(limit: int) -> Callable[[str], str]:
    """A validator that refuses a text of more than ``limit`` bytes of UTF-8, with both numbers in the message."""

    def bounded(text: str) -> str:
        size = len(text.encode())
        if size > limit:
            raise ValueError(f"it has {size:,} bytes as UTF-8, and at most {limit:,} are taken")
        return text

    return bounded


def cut_utf8(text: str, limit: int, mark: str) -> str:
    """A text of at most ``limit`` bytes of UTF-8: itself, or its beginning and a mark.

    Args:
        text: the text; a lone surrogate becomes ``?``.
        limit: the bound, the mark included.
        mark: what stands at the cut; ``{total}`` is the size of the whole in bytes.
    """
    if len(text) <= limit // 4:  # a character has four bytes at most
        return text
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return text
    mark = mark.format(total=len(encoded))
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark


def parse_list(value: Any) -> Any:
    """A text where a list of texts is meant: the list that it is as JSON, else a list of that one text."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return [value]
