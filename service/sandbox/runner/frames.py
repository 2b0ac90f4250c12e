"""The framed stream to a runner, service side: decoding any chunking of it into frames, and encoding.

A frame is ``type (1 byte) | nonce (16 bytes) | length (4 bytes, big endian) | payload``. Frames that do not carry
the nonce of this sandbox, drawn by us after its runner started, are not believed.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum

HEADER = struct.Struct(">B16sI")
PAYLOAD_BYTES_MAX = 1024 * 1024
NO_NONCE = bytes(16)


class Frame(IntEnum):
    """The types of frames; below 16 the service sends them."""

    PUT = 1
    DATA = 2
    JOB = 3
    COLLECT = 4
    ADOPT = 5
    LAUNCH = 6
    PING = 8
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


_KINDS = {int(kind): kind for kind in Frame}


class FrameError(ValueError):
    """Bytes that are no frame of our runner."""


def encode(kind: Frame, nonce: bytes, payload: bytes | memoryview = b"") -> bytes:
    """One frame; the payload is at most ``PAYLOAD_BYTES_MAX`` bytes."""
    return HEADER.pack(kind, nonce, len(payload)) + payload


class FrameDecoder:
    """Turns a stream of bytes, however it is cut, into frames."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._wanted_bytes = HEADER.size
        self.nonce = NO_NONCE
        """What every frame has to carry; zeros until the service has drawn one."""

    def feed(self, data: bytes) -> Iterator[tuple[Frame, bytes]]:
        """Yields the frames that are complete with ``data``.

        Raises:
            FrameError: an unknown type, a payload over the limit, or another nonce.
        """
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes < self._wanted_bytes:
            return  # joined once, when the frame is whole: a large one comes in hundreds of pieces
        whole = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        at, self._wanted_bytes = 0, HEADER.size
        while len(whole) - at >= HEADER.size:
            kind, nonce, length = HEADER.unpack_from(whole, at)
            if length > PAYLOAD_BYTES_MAX:
                raise FrameError(f"a frame of {length} bytes, {PAYLOAD_BYTES_MAX} are allowed")
            if nonce != self.nonce:
                raise FrameError("a frame without the nonce of this sandbox")
            if kind not in _KINDS:
                raise FrameError(f"a frame of the unknown type {kind}")
            end = at + HEADER.size + length
            if len(whole) < end:
                self._wanted_bytes = end - at
                break
            payload = whole[at + HEADER.size : end]
            at = end
            yield _KINDS[kind], payload
        self._held = [whole[at:]] if at < len(whole) else []
        self._held_bytes = len(whole) - at
