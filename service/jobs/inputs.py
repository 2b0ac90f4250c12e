"""What the inputs of a call come to: the files, where each came from, what they take of OUT_DIR."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from contracts.tool_call_request import SourceRow
from contracts.tool_call_response import Rehosted
from service.artifacts.path_tree import PathTree, folders_of
from service.artifacts.port import StoredArtifact
from service.calls.run_record import CallRecord, UsedInput
from service.sandbox.port import InputFile
from service.timeline.block_writer import Notice

_PAGE_BYTES = 4096  # a file system in memory gives a file whole pages
_OWN_INODES = 4  # OUT_DIR itself, the turn's folder, files/ and its other name


@dataclass(slots=True)
class JobInputs:
    """What is to be put into OUT_DIR.

    Attributes:
        inputs: the files, each path once; none any more as soon as `JobRunner` has put them into the sandbox.
        ledger: where each came from.
        missing: physical paths that cannot be had.
        missing_cited: physical paths of cited sources that cannot be had.
        cited: the rows of the sources pool that the text cites.
        notices: what the agent should learn.
        places: where the inputs lie.
        versions: which of the inputs are versions of the artifact store, by path.
        known: physical paths of files of the conversation, the preferred of several with one name first.
        stored: the inputs of the artifact store, by path.
    """

    inputs: dict[str, InputFile] = field(default_factory=dict)
    ledger: list[Rehosted] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_cited: list[str] = field(default_factory=list)
    cited: list[SourceRow] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    places: PathTree = field(default_factory=PathTree)
    versions: dict[str, int] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    stored: dict[str, StoredArtifact] = field(default_factory=dict)

    def tell(self, record: CallRecord) -> None:
        """Writes down what the call runs with."""
        record.inputs = [
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
        record.cited = self.cited
        record.missing = [*self.missing, *self.missing_cited]

    @property
    def size_bytes(self) -> int:
        """All inputs together."""
        return sum(file.size_bytes for file in self.inputs.values())

    @property
    def out_dir_bytes(self) -> int:
        """What they take of OUT_DIR."""
        return sum(pages_bytes(file.size_bytes) for file in self.inputs.values())

    @property
    def out_dir_inodes(self) -> int:
        """What they take of OUT_DIR's files and folders, its own few included."""
        return inodes_of(self.inputs) + _OWN_INODES


def inodes_of(paths: Iterable[str]) -> int:
    """The files and all their folders, the top included."""
    files = list(paths)
    folders = {folder for path in files for folder in folders_of(path)}
    return len(files) + len(folders) + bool(files)


def pages_bytes(size_bytes: int) -> int:
    """What a file of that size takes of a file system in memory."""
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES
