"""The server name of a TLS connection, read from its first message without taking part in it.

The message is read twice: here, for what OpenSSL does not show (a second name inside an encrypted extension), and
by OpenSSL. A message that the two read differently is refused, because a server may read it differently as well.
"""

import contextlib
import ssl
import struct
from dataclasses import dataclass

_RECORD = struct.Struct(">BBxH")
_HANDSHAKE = 22
_VERSION_MAJOR = 3
_RECORD_BYTES_MAX = 16_384
_RECORDS_MAX = 64
_CLIENT_HELLO = 1
_HELLO_BYTES_MAX = 32 * 1024
_MESSAGE_HEADER_BYTES = 4
_SERVER_NAME = 0
_ENCRYPTED = frozenset({0xFE0D, 0xFFCE})  # a whole ClientHello, and the server name of an older draft
_HOST_NAME = 0


class NoClientHelloError(ValueError):
    """The bytes are no ClientHello that can be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ClientHello:
    """What a ClientHello asks for.

    Attributes:
        server_name: the name, in lower case; None if it has none.
        is_encrypted: it has an encrypted second ClientHello or server name, which may be another one.
    """

    server_name: str | None
    is_encrypted: bool


class ClientHelloReader:
    """Reads a ClientHello as its bytes come."""

    def __init__(self) -> None:
        self.received = bytearray()
        """All bytes so far."""
        self._at = 0  # where the record begins that is not complete
        self._records = 0
        self._message = bytearray()

    def feed(self, data: bytes) -> ClientHello | None:
        """Adds bytes; returns the ClientHello once it is complete.

        Raises:
            NoClientHelloError: it is none.
        """
        self.received += data
        if self.received and self.received[0] != _HANDSHAKE:
            raise NoClientHelloError("it does not begin with a TLS handshake")
        while (record := self._take_record()) is not None:
            self._message += record
            if (body := self._body()) is not None:
                return self._hello(body)
        return None

    def _take_record(self) -> bytes | None:
        """The content of the next record; None while it is not complete. Each byte is read once."""
        if len(self.received) - self._at < _RECORD.size:
            return None
        kind, major, length = _RECORD.unpack_from(self.received, self._at)
        if (kind, major) != (_HANDSHAKE, _VERSION_MAJOR) or not 0 < length <= _RECORD_BYTES_MAX:
            raise NoClientHelloError("it does not begin with a TLS handshake")
        if self._records == _RECORDS_MAX:
            raise NoClientHelloError(f"the ClientHello is cut into over {_RECORDS_MAX} records")
        begin = self._at + _RECORD.size
        if len(self.received) < begin + length:
            return None
        self._records += 1
        self._at = begin + length
        return bytes(self.received[begin : self._at])

    def _body(self) -> bytes | None:
        """The body of the handshake message, which records cut anywhere; None while it is not complete."""
        message = self._message
        if message[0] != _CLIENT_HELLO:
            raise NoClientHelloError("it does not begin with a ClientHello")
        if len(message) < _MESSAGE_HEADER_BYTES:
            return None
        size = int.from_bytes(message[1:_MESSAGE_HEADER_BYTES]) + _MESSAGE_HEADER_BYTES
        if size > _HELLO_BYTES_MAX:
            raise NoClientHelloError(f"the ClientHello has over {_HELLO_BYTES_MAX} bytes")
        if len(message) < size:
            return None
        if len(message) > size:
            raise NoClientHelloError("the ClientHello is followed by another message")
        return bytes(message[_MESSAGE_HEADER_BYTES:])

    def _hello(self, body: bytes) -> ClientHello:
        hello = _read(body)
        if _name_by_openssl(bytes(self.received)) != hello.server_name:
            raise NoClientHelloError("the ClientHello can be read in two ways")
        return hello


class _Fields:
    """Reads lengths and bytes, and nothing beyond the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def take(self, size: int) -> bytes:
        piece = self._data[self._at : self._at + size]
        if len(piece) < size:
            raise NoClientHelloError("the ClientHello is cut off")
        self._at += size
        return piece

    def vector(self, length_bytes: int) -> "_Fields":
        return _Fields(self.take(self.number(length_bytes)))


def _read(body: bytes) -> ClientHello:
    fields = _Fields(body)
    fields.take(2 + 32)  # version and random
    fields.vector(1)  # session
    fields.vector(2)  # cipher suites
    fields.vector(1)  # compression
    name, seen = None, set()
    extensions = fields.vector(2) if fields else _Fields(b"")
    if fields:
        raise NoClientHelloError("the ClientHello has bytes after its end")
    while extensions:
        kind = extensions.number(2)
        content = extensions.vector(2)
        if kind in seen:
            raise NoClientHelloError("the ClientHello has an extension twice")
        seen.add(kind)
        if kind == _SERVER_NAME:
            name = _server_name(content)
    return ClientHello(name, not seen.isdisjoint(_ENCRYPTED))


def _server_name(extension: _Fields) -> str:
    names = extension.vector(2)
    kind, name = names.number(1), names.vector(2)
    raw = b""
    while name:
        raw += name.take(1)
    if kind != _HOST_NAME or names or extension or not raw.isascii() or not raw.decode().isprintable() or not raw:
        raise NoClientHelloError("the ClientHello has no single server name")
    return raw.decode().lower()


def _name_by_openssl(received: bytes) -> str | None:
    found: list[str | None] = []

    def note(_connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> int:
        found.append(name)
        return ssl.AlertDescription.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = note
    incoming = ssl.MemoryBIO()
    incoming.write(received)
    with contextlib.suppress(ssl.SSLError):  # the callback refuses, so that nothing goes on
        context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True).do_handshake()
    if not found:
        raise NoClientHelloError("the ClientHello cannot be read")
    return None if found[0] is None else found[0].lower()
