"""The network of a call: which hosts its program may connect to, and the connections that it made."""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from proofbox.contracts.wire_model import WireModel

ALLOW_MAX = 50
MADE_LISTED_MAX = 200
REFUSED_LISTED_MAX = 50
MADE_HOSTS_MAX = 100
REFUSED_HOSTS_MAX = 50
_HOST_CHARS_MAX = 253
_PORT_MAX = 65_535
_DEFAULT_PORT = 443
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# 2130706433, 0x7f.1 and 127.1 are addresses to some programs and names to others.
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_SHOWN_CHARS = 100


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port, or all hosts below a name and a port.

    Attributes:
        host: a name in lower case, or an IP address in its usual spelling.
        port: the TCP port.
        is_below: whether it stands for every name that ends with a dot and ``host``, and not for ``host``.
        is_address: whether ``host`` is an IP address.
    """

    host: str
    port: int
    is_below: bool = False
    is_address: bool = False

    @classmethod
    def parse(cls, text: str, *, default_port: int | None = _DEFAULT_PORT) -> Self:
        """Reads ``host:port``, ``*.host:port`` or ``[address]:port`` in the one spelling that is taken.

        Args:
            text: what is read.
            default_port: the port where none is given; None: there has to be one.

        Raises:
            ValueError: it is anything else; the message names what is wrong and how to write it.
        """
        shown = ascii(text[:_SHOWN_CHARS])
        host, port = _split(text, default_port)
        if host.startswith("["):
            try:
                address = ipaddress.IPv6Address(host.removeprefix("[").removesuffix("]"))
            except ValueError as exc:
                raise ValueError(f"{shown} has no IPv6 address; write [2001:db8::1]:443") from exc
            if address.scope_id is not None:
                raise ValueError(f"{shown} has an address with a zone; write it without")
            return cls(str(address), port, is_address=True)
        is_below = host.startswith("*.")
        name = host.removeprefix("*.").lower()
        labels = name.split(".")
        if len(name) > _HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
            raise ValueError(
                f"{shown} is not a host and a port; write pypi.org:443 or *.example.com:443, in ASCII, without a "
                "scheme, a path and a final dot"
            )
        if not _NUMERIC_LABEL.fullmatch(labels[-1]):
            return cls(name, port, is_below)
        try:
            address_v4 = ipaddress.IPv4Address(name)
        except ValueError as exc:
            raise ValueError(f"{shown} is an odd spelling of an address; write a name, or 192.0.2.1:443") from exc
        if is_below:
            raise ValueError(f"{shown} has a wildcard before an address; write a name")
        return cls(str(address_v4), port, is_address=True)

    def covers(self, other: "Endpoint") -> bool:
        """Whether everything that ``other`` stands for is allowed where this is."""
        if self.port != other.port:
            return False
        if not self.is_below:
            return not other.is_below and self.host == other.host
        if other.is_address:
            return False
        return other.host.endswith(f".{self.host}") or (other.is_below and other.host == self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'*.' if self.is_below else ''}{host}:{self.port}"


def _split(text: str, default_port: int | None) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, str(default_port or "")
    if not _PORT.fullmatch(port) or int(port) > _PORT_MAX:
        raise ValueError(f"{text[:_SHOWN_CHARS]!a} has no port from 1 to {_PORT_MAX}; write pypi.org:443")
    return host, int(port)


def _endpoint(text: str) -> str:
    return str(Endpoint.parse(text))


EndpointText = Annotated[str, Field(max_length=300), AfterValidator(_endpoint)]
"""``host:port`` or ``*.host:port``, in lower case; without a port: 443."""


class NetworkAccess(WireModel):
    """The hosts that the program of a call may connect to, within what the operator and the key allow."""

    allow: Annotated[list[EndpointText], Field(min_length=1, max_length=ALLOW_MAX)]
    """Hosts and ports, ``pypi.org:443`` or ``*.example.com:443``; without a port: 443."""


class NetworkConnection(WireModel):
    """One connection that the program of a call made, or tried to make."""

    host: str
    """The host that it asked for; empty if that could not be read."""
    port: int
    """The port; 0 if it could not be read."""
    address: str | None = None
    """The IP address that it went to; none if it was refused before."""
    bytes_sent: int
    """Bytes from the program."""
    bytes_received: int
    """Bytes to the program."""
    ms: float
    """How long it was open."""
    allowed: bool
    """Whether it was made."""
    tls_ended: bool = False
    """Whether the service ended its TLS, to set headers of the operator; else it passed untouched."""
    why: str | None = None
    """Why it was refused, failed or was ended, in a sentence; none if both sides closed it."""


class HostTotals(WireModel):
    """All connections of a call to one host and port."""

    host: str
    """The host."""
    port: int
    """The port."""
    connections: int
    """How many there were."""
    refused: int
    """How many of them were refused."""
    bytes_sent: int
    """Bytes from the program."""
    bytes_received: int
    """Bytes to the program."""


class ReachableHost(WireModel):
    """A host that the programs of a caller may connect to, if their call asks for it."""

    host: str
    """Host and port, ``pypi.org:443`` or ``*.example.com:443``."""
    variables: list[str] = []
    """The environment variables that stand for secrets of this host, whose headers the service sets; sorted."""


class ListedConnections:
    """Decides which connections of a call are listed: refused ones take no room from those that were made."""

    def __init__(self) -> None:
        self._left = {True: MADE_LISTED_MAX, False: REFUSED_LISTED_MAX}

    def take(self, connection: NetworkConnection) -> bool:
        """Whether there is room for a connection; it is taken then."""
        self._left[connection.allowed] -= 1
        return self._left[connection.allowed] >= 0


class NetworkUse(WireModel):
    """The connections of a call that may use the network."""

    connections: Annotated[list[NetworkConnection], Field(max_length=MADE_LISTED_MAX + REFUSED_LISTED_MAX)] = []
    """The first 200 that were made and the first 50 that were refused, in the order in which they ended."""
    total: int = 0
    """How many there were, listed or not."""
    refused: int = 0
    """How many of them were refused."""
    bytes_sent: int = 0
    """Bytes from the program, of all of them."""
    bytes_received: int = 0
    """Bytes to the program."""
    hosts: Annotated[list[HostTotals], Field(max_length=MADE_HOSTS_MAX + REFUSED_HOSTS_MAX)] = []
    """The sums of the first 100 hosts with a connection and of the first 50 that were refused, in the order in
    which their first connections ended."""
