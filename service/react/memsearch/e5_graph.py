"""Writes the encoder of E5 as an ONNX model, with its weights as 8-bit integers.

An ONNX file is a protocol buffer (onnx/onnx.proto): each field is its number, its kind and its value. So little of
that is needed that the package onnx would be much for it.
"""

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from proofbox.service.react.memsearch.e5_weights import E5Weights

if TYPE_CHECKING:
    import numpy as np

INPUT = "embedded"
OUTPUT = "encoded"
# Sums of two products with unsigned bytes stay below 2**15, where processors without VNNI would cut them off.
_WEIGHT_MAX = 63
_IR_VERSION = 10
_OPSET, _CONTRIBUTED_OPSET = 21, 1
_CONTRIBUTED = "com.microsoft"  # operators of onnxruntime
_FLOAT, _INT8 = 1, 3  # kinds of tensors
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT = 1, 2
_VARIABLE_LENGTH, _BYTES, _FOUR_BYTES = 0, 2, 5  # kinds of fields


def encoder_model(weights: E5Weights) -> bytes:
    """The model: from the vectors of a text's tokens, ``[1, tokens, width]``, to what they mean in it."""
    graph = _Graph(weights)
    vectors = INPUT
    for layer in range(weights.layers):
        vectors = graph.add_layer(vectors, f"l{layer}.", OUTPUT if layer == weights.layers - 1 else f"l{layer}")
    return graph.model()


class _Graph:
    """The nodes and tensors of a model, as fields of its graph."""

    def __init__(self, weights: E5Weights) -> None:
        self._weights = weights
        self._fields: list[bytes] = [_text(2, "e5")]

    def add_layer(self, inputs: str, layer: str, output: str) -> str:
        """Attention and two matrices, each with what goes around them; the name of the output."""
        heads, epsilon = self._weights.heads, self._weights.epsilon
        parts = [self._product(inputs, f"{layer}{part}", f"{layer}{part}.b") for part in "qkv"]
        attended = self._node("MultiHeadAttention", parts, f"{layer}attended", num_heads=heads)
        joined = self._product(attended, f"{layer}ao", f"{layer}ao.b")
        first = self._normalised(inputs, joined, f"{layer}aln", f"{layer}first", epsilon)
        inner = self._node("Gelu", [self._product(first, f"{layer}fi", f"{layer}fi.b")], f"{layer}inner")
        outer = self._product(inner, f"{layer}fo", f"{layer}fo.b")
        return self._normalised(first, outer, f"{layer}oln", output, epsilon)

    def model(self) -> bytes:
        """The whole model."""
        self._fields += [_field(11, _tensor_type(INPUT)), _field(12, _tensor_type(OUTPUT))]
        opsets = (
            _field(8, _text(1, "") + _int(2, _OPSET)),
            _field(8, _text(1, _CONTRIBUTED) + _int(2, _CONTRIBUTED_OPSET)),
        )
        return _int(1, _IR_VERSION) + _field(7, b"".join(self._fields)) + b"".join(opsets)

    def _product(self, inputs: str, name: str, bias: str) -> str:
        """The inputs by a matrix, each column of which has a factor of its own, and a bias."""
        import numpy as np  # noqa: PLC0415 - see E5Weights.floats

        columns = self._weights.matrix(f"{name}.w").T
        factors = np.abs(columns).max(axis=0) / _WEIGHT_MAX
        rounded = np.rint(columns / np.where(factors == 0, 1, factors)).astype(np.int8)
        tensors = [
            self._tensor(f"{name}.w", rounded, _INT8),
            self._tensor(f"{name}.factors", factors.astype(np.float32), _FLOAT),
            "",  # the weights have no zero point
            self._tensor(bias, self._weights.floats(bias), _FLOAT),
        ]
        return self._node("DynamicQuantizeMatMul", [inputs, *tensors], f"{name}.product")

    def _normalised(self, inputs: str, added: str, name: str, output: str, epsilon: float) -> str:
        tensors = [self._tensor(f"{name}.{part}", self._weights.floats(f"{name}.{part}"), _FLOAT) for part in "wb"]
        return self._node("SkipLayerNormalization", [inputs, added, *tensors], output, epsilon=epsilon)

    def _node(self, operator: str, inputs: Iterable[str], output: str, **attributes: float) -> str:
        fields = [_text(1, name) for name in inputs]
        fields += [_text(2, output), _text(4, operator), _text(7, _CONTRIBUTED)]
        fields += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self._fields.append(_field(1, b"".join(fields)))
        return output

    def _tensor(self, name: str, values: "np.ndarray[Any, Any]", kind: int) -> str:
        shape = b"".join(_int(1, size) for size in values.shape)
        self._fields.append(_field(5, shape + _int(2, kind) + _text(8, name) + _field(9, values.tobytes())))
        return name


def _tensor_type(name: str) -> bytes:
    """A named tensor of floats with three dimensions of any size."""
    shape = b"".join(_field(1, _text(2, dimension)) for dimension in ("texts", "tokens", "width"))
    return _text(1, name) + _field(2, _field(1, _int(1, _FLOAT) + _field(2, shape)))


def _attribute(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _int(3, value) + _int(20, _ATTRIBUTE_INT)
    return _text(1, name) + _varint((2 << 3) | _FOUR_BYTES) + struct.pack("<f", value) + _int(20, _ATTRIBUTE_FLOAT)


def _text(number: int, value: str) -> bytes:
    return _field(number, value.encode())


def _int(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARIABLE_LENGTH) + _varint(value)


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    """Seven bits in each byte, the lowest first; with the highest bit if more follow."""
    found = bytearray()
    while value > 127:  # noqa: PLR2004
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
