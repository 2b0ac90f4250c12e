"""The port of the tokenizer."""

from typing import Protocol


class TokenCounter(Protocol):
    """Counts tokens as a language model does; blocking, quick for what a block holds."""

    def count(self, text: str) -> int:
        """How many tokens a text has."""
