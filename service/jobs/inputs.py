"""The inputs of a job: what a call refers to, and the files that this resolves to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from proofbox.contracts.blocks import Block
from proofbox.contracts.tool_call_request import Asset, SourceRow
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.path_tree import PathTree, folders_of
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.calls.observer import UsedInput
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.workspace import WorkspaceInput, workspace_line
from proofbox.service.sandbox.limits import OWN_INODES, PAGE_BYTES
from proofbox.service.sandbox.port import InputFile
from proofbox.service.timeline.block_writer import Notice

OF_WORKSPACE = ("workspace", "named")
"""What a line of the ledger asks for that is a file of the working directory."""


@dataclass(frozen=True, slots=True)
class InputRequest:
    """The texts of a call that refer to files and sources, and where these may come from.

    Attributes:
        scope: the conversation.
        turn_id: the current turn.
        text: the code or content that is scanned.
        further_texts: what else is scanned for files: the input, arguments and variables of a program.
        assets: files that the caller hands over.
        rows: rows of the sources pool that came with the call.
        timeline: the blocks that the call brings in place of the stored timeline.
        own_may_be_absent: a file of the current turn that is not there is no error, for the program may write it.
        room_bytes: what OUT_DIR can take; the workspace does not fill it beyond; None for no bound.
        room_inodes: as many files and folders.
        language: what the text is a program in; empty for a document, where every mention counts.
        theme: names files, one a line, whose own text names files: a theme, documents to append; those are resolved
            too.
        target: the path below ``files/`` of the document that is made.
        has_workspace: whether a program gets all files of the conversation, and not only those that it names.
    """

    scope: ConversationKey
    turn_id: str
    text: str
    assets: Sequence[Asset]
    rows: Sequence[SourceRow]
    timeline: Sequence[Block] | None = None
    own_may_be_absent: bool = True
    room_bytes: int | None = None
    room_inodes: int | None = None
    language: str = ""
    theme: str = ""
    target: str = ""
    further_texts: Sequence[str] = ()
    has_workspace: bool = False


@dataclass(slots=True)
class JobInputs:
    """What is to be put into OUT_DIR.

    Attributes:
        files: the files by physical path; none any more as soon as they are in the sandbox.
        ledger: where each came from.
        missing: physical paths that cannot be had.
        missing_cited: physical paths of cited sources that cannot be had.
        cited: the rows of the sources pool that the text cites.
        notices: what the agent should learn.
        places: where the inputs lie.
        versions: which of the inputs are versions of the artifact store, by path.
        known: the files of the conversation as the program may name them.
        stored: the inputs of the artifact store, by path.
        workspace: what of the workspace is no stored file; None if the call does not ask for it.
        names: the physical path of the newest version of each name; of a program, its working directory.
        encodings: of texts that a document appends and that are not UTF-8, by physical path.
        left_out: files that are not in the working directory, and their sizes in bytes.
        lost: files whose stored bytes are missing or damaged: names of the working directory, and physical paths
            that the call names.
        replaced: files of the workspace, by name, that another call wrote while this one ran.
        outputs_before: of a call that is run again: the physical paths of what it stored; None of any other.
        unmerged: what of its workspace is no stored file did not fit beside that of calls which ran meanwhile.
    """

    files: dict[str, InputFile] = field(default_factory=dict)
    ledger: list[Rehosted] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_cited: list[str] = field(default_factory=list)
    cited: list[SourceRow] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    places: PathTree = field(default_factory=PathTree)
    versions: dict[str, int] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    stored: dict[str, StoredArtifact] = field(default_factory=dict)
    workspace: WorkspaceInput | None = None
    names: dict[str, str] = field(default_factory=dict)
    encodings: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    outputs_before: frozenset[str] | None = None
    unmerged: bool = False

    def yields(self, stored: StoredArtifact | None) -> bool:
        """Whether what the workspace has in the place of a file stays."""
        return self.workspace is not None and not self.workspace.is_new(stored)

    @property
    def rels(self) -> dict[str, str]:
        """The paths below ``files/`` of the files of the working directory, by their physical paths."""
        return {physical: rel for rel, physical in self.names.items()}

    @property
    def turns(self) -> list[str]:
        """The turns that files came from."""
        return sorted({file.path.turn_id for file in self.files.values()})

    @property
    def all_missing(self) -> list[str]:
        """The physical paths that cannot be had, of mentions and of cited sources."""
        return [*self.missing, *self.missing_cited]

    def lost_among(self, paths: Sequence[str]) -> str:
        """A clause on those of some paths whose stored bytes are missing or damaged; empty if there are none."""
        lost = [path for path in paths if path in self.lost]
        return f"; the stored bytes of {', '.join(lost)} are missing or damaged" if lost else ""

    def used(self) -> list[UsedInput]:
        """The files as the audit line names them."""
        return [
            UsedInput(
                line.physical_path,
                line.asked,
                line.source,
                line.sha256,
                line.size_bytes,
                self.versions.get(line.physical_path),
            )
            for line in self.ledger
        ]

    def add_workspace(self, workspace: WorkspaceInput, turn_id: str, ms: float) -> None:
        """Adds the workspace of the conversation, in front of all files."""
        self.workspace = workspace
        if workspace.stored is not None:
            line = workspace_line(workspace.stored, turn_id, ms)
            self.ledger.append(line)
            self.versions[line.physical_path] = workspace.stored.number

    @property
    def size_bytes(self) -> int:
        """All inputs together."""
        return sum(file.size_bytes for file in self.files.values())

    @property
    def out_dir_bytes(self) -> int:
        """What they take of OUT_DIR; a file in an archive takes a page more at most."""
        stored = self.workspace.stored if self.workspace is not None else None
        restored = 0 if stored is None else stored.size_bytes + stored.entries * PAGE_BYTES
        return restored + sum(pages_bytes(file.size_bytes) for file in self.files.values())

    @property
    def out_dir_inodes(self) -> int:
        """What they take of OUT_DIR's files and folders, its own few included."""
        stored = self.workspace.stored if self.workspace is not None else None
        return inodes_of(self.files) + OWN_INODES + (0 if stored is None else stored.entries)


def inodes_of(paths: Iterable[str]) -> int:
    """The files and all their folders, the top included."""
    files = list(paths)
    folders = {folder for path in files for folder in folders_of(path)}
    return len(files) + len(folders) + bool(files)


def pages_bytes(size_bytes: int) -> int:
    """What a file of that size takes of a file system in memory."""
    return -(-size_bytes // PAGE_BYTES) * PAGE_BYTES


def nanoseconds(created: str) -> int | None:
    """When a file was made, of a time in RFC 3339; None if a block of a caller has another text."""
    try:
        return int(datetime.fromisoformat(created).timestamp() * 1_000_000) * 1_000
    except (ValueError, OverflowError):
        return None
