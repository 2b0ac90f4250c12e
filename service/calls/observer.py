"""The observer of a call: its progress, and the facts that its audit line needs beyond the response."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofbox.contracts.network import NetworkConnection, NetworkUse
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.provenance import AuditGateway
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import StreamName


@dataclass(frozen=True, slots=True)
class UsedInput:
    """A file that was put into OUT_DIR.

    Attributes:
        path: its path relative to OUT_DIR.
        asked: the text of the call that refers to it.
        source: the origin of its bytes, as in the ledger of the response.
        sha256: the SHA-256 of its bytes, in hex.
        size_bytes: its size.
        version: its version in the artifact store; None for a file that is not stored there.
    """

    path: str
    asked: str
    source: str
    sha256: str
    size_bytes: int
    version: int | None


@dataclass(frozen=True, slots=True)
class UsedReference:
    """A text that a parameter gives by its path.

    Attributes:
        param: the parameter, such as ``content``, or ``code``.
        path: the logical path.
        sha256: the SHA-256 of the text, in hex.
        size_bytes: its size as UTF-8.
        version: its version in the artifact store; None for a text that is not stored there.
    """

    param: str
    path: str
    sha256: str
    size_bytes: int
    version: int | None


@dataclass(slots=True)
class CallRecord:
    """The facts of a call for its audit line.

    Attributes:
        limits: the limits of its program; None for a call without one.
        inputs: the files that were put in.
        missing: the paths that it refers to and that were not found.
        cited: the rows of the sources pool that it cites.
        sandbox: the sandbox that it got.
        stored: the versions that it stored.
        references: the texts that its parameters gave by their paths.
        network: the connections of its program; None for one without network.
        packages: what was installed for its program; None for one that asks for no packages.
        gateway: of a call of a run: its part of the audit line.
        is_lost: its process ended while it ran, so that nobody knows what it did.
    """

    limits: CallLimits | None = None
    inputs: Sequence[UsedInput] = ()
    missing: Sequence[str] = ()
    cited: Sequence[SourceRow] = ()
    sandbox: SandboxInfo | None = None
    stored: list[StoredArtifact] = field(default_factory=list)
    references: list[UsedReference] = field(default_factory=list)
    network: NetworkUse | None = None
    packages: Sequence[InstalledPackage] | None = None
    gateway: AuditGateway | None = None
    is_lost: bool = False


class CallObserver:
    """Observes one call and records the facts for its audit line; a subclass passes the progress on.

    Args:
        owner: the caller whose share of the slots it counts against.
    """

    __slots__ = ("owner", "record")

    def __init__(self, owner: str = "") -> None:
        self.owner = owner
        self.record = CallRecord()

    def on_queued(self, position: int) -> None:
        """The call waits for a slot behind ``position`` others."""

    def on_reference(self, used: UsedReference) -> None:
        """A parameter was replaced by the text behind its path."""
        self.record.references.append(used)

    def on_inputs(self, inputs: Sequence[UsedInput], missing: Sequence[str], cited: Sequence[SourceRow]) -> None:
        """The inputs of the program were resolved."""
        self.record.inputs, self.record.missing, self.record.cited = inputs, missing, cited

    def on_limits(self, limits: CallLimits) -> None:
        """The call is about to run a program under these limits."""
        self.record.limits = limits

    async def before_start(self) -> None:
        """The call has a sandbox, and its program is about to begin.

        Raises:
            ServiceError: it may not.
        """

    def on_running(self) -> None:
        """The call is about to have effects, without a sandbox of its own."""

    def on_started(self, sandbox: SandboxInfo) -> None:
        """The call has a sandbox: from now on its program may have had effects."""
        self.record.sandbox = sandbox

    def on_output(self, stream: StreamName, piece: bytes, truncated: bool) -> None:
        """The program printed something."""

    def on_packages(self, packages: Sequence[InstalledPackage]) -> None:
        """What the call asks for is installed, or in the image."""
        self.record.packages = packages

    def on_network(self, use: NetworkUse) -> None:
        """The program is about to run and can make connections, which ``use`` will list as they end."""
        self.record.network = use

    def on_connection(self, connection: NetworkConnection) -> None:
        """A connection of the program has ended."""

    def on_stored(self, artifacts: Sequence[StoredArtifact]) -> None:
        """Files of the call were stored."""
        self.record.stored += artifacts
