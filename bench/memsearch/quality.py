"""``python -m bench.memsearch.quality``: how often the right passage is found, by meaning and by words.

The labelled set (`labelled.json`) has 66 passages of twelve topics, eight in German, and 49 queries that say it in
other words. Each ranking answers the same queries over the same passages.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import wordllama
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from proofbox.service.react.memsearch.minilm import MiniLmEmbedder

_SET = json.loads((Path(__file__).parent / "labelled.json").read_text(encoding="utf-8"))
_WORD = re.compile(r"\w+")
_K1, _B = 1.5, 0.75  # the usual constants of BM25

Ranking = Callable[[str], Sequence[float]]


def by_meaning(texts: Sequence[str]) -> Ranking:
    """Scores by the embedding that the service uses."""
    embedder = MiniLmEmbedder()
    vectors = embedder.embed(texts)
    return lambda query: embedder.similarities(embedder.embed([query])[0], vectors)


def by_static_vectors(texts: Sequence[str]) -> Ranking:
    """Scores by the mean of static word vectors (WordLlama, 256 dimensions), some hundred times quicker."""
    folder = Path(wordllama.__file__).parent
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    weights = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)

    def vector(text: str) -> np.ndarray:
        mean: np.ndarray = weights[tokenizer.encode(text, add_special_tokens=False).ids].mean(axis=0)
        mean /= np.linalg.norm(mean)
        return mean

    vectors = np.array([vector(text) for text in texts])
    return lambda query: (vectors @ vector(query)).tolist()


def by_words(texts: Sequence[str]) -> Ranking:
    """Scores by BM25 over lower-case words."""
    documents = [Counter(_words(text)) for text in texts]
    lengths = [sum(words.values()) for words in documents]
    mean = sum(lengths) / len(lengths)
    seen = Counter(word for words in documents for word in words)

    def score(words: Counter[str], length: int, query: list[str]) -> float:
        total = 0.0
        for word in query:
            rarity = math.log(1 + (len(texts) - seen[word] + 0.5) / (seen[word] + 0.5))
            share = words[word] * (_K1 + 1) / (words[word] + _K1 * (1 - _B + _B * length / mean))
            total += rarity * share
        return total

    return lambda query: [
        score(words, length, _words(query)) for words, length in zip(documents, lengths, strict=True)
    ]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def measured(rank: Ranking, language: str = "") -> dict[str, float]:
    """Recall at 1 and at 5, and the mean reciprocal rank (0 for a passage without a score)."""
    ids = [row["id"] for row in _SET["passages"]]
    ranks = []
    for row in _SET["queries"]:
        if language and row["answers"][0].startswith("de-") != (language == "de"):
            continue
        scores = rank(row["query"])
        best = max(scores[ids.index(answer)] for answer in row["answers"])
        ranks.append(1 + sum(score > best for score in scores) if best > 0 else math.inf)
    return {
        "recall@1": sum(place <= 1 for place in ranks) / len(ranks),
        "recall@5": sum(place <= 5 for place in ranks) / len(ranks),  # noqa: PLR2004
        "mrr": sum(1 / place for place in ranks) / len(ranks),
    }


def main() -> None:
    """Prints a line for each ranking."""
    texts = [row["text"] for row in _SET["passages"]]
    print(f"{len(texts)} passages, {len(_SET['queries'])} queries")
    for name, make in (("MiniLM", by_meaning), ("static vectors", by_static_vectors), ("words (BM25)", by_words)):
        rank = make(texts)
        for language in ("", "en", "de"):
            began = time.perf_counter()
            figures = measured(rank, language)
            took = (time.perf_counter() - began) * 1000
            told = "  ".join(f"{key} {value:.2f}" for key, value in figures.items())
            print(f"{name:16} {language or 'all':4} {told}  ({took:.0f} ms)")


if __name__ == "__main__":
    main()
