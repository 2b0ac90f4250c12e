"""The workspace of a conversation on its way into a sandbox and out of it: an archive that only sandboxes open."""

from dataclasses import dataclass

from proofbox.service.file_content import FileContent


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """How large the workspace of a conversation may be.

    Attributes:
        entries_max: files, folders and links together.
        bytes_max: its archive.
    """

    entries_max: int
    bytes_max: int


@dataclass(frozen=True, slots=True)
class WorkspaceArchive:
    """The stored workspace of a conversation, which only the sandbox opens.

    Attributes:
        source: the archive.
        size_bytes: its size.
    """

    source: FileContent
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CollectedWorkspace:
    """The workspace of a conversation after a run.

    Attributes:
        entries: its files, folders and links.
        size_bytes: the size of its archive.
        left_out: what an archive cannot hold: sockets, pipes, paths that are too long, what was written below a
            folder in whose place in ``files/`` is something else; and what could not be restored before.
        source: the archive; None if it is larger than the bounds.
        sha256: the SHA-256 of the archive, in hex.
    """

    entries: int
    size_bytes: int
    left_out: int = 0
    source: FileContent | None = None
    sha256: str = ""
