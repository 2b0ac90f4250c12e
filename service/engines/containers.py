"""The port of what starts and removes containers; everything above it is the same for every engine."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from contracts.tool_calls import SandboxInfo
from service.core.flavours import Flavour
from service.core.limits import CallLimits


class ContainerTransport(Protocol):
    """The stream to a runner, and what is known of its other end."""

    @property
    def is_open(self) -> bool:
        """False once the other side has hung up: the container has ended."""

    @property
    def stderr_tail(self) -> bytes:
        """The end of what the runner itself complained about; empty unless it is broken."""

    async def read(self) -> bytes:
        """The next bytes; empty when the other side is gone. Raises OSError."""

    async def write(self, data: bytes) -> None:
        """Writes all of it, waiting while the other side is slow. Raises OSError."""

    async def close(self) -> None:
        """Hangs up, which ends the container; never raises."""


class NotForkedError(Exception):
    """No process was forked into a container; the message says why. The runner can start one itself."""


class Forks(Protocol):
    """Processes that have imported already, forked into one container; see `service.engines.forking`."""

    def has(self, flavour: Flavour) -> bool:
        """Whether an interpreter of this flavour can be had at once; where not, one is made ready for later."""

    async def interpreter(self, flavour: Flavour) -> None:
        """Forks an interpreter into the container, for the runner to adopt. Raises NotForkedError."""

    async def inspector(self) -> None:
        """Forks what opens files into the container. Raises NotForkedError."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container that has been started.

    Attributes:
        container_id: its id.
        attach: opens the stream to its runner; to be called once, on the event loop.
        forks: what can be forked into it; None where its runner has to start everything itself.
    """

    container_id: str
    attach: Callable[[], Awaitable[ContainerTransport]]
    forks: Forks | None = None


@dataclass(frozen=True, slots=True)
class LeftContainer:
    """A container of this service that is still there.

    Attributes:
        container_id: its id.
        boot_id: the life of the service that made it.
        deadline_epoch_s: when it has to be gone.
    """

    container_id: str
    boot_id: str
    deadline_epoch_s: float


class Containers(Protocol):
    """Hardened containers of one service; every method raises EngineUnavailableError when it cannot."""

    async def connect(self) -> SandboxInfo:
        """Makes sure that containers can be started, and says of what kind they are."""

    async def close(self) -> None:
        """Lets go of what `connect` took; never raises."""

    async def ping(self) -> None:
        """Asks whoever starts the containers, not our own memory."""

    @property
    def warm_flavours(self) -> frozenset[Flavour]:
        """The flavours that need waiting containers of their own; bare ones serve the others as well."""

    async def start(self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: Flavour) -> Container:
        """Starts a container whose interpreter imports what ``flavour`` says.

        Nothing of it is left when this raises. Not to be cancelled.
        """

    async def remove(self, container_id: str) -> None:
        """Removes a container, running or not; one that is gone or going is fine."""

    async def died_of_memory(self, container_id: str) -> bool:
        """Whether the kernel killed processes of a container for memory; False if nobody knows."""

    async def left(self) -> list[LeftContainer]:
        """All containers of this service, of any life of it, running or not."""
