"""What the client does, step by step, without a network: plans, which a driver carries out.

A plan is a generator. It yields a step, and the driver (`sync_driver`, `async_driver`) sends back the result or
throws a `TransportFailure`. So requests, retries and parsing exist once, for both kinds of client.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from proofbox.client.uploads import UploadSource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes:
        method: ``GET`` and so on.
        target: path and query, percent-encoded, below the URL of the service.
        headers: further headers.
        body: the bytes, or a file that is read while it is sent.
        silence_s: how long the service may send nothing; None: as the client's settings.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | UploadSource | None = None
    silence_s: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request; header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Open:
    """Send a request; its result is a `Reply` whose body was not read. It ends the exchange before."""

    request: Request


@dataclass(frozen=True, slots=True)
class Read:
    """Read the next bytes of the open reply; its result is empty at the end."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand an item to the caller: an event, a piece of a file."""

    item: Any


Step: TypeAlias = Open | Read | Sleep | Deliver
Plan: TypeAlias = Generator[Step, Any, T]


class TransportFailure(Exception):  # noqa: N818 - never leaves the client
    """A request had no complete answer.

    Attributes:
        reason: what happened, as the HTTP library describes it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class NotConnected(TransportFailure):
    """There was no connection; nothing was sent."""


class ConnectionCut(TransportFailure):
    """The connection ended before the answer did."""


class Silence(TransportFailure):
    """The service sent nothing for longer than the client waits."""


def send(request: Request) -> Plan[Reply]:
    """Send a request and read the whole answer."""
    reply: Reply = yield Open(request)
    return replace(reply, body=(yield from read_all()))


def read_all() -> Plan[bytes]:
    """Read the rest of the open reply."""
    pieces: list[bytes] = []
    while piece := (yield Read()):
        pieces.append(piece)
    return b"".join(pieces)
