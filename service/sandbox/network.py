"""The network of a program, as a sandbox needs it: what serves its connections, whoever decides about them."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """How many connections a program may make to its proxy.

    Attributes:
        open_max: at the same time; more wait until one is closed.
        accepted_max: in all, those that are refused included; then nothing listens any more.
        bytes_max: of all connections together.
    """

    open_max: int
    accepted_max: int
    bytes_max: int


class ProgramConnection(Protocol):
    """One connection of a program to its proxy. Memory is bounded in both directions."""

    async def read(self) -> bytes:
        """The next bytes from the program; empty when it sends no more.

        Raises:
            ConnectionError: the program closed it.
        """

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends bytes to the program, waiting while it does not read.

        Raises:
            ConnectionError: the program closed it, or the sandbox is gone.
        """

    async def write_end(self) -> None:
        """Ends what is sent to the program, which may still send. Raises as `write`."""


class ProgramNetwork(Protocol):
    """Serves the connections of one program."""

    @property
    def bounds(self) -> ConnectionBounds:
        """How many connections it takes."""

    @property
    def roots(self) -> str:
        """Certificate authorities that its program is to trust beside the public ones, PEM; empty: none."""

    async def serve(self, connection: ProgramConnection) -> None:
        """Serves a connection to its end; it is closed when this returns, raises or is cancelled."""
