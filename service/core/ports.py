"""The ports: what the story of a call needs from an engine and from the stores, and every exception of theirs."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from contracts.paths import FilePath
from contracts.tool_calls import SandboxInfo, SourceRow
from contracts.tools import Language
from service.core.limits import CallLimits

StreamName = Literal["stdout", "stderr"]
ProgramKind = Language | Literal["render"]
"""What the runner can start: a program of the user in some language, or our renderer."""
OnOutput = Callable[[StreamName, bytes, bool], None]
"""Called with each piece of output as it comes: which stream, the bytes, whether the rest is not passed on."""


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request speaks; part of every key in a store."""

    tenant: str
    project: str
    user_type: str
    user: str


@dataclass(frozen=True, slots=True)
class Scope:
    """One conversation of one principal: no store ever answers across two scopes."""

    principal: Principal
    conversation_id: str


# ---- engine ----


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox has to be.

    Attributes:
        call_name: a name for the container, made by the service.
        limits: the limits it is created with.
        lifetime_s: after so many seconds nothing of it may exist, whatever the service does.
    """

    call_name: str
    limits: CallLimits
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is put into OUT_DIR before the program starts.

    Attributes:
        path: where.
        source: a local file with its bytes; it is only read.
        size_bytes: how many.
        writable: the program may change it; files of other turns are read-only.
    """

    path: FilePath
    source: Path
    size_bytes: int
    writable: bool


@dataclass(frozen=True, slots=True)
class Job:
    """The program to run.

    Attributes:
        language: which interpreter.
        code: its bytes, run as they are; the renderer's are its request, as JSON.
        prog_name: its ``argv[0]``.
        turn_id: the current turn, whose ``files/`` is the place to write.
        limits: what it may use.
    """

    language: ProgramKind
    code: bytes
    prog_name: str
    turn_id: str
    limits: CallLimits


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How the program ended; every field is measured outside of the program.

    Attributes:
        exit_code: its status, or None if a signal ended it.
        signal: the signal that ended it.
        timed_out: the wall clock ended it.
        output_exceeded: it wrote more than ``output_bytes``.
        oom_kills: processes of the sandbox that the kernel killed for memory during the run.
        pids_hits: how often the kernel refused a new process during the run.
        disk_full: OUT_DIR or /tmp had no byte or no inode left when it ended.
        stdout_bytes: what it wrote, kept or not.
        stderr_bytes: what it wrote, kept or not.
        log_tail: the end of stdout and stderr together, in the order they came, as bytes.
        stderr_tail: the end of stderr alone.
        cpu_ms: CPU time of the program and its children.
        memory_peak_bytes: the most memory the sandbox held, where the kernel says.
        lost: why the sandbox itself is gone, if it is: then nothing else here counts.
        lost_to_memory: the sandbox is gone because the kernel killed its first process for memory.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    output_exceeded: bool = False
    oom_kills: int = 0
    pids_hits: int = 0
    disk_full: bool = False
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    log_tail: bytes = b""
    stderr_tail: bytes = b""
    cpu_ms: float = 0.0
    memory_peak_bytes: int | None = None
    lost: str | None = None
    lost_to_memory: bool = False


