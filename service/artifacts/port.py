"""The ports of the stores of artifacts and sources."""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.errors import StoreFailedError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """A file on its way into the store.

    Attributes:
        path: its path in the conversation.
        source: its bytes, or a local file below a staging folder of the store, which may move it.
        size_bytes: its size.
        sha256: its SHA-256, in hex.
        mime: its media type.
        visibility: only ``external`` ones are hosted.
        description: what it is.
        tool_call_id: the call that made it; None for an attachment.
    """

    path: FilePath
    source: FileContent
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
        sid: its id in the sources pool, of a version that was just saved; None for internal files.
        removed: whether a program removed the file from its turn after this version.
        number: its number among all versions that are stored, rising.
        tool_call_id: the call that made it; None for an attachment.
        follows: of one that was just stored: the version before it; None for a first one.
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
    sid: int | None = field(default=None, compare=False)
    removed: bool = False
    number: int = field(default=0, compare=False)
    tool_call_id: str | None = field(default=None, compare=False)
    follows: "EarlierVersion | None" = field(default=None, compare=False)

    def hosting(self) -> dict[str, str]:
        """The fields of where it is hosted: for the caller's program, never for a model."""
        fields = {"hosted_uri": self.hosted_uri, "rn": self.rn, "key": self.key}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """The version that a new one follows.

    Attributes:
        number: its number among all versions that are stored.
        tool_call_id: the call that made it; None for an attachment.
    """

    number: int
    tool_call_id: str | None


@dataclass(frozen=True, slots=True)
class NewWorkspace:
    """The workspace of a conversation on its way into the store: an archive that only sandboxes open.

    Attributes:
        turn_id: the turn whose ``files/`` it is.
        source: its bytes, or a local file below a staging folder of the store, which may move it.
        size_bytes: its size.
        sha256: its SHA-256, in hex.
        entries: files, folders and links in it.
        covers: the number of the newest artifact when the inputs of its call were resolved.
        tool_call_id: the call that made it.
    """

    turn_id: str
    source: FileContent
    size_bytes: int
    sha256: str
    entries: int
    covers: int
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class StoredWorkspace:
    """A stored workspace; the attributes are those of `NewWorkspace`.

    Attributes:
        number: its number among all workspaces that are stored, rising.
    """

    number: int
    turn_id: str
    size_bytes: int
    sha256: str
    entries: int
    covers: int
    tool_call_id: str

    def is_older(self, artifact: StoredArtifact) -> bool:
        """Whether an artifact was stored after the workspace's call took its inputs, by another call."""
        return artifact.number > self.covers and artifact.tool_call_id != self.tool_call_id


@dataclass(frozen=True, slots=True)
class DeletedFile:
    """When a file was deleted.

    Attributes:
        deleted: when: UTC, RFC 3339, ``Z``.
        position: the block of the timeline that records it; earlier ones do not have its content.
    """

    deleted: str
    position: int


BlocksOf = Callable[[Sequence[StoredArtifact]], Sequence[Block]]
"""The blocks of files that were stored; called in the transaction, so it must not block."""


class StoreAwayError(StoreFailedError):
    """The server of a store does not answer or is overloaded: the same request may succeed in a moment."""


class SaveLostError(StoreAwayError):
    """Another process took this one for lost and undid a save that was under way."""


class DamagedBytesError(StoreFailedError):
    """The stored bytes of a file are missing, cut off or changed.

    Args:
        message: what is wrong.
        sha256: the hash that they should have; empty if it is not known.
    """

    retryable = False

    def __init__(self, message: str, sha256: str = "") -> None:
        super().__init__(message)
        self.sha256 = sha256


class VersionTakenError(StoreFailedError):
    """A path has another latest version than the one that a save is to follow; nothing is stored."""


