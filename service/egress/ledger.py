"""The ledger of a call's connections, and the limits that they share."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from proofbox.contracts.network import (
    MADE_HOSTS_MAX,
    REFUSED_HOSTS_MAX,
    HostTotals,
    ListedConnections,
    NetworkConnection,
    NetworkUse,
)
from proofbox.service.egress.refusal import ConnectionEnded
from proofbox.service.visible_text import visible_line

WHY_CHARS_MAX = 400

OnConnection = Callable[[NetworkConnection], None]
"""Called with each connection when it has ended."""


@dataclass(slots=True)
class Entry:
    """One connection while it is open.

    Attributes:
        began: when it came, on the monotonic clock.
        host: the host that it asks for.
        port: the port.
        address: the address that it goes to.
        bytes_sent: bytes from the program.
        bytes_received: bytes to the program.
        allowed: whether it was made.
        tls_ended: whether its TLS ends here.
        why: why it was refused, failed or was ended.
    """

    began: float = field(default_factory=time.monotonic)
    host: str = ""
    port: int = 0
    address: str | None = None
    bytes_sent: int = 0
    bytes_received: int = 0
    allowed: bool = False
    tls_ended: bool = False
    why: str | None = None

    def ended(self) -> NetworkConnection:
        """The same as it is listed."""
        return NetworkConnection(
            host=self.host,
            port=self.port,
            address=self.address,
            bytes_sent=self.bytes_sent,
            bytes_received=self.bytes_received,
            ms=round((time.monotonic() - self.began) * 1000, 3),
            allowed=self.allowed,
            tls_ended=self.tls_ended,
            why=None if self.why is None else visible_line(self.why)[:WHY_CHARS_MAX],
        )


class Ledger:
    """What the connections of one call did.

    Args:
        bytes_max: bytes of all of them, in both directions.
        observers: are called with each connection that has ended.
    """

    def __init__(self, bytes_max: int, observers: Sequence[OnConnection]) -> None:
        self._bytes_max = bytes_max
        self._bytes_left = bytes_max
        self._observers = observers
        self._listed = ListedConnections()
        self._hosts: dict[tuple[str, int], HostTotals] = {}
        self._hosts_left = {True: MADE_HOSTS_MAX, False: REFUSED_HOSTS_MAX}
        self.use = NetworkUse()
        """What has ended so far."""

    def count_sent(self, entry: Entry, size: int) -> None:
        """Counts bytes from the program. Raises ConnectionEnded if the call has moved all it may."""
        self._take(size)
        entry.bytes_sent += size

    def count_received(self, entry: Entry, size: int) -> None:
        """Counts bytes to the program. Raises ConnectionEnded if the call has moved all it may."""
        self._take(size)
        entry.bytes_received += size

    def _take(self, size: int) -> None:
        self._bytes_left -= size
        if self._bytes_left < 0:
            raise ConnectionEnded(
                f"the connections of the call moved over {self._bytes_max} bytes, the operator's limit for a call"
            )

    def close(self, entry: Entry) -> None:
        """Lists a connection that has ended."""
        ended = entry.ended()
        use = self.use
        use.total += 1
        use.refused += not ended.allowed
        use.bytes_sent += ended.bytes_sent
        use.bytes_received += ended.bytes_received
        if self._listed.take(ended):
            use.connections.append(ended)
        self._add_to_host(ended)
        for observe in self._observers:
            observe(ended)

    def _add_to_host(self, ended: NetworkConnection) -> None:
        totals = self._hosts.get((ended.host, ended.port))
        if totals is None:
            if not ended.host or not self._hosts_left[ended.allowed]:
                return
            self._hosts_left[ended.allowed] -= 1
            totals = HostTotals(
                host=ended.host, port=ended.port, connections=0, refused=0, bytes_sent=0, bytes_received=0
            )
            self._hosts[ended.host, ended.port] = totals
            self.use.hosts.append(totals)
        totals.connections += 1
        totals.refused += not ended.allowed
        totals.bytes_sent += ended.bytes_sent
        totals.bytes_received += ended.bytes_received
