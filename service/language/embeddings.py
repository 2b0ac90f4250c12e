"""Embeds texts with the weights that a package brings: nothing is downloaded, nothing asks a network."""

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Tokenizer

    Floats = np.ndarray[Any, np.dtype[np.float32]]

_MODEL_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_VOCABULARY = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_TEXTS_AT_ONCE = 256
_DTYPE = "<f4"


class WordEmbedder:
    """The port ``Embedder``: a text is the mean of its tokens' vectors (WordLlama, 256 dimensions).

    The model is loaded at the first use, in some 0.1 s. It knows no order of words; that is what makes it quick:
    about 4 MB of text in a second on one core.
    """

    def __init__(self) -> None:
        # Found, not imported: the package itself imports half a second of what is not needed here.
        found = importlib.util.find_spec(_MODEL_PACKAGE)
        if found is None or found.origin is None:
            raise ImportError(f"the package {_MODEL_PACKAGE} is not installed")
        self._folder = Path(found.origin).parent
        self._loading = threading.Lock()
        self._loaded: tuple[Tokenizer, Floats] | None = None

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        """See `Embedder.embed`."""
        import numpy as np  # noqa: PLC0415 - a tenth of a second that a service without memory searches does not need

        tokenizer, weights = self._model()
        vectors: list[bytes] = []
        for at in range(0, len(texts), _TEXTS_AT_ONCE):
            # A lone surrogate, which JSON can carry, is no text for the tokenizer.
            clean = [text.encode(errors="replace").decode() for text in texts[at : at + _TEXTS_AT_ONCE]]
            for encoded in tokenizer.encode_batch(clean, add_special_tokens=False):
                mean = weights[encoded.ids].mean(axis=0) if encoded.ids else np.zeros(weights.shape[1])
                length = float(np.linalg.norm(mean))
                vectors.append((mean / length if length else mean).astype(_DTYPE).tobytes())
        return vectors

    def similarities(self, query: bytes, vectors: Sequence[bytes]) -> list[float]:
        """See `Embedder.similarities`."""
        if not vectors:
            return []
        import numpy as np  # noqa: PLC0415 - as above

        wanted = np.frombuffer(query, _DTYPE)
        known: Floats = np.frombuffer(b"".join(vectors), _DTYPE).reshape(len(vectors), len(wanted))
        found: list[float] = (known @ wanted).tolist()
        return found

    def _model(self) -> "tuple[Tokenizer, Floats]":
        with self._loading:
            if self._loaded is None:
                from safetensors.numpy import load_file  # noqa: PLC0415 - as above
                from tokenizers import Tokenizer  # noqa: PLC0415 - as above

                tokenizer: Tokenizer = Tokenizer.from_file(str(self._folder / _VOCABULARY))
                tokenizer.no_padding()
                tokenizer.no_truncation()
                weights = load_file(self._folder / _WEIGHTS)[_TENSOR]
                self._loaded = tokenizer, weights.astype("float32")
            return self._loaded