class FileState(StrEnum):
    """What lies at a promised path, before anybody opens it."""

    FILE = "file"
    MISSING = "missing"
    STALE = "stale"
    SYMLINK = "symlink"
    NOT_REGULAR = "not_regular"
    ESCAPE = "escape"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class WantedFile:
    """One promise, as the sandbox judges it.

    Attributes:
        rel: the path or pattern below the current turn's ``files/``.
        is_glob: whether ``rel`` is a pattern.
        matches_max: how many matches of a pattern are looked at.
        checks: what the inspector checks beyond opening the file.
    """

    rel: str
    is_glob: bool
    matches_max: int
    checks: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that is to be collected after a run.

    Attributes:
        turn_id: the current turn.
        files: the promises, in order.
        extras_max: how many files that were not promised are brought back.
        limits: bounds on count, depth and size.
    """

    turn_id: str
    files: tuple[WantedFile, ...]
    extras_max: int
    limits: CallLimits


@dataclass(frozen=True, slots=True)
class Inspection:
    """What the inspector said of a file it opened.

    Attributes:
        ok: it is what its extension says and the checks hold.
        mime: its media type.
        problem: what is wrong, in a sentence.
        facts: what was measured: pages, rows, width.
    """

    ok: bool
    mime: str
    problem: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    """One file that was looked at for a promise, or that nobody promised.

    Attributes:
        path: where it is.
        promise: the index of the promise that it is for; None if nobody promised it.
        state: what lies there.
        size_bytes: its size, if it is a file.
        inspection: what the inspector said; None if it was not opened.
        local: where its bytes are now, below the folder given to ``collect``; None if they stayed inside.
        sha256: their SHA-256 in hex, computed as they came.
    """

    path: FilePath
    promise: int | None
    state: FileState
    size_bytes: int = 0
    inspection: Inspection | None = None
    local: Path | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run left behind.

    Attributes:
        found: promised files in contract order (a pattern gives one for each match, or one MISSING for none),
            then what nobody promised.
        odd_names: names that the protocol refuses, escaped for display; their files stayed inside.
        extras_total: how many files nobody promised, brought back or not.
        files_exceeded: there are more files than the limit; the rest was not looked at.
        depth_exceeded: there are deeper folders than the limit; they were not looked at.
    """

    found: tuple[Found, ...]
    odd_names: tuple[str, ...] = ()
    extras_total: int = 0
    files_exceeded: bool = False
    depth_exceeded: bool = False


class SandboxLostError(Exception):
    """The sandbox died under our hands; the call is answered with ``sandbox_failed``."""


class Sandbox(Protocol):
    """One throw-away container, already running and warm. It serves one call."""

    @property
    def info(self) -> SandboxInfo:
        """Which engine, runtime and image, and whether it was warm."""

    async def put(self, turn_id: str, files: Sequence[InputFile]) -> None:
        """Puts files into OUT_DIR and makes the current turn's folders.

        Raises:
            SandboxLostError: the container is gone, or OUT_DIR cannot hold the files.
        """

    async def run(self, job: Job, *, on_output: OnOutput) -> ProcessOutcome:
        """Runs the program to its end or its wall clock; never raises for the program's own failure.

        A sandbox that dies is an outcome with ``lost``.
        """

    async def collect(self, wanted: Wanted, into: Path) -> Collected:
        """Ends all processes of the program, judges what it left and brings it into the folder ``into``.

        Bounded in count, size, depth and time.

        Raises:
            SandboxLostError: the container is gone or does not answer in time.
            StoreFullError: the folder cannot take the bytes.
        """


class SandboxEngine(Protocol):
    """Where sandboxes come from."""

    async def start(self) -> None:
        """Sweeps and begins to keep sandboxes ready.

        Raises:
            EngineUnavailableError: the engine does not answer, or the image is not there.
        """

    async def stop(self) -> None:
        """Removes every sandbox of this life of the service; never raises."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox; always removed on exit, on cancel and after a crash.

        Raises:
            EngineUnavailableError: it could not be started.
        """

    async def ping(self) -> None:
        """Asks the engine itself, not our process.

        Raises:
            EngineUnavailableError: it does not answer.
        """

    async def sweep(self) -> int:
        """Removes what an earlier life of the service left, and what is past its deadline; how many.

        Raises:
            EngineUnavailableError: the engine does not answer.
        """


# ---- stores ----


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """A file on its way into the store.

    Attributes:
        path: its path in the conversation.
        source: a local file below a staging folder of the store; the store may move it.
        size_bytes: its size.
        sha256: its SHA-256, in hex.
        mime: its media type.
        visibility: only ``external`` ones are hosted.
        description: what it is.
        tool_call_id: the call that made it; None for an attachment.
    """

    path: FilePath
    source: Path
    size_bytes: int
    sha256: str
    mime: str
    visibility: Literal["external", "internal"]
    description: str
    tool_call_id: str | None


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """One version of a file of a conversation.

    Attributes:
        path: its path.
        version: 1 for the first.
        size_bytes: its size.
        sha256: its SHA-256, in hex.
        mime: its media type.
        visibility: ``external`` or ``internal``.
        description: what it is.
        created: when: UTC, RFC 3339, ``Z``.
        hosted_uri: where it is hosted; None for internal files.
        rn: its resource name; None for internal files.
        key: its key; None for internal files.
    """

    path: FilePath
    version: int
    size_bytes: int
    sha256: str
    mime: str
    visibility: Literal["external", "internal"]
    description: str
    created: str
    hosted_uri: str | None = None
    rn: str | None = None
    key: str | None = None


