"""The port of the store of passages, which memory searches look through."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.service.identity import ConversationKey


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a conversation that can be searched by meaning.

    Attributes:
        position: of its block in the timeline.
        turn_id: its turn.
        target: ``assistant``, ``user`` or ``attachment``.
        ts: when it was written: UTC, RFC 3339, ``Z``.
        path: the logical path of its block.
        text: its text.
        vector: its embedding: little-endian 32-bit floats; empty until a search needs it.
        model: what made the embedding; empty as long as there is none.
    """

    position: int
    turn_id: str
    target: str
    ts: str
    path: str
    text: str
    vector: bytes
    model: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a search compares of a passage.

    Attributes:
        number: its id.
        turn_id: its turn.
        target: ``assistant``, ``user`` or ``attachment``.
        ts: when it was written.
        text: its text.
        vector: its embedding by the model that was asked for; empty without one.
        is_outdated: whether it has an embedding by another model.
    """

    number: int
    turn_id: str
    target: str
    ts: str
    text: str
    vector: bytes
    is_outdated: bool = False


class PassageStore(Protocol):
    """Passages of conversations and their embeddings. All methods raise StoreFailedError."""

    async def through(self, scope: ConversationKey) -> int:
        """Up to which position of the timeline the passages are there."""

    async def add(self, scope: ConversationKey, passages: Sequence[Passage], *, since: int, through: int) -> bool:
        """Adds the passages of the blocks after ``since`` up to ``through``.

        False, and nothing added, if the store does not end at ``since`` any more.
        """

    async def candidates(
        self, scope: ConversationKey, targets: Collection[str], since_ts: str, model: str
    ) -> list[Candidate]:
        """The passages of some targets from a time on, with their embeddings by a model; empty: without any."""

    async def set_vectors(self, scope: ConversationKey, vectors: Mapping[int, bytes], model: str) -> None:
        """Stores the embeddings of passages by their ids, and what made them.

        Raises:
            StoreFullError: no space is left.
        """

    async def outdated(self, model: str, limit: int) -> dict[int, str]:
        """Ids and texts of some passages of any conversation whose embeddings another model made."""

    async def renew_vectors(self, vectors: Mapping[int, bytes], model: str) -> None:
        """Stores embeddings in place of outdated ones; of passages that are gone by now, none.

        Raises:
            StoreFullError: no space is left.
        """

    async def pick(self, scope: ConversationKey, ids: Collection[int]) -> dict[int, Passage]:
        """Passages by their ids."""
