"""``python -m bench.memsearch.speed``: what a search in a long conversation costs, and making vectors of passages.

The vectors of the passages are random, their texts are of random words; the query is embedded by the real model.
All figures are CPU time on one core; reading the passages from a database is not part of them.
"""

import asyncio
import random
import statistics
import time
from pathlib import Path

import numpy as np

from bench.memsearch.in_memory import InMemory, candidates
from proofbox.service.react.memsearch.e5 import E5Embedder

_COUNTS = (200, 1_000, 10_000, 100_000)
_ROUNDS = 5
_EMBEDDED = 64
_WORDS_EACH = 60
_TEXT = "The sensor in the harbour basin stopped reporting on Tuesday night because its battery froze. " * 6


def made_up(count: int) -> InMemory:
    """Passages of some 350 characters."""
    chosen = random.Random(1)  # noqa: S311 - no secret
    vocabulary = [f"{chosen.choice('bdfgklmnprst')}{chosen.choice('aeiou')}{number}" for number in range(5_000)]
    texts = [" ".join(chosen.choices(vocabulary, k=_WORDS_EACH)) for _ in range(count)]
    vectors = np.random.default_rng(1).standard_normal((count, 384)).astype("<f4")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return InMemory(candidates(texts, [vector.tobytes() for vector in vectors]), EMBEDDER)


async def _searched(memory: InMemory) -> float:
    """CPU seconds of one search, the median of some."""
    took = []
    for number in range(_ROUNDS + 1):
        began = time.process_time()
        await memory.search(f"when is the tide high at pier {number}?")
        took.append(time.process_time() - began)
    return statistics.median(took[1:])


def _resident_mb() -> int:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4 // 1024


EMBEDDER = E5Embedder()


def main() -> None:
    """Prints a line for each measurement."""
    before, began = _resident_mb(), time.process_time()
    EMBEDDER.embed_query("first")
    print(f"loading the model: {time.process_time() - began:.2f} s, {_resident_mb() - before} MB")
    began = time.process_time()
    for number in range(_EMBEDDED):
        EMBEDDER.embed_query(f"when is the tide high at pier {number}?")
    print(f"embedding a query: {(time.process_time() - began) / _EMBEDDED * 1000:.1f} ms")
    began = time.process_time()
    EMBEDDER.embed([f"{number} {_TEXT}" for number in range(_EMBEDDED)])
    each = (time.process_time() - began) / _EMBEDDED
    print(f"embedding a passage of {len(_TEXT)} characters: {each * 1000:.0f} ms")
    for count in _COUNTS:
        print(f"a search among {count:,} passages: {asyncio.run(_searched(made_up(count))) * 1000:.0f} ms")
    print(f"resident memory at the end: {_resident_mb()} MB")


if __name__ == "__main__":
    main()
