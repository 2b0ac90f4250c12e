"""The runner's end of the framed stream: standard input and output, or a socket in their place."""

from __future__ import annotations

import _json
import os

from runner_protocol.frame_format import HEADER, NO_NONCE, PAYLOAD_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_READ_BYTES = 256 * 1024


class StreamEndedError(Exception):
    """The service closed the stream: this container is not needed any more."""


class _Reading:
    """How JSON is read: as by `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _refuse(value: object) -> None:
    raise TypeError(f"no JSON: {type(value).__name__}")


# What the module json is made of. That one imports regular expressions, which doubles the time this runner takes to
# start; the texts are our own, or plain values.
_scan = _json.make_scanner(_Reading)  # type: ignore[arg-type]  # it asks for these attributes
_encode = _json.make_encoder(  # without sorting, without skipping keys, without NaN
    None, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, False  # noqa: FBT003
)  # fmt: skip


def read_json(text: bytes) -> Any:
    """The value of a JSON text that `json.dumps` wrote."""
    return _scan(text.decode("utf-8"), 0)[0]


def write_json(value: Any) -> bytes:
    """As `json.dumps`; lone surrogates (odd file names) travel as escapes."""
    return "".join(_encode(value, 0)).encode("ascii")


class Channel:
    """Blocking frames over two file descriptors."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd = read_fd
        self._write_fd = write_fd
        self._buffer = bytearray()
        self.nonce = NO_NONCE

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size:
            piece = os.read(self.read_fd, max(_READ_BYTES, size - len(self._buffer)))
            if not piece:
                raise StreamEndedError
            self._buffer += piece

    def move_to(self, fd: int) -> None:
        """Goes on over another stream, under the numbers of the one before."""
        os.dup2(fd, self.read_fd)
        os.dup2(fd, self._write_fd)
        os.close(fd)

    def receive_ready(self) -> Iterator[tuple[int, bytes]]:
        """Reads once, which does not wait if there is something, and yields the frames that are complete."""
        self._fill(len(self._buffer) + 1)
        while len(self._buffer) >= HEADER.size:
            _, _, length = HEADER.unpack_from(self._buffer)
            if len(self._buffer) < HEADER.size + min(length, PAYLOAD_BYTES_MAX):
                return
            yield self.receive()

    def receive(self) -> tuple[int, bytes]:
        """The next frame as ``(type, payload)``; waits for it."""
        self._fill(HEADER.size)
        kind, nonce, length = HEADER.unpack_from(self._buffer)
        if length > PAYLOAD_BYTES_MAX or (self.nonce not in (NO_NONCE, nonce)):
            raise StreamEndedError
        self.nonce = nonce
        self._fill(HEADER.size + length)
        payload = bytes(memoryview(self._buffer)[HEADER.size : HEADER.size + length])
        del self._buffer[: HEADER.size + length]
        return kind, payload

    def has_buffered(self) -> bool:
        """Whether bytes were read that no frame has used yet."""
        return bool(self._buffer)

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Writes one frame; a payload over the limit is a mistake of this program."""
        view = memoryview(HEADER.pack(kind, self.nonce, len(payload)) + payload)
        while view:
            view = view[os.write(self._write_fd, view) :]

    def send_json(self, kind: int, value: Any) -> None:
        """Writes one frame with a JSON payload."""
        self.send(kind, write_json(value))
