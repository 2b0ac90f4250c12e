"""The port of what starts and removes containers; everything above it is the same for every engine."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.service_cgroup import ServiceCgroup


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

    async def write(self, data: bytes | bytearray) -> None:
        """Writes all of it, waiting while the other side is slow. Raises OSError."""

    async def use_direct_socket(self) -> None:
        """Switches to a direct socket to the runner, if it has laid one out; else the stream stays.

        To be called before anything is written: the runner stays with the stream of the first byte.
        """

    async def close(self) -> None:
        """Hangs up, which ends the container; never raises."""


class NotForkedError(Exception):
    """No process was forked into a container; the message has the reason. The runner can start one itself."""


class Forks(Protocol):
    """Processes that have imported already, forked into one container; see `service.sandbox.zygotes`."""

    def has(self, flavour: PreloadSet) -> bool:
        """Whether an interpreter of this flavour can be had at once; where not, one is made ready for later."""

    async def interpreter(self, flavour: PreloadSet) -> None:
        """Forks an interpreter of a flavour into the container, for the runner to adopt. Raises NotForkedError."""

    async def inspector(self, *, of_plain_files: bool) -> None:
        """Forks what opens files into the container. Raises NotForkedError.

        Args:
            of_plain_files: whether they are opened without libraries. One for plain files opens others too, later.
        """


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
class OrphanContainer:
    """A container of this service that is still there.

    Attributes:
        container_id: its id.
        name: what it was started as.
        boot_id: the process of the service that made it.
    """

    container_id: str
    name: str
    boot_id: str


class Containers(Protocol):
    """Hardened containers of one service; every method raises EngineUnavailableError when it cannot."""

    async def connect(self) -> SandboxInfo:
        """Makes sure that containers can be started, and returns of what kind they are."""

    async def close(self) -> None:
        """Lets go of what `connect` took; never raises."""

    async def memory_bytes(self) -> int:
        """How much memory there is for containers, free or in total, as far as the engine reports."""

    @property
    def together(self) -> ServiceCgroup | None:
        """What bounds all containers of the service together; None where that is not in this process's hands."""

    async def ping(self) -> None:
        """Asks whoever starts the containers, not our own memory."""

    @property
    def updates_limits(self) -> bool:
        """Whether `set_limits` can be used."""

    async def prepare(self, flavour: PreloadSet) -> bool:
        """Waits, not for ever, while what interpreters of that flavour are forked from is being started.

        Returns:
            Whether a container that is started now gets an interpreter of that flavour; else it gets a bare one.
        """

    async def start(
        self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: PreloadSet, user_id: int
    ) -> Container:
        """Starts a container whose processes run as ``user_id``.

        Where nothing can be forked into it, its interpreter imports the libraries of ``flavour``.

        One that imports anything has a small share of the CPU until `begin_waiting`. No part of it is left when
        this raises. Not to be cancelled.
        """

    async def begin_waiting(self, container_id: str, flavour: PreloadSet) -> None:
        """Its runner is ready: from here on it has the share of the CPU that it was promised."""

    async def set_limits(self, container_id: str, limits: CallLimits) -> None:
        """Sets memory, CPU share and processes of a container that waits; what is refused changes nothing."""

    async def name_after(self, container_id: str, name: str, call_name: str) -> None:
        """Lets an operator see which call a container serves; ``name`` is what it was started as."""

    async def remove(self, container_id: str) -> None:
        """Removes a container, running or not; one that is gone or going is fine."""

    async def died_of_memory(self, container_id: str) -> bool:
        """Whether the kernel killed processes of a container for memory; False if nobody knows."""

    async def died_of_processes(self, container_id: str) -> bool:
        """Whether a container ended because there were too many processes in it; False if nobody knows."""

    async def list_orphans(self) -> list[OrphanContainer]:
        """All containers of this service, of any process of it, running or not.

        Where services share an engine, also those of others that were created and abandoned before their start.
        """
