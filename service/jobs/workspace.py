"""What of a workspace is no stored file: what a call gets of it, and what the call makes of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proofbox.contracts.paths import Namespace
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.port import ArtifactStore, NewWorkspace, StoredArtifact, StoredWorkspace
from proofbox.service.artifacts.staging import Staging
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.sandbox.port import Collected
from proofbox.service.sandbox.workspace import ArchiveBounds, WorkspaceArchive, merge_archives

if TYPE_CHECKING:
    from proofbox.service.jobs.inputs import JobInputs

_LISTED_MAX = 10


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
    """The workspace that a call leaves; None if it is what the call began with, or cannot be stored."""
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


async def on_newest(
    new: NewWorkspace, inputs: "JobInputs", artifacts: ArtifactStore, scope: ConversationKey, staging: Staging
) -> NewWorkspace:
    """The workspace that a call leaves, on what calls beside it stored: for each path the last one counts.

    Raises:
        StoreFailedError: the store failed.
    """
    begun = inputs.workspace or WorkspaceInput()
    newest = await artifacts.workspace(scope)
    before = None if begun.stored is None else begun.stored.number
    if newest is None or newest.number == before:
        return new
    folder = await staging.folder()
    theirs = FileContent(await artifacts.fetch_workspace(scope, newest, folder))
    base = None if begun.archive is None else begun.archive.source
    merged = await asyncio.to_thread(merge_archives, base, theirs, new.source, folder / "workspace-merged")
    inputs.replaced += merged.replaced
    size, sha256 = await asyncio.to_thread(merged.content.measure)
    covers = max(new.covers, newest.covers)
    return replace(
        new, source=merged.content, size_bytes=size, sha256=sha256, entries=merged.entries, covers=covers
    )


def notes_on(collected: Collected, inputs: "JobInputs", bounds: ArchiveBounds | None) -> list[str]:
    """What of the workspace the program did not have, and what the next call will not have."""
    notes = [f"not in the working directory: {_listed(inputs.left_out)}; name a file in the code to have it"]
    notes = notes if inputs.left_out else []
    if inputs.lost:
        lost = ", ".join(inputs.lost[:_LISTED_MAX]) + _and_more(len(inputs.lost))
        notes.append(f"the stored bytes of {lost} are missing or damaged; the program ran without them")
    found = collected.workspace
    if found is None or bounds is None:
        return notes
    if found.is_too_large:
        notes.append(
            "of the working directory only the files that the report lists were stored: others, links and empty "
            f"folders are {found.entries} entries of {found.size_bytes} bytes (limits "
            f"{bounds.entries_max} and {bounds.bytes_max}); delete some, or work in /tmp"
        )
    if found.left_out:
        what = "sockets, pipes, paths over 4,096 bytes, folders in whose place in files/ is a file or link"
        entries = "1 entry" if found.left_out == 1 else f"{found.left_out} entries"
        notes.append(f"{entries} of the working directory cannot be stored ({what})")
    return notes


def _listed(sizes: Mapping[str, int]) -> str:
    shown = [f"{rel} ({size:,} byte{'' if size == 1 else 's'})" for rel, size in list(sizes.items())[:_LISTED_MAX]]
    return ", ".join(shown) + _and_more(len(sizes))


def _and_more(count: int) -> str:
    return f" and {count - _LISTED_MAX} more" if count > _LISTED_MAX else ""
