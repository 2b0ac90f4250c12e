"""The port of an engine: what a call needs from a sandbox, and the exception of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from proofbox.contracts.artifacts import GLOB_MATCHES_MAX
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.contracts.tools import Language
from proofbox.service.artifacts.staging import Staging
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.network import ProgramNetwork
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.workspace import ArchiveBounds, CollectedWorkspace, WorkspaceArchive

StreamName = Literal["stdout", "stderr"]
ProgramKind = Language | Literal["render", "page_text", "inventory"]
"""What the runner can start: a program of the user in some language, or one of ours."""
OnOutput = Callable[[StreamName, bytes, bool], None]
"""Called with each piece of output as it comes: which stream, the bytes, whether the rest is not passed on."""


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a sandbox has to be.

    Attributes:
        call_name: a name for the container, made by the service.
        limits: the limits it is created with.
        lifetime_s: after so many seconds no part of it may exist, whatever the service does.
        flavour: the libraries that it should have in memory already; any flavour can run any program.
        owner: whose call it is for: where sandboxes are short, owners get them in turn.
        is_only_call: whether the owner has no other call running: a few sandboxes are reserved for such calls.
        is_bare: whether its interpreter must have imported no library: the call has another version of one.
    """

    call_name: str
    limits: CallLimits
    lifetime_s: float
    flavour: PreloadSet = PreloadSet.BARE
    owner: str = ""
    is_only_call: bool = True
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is put into OUT_DIR before the program starts.

    Attributes:
        path: where.
        source: its content, which is only read.
        size_bytes: how many.
        writable: the program may change it.
        links: further names of it, relative to OUT_DIR: a change through one is a change of the file.
        copies: names of a copy, relative to OUT_DIR; one of another turn is read-only.
        yields: a file of the restored workspace in its place stays.
        made_ns: when it was made, in nanoseconds since 1970; None if that is not known.
    """

    path: FilePath
    source: FileContent
    size_bytes: int
    writable: bool
    links: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    yields: bool = False
    made_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PackageFolder:
    """Packages for a program.

    Attributes:
        path: the folder that they are in, inside of the sandbox.
        replaces_libraries: whether a library of the image is there in another version.
    """

    path: str
    replaces_libraries: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """The program to run.

    Attributes:
        language: which interpreter.
        code: its bytes, run as they are; those of our own programs are a request, as JSON.
        prog_name: its ``argv[0]``.
        turn_id: the current turn, whose ``files/`` is the place to write.
        limits: what it may use.
        args: its further arguments.
        env: variables beside those of the sandbox.
        stdin: what it reads from standard input.
        cwd: its working directory, relative to OUT_DIR; empty for OUT_DIR itself.
        network: what serves its connections; None: it has no network.
        packages: what it finds before the libraries of the image; None: nothing.
    """

    language: ProgramKind
    code: bytes
    prog_name: str
    turn_id: str
    limits: CallLimits
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    cwd: str = ""
    network: ProgramNetwork | None = None
    packages: PackageFolder | None = None


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A stretch of what a program wrote to one of its streams.

    Attributes:
        stream: which.
        data: the bytes.
        left_out: bytes of the same stream that came before it and were left out.
    """

    stream: StreamName
    data: bytes
    left_out: int = 0


PlaceName = Literal["OUT_DIR", "/tmp", "/dev/shm"]  # noqa: S108 - the container's own


