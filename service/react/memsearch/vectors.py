"""The vectors of passages: made when a search needs them, and made again when the model has become another one."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from proofbox.service.concurrency import RepeatedJob
from proofbox.service.identity import ConversationKey
from proofbox.service.react.memsearch.embedding_port import Embedder
from proofbox.service.react.memsearch.port import Candidate, PassageStore

_TEXTS_AT_ONCE = 32
_STORED_AT_ONCE = 256
"""So many vectors are stored at a time: a search that is cancelled loses no more than these."""
_RENEWED_AT_ONCE = 64
_RENEWED_BETWEEN_SEARCHES = 4
"""A search waits for no more texts than these that are embedded anew."""
_REST = 3
"""The pauses of the renewal are three times its work: it takes a quarter of a core at most."""
_CHECKED_EVERY_S = 600.0
log = logging.getLogger("proofbox.memory")


class PassageVectors:
    """Makes vectors, one call after the other, and keeps those of stored passages.

    Args:
        store: the passages.
        embedder: makes the vectors.
    """

    def __init__(self, store: PassageStore, embedder: Embedder) -> None:
        self._store = store
        self._embedder = embedder
        self._embedding = asyncio.Lock()
        self._pause_s = 60.0  # after the start
        self.renewal = RepeatedJob(self.renew, lambda: self._pause_s, "vectors cannot be renewed", spread=0.1)

    async def embed(self, texts: Sequence[str], at_once: int = _TEXTS_AT_ONCE) -> list[bytes]:
        """The vectors of some texts; a few at a time, so that many texts hold up nobody for long."""
        vectors: list[bytes] = []
        for at in range(0, len(texts), at_once):
            async with self._embedding:
                vectors += await asyncio.to_thread(self._embedder.embed, texts[at : at + at_once])
        return vectors

    async def embed_query(self, query: str) -> bytes:
        """The vector of a query."""
        async with self._embedding:
            return await asyncio.to_thread(self._embedder.embed_query, query)

    async def completed(self, scope: ConversationKey, candidates: Sequence[Candidate]) -> list[Candidate]:
        """The candidates, with vectors for those that never had any. Outdated ones have none until the renewal."""
        missing = [row for row in candidates if not row.vector and not row.is_outdated]
        made: dict[int, bytes] = {}
        for at in range(0, len(missing), _STORED_AT_ONCE):
            some = missing[at : at + _STORED_AT_ONCE]
            vectors = await self.embed([row.text for row in some])
            new = dict(zip((row.number for row in some), vectors, strict=True))
            await self._store.set_vectors(scope, new, self._embedder.model)
            made |= new
        return [replace(row, vector=made[row.number]) if row.number in made else row for row in candidates]

    async def renew(self) -> None:
        """One round of the renewal: makes some outdated vectors again; which ones are left, the store knows.

        Raises:
            StoreFailedError, StoreFullError: a store failed.
        """
        self._pause_s = _CHECKED_EVERY_S
        began = time.monotonic()
        outdated = await self._store.outdated(self._embedder.model, _RENEWED_AT_ONCE)
        if not outdated:
            return
        vectors = await self.embed(list(outdated.values()), _RENEWED_BETWEEN_SEARCHES)
        await self._store.renew_vectors(dict(zip(outdated, vectors, strict=True)), self._embedder.model)
        log.info("%d vectors of passages were renewed", len(outdated))
        self._pause_s = _REST * (time.monotonic() - began)
