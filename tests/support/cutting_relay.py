"""A TCP relay in front of a real server, which breaks the way there at a chosen point."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Self

_READ_BYTES = 64 * 1024
_INTERIM = re.compile(rb"^HTTP/1\.1 100 [^\r]*\r\n\r\n")


class CuttingRelay:
    """Passes bytes on between clients and a server of this machine, until it is told to cut.

    A cut resets all connections and refuses new ones until `mend`.

    Args:
        port: the server's port on loopback.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent = 0  # bytes of clients that were passed on
        self.round_trips = 0  # how often the server answered something that clients had sent after its last answer
        self.cuts = 0
        self.open_way = asyncio.Event()  # cleared: what clients send waits
        self.open_way.set()
        self.waiting = asyncio.Event()  # somebody waits
        self._held_pattern: re.Pattern[bytes] | None = None
        self._released = asyncio.Event()
        self._broken = False
        self._once = False
        self._cut_at: Callable[[bytes], int | None] | None = None
        self._answers_to: re.Pattern[bytes] | None = None
        self._answer_is_next = False
        self._answer_bytes = 0  # of it that are passed on
        self._on_cut: Callable[[], None] | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self._reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # ---- told ----

    def cut_after(self, size_bytes: int, *, on_cut: Callable[[], None] | None = None) -> None:
        """Cuts when so many more bytes of clients were passed on."""
        end = self.sent + size_bytes
        self._arm(lambda data: end - self.sent if self.sent + len(data) >= end else None, on_cut)

    def cut_before(self, pattern: bytes, *, on_cut: Callable[[], None] | None = None, once: bool = False) -> None:
        """Cuts in place of passing on what holds the pattern."""
        self._arm(lambda data: 0 if re.search(pattern, data) else None, on_cut, once=once)

    def cut_answer_to(self, pattern: bytes, *, after: int = 0, on_cut: Callable[[], None] | None = None) -> None:
        """Cuts when the server answers what holds the pattern, after so many bytes of the answer."""
        self._arm(None, on_cut)
        self._answer_bytes = after
        self._answers_to = re.compile(pattern)

    def hold_answer_to(self, pattern: bytes) -> None:
        """Holds the server's answer to the first that holds the pattern until `release`; `waiting` tells of it."""
        self._held_pattern = re.compile(pattern)
        self._released.clear()
        self.waiting.clear()

    def release(self) -> None:
        """Passes on the answer that is held."""
        self._released.set()

    def mend(self) -> None:
        """Accepts connections again and passes all on."""
        self._broken = False
        self._arm(None, None)

    def _arm(
        self, cut_at: Callable[[bytes], int | None] | None, on_cut: Callable[[], None] | None, *, once: bool = False
    ) -> None:
        self._cut_at, self._on_cut, self._once = cut_at, on_cut, once
        self._answers_to, self._answer_is_next = None, False

    # ---- passed on ----

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        try:
            if self._broken:
                writer.transport.abort()
                return
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
            self._writers.add(there_writer)
            held = asyncio.Event()  # this connection's next answer is held
            answered = asyncio.Event()  # the server sent something after the client
            try:
                await asyncio.gather(
                    self._upward(reader, there_writer, held, answered),
                    self._downward(there_reader, writer, held, answered),
                )
            finally:
                self._writers.discard(there_writer)
                there_writer.close()
        except OSError:
            pass
        finally:
            self._writers.discard(writer)
            with suppress(OSError):
                writer.close()

    async def _upward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        held: asyncio.Event,
        answered: asyncio.Event,
    ) -> None:
        while data := await reader.read(_READ_BYTES):
            answered.clear()
            if not self.open_way.is_set():
                self.waiting.set()
                await self.open_way.wait()
            at = self._cut_at(data) if self._cut_at is not None else None
            if at is not None:
                writer.write(data[:at])
                with suppress(OSError):
                    await writer.drain()
                self._cut()
                return
            if self._answers_to is not None and self._answers_to.search(data):
                self._answer_is_next = True
            if self._held_pattern is not None and self._held_pattern.search(data):
                self._held_pattern = None
                held.set()
            self.sent += len(data)
            writer.write(data)
            await writer.drain()
        writer.close()

    async def _downward(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        held: asyncio.Event,
        answered: asyncio.Event,
    ) -> None:
        while data := await reader.read(_READ_BYTES):
            if not answered.is_set():
                answered.set()
                self.round_trips += 1
            # An interim answer only invites the client to send its body.
            if self._answer_is_next and _INTERIM.sub(b"", data):
                if len(data) > self._answer_bytes:
                    writer.write(data[: self._answer_bytes])
                    await writer.drain()
                    self._cut()
                    return
                self._answer_bytes -= len(data)
            if held.is_set():
                held.clear()
                self.waiting.set()
                await self._released.wait()
            writer.write(data)
            await writer.drain()
        writer.close()

    def _cut(self) -> None:
        self.cuts += 1
        self._broken = not self._once
        if self._on_cut is not None:
            self._on_cut()
        self._arm(None, None)
        self._reset()

    def _reset(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()