@dataclass(frozen=True, slots=True)
class Room:
    """A place in the memory of a sandbox that a program can write files to.

    Attributes:
        place: which.
        size_bytes: how much it holds.
        is_full: it was seen without a free byte or inode.
    """

    place: PlaceName
    size_bytes: int
    is_full: bool


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """How the program ended; every field but three is measured outside of the program.

    Attributes:
        exit_code: its status, or None if a signal ended it.
        signal: the signal that ended it.
        timed_out: the wall clock ended it.
        output_exceeded: it wrote more than ``output_bytes``.
        left_running: names of some processes that still ran when it had ended by itself; they name themselves.
        oom_kills: processes of the sandbox that the kernel killed for memory during the run.
        pids_hits: how often the kernel refused a new process during the run.
        rooms: the places for files, as they were when it ended.
        stdout_bytes: what it wrote, stored or not.
        stderr_bytes: what it wrote, stored or not.
        output: the first and the last 512 KiB of stdout and stderr, in the order of the writes.
        cpu_ms: CPU time of the program and its children.
        memory_peak_bytes: the most memory the sandbox held, where the kernel counts it.
        shown: names below ``files/`` of what the program has shown, in its order; the program's own word.
        shown_notes: what could not be shown or run, a sentence each; the same.
        last_value: the text of the value of its last line; the same.
        lost: why the sandbox itself is gone, if it is: then nothing else here counts.
        lost_to_memory: the sandbox is gone because the kernel killed its first process for memory.
        lost_to_processes: it is gone because there were too many processes in it.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    output_exceeded: bool = False
    left_running: tuple[str, ...] = ()
    oom_kills: int = 0
    pids_hits: int = 0
    rooms: tuple[Room, ...] = ()
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    output: tuple[OutputPiece, ...] = ()
    cpu_ms: float = 0.0
    memory_peak_bytes: int | None = None
    shown: tuple[str, ...] = ()
    shown_notes: tuple[str, ...] = ()
    last_value: str | None = None
    lost: str | None = None
    lost_to_memory: bool = False
    lost_to_processes: bool = False


class FileState(StrEnum):
    """What lies at a promised path, before anybody opens it."""

    FILE = "file"
    MISSING = "missing"
    STALE = "stale"
    SYMLINK = "symlink"
    FOLDER = "folder"
    NOT_REGULAR = "not_regular"
    ESCAPE = "escape"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class ExpectedFile:
    """One promise, as the sandbox judges it.

    Attributes:
        rel: the path or pattern below the current turn's ``files/``.
        is_glob: whether ``rel`` is a pattern.
        matches_max: how many matches of a pattern are examined.
        checks: what the inspector checks beyond opening the file.
        required: whether the promise is broken where there is no file.
        opened_max: how many of those matches are opened; the others are more than the contract allows.
    """

    rel: str
    is_glob: bool
    matches_max: int
    checks: dict[str, Any]
    required: bool = True
    opened_max: int = GLOB_MATCHES_MAX


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """All that is to be collected after a run.

    Attributes:
        turn_id: the current turn.
        files: the promises, in order.
        extras_max: how many files that were not promised are brought back.
        limits: bounds on count, depth and size.
        workspace: the bounds of the workspace; None if it is not collected.
    """

    turn_id: str
    files: tuple[ExpectedFile, ...]
    extras_max: int
    limits: CallLimits
    workspace: ArchiveBounds | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """The inspector's verdict on a file it opened.

    Attributes:
        ok: it is what its extension promises and the checks hold.
        mime: its media type.
        problem: what is wrong, in a sentence.
        facts: what was measured: pages, rows, width.
    """

    ok: bool
    mime: str
    problem: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """One file that was examined for a promise, or that nobody promised.

    Attributes:
        path: where it is.
        promise: the index of the promise that it is for; None if nobody promised it.
        state: what lies there.
        size_bytes: its size, if it is a file.
        inspection: the inspector's verdict; None if it was not opened.
        source: its content, below the folder given to ``collect`` or in memory; None if it stayed inside.
        sha256: their SHA-256 in hex, computed as they came.
    """

    path: FilePath
    promise: int | None
    state: FileState
    size_bytes: int = 0
    inspection: Inspection | None = None
    source: FileContent | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run left behind.

    Attributes:
        found: promised files in contract order (a pattern gives one for each match, or one MISSING for none),
            then what nobody promised.
        odd_names: names that the protocol refuses, escaped for display; their files stayed inside.
        extras_total: how many files nobody promised, brought back or not.
        files_exceeded: there are more files than the limit; the rest was not examined.
        depth_exceeded: there are deeper folders than the limit; they were not examined.
        removed: physical paths of files of the turn that were put in and that the program removed.
        in_other_turns: what it wrote or removed in folders of other turns, escaped for display; nothing is stored.
        left_in_tmp: names of some files that it left in ``/tmp``, escaped for display; they are gone.
        taken_in: promised files that lay elsewhere: the index of the promise, and in which folder.
        workspace: the workspace, if it was wanted.
    """

    found: tuple[CollectedFile, ...]
    odd_names: tuple[str, ...] = ()
    extras_total: int = 0
    files_exceeded: bool = False
    depth_exceeded: bool = False
    removed: tuple[str, ...] = ()
    in_other_turns: tuple[str, ...] = ()
    left_in_tmp: tuple[str, ...] = ()
    taken_in: tuple[tuple[int, str], ...] = ()
    workspace: CollectedWorkspace | None = None


class SandboxLostError(Exception):
    """The sandbox died under our hands; the call is answered with ``sandbox_failed``, or ``out_of_memory``."""

    def __init__(self, message: str, *, to_memory: bool = False) -> None:
        super().__init__(message)
        self.to_memory = to_memory
        """The kernel killed its first process for memory."""


class Sandbox(Protocol):
    """One throw-away container, already running and warm. It serves one call."""

    @property
    def info(self) -> SandboxInfo:
        """Which engine, runtime and image, and whether it was warm."""

    async def put(
        self, turn_id: str, files: Sequence[InputFile], workspace: WorkspaceArchive | None = None
    ) -> None:
        """Makes the current turn's folders, restores the workspace, then puts files into OUT_DIR.

        Raises:
            SandboxLostError: the container is gone, or OUT_DIR cannot hold the files.
        """

    async def run(self, job: Job, *, on_output: OnOutput, wanted: OutputSpec | None = None) -> ProcessOutcome:
        """Runs the program to its end or its wall clock; never raises for the program's own failure.

        A sandbox that dies is an outcome with ``lost``.

        Args:
            job: the program.
            on_output: who gets its output.
            wanted: what `collect` will be asked for next, so that it can begin at once when the program has ended.
        """

    async def collect(self, wanted: OutputSpec, into: Staging) -> Collected:
        """Ends all processes of the program, judges what it left and brings it into a folder, if it keeps anything.

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
        """Removes every sandbox of this process of the service; never raises."""

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """A fresh sandbox; always removed on exit, on cancel and after a crash.

        Raises:
            EngineUnavailableError: it could not be started.
        """

    async def ping(self) -> None:
        """Asks the engine itself, not our process, and whether sandboxes start.

        Raises:
            EngineUnavailableError: it does not answer, or its last starts failed.
        """

    async def sweep(self) -> int:
        """Removes what an earlier process of the service left, and what no call and no pool holds; how many.

        Raises:
            EngineUnavailableError: the engine does not answer.
        """
