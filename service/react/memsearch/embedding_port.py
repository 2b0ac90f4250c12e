"""The port of the model that turns texts into vectors: near in direction is near in meaning."""

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Embeds texts; blocking, so it is called on a thread."""

    model: str
    """Names the model and how it is used: vectors of different ones cannot be compared."""

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """The vector of each text that can be found, of length 1: little-endian 32-bit floats."""

    def embed_query(self, text: str) -> bytes:
        """The vector of a query, to compare with those of `embed`."""

    def similarities(self, query: bytes, vectors: Sequence[bytes]) -> list[float]:
        """The cosine between a query and each of the vectors; -1 to 1."""

    def similarity_by_chance(self, query: bytes, count: int) -> float:
        """What the nearest of so many texts reach that have nothing to do with a query: a text matches above it."""
