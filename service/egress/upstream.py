"""Connections to the hosts that programs are allowed, at addresses that were checked."""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from proofbox.contracts.codes import WebCode
from proofbox.contracts.network import Endpoint
from proofbox.service.egress.ledger import Entry, Ledger
from proofbox.service.egress.lookups import Places
from proofbox.service.egress.refusal import ConnectionEnded, ConnectionRefusal
from proofbox.service.sandbox.network import ProgramConnection
from proofbox.service.web.client.address_policy import Network
from proofbox.service.web.client.pinned_network import CONNECT_S, find_addresses
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import Tls
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


class Connector:
    """Makes connections to checked addresses.

    Args:
        resolve: how names become addresses.
        opened: networks beyond the public internet that the operator opens.
        resolve_s: how long a name may take.
        tls: checks the certificates of hosts whose TLS ends here; None: there are none.
    """

    def __init__(
        self, resolve: Resolver, opened: Sequence[Network], resolve_s: float = 10.0, tls: Tls | None = None
    ) -> None:
        self._resolve = resolve
        self._opened = tuple(opened)
        self._resolve_s = resolve_s
        self._tls = tls
        self._loaded_tls: ssl.SSLContext | None = None
        self._lookups: set[asyncio.Task[Sequence[str]]] = set()

    async def connect(self, target: Endpoint, resolving: Places) -> Upstream:
        """Resolves a host once, checks each of its addresses and connects to the first that answers.

        Args:
            target: the host and port.
            resolving: bounds the names that are resolved at the same time.

        Raises:
            ConnectionRefusal: an address is not allowed, or there is no connection.
        """
        for address in await self._find_addresses(target, resolving):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(CONNECT_S):
                    reader, writer = await asyncio.open_connection(address, target.port, limit=_BUFFER_BYTES)
                return Upstream(reader, writer, address)
        raise ConnectionRefusal(f"{target}: the host takes no connection", HTTPStatus.BAD_GATEWAY)

    async def connect_tls(self, target: Endpoint, resolving: Places) -> Upstream:
        """The same with TLS to the host, whose certificate has to be valid for its name.

        Raises:
            ConnectionRefusal: as `connect`; the certificate or the TLS of the host is not valid.
        """
        if self._tls is None:
            raise ConnectionRefusal(f"{target}: the service ends no TLS", HTTPStatus.BAD_GATEWAY)
        if self._loaded_tls is None:
            self._loaded_tls = await asyncio.to_thread(self._tls)
        why = "the host takes no connection"
        for address in await self._find_addresses(target, resolving):
            try:
                async with asyncio.timeout(2 * CONNECT_S):
                    reader, writer = await asyncio.open_connection(
                        address, target.port, limit=_BUFFER_BYTES, ssl=self._loaded_tls, server_hostname=target.host
                    )
                return Upstream(reader, writer, address)
            except ssl.SSLCertVerificationError as exc:
                why = f"the certificate of the host is not valid: {exc.verify_message}"
            except ssl.SSLError as exc:
                why = f"the TLS of the host is not valid: {exc.reason}"
            except (OSError, TimeoutError):
                continue
        raise ConnectionRefusal(f"{target}: {why}", HTTPStatus.BAD_GATEWAY)

    async def _find_addresses(self, target: Endpoint, resolving: Places) -> Sequence[str]:
        try:
            async with asyncio.timeout(self._resolve_s):
                await resolving.take()
                return await asyncio.shield(self._look_up(target, resolving))
        except WebFailedError as exc:
            if exc.code == WebCode.URL_NOT_ALLOWED:
                why = f"{target}: it is not on the public internet; the operator allows no other networks for it"
                raise ConnectionRefusal(why) from exc
            raise ConnectionRefusal(f"{target}: the host has no address", HTTPStatus.BAD_GATEWAY) from exc
        except TimeoutError as exc:
            why = f"{target}: its address was not found within {self._resolve_s:g} s"
            raise ConnectionRefusal(why, HTTPStatus.GATEWAY_TIMEOUT) from exc

    def _look_up(self, target: Endpoint, resolving: Places) -> asyncio.Task[Sequence[str]]:
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


async def end_tasks(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException]:
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
        counts_sent: False: bytes are counted as they come from the program, and not as they leave.
    """

    def __init__(
        self,
        program: ProgramConnection,
        upstream: Upstream,
        ledger: Ledger,
        entry: Entry,
        *,
        idle_s: float,
        counts_sent: bool = True,
    ) -> None:
        self._counts_sent = counts_sent
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
        if self._counts_sent:
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
