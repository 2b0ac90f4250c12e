"""The port of the model that turns texts into vectors: near in direction is near in meaning."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Embeds texts; blocking, so it is called on a thread."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """The vector of each text, of length 1: little-endian 32-bit floats."""

    def similarities(self, query: bytes, vectors: Sequence[bytes]) -> list[float]:
        """The cosine between a vector and each of the others; -1 to 1."""
