"""The framed stream between the service and this runner: standard input and output, or a socket in their place.

A frame is ``type (1 byte) | nonce (16 bytes) | length (4 bytes, big endian) | payload``. The service draws the
nonce and sends it with its first frame: no process of the program ever holds it, so no program can write a frame
that the service would believe.
"""

from __future__ import annotations

import _json
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEADER = struct.Struct(">B16sI")
PAYLOAD_BYTES_MAX = 1024 * 1024
NO_NONCE = bytes(16)

# From the service.
PUT = 1
DATA = 2
JOB = 3
COLLECT = 4
ADOPT = 5
LAUNCH = 6
PING = 8
# From the runner.
READY = 16
PUT_DONE = 17
STDOUT = 18
STDERR = 19
EXIT = 20
FOUND = 21
COLLECTED = 22
FAILED = 23
LAUNCHED = 24
INSPECTOR = 25
PONG = 28


class StreamEndedError(Exception):
    """The service closed the stream: nothing in this container is wanted any more."""


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
            piece = os.read(self.read_fd, max(65536, size - len(self._buffer)))
            if not piece:
                raise StreamEndedError
            self._buffer += piece

    def move_to(self, fd: int) -> None:
        """Goes on over another stream, under the numbers of the one before."""
        os.dup2(fd, self.read_fd)
        os.dup2(fd, self._write_fd)
        os.close(fd)

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
