"""The workspace of a conversation: what a call gets of it, and what the call makes of it."""

from dataclasses import dataclass

from proofbox.contracts.codes import RuntimeCode
from proofbox.contracts.paths import Namespace
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.port import ArtifactStore, NewWorkspace, StoredArtifact, StoredWorkspace
from proofbox.service.artifacts.staging import Staging
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.failures import RuntimeFailure
from proofbox.service.sandbox.port import Collected
from proofbox.service.sandbox.workspace import ArchiveBounds, WorkspaceArchive


@dataclass(frozen=True, slots=True)
class WorkspaceInput:
    """The workspace that a call begins with.

    Attributes:
        covers: the number of the newest artifact when the workspace was read.
        stored: the stored workspace; None for the first call that asks for one.
        archive: its archive.
    """

    covers: int = 0
    stored: StoredWorkspace | None = None
    archive: WorkspaceArchive | None = None

    def is_new(self, file: StoredArtifact | None) -> bool:
        """Whether a file was stored after the workspace, so that it replaces what the workspace has there.

        Of a file that only blocks have (None) that is not known.
        """
        return self.stored is None or (file is not None and self.stored.is_older(file))

    def has(self, file: StoredArtifact) -> bool:
        """Whether a file went into the workspace, which has its newest state: a later one, or its removal."""
        is_of_turn = self.stored is not None and file.path.turn_id == self.stored.turn_id
        return is_of_turn and file.path.namespace is Namespace.FILES and not self.is_new(file)


def workspace_path(turn_id: str) -> str:
    """The folder of a turn that the workspace is restored to."""
    return f"{turn_id}/{Namespace.FILES}"


def workspace_line(stored: StoredWorkspace, turn_id: str, ms: float) -> Rehosted:
    """The line of a workspace in the ledger of inputs."""
    return Rehosted(
        asked="workspace",
        source="store",
        physical_path=workspace_path(turn_id),
        sha256=stored.sha256,
        size_bytes=stored.size_bytes,
        ms=ms,
    )


async def open_workspace(
    artifacts: ArtifactStore, scope: ConversationKey, staging: Staging, number: int | None = None
) -> WorkspaceInput:
    """Returns the newest workspace of a conversation, or the one with a number; valid while ``staging`` is.

    Raises:
        StoreFailedError: the store failed.
    """
    covers = await artifacts.newest_number(scope)
    stored = await artifacts.workspace(scope, number)
    if stored is None:
        return WorkspaceInput(covers)
    local = await artifacts.fetch_workspace(scope, stored, await staging.folder())
    return WorkspaceInput(covers, stored, WorkspaceArchive(FileContent(local), stored.size_bytes))


def new_workspace(request: ToolCallRequest, begun: WorkspaceInput, collected: Collected) -> NewWorkspace | None:
    """The workspace that a call leaves; None if it has none, or it cannot be stored."""
    found = collected.workspace
    if found is None or found.source is None or request.turn_id is None:
        return None
    return NewWorkspace(
        request.turn_id,
        found.source,
        found.size_bytes,
        found.sha256,
        found.entries,
        begun.covers,
        request.tool_call_id,
    )


def too_large(collected: Collected, bounds: ArchiveBounds) -> RuntimeFailure | None:
    """The failure of a call that leaves a workspace over its bounds."""
    found = collected.workspace
    if found is None or found.source is not None:
        return None
    return RuntimeFailure(
        RuntimeCode.DISK_LIMIT,
        f"workspace: it is too large and was not stored (limit {bounds.entries_max} files and folders, "
        f"{bounds.bytes_max} bytes, got {found.entries} and {found.size_bytes}); the next call gets it as it was "
        "before this one, so delete files, or work in /tmp",
    )


def notes_on(collected: Collected, failure: RuntimeFailure | None, bounds: ArchiveBounds) -> list[str]:
    """What of the workspace does not reach the next call, where the failure of the call is another one."""
    found, too_big = collected.workspace, too_large(collected, bounds)
    if found is None:
        return ["workspace: nothing was stored; the next call gets it as it was before this one"]
    if too_big is not None:
        return [] if failure == too_big else [too_big.message]
    if found.left_out:
        what = "sockets, pipes, paths over 4,096 bytes, folders in whose place in files/ is a file or link"
        return [f"workspace: {found.left_out} entries cannot be stored ({what})"]
    return []
