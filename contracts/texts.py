"""Texts of bounded size, for fields that travel as UTF-8."""

from collections.abc import Callable


def utf8_at_most(limit: int) -> Callable[[str], str]:
    """A validator that refuses a text of more than ``limit`` bytes of UTF-8, and says both numbers."""

    def bounded(text: str) -> str:
        size = len(text.encode())
        if size > limit:
            raise ValueError(f"it has {size:,} bytes as UTF-8, and at most {limit:,} are taken")
        return text

    return bounded
