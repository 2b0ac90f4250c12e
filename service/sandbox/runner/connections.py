"""The connections of a program over the stream to its runner: who may send how much, and their tasks.

What comes is hostile: a runner that a program took over sends any frame. More than was allowed of anything ends the
sandbox. The stream is always read, whatever its connections wait for, and each direction of a connection holds
`WINDOW_BYTES` at most: see `sandbox_images.runner_protocol.network`.
"""

import asyncio
import contextlib
import logging
import struct
from collections import deque
from collections.abc import Awaitable, Callable

from proofbox.sandbox_images.runner_protocol.network import (
    CONNECTION,
    CREDIT,
    CREDIT_EVERY_BYTES,
    PIECE_BYTES,
    WINDOW_BYTES,
)
from proofbox.service.sandbox.network import ProgramNetwork
from proofbox.service.sandbox.port import SandboxLostError
from proofbox.service.sandbox.runner.frames import Frame

log = logging.getLogger("proofbox.network")

Send = Callable[[Frame, bytes], Awaitable[None]]
"""Writes a frame; raises OSError if the sandbox is gone."""

# A runner of ours lets a connection rest for 2 ms after a piece smaller than this.
_PIECE_BYTES_MIN = 4096
_FRAMES_PER_S = 500
_FRAMES_SPARE = 10_000
_FRAMES_PER_CONNECTION = 4
RUNNER_FRAMES = frozenset(
    {Frame.NET_OPENED, Frame.NET_SENT, Frame.NET_ENDED, Frame.NET_TAKEN, Frame.NET_CLOSED, Frame.NET_STOP}
)
"""The frames of connections that a runner sends."""


