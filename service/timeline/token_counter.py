"""The port of the tokenizer."""

from typing import Protocol

_PIECE_CHARS = 16_384  # counted at a time, so that other threads come to their turn


class TokenCounter(Protocol):
    """Counts tokens as a language model does; blocking, quick for what a block holds."""

    def count(self, text: str) -> int:
        """How many tokens a text has."""


def count_tokens(tokens: TokenCounter, text: str) -> int:
    """How many tokens a text of any length has: the sum over stretches of whole lines where it is long.

    Blocking; a second for some 4 MB.
    """
    count = start = 0
    while len(text) - start > _PIECE_CHARS:
        end = text.rfind("\n", start, start + _PIECE_CHARS) + 1 or start + _PIECE_CHARS
        count += tokens.count(text[start:end])
        start = end
    return count + tokens.count(text[start:])
