"""``python -m bench.memsearch.speed``: what comparing meanings costs in a long conversation, and making them.

The vectors of the passages are random; the query is embedded by the real model. All figures are CPU time; reading
the passages from a database is not part of them.
"""

import asyncio
import resource
import statistics
import time
from collections.abc import Collection

import numpy as np

from proofbox.contracts.react_tools import MemsearchParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.observer import CallObserver
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.react.memsearch.minilm import MiniLmEmbedder
from proofbox.service.react.memsearch.port import Passage
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.timeline.port import PlacedBlock

_COUNTS = (1_000, 10_000, 100_000)
_ROUNDS = 5
_EMBEDDED = 64
_TS = "2026-11-22T10:00:00.000Z"
_SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "bench")


class InMemory:
    """Passages of one conversation whose timeline has ended."""

    def __init__(self, count: int) -> None:
        vectors = np.random.default_rng(1).standard_normal((count, 384)).astype("<f4")
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self._rows = [(number, _TS, vector.tobytes()) for number, vector in enumerate(vectors)]

    async def through(self, scope: ConversationKey) -> int:
        """All is there."""
        del scope
        return len(self._rows)

    async def after(
        self, scope: ConversationKey, position: int, limit: int, *, binaries: bool
    ) -> list[PlacedBlock]:
        """Nothing was said since."""
        del scope, position, limit, binaries
        return []

    async def vectors(
        self, scope: ConversationKey, targets: Collection[str], since_ts: str
    ) -> list[tuple[int, str, bytes]]:
        """All of them."""
        del scope, targets, since_ts
        return self._rows

    async def pick(self, scope: ConversationKey, ids: Collection[int]) -> dict[int, Passage]:
        """Passages by their ids."""
        del scope
        return {number: Passage(number, "turn_1", "user", _TS, f"ar:{number}", "text", b"") for number in ids}


async def _searched(count: int, embedder: MiniLmEmbedder) -> float:
    """CPU seconds of one search, the median of some."""
    store = InMemory(count)
    memory = MemorySearchTool(store, store, None, embedder, half_life_days=90)  # type: ignore[arg-type]  # what is used
    story = DirectTool(MemsearchParams, memory.run)
    took = []
    for number in range(_ROUNDS + 1):
        request = ToolCallRequest(
            tool_id="react.memsearch",
            tool_call_id=f"m{number}",
            conversation_id="bench",
            turn_id="turn_2",
            params={"query": "the tide is high", "targets": ["user"]},
        )
        prepared = story.prepare(_SCOPE, request)
        began = time.process_time()
        await prepared.run(CallObserver())
        took.append(time.process_time() - began)
    return statistics.median(took[1:])


def main() -> None:
    """Prints a line for each measurement."""
    embedder = MiniLmEmbedder()
    began = time.process_time()
    embedder.embed(["first"])
    print(f"loading the model: {time.process_time() - began:.2f} s")
    text = "The sensor in the harbour basin stopped reporting on Tuesday night because its battery froze. " * 6
    began = time.process_time()
    embedder.embed([f"{number} {text}" for number in range(_EMBEDDED)])
    each = (time.process_time() - began) / _EMBEDDED
    print(f"embedding a passage of {len(text)} characters: {each * 1000:.0f} ms")
    for count in _COUNTS:
        print(f"a search among {count:,} passages: {asyncio.run(_searched(count, embedder)) * 1000:.0f} ms")
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