class _Connection:
    """The port `ProgramConnection` over frames."""

    def __init__(self, number: int, send: Send) -> None:
        self._number = CONNECTION.pack(number)
        self._send = send
        self._pieces: deque[bytes] = deque()
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._has_ended = False
        self._has_write_ended = False
        self._passed_on = 0  # since the last credit
        self._held = 0
        self._window = WINDOW_BYTES
        self.is_closed = False
        self.task: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """See `ProgramConnection.read`."""
        while not self._pieces:
            if self._has_ended:
                return b""
            if self.is_closed:
                raise ConnectionResetError("the program closed the connection")
            self._readable.clear()
            await self._readable.wait()
        piece = self._pieces.popleft()
        # What was read before has been passed on, or the caller would not ask for more.
        self._passed_on += len(piece)
        if self._passed_on >= CREDIT_EVERY_BYTES and not self.is_closed:
            passed_on, self._passed_on = self._passed_on, 0
            self._held -= passed_on
            number = CONNECTION.unpack(self._number)[0]
            await self._send(Frame.NET_CREDIT, CREDIT.pack(number, passed_on))
        return piece

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `ProgramConnection.write`."""
        left = memoryview(data)
        while left:
            while self._window <= 0 and not self.is_closed:
                self._writable.clear()
                await self._writable.wait()
            if self.is_closed:
                raise ConnectionResetError("the program closed the connection")
            piece = left[: min(PIECE_BYTES, self._window)]
            left = left[len(piece) :]
            self._window -= len(piece)
            await self._send(Frame.NET_DATA, self._number + piece)

    async def write_end(self) -> None:
        """See `ProgramConnection.write_end`."""
        if self.is_closed:
            raise ConnectionResetError("the program closed the connection")
        self._has_write_ended = True
        await self._send(Frame.NET_END, self._number)

    def take(self, piece: bytes) -> None:
        """Takes what the program sent. Raises SandboxLostError if it is more than it may."""
        self._held += len(piece)
        if not piece or self._has_ended or self._held > WINDOW_BYTES:
            raise SandboxLostError("the runner sent more of a connection than it may")
        self._pieces.append(piece)
        self._readable.set()

    def end(self) -> None:
        """The program sends no more."""
        self._has_ended = True
        self._readable.set()

    def credit(self, taken: int) -> None:
        """The program took so much. Raises SandboxLostError if that is more than it was sent."""
        self._window += taken
        if self._window > WINDOW_BYTES:
            raise SandboxLostError("the runner took more of a connection than it was sent")
        self._writable.set()

    def close(self) -> None:
        """The program closed it; before both sides had ended, nobody is there any more to serve."""
        self.is_closed = True
        self._readable.set()
        self._writable.set()
        if self.task is not None and not (self._has_ended and self._has_write_ended):
            self.task.cancel()


class ProgramConnections:
    """The connections of one run, or what refuses them.

    Args:
        network: what serves them; None for a program without network.
        send: writes a frame.
        wall_s: the wall clock of the program, by which the number of frames is bounded.
    """

    def __init__(self, network: ProgramNetwork | None, send: Send, wall_s: float) -> None:
        self._network = network
        self._send = send
        self._open: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0
        self._is_stopped = network is None
        self._frames_left = 0
        if network is not None:
            bounds = network.bounds
            self._frames_left = (
                _FRAMES_SPARE
                + _FRAMES_PER_CONNECTION * bounds.accepted_max
                + 2 * bounds.bytes_max // _PIECE_BYTES_MIN
                + int(bounds.open_max * wall_s * _FRAMES_PER_S)
            )

    async def take(self, kind: Frame, payload: bytes) -> None:
        """Takes one of `RUNNER_FRAMES`; waits only for the end of all connections.

        Raises:
            SandboxLostError: no runner of ours sends this, or the sandbox is gone.
        """
        self._frames_left -= 1
        if self._is_stopped or self._network is None or self._frames_left < 0:
            raise SandboxLostError(f"the runner sent {kind.name} while the program ran")
        try:
            if kind is Frame.NET_STOP:
                await self.close()
                try:
                    await self._send(Frame.NET_STOPPED, b"")
                except OSError as exc:
                    raise SandboxLostError("the sandbox ended by itself") from exc
            elif kind is Frame.NET_TAKEN:
                number, taken = CREDIT.unpack(payload)
                if (known := self._known(number)) is not None:
                    known.credit(taken)
            else:
                self._take_of(kind, CONNECTION.unpack_from(payload)[0], payload, self._network)
        except struct.error as exc:
            raise SandboxLostError(f"the runner sent a {kind.name} that cannot be read") from exc

    def _take_of(self, kind: Frame, number: int, payload: bytes, network: ProgramNetwork) -> None:
        if kind is Frame.NET_OPENED:
            bounds = network.bounds
            if number != self._opened + 1 or number > bounds.accepted_max or len(self._open) >= bounds.open_max:
                raise SandboxLostError("the runner opened a connection that it may not")
            self._opened = number
            connection = self._open[number] = _Connection(number, self._send)
            connection.task = asyncio.create_task(self._serve(number, connection, network))
            self._tasks.add(connection.task)
            connection.task.add_done_callback(self._tasks.discard)
            return
        known = self._known(number)
        if known is None:
            return
        if kind is Frame.NET_SENT:
            known.take(payload[CONNECTION.size :])
        elif kind is Frame.NET_ENDED:
            known.end()
        else:
            del self._open[number]
            known.close()

    def _known(self, number: int) -> _Connection | None:
        """A connection; None for one that this side has closed, of which frames may still be on their way.

        Raises:
            SandboxLostError: there never was one of that number.
        """
        if not 0 < number <= self._opened:
            raise SandboxLostError("the runner named a connection that it has not opened")
        return self._open.get(number)

    async def _serve(self, number: int, connection: _Connection, network: ProgramNetwork) -> None:
        try:
            await network.serve(connection)
        except OSError:
            pass  # the program closed it, or the sandbox is gone, which whoever reads the stream sees
        except Exception:
            log.exception("a connection of a program failed")  # and it alone
        finally:
            if self._open.pop(number, None) is not None and not self._is_stopped:
                connection.is_closed = True
                with contextlib.suppress(OSError):
                    await self._send(Frame.NET_CLOSE, CONNECTION.pack(number))

    async def close(self) -> None:
        """Ends all connections; sends nothing."""
        self._is_stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