class ArtifactStore(Protocol):
    """Files of conversations, every version of them. All methods raise StoreFailedError if the store fails."""

    def staging(self) -> AbstractAsyncContextManager[Path]:
        """A fresh local folder on the store's own file system, removed on exit."""

    async def save(self, scope: Scope, artifacts: Sequence[NewArtifact]) -> list[StoredArtifact]:
        """Stores and, if external, hosts all of them or none; a path that is there gets a new version.

        Raises:
            StoreFullError: no space is left.
        """

    async def latest(self, scope: Scope, path: FilePath) -> StoredArtifact | None:
        """The latest version of a path, if there is one."""

    async def of_turn(self, scope: Scope, turn_id: str) -> list[StoredArtifact]:
        """The latest versions of all files and attachments of a turn, in the order of their paths."""

    async def fetch(self, scope: Scope, artifact: StoredArtifact, staging: Path) -> Path:
        """A local file with the bytes of that version, their SHA-256 checked; valid while ``staging`` is."""

    def read(self, scope: Scope, artifact: StoredArtifact, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from ``start`` to before ``end``, in pieces."""

    async def fetch_uri(self, scope: Scope, uri: str, staging: Path) -> Path | None:
        """A local file with the bytes behind a ``hosted_uri`` of this scope's own tenant and project.

        None if the URI is not one of this store, or of another tenant or project.
        """


class SourcePool(Protocol):
    """The sources of conversations. All methods raise StoreFailedError if the store fails."""

    async def rows(self, scope: Scope) -> list[SourceRow]:
        """All rows, by ascending sid."""

    async def add_file(self, scope: Scope, artifact: StoredArtifact) -> SourceRow:
        """The row of a hosted file or attachment; made with the next free sid if there is none."""

    async def complete(self, scope: Scope, rows: Sequence[SourceRow]) -> None:
        """Adds rows of a call; rows that are there already must mean the same.

        Raises:
            SidConflictError: a sid means something else here; then no row is added.
        """


class CallState(StrEnum):
    """Where a call stands in the store."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CallKey:
    """The name of a call: its conversation and the loop's own id."""

    scope: Scope
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call as the store knows it.

    Attributes:
        key: its name.
        payload_sha256: the hash of the request as it was accepted.
        state: where it stands.
        boot_id: the life of the service that accepted it.
        created: when: UTC, RFC 3339, ``Z``.
        request: the request, as JSON text.
        answer: the response (state done) or the problem (failed, cancelled), as JSON text; None while open.
    """

    key: CallKey
    payload_sha256: str
    state: CallState
    boot_id: str
    created: str
    request: str
    answer: str | None


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call at the door.

    Attributes:
        key: its name.
        payload_sha256: the hash of the request.
        request: the request, as JSON text.
        boot_id: the life of the service that accepts it.
        idempotency_key: a second name that the client gave it, unique for the principal.
    """

    key: CallKey
    payload_sha256: str
    request: str
    boot_id: str
    idempotency_key: str | None


class CallStore(Protocol):
    """Accepted calls and their one answer. All methods raise StoreFailedError if the store fails."""

    async def claim(self, call: NewCall) -> tuple[StoredCall, bool]:
        """Registers a call, or finds the one that has its key or its idempotency key; True if it is new.

        Raises:
            IdReusedError: the key or the idempotency key is taken by another payload.
            StoreFullError: no space is left.
        """

    async def finish(self, key: CallKey, state: CallState, answer: str) -> StoredCall:
        """Stores the answer of an open call; a call that already has one keeps it. What is stored now."""

    async def forget(self, key: CallKey) -> None:
        """Removes an open call that was refused before anything ran, so that it may come again."""

    async def find(self, principal: Principal, tool_call_id: str) -> list[StoredCall]:
        """The calls of that id in all conversations of the principal."""

    async def left_open(self, boot_id: str) -> list[StoredCall]:
        """Open calls of other lives of the service than ``boot_id``."""
