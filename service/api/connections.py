"""Limits of connections: their number, of one client and in total, and the time of unread responses."""

import asyncio
import fcntl
import ipaddress
import math
import resource
import struct
import termios
from collections import Counter
from dataclasses import dataclass, field

READ_BYTES_PER_S_MIN = 1024
"""A client that takes an answer more slowly than this counts as one that reads nothing."""
_DESCRIPTORS_OF_A_CONNECTION = 2  # its own, and one for what its call opens
_IPV6_SUBSCRIBER_BITS = 64  # one client has at least such a network to itself


@dataclass
class ConnectionLimits:
    """Bounds of the connections of one server, and the count of its connections.

    Attributes:
        head_s: how long the head of a request may take to arrive, in seconds.
        unread_s: how long a client may pause reading a response, in seconds; then its connection ends.
        connections_max: the maximal number of connections.
        per_address_max: the maximal number of connections of one client, see `client_network`.
    """

    head_s: float = 10.0
    unread_s: float = 60.0
    connections_max: int = 8_000
    per_address_max: int = 2_000
    _of: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def enter(self, network: str) -> bool:
        """Count a new connection.

        Returns:
            Whether it is within the bounds. `leave` has to be called in either case.
        """
        self._of[network] += 1
        return self._of[network] <= self.per_address_max and self._of.total() <= self.connections_max

    def leave(self, network: str) -> None:
        """Count the end of a connection."""
        self._of[network] -= 1
        if not self._of[network]:
            del self._of[network]


def client_network(address: str) -> str:
    """The network that counts as one client: an IPv4 address, or the /64 network of an IPv6 address.

    An IPv4 address that is mapped into IPv6 (``::ffff:192.0.2.1``) is the same client as the IPv4 address.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # a Unix socket has no address
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(parsed), _IPV6_SUBSCRIBER_BITS), strict=False))


def make_room_for_connections(connections_max: int) -> int:
    """Raise the limit of open files of this process as far as connections need it and the system allows.

    Returns:
        The number of connections that the limit has room for, at most ``connections_max``.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections_max * _DESCRIPTORS_OF_A_CONNECTION
    if soft < needed and soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return connections_max
    return max(1, min(connections_max, soft // _DESCRIPTORS_OF_A_CONNECTION))


class UnreadClock:
    """End a connection whose client reads too slowly.

    Bytes count as unread until the client's machine has acknowledged them: the transport does not see how much the
    client reads from a large buffer of the kernel.

    Args:
        transport: the connection; something that was written to it is unread.
        limit_s: how long the client may read nothing, in seconds.
    """

    __slots__ = ("_limit_s", "_loop", "_timer", "_transport", "_unread")

    def __init__(self, transport: asyncio.Transport, limit_s: float) -> None:
        self._transport = transport
        self._limit_s = limit_s
        self._loop = asyncio.get_running_loop()
        self._unread = math.inf
        # The first check is a moment later: a response may be written in two pieces.
        self._timer: asyncio.Handle = self._loop.call_soon(self._check)

    def stop(self) -> None:
        """Stop the clock: the client has read everything, or has disconnected."""
        self._timer.cancel()

    def _check(self) -> None:
        unread = self._transport.get_write_buffer_size() + _unacknowledged(self._transport)
        if self._unread - unread < self._limit_s * READ_BYTES_PER_S_MIN:
            self._transport.abort()
            return
        self._unread = unread
        self._timer = self._loop.call_later(self._limit_s, self._check)


def _unacknowledged(transport: asyncio.Transport) -> int:
    """The bytes that the kernel has for the client, and has no acknowledgement of."""
    connection = transport.get_extra_info("socket")
    (size_bytes,) = struct.unpack("i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))
    return int(size_bytes)
