"""The record of a program's output: the beginning and the end of both streams, in the order of the writes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

HEAD_BYTES = TAIL_BYTES = 512 * 1024
"""Of each stream."""
PIECES_MAX = 8_000
"""Of each beginning and each end: stretches of one stream between those of the other."""
_PIECE_BYTES_MAX = 64 * 1024
_PART_BYTES_MAX = 800_000  # of JSON, where a byte takes six and what stands around a piece 32; EXIT has more


class _Stream:
    """The beginning and the end of one stream, as pieces with the number of their place among all."""

    def __init__(self) -> None:
        self.size = 0
        self.head: list[tuple[int, bytearray]] = []
        self.tail: list[tuple[int, bytearray]] = []
        self._room = HEAD_BYTES
        self._tail_bytes = 0

    def add(self, number: int, data: bytes) -> None:
        """Adds to the newest piece if that has the same number."""
        self.size += len(data)
        if self._room:
            is_last = len(self.head) == PIECES_MAX and self.head[-1][0] != number
            head, data = (b"", data) if is_last else (data[: self._room], data[self._room :])
            self._room = 0 if is_last else self._room - len(head)
            _append(self.head, number, head)
        data = data[-TAIL_BYTES:]
        self._tail_bytes += len(data)
        _append(self.tail, number, data)
        while self._tail_bytes > TAIL_BYTES or len(self.tail) > PIECES_MAX:
            oldest = self.tail[0][1]
            gone = min(self._tail_bytes - TAIL_BYTES, len(oldest)) if self._tail_bytes > TAIL_BYTES else len(oldest)
            self._tail_bytes -= gone
            del oldest[:gone]
            if not oldest:
                del self.tail[0]

    @property
    def left_out(self) -> int:
        """The bytes between the beginning and the end."""
        return self.size - sum(len(data) for _, data in self.head) - self._tail_bytes


class OutputRecord:
    """Keeps the first and the last bytes of each stream; ``names`` are the streams' names in `parts`."""

    def __init__(self, names: dict[int, int]) -> None:
        self._names = names
        self._streams = {kind: _Stream() for kind in names}
        self._number = 0
        self._newest = 0

    def add(self, kind: int, data: bytes) -> None:
        """Takes what was written to a stream next."""
        if kind != self._newest:
            self._newest = kind
            self._number += 1
        self._streams[kind].add(self._number, data)

    def parts(self) -> Iterator[list[Any]]:
        """What fits into a message each, at least one: ``[stream, bytes left out before it, text]`` of each piece.

        They are in order; a character is a byte.
        """
        part: list[Any] = []
        room = _PART_BYTES_MAX
        for name, left_out, data in self._pieces():
            for at in range(0, len(data), _PIECE_BYTES_MAX):
                text = data[at : at + _PIECE_BYTES_MAX].decode("latin-1")
                size = 6 * len(text) + 32
                if size > room:
                    yield part
                    part, room = [], _PART_BYTES_MAX
                part.append([name, 0 if at else left_out, text])
                room -= size
        yield part

    def _pieces(self) -> Iterator[tuple[int, int, bytearray]]:
        numbered: list[tuple[int, int, int, bytearray]] = []
        for kind, stream in self._streams.items():
            numbered += [(number, kind, 0, data) for number, data in stream.head]
            left_out = stream.left_out
            for number, data in stream.tail:
                numbered.append((number, kind, left_out, data))
                left_out = 0
        numbered.sort(key=lambda piece: piece[0])
        return ((self._names[kind], left_out, data) for _, kind, left_out, data in numbered)


def _append(pieces: list[tuple[int, bytearray]], number: int, data: bytes) -> None:
    if not data:
        return
    if pieces and pieces[-1][0] == number:
        pieces[-1][1].extend(data)
    else:
        pieces.append((number, bytearray(data)))