@dataclass(frozen=True, slots=True)
class NewSave:
    """What is stored together.

    Attributes:
        scope: whose conversation.
        artifacts: the files.
        blocks_of: the blocks that the timeline gets with them.
        workspace: what becomes the workspace of the conversation.
        replaces: the number that the latest version of each path has to have, 0 for none; None: any. Other
            processes are meant: within one the caller takes care.
        removed: versions that a program removed: they are marked, and stay; a later version is not marked.
        hold: what is let go when the save has ended.
    """

    scope: ConversationKey
    artifacts: Sequence[NewArtifact]
    blocks_of: BlocksOf | None = None
    workspace: NewWorkspace | None = None
    replaces: int | None = None
    removed: Sequence[StoredArtifact] = ()
    hold: AsyncExitStack = field(default_factory=AsyncExitStack)


class PreparedSave(Protocol):
    """Files whose bytes are in place, and which nobody sees before a transaction stores them.

    `store` stores them, or `CallStore.finish_with_files` and then `settle`; else `discard` has to end it. What a
    process leaves is discarded by the next start.
    """

    async def store(self) -> list[StoredArtifact]:
        """Stores the files in a transaction of their own. Raises as `ArtifactStore.save`; then it is discarded."""

    async def settle(self) -> None:
        """Ends a save whose transaction is committed: hosts its external files."""

    async def discard(self) -> None:
        """Ends a save that was not stored: its bytes go."""


