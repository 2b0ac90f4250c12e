"""Connections to the hosts that programs are allowed, at addresses that were checked."""

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from proofbox.contracts.codes import WebCode
from proofbox.contracts.network import Endpoint
from proofbox.service.egress.ledger import Entry, Ledger
from proofbox.service.egress.refusal import ConnectionEnded, ConnectionRefusal
from proofbox.service.sandbox.network import ProgramConnection
from proofbox.service.web.client.address_policy import Network
from proofbox.service.web.client.pinned_network import CONNECT_S, find_addresses
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.port import WebFailedError

READ_BYTES = 256 * 1024
_BUFFER_BYTES = READ_BYTES // 2  # asyncio reads ahead twice as much


@dataclass(frozen=True, slots=True)
class Upstream:
    """A connection to a host.

    Attributes:
        reader: what it sends.
        writer: what it is sent.
        address: the IP address that it was made to.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str

    async def close(self) -> None:
        """Ends it when all was sent, or cannot be."""
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                await self.writer.wait_closed()

    def abort(self) -> None:
        """Ends it at once; what was not sent is not wanted."""
        self.writer.transport.abort()


class LookupPlaces:
    """Bounds the names that are resolved at the same time, within those of a wider circle.

    A place is held until the lookup itself has ended: one that nobody waits for any more still has its thread.

    Args:
        count: how many.
        wider: the places that each of these takes one of as well.
    """

    def __init__(self, count: int, wider: "LookupPlaces | None" = None) -> None:
        self._free = asyncio.Semaphore(count)
        self._wider = wider

    async def take(self) -> None:
        """Waits for a place."""
        await self._free.acquire()
        if self._wider is not None:
            try:
                await self._wider.take()
            except BaseException:
                self._free.release()
                raise

    def give_back(self) -> None:
        """A lookup has ended."""
        self._free.release()
        if self._wider is not None:
            self._wider.give_back()


class Connector:
    """Makes connections to checked addresses.

    Args:
        resolve: how names become addresses.
        opened: networks beyond the public internet that the operator opens.
        resolve_s: how long a name may take.
    """

    def __init__(self, resolve: Resolver, opened: Sequence[Network], resolve_s: float = 10.0) -> None:
        self._resolve = resolve
        self._opened = tuple(opened)
        self._resolve_s = resolve_s
        self._lookups: set[asyncio.Task[Sequence[str]]] = set()

    async def connect(self, target: Endpoint, resolving: LookupPlaces) -> Upstream:
        """Resolves a host once, checks each of its addresses and connects to the first that answers.

        Args:
            target: the host and port.
            resolving: bounds the names that are resolved at the same time.

        Raises:
            ConnectionRefusal: an address is not allowed, or there is no connection.
        """
        try:
            async with asyncio.timeout(self._resolve_s):
                await resolving.take()
                addresses = await asyncio.shield(self._look_up(target, resolving))
        except WebFailedError as exc:
            if exc.code == WebCode.URL_NOT_ALLOWED:
                why = f"{target}: it is not on the public internet; the operator allows no other networks for it"
                raise ConnectionRefusal(why) from exc
            raise ConnectionRefusal(f"{target}: the host has no address", HTTPStatus.BAD_GATEWAY) from exc
        except TimeoutError as exc:
            why = f"{target}: its address was not found within {self._resolve_s:g} s"
            raise ConnectionRefusal(why, HTTPStatus.GATEWAY_TIMEOUT) from exc
        for address in addresses:
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    reader, writer = await asyncio.open_connection(address, target.port, limit=_BUFFER_BYTES)
                return Upstream(reader, writer, address)
        raise ConnectionRefusal(f"{target}: the host takes no connection", HTTPStatus.BAD_GATEWAY)

    def _look_up(self, target: Endpoint, resolving: LookupPlaces) -> asyncio.Task[Sequence[str]]:
        """A lookup that runs to its end, and gives its place back then."""

        def end(ended: asyncio.Task[Sequence[str]]) -> None:
            self._lookups.discard(ended)
            resolving.give_back()
            if not ended.cancelled():
                ended.exception()  # nobody may wait for it any more

        found = find_addresses(self._resolve, self._opened, target.host, target.port)
        task = asyncio.create_task(found)
        self._lookups.add(task)
        task.add_done_callback(end)
        return task


async def end_tasks(tasks: Sequence[asyncio.Future[None]]) -> list[BaseException]:
    """Cancels tasks and waits for their end; returns the exceptions of those that had failed."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    found = [task.exception() for task in tasks if not task.cancelled()]
    return [failure for failure in found if failure is not None]


class Relay:
    """Carries the bytes of one connection in both directions, and counts them.

    Args:
        program: the program's side.
        upstream: the host's side.
        ledger: counts the bytes.
        entry: the connection in the ledger.
        idle_s: how long no byte may move in either direction.
    """

    def __init__(
        self,
        program: ProgramConnection,
        upstream: Upstream,
        ledger: Ledger,
        entry: Entry,
        *,
        idle_s: float,
    ) -> None:
        self._program = program
        self._upstream = upstream
        self._ledger = ledger
        self._entry = entry
        self._idle_s = idle_s
        self._timeout = asyncio.timeout(None)

    async def run(self, *directions: Awaitable[None]) -> None:
        """Runs until all directions have ended, or one has failed.

        Raises:
            ConnectionEnded: a limit was reached.
            OSError: the program's side or the host's was closed.
        """
        tasks = [asyncio.ensure_future(direction) for direction in directions]
        try:
            async with self._timeout:
                self._has_moved()
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except TimeoutError as exc:
            raise ConnectionEnded(f"no byte moved for {self._idle_s:g} s, the operator's limit") from exc
        finally:
            failures = await end_tasks(tasks)
        if failures:
            raise failures[0]

    async def send(self, data: bytes) -> None:
        """Sends bytes of the program to the host."""
        self._ledger.count_sent(self._entry, len(data))
        self._has_moved()
        self._upstream.writer.write(data)
        await self._upstream.writer.drain()

    async def send_all(self) -> None:
        """Sends all that comes from the program, then its end."""
        while data := await self._program.read():
            try:
                await self.send(data)
            except OSError:
                return  # the host takes no more; what it sends is still passed on
        with contextlib.suppress(OSError):
            self._upstream.writer.write_eof()

    async def receive(self) -> bytes:
        """The next bytes from the host; empty at its end."""
        data = await self._upstream.reader.read(READ_BYTES)
        self._ledger.count_received(self._entry, len(data))
        self._has_moved()
        return data

    async def receive_all(self) -> None:
        """Passes all that comes from the host on to the program, then its end."""
        while data := await self.receive():
            await self._program.write(data)
            self._has_moved()
        await self._program.write_end()

    def _has_moved(self) -> None:
        if self._timeout.expired():
            return
        self._timeout.reschedule(asyncio.get_running_loop().time() + self._idle_s)
