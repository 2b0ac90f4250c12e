"""The service's end of the framed stream to a runner: decoding of a stream, however it is cut, and encoding.

The format is in `sandbox_images.runner_protocol.frame_format`. Frames without the nonce of this sandbox, which the
service draws after the runner has started, are refused.
"""

from collections.abc import Iterator
from enum import IntEnum

from proofbox.sandbox_images.runner_protocol import frame_format
from proofbox.sandbox_images.runner_protocol.frame_format import HEADER, NO_NONCE, PAYLOAD_BYTES_MAX


class Frame(IntEnum):
    """The types of frames; below 16 the service sends them."""

    PUT = frame_format.PUT
    DATA = frame_format.DATA
    JOB = frame_format.JOB
    COLLECT = frame_format.COLLECT
    ADOPT = frame_format.ADOPT
    LAUNCH = frame_format.LAUNCH
    RESTORE = frame_format.RESTORE
    PING = frame_format.PING
    NET_DATA = frame_format.NET_DATA
    NET_END = frame_format.NET_END
    NET_CREDIT = frame_format.NET_CREDIT
    NET_CLOSE = frame_format.NET_CLOSE
    NET_STOPPED = frame_format.NET_STOPPED
    READY = frame_format.READY
    PUT_DONE = frame_format.PUT_DONE
    STDOUT = frame_format.STDOUT
    STDERR = frame_format.STDERR
    EXIT = frame_format.EXIT
    FOUND = frame_format.FOUND
    COLLECTED = frame_format.COLLECTED
    FAILED = frame_format.FAILED
    LAUNCHED = frame_format.LAUNCHED
    INSPECTOR = frame_format.INSPECTOR
    WORKSPACE = frame_format.WORKSPACE
    PRINTED = frame_format.PRINTED
    PONG = frame_format.PONG
    NET_OPENED = frame_format.NET_OPENED
    NET_SENT = frame_format.NET_SENT
    NET_ENDED = frame_format.NET_ENDED
    NET_TAKEN = frame_format.NET_TAKEN
    NET_CLOSED = frame_format.NET_CLOSED
    NET_STOP = frame_format.NET_STOP


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