class ArtifactStore(Protocol):
    """Files of conversations, every version of them. All methods raise StoreFailedError if the store fails."""

    def staging(self) -> AbstractAsyncContextManager[Path]:
        """A fresh local folder on the store's own file system, removed on exit."""

    async def save(
        self,
        scope: ConversationKey,
        artifacts: Sequence[NewArtifact],
        blocks_of: BlocksOf | None = None,
        replaces: int | None = None,
    ) -> list[StoredArtifact]:
        """Stores and, if external, hosts all of them or none; a path that is there gets a new version.

        External ones are sources from then on, as `SourcePool.add_file` makes them, and carry their ``sid``. They
        are hosted after they are stored; what cannot be hosted then is hosted later. See `NewSave`.

        Raises:
            VersionTakenError: another process stored a later version than ``replaces``.
            StoreFullError: no space is left.
            StoreAwayError: the server of the files does not answer; nothing is stored, and it can be tried again.
        """

    async def prepare(self, new: NewSave) -> PreparedSave:
        """Puts the bytes of files in place, for a transaction that stores them with something else.

        Raises:
            StoreFullError, StoreAwayError: as `save`; then nothing is left, and ``new.hold`` is let go.
        """

    async def latest(self, scope: ConversationKey, path: FilePath) -> StoredArtifact | None:
        """The latest version of a path, if there is one."""

    async def version(self, scope: ConversationKey, path: FilePath, number: int) -> StoredArtifact | None:
        """A version of a path, 1 for the first, if there is one."""

    async def of_turn(self, scope: ConversationKey, turn_id: str) -> list[StoredArtifact]:
        """The latest versions of all files and attachments of a turn, in the order of their paths.

        Those that a program removed are among them, as ``removed``.
        """

    async def newest_of_names(self, scope: ConversationKey, limit: int) -> list[StoredArtifact]:
        """The newest version of each of at most ``limit`` names, the newest first.

        A name is a path below ``files/`` or ``attachments/`` of any turn. Names that a program removed last are
        there, as ``removed``.
        """

    async def hosted_names(self, scope: ConversationKey, names: Collection[str]) -> set[str]:
        """Those of some paths below ``files/`` of which a version of any turn is hosted."""

    async def listed(self, scope: ConversationKey, after: int, limit: int) -> list[tuple[int, StoredArtifact]]:
        """At most ``limit`` latest versions of files, by their `number_of`, which is greater than ``after``."""

    async def deletions(self, scope: ConversationKey) -> dict[FilePath, DeletedFile]:
        """The files that a client deleted; a path may have a later version."""

    async def fetch_all(
        self, scope: ConversationKey, artifacts: Sequence[StoredArtifact], staging: Path
    ) -> list[Path]:
        """Local files with the bytes of those versions, their SHA-256 checked; valid while ``staging`` is."""

    def read(self, scope: ConversationKey, artifact: StoredArtifact, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from ``start`` to before ``end``, in pieces.

        Raises:
            DamagedBytesError: they are missing or damaged. Of a whole file that may show at its last piece, which
                is not given out; for a part of one, the server of a bucket answers.
        """

    async def contents(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> list[bytes]:
        """The bytes of small versions, all in memory, their SHA-256 checked; in their order.

        Raises:
            StoreFailedError: this conversation has no such version, or the bytes of one are missing or damaged.
        """

    async def link(self, scope: ConversationKey, artifact: StoredArtifact) -> str | None:
        """A URL that gives the bytes of that version to whoever has it, for a while; None if there are no links."""

    async def number_of(self, scope: ConversationKey, artifact: StoredArtifact) -> int:
        """The store's own number of that version, the same for ever."""

    async def numbered(self, number: int) -> tuple[ConversationKey, StoredArtifact] | None:
        """The version that has a number, and whose it is, if there is one. Asks for no scope: the caller checks."""

    def hold_workspace(self, scope: ConversationKey) -> AbstractAsyncContextManager[None]:
        """Waits until no other call stores the workspace of the conversation, and keeps others from it."""

    async def newest_number(self, scope: ConversationKey) -> int:
        """The number of the newest artifact of the conversation; 0 if there is none."""

    async def workspace(self, scope: ConversationKey, number: int | None = None) -> StoredWorkspace | None:
        """The newest workspace of the conversation, or the one with a number, if it is still stored."""

    async def fetch_workspace(self, scope: ConversationKey, workspace: StoredWorkspace, staging: Path) -> Path:
        """A local file with the archive of a workspace, its SHA-256 checked; valid while ``staging`` is."""

    async def fetch_uri(self, scope: ConversationKey, uri: str, staging: Path) -> Path | None:
        """A local file with the bytes behind a ``hosted_uri`` of this scope's own tenant and project.

        None if the URI is not one of this store, or of another tenant or project.
        """


class FileHistory(Protocol):
    """The versions of files and of calls. All methods raise StoreFailedError if the store fails."""

    async def versions(
        self, scope: ConversationKey, path: FilePath, before: int | None, limit: int
    ) -> list[StoredArtifact]:
        """At most ``limit`` versions of a path, below the number ``before``, the newest first; without hosting."""

    async def of_call(self, scope: ConversationKey, tool_call_id: str, limit: int) -> list[StoredArtifact]:
        """The last versions that a call made of at most ``limit`` paths, by their paths; without hosting.

        Those that a program removed are not among them.
        """


@dataclass(frozen=True, slots=True)
class NewPage:
    """A web page on its way into the sources pool.

    Attributes:
        url: its URL; two pages with the same one are the same source.
        title: its title.
        text: its text; None keeps the known one.
        mime: its media type.
        turn_id: the turn that found it.
    """

    url: str
    title: str
    text: str | None
    mime: str | None
    turn_id: str


class SourcePool(Protocol):
    """The sources of conversations. All methods raise StoreFailedError if the store fails."""

    async def rows(self, scope: ConversationKey) -> list[SourceRow]:
        """All rows, by ascending sid."""

    async def sids(self, scope: ConversationKey) -> frozenset[int]:
        """The ids of all rows."""

    async def pick(self, scope: ConversationKey, ranges: Sequence[tuple[int, int]], limit: int) -> list[SourceRow]:
        """At most ``limit`` rows whose sid lies in one of the inclusive ranges, by ascending sid."""

    async def add_pages(self, scope: ConversationKey, pages: Sequence[NewPage]) -> list[SourceRow]:
        """The rows of web pages, in their order; a page whose URL has a row keeps its sid and gets the new text."""

    async def add_file(self, scope: ConversationKey, artifact: StoredArtifact) -> SourceRow:
        """The row of a hosted file or attachment; made with the next free sid if there is none."""

    async def complete(self, scope: ConversationKey, rows: Sequence[SourceRow]) -> None:
        """Adds rows of a call; rows that are there already must mean the same, and get what they left blank.

        Raises:
            SidConflictError: a sid means something else here; then no row is added.
        """
