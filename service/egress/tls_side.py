"""A program's connection after its TLS: what it sends and gets inside, as the server that it takes this for."""

import asyncio
import contextlib
import ssl
from collections.abc import Callable

from proofbox.service.egress.refusal import ConnectionEnded
from proofbox.service.sandbox.network import ProgramConnection

_READ_BYTES = 64 * 1024
_WRITE_BYTES = 128 * 1024
_TRUST = "let it trust the file that SSL_CERT_FILE names"


class NoTlsError(ValueError):
    """The program made no TLS connection; the message is the reason."""


class TlsSide:
    """The port `ProgramConnection` within the TLS of a program.

    Args:
        program: the connection that carries the TLS.
        context: the certificate of the host that the program asked for.
        count: is called with the number of bytes that come from the program, TLS included.
    """

    def __init__(self, program: ProgramConnection, context: ssl.SSLContext, count: Callable[[int], None]) -> None:
        self._program = program
        self._count = count
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._writing = asyncio.Lock()
        self._has_ended = False

    async def accept(self, hello: bytes) -> None:
        """Makes the connection.

        Args:
            hello: what the program has sent already.

        Raises:
            NoTlsError: the program made none.
            ConnectionError: the program closed the connection.
            ConnectionEnded: a limit was reached.
        """
        self._count(len(hello))
        self._incoming.write(hello)
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    raise NoTlsError(
                        f"the program closed the connection during its TLS handshake; {_TRUST}"
                    ) from None
            except ssl.SSLError as exc:
                await self._flush()
                raise NoTlsError(_reason(exc)) from exc
            else:
                await self._flush()
                return

    async def read(self) -> bytes:
        """See `ProgramConnection.read`.

        Raises:
            ConnectionEnded: the program broke its TLS, or a limit was reached.
        """
        data = bytearray()
        while len(data) < _READ_BYTES:
            try:
                piece = self._tls.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                await self._flush()  # such as the reply to a change of keys
                if data:
                    break
                if not await self._receive():
                    return b""
                continue
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            except ssl.SSLError as exc:
                raise ConnectionEnded(_reason(exc)) from exc
            if not piece:
                break
            data += piece
        return bytes(data)

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `ProgramConnection.write`."""
        left = memoryview(data)
        while left:
            piece, left = left[:_WRITE_BYTES], left[_WRITE_BYTES:]
            async with self._writing:
                try:
                    self._tls.write(piece)
                except ssl.SSLError as exc:
                    raise ConnectionResetError("the program closed its TLS") from exc
                await self._program.write(self._outgoing.read())

    async def write_end(self) -> None:
        """See `ProgramConnection.write_end`."""
        with contextlib.suppress(ssl.SSLError):  # the program's end is still to come, or it closed in another way
            self._tls.unwrap()
        await self._flush()
        await self._program.write_end()

    async def _receive(self) -> bool:
        """Takes what the program sends next; False at its end."""
        if self._has_ended:
            return False
        raw = await self._program.read()
        self._count(len(raw))
        if raw:
            self._incoming.write(raw)
        else:
            self._has_ended = True
            self._incoming.write_eof()
        return bool(raw)

    async def _flush(self) -> None:
        if self._outgoing.pending:
            async with self._writing:
                if data := self._outgoing.read():
                    await self._program.write(data)


def _reason(exc: ssl.SSLError) -> str:
    """Why a program's TLS failed; what OpenSSL names is a constant."""
    reason = str(exc.reason or "TLS failed").lower().replace("_", " ")
    if "unknown ca" in reason or "certificate" in reason:
        return f"the program does not accept the proxy's certificate for a host with a secret ({reason}); {_TRUST}"
    return f"the program made no valid TLS connection ({reason})"
