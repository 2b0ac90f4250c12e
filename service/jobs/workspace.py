"""What of a workspace is no stored file: what a call gets of it, and what the call makes of it."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.port import (
    ArtifactStore,
    DamagedBytesError,
    NewWorkspace,
    StoredArtifact,
    StoredWorkspace,
)
from proofbox.service.artifacts.staging import Staging
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.sandbox.port import Collected, ProcessOutcome
from proofbox.service.sandbox.workspace import ArchiveBounds, WorkspaceArchive, merge_archives
from proofbox.service.visible_text import list_first

if TYPE_CHECKING:
    from proofbox.service.jobs.inputs import JobInputs

_LISTED_MAX = 10
_NUMBERED = re.compile(r"(?P<stem>.+)_(?P<number>\d{1,6})(?P<suffix>\.\w+)")
_NUMBERS_TRIED = 10_000


@dataclass(frozen=True, slots=True)
class WorkspaceInput:
    """The workspace that a call begins with.

    Attributes:
        covers: the number of the newest artifact when the workspace was read.
        stored: the stored workspace; None for the first call that asks for one.
        archive: its archive.
        lost: the stored workspace whose archive is missing or damaged; the call begins without one.
    """

    covers: int = 0
    stored: StoredWorkspace | None = None
    archive: WorkspaceArchive | None = None
    lost: StoredWorkspace | None = None

    def is_new(self, file: StoredArtifact | None) -> bool:
        """Whether a file was stored after the workspace, so that it replaces what the workspace has there.

        Of a file that only blocks have (None) that is not known.
        """
        return self.stored is None or (file is not None and self.stored.is_older(file))


@dataclass(frozen=True, slots=True)
class WorkspaceUse:
    """The workspace of one call, before and after its program.

    Attributes:
        inputs: what the call began with; gets what the report notes.
        collected: what it left.
        bounds: how large what is no stored file may be.
    """

    inputs: "JobInputs"
    collected: Collected
    bounds: ArchiveBounds


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

    If its archive is missing or damaged, the call begins without it: `lost` names it.

    Raises:
        StoreFailedError: the store failed.
    """
    covers = await artifacts.newest_number(scope)
    stored = await artifacts.workspace(scope, number)
    if stored is None:
        return WorkspaceInput(covers)
    try:
        local = await artifacts.fetch_workspace(scope, stored, await staging.folder())
    except DamagedBytesError:
        return WorkspaceInput(covers, lost=stored)
    return WorkspaceInput(covers, stored, WorkspaceArchive(FileContent(local), stored.size_bytes))


def new_workspace(request: ToolCallRequest, use: WorkspaceUse) -> NewWorkspace | None:
    """The workspace that a call leaves; None if it is what the call began with, or cannot be stored."""
    found, begun = use.collected.workspace, use.inputs.workspace
    if found is None or found.source is None or request.turn_id is None or begun is None:
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
    new: NewWorkspace, use: WorkspaceUse, artifacts: ArtifactStore, scope: ConversationKey, staging: Staging
) -> NewWorkspace | None:
    """The workspace that a call leaves, on what calls beside it stored: for each path the last one counts.

    None if both together are more than the bounds: then that of the other calls stays.

    Raises:
        StoreFailedError: the store failed.
    """
    begun = use.inputs.workspace or WorkspaceInput()
    newest = await artifacts.workspace(scope)
    if newest is None or newest == (begun.stored or begun.lost):
        return new
    folder = await staging.folder()
    try:
        theirs = FileContent(await artifacts.fetch_workspace(scope, newest, folder))
    except DamagedBytesError:
        return new
    base = None if begun.archive is None else begun.archive.source
    merged = await asyncio.to_thread(merge_archives, base, theirs, new.source, folder / "workspace-merged")
    size, sha256 = await asyncio.to_thread(merged.content.measure)
    if merged.entries > use.bounds.entries_max or size > use.bounds.bytes_max:
        use.inputs.unmerged = True
        return None
    use.inputs.replaced += merged.replaced
    covers = max(new.covers, newest.covers)
    return replace(
        new, source=merged.content, size_bytes=size, sha256=sha256, entries=merged.entries, covers=covers
    )


def with_free_names(
    outcome: ProcessOutcome, collected: Collected, promised: Collection[str], is_free: Callable[[str], bool]
) -> tuple[ProcessOutcome, Collected]:
    """What a program left, where no file with what it showed takes a name that is not free.

    All of them count on then, in their order, so that the first one has the lowest number.

    Args:
        outcome: how it ended.
        collected: its files.
        promised: names that the contract has, which stay.
        is_free: whether a name below ``files/`` is.
    """
    numbered = {
        name: found for name in outcome.shown if name not in promised and (found := _NUMBERED.fullmatch(name))
    }
    if all(map(is_free, numbered)):
        return outcome, collected
    there = {found.path.rel.partition(".")[0] for found in collected.found if found.path.rel not in numbered}
    names: dict[str, str] = {}
    last = 0
    for name, found in numbered.items():
        first = max(int(found["number"]), last + 1)
        stem, suffix = found["stem"], found["suffix"]
        free = (
            number
            for number in range(first, first + _NUMBERS_TRIED)
            if f"{stem}_{number}" not in there and is_free(f"{stem}_{number}{suffix}")
        )
        last = next(free, first)
        names[name] = f"{stem}_{last}{suffix}"
    return _renamed(outcome, collected, names)


def _renamed(
    outcome: ProcessOutcome, collected: Collected, names: Mapping[str, str]
) -> tuple[ProcessOutcome, Collected]:
    found = tuple(
        replace(file, path=FilePath(file.path.turn_id, Namespace.FILES, names[file.path.rel]))
        if file.path.namespace is Namespace.FILES and file.path.rel in names
        else file
        for file in collected.found
    )
    value = outcome.last_value
    for old, new in names.items():  # the value of the last line is text, which names the file at its end
        if value is not None and value.endswith(f", shown as {old}>"):
            value = f"{value.removesuffix(f'{old}>')}{new}>"
            break
    shown = tuple(names.get(name, name) for name in outcome.shown)
    return replace(outcome, shown=shown, last_value=value), replace(collected, found=found)


def notes_on(
    collected: Collected,
    inputs: "JobInputs",
    bounds: ArchiveBounds | None,
    outdated: Collection[str],
    removed: Collection[str],
    stored: Sequence[StoredArtifact],
) -> list[str]:
    """What of the workspace the program did not have, what the next call will not have, and what was replaced.

    Args:
        collected: what the program left.
        inputs: what it had.
        bounds: those of what is no stored file; None if nothing lasts.
        outdated: names of files that the call wrote or removed, of which the user has an older version.
        removed: physical paths of those that it removed.
        stored: the files that the call stored.
    """
    notes = []
    if inputs.left_out:
        listed = list_first([f"{rel} ({_bytes(size)})" for rel, size in inputs.left_out.items()], _LISTED_MAX)
        notes.append(f"not in the working directory: {listed}; name a file in the code to have it")
    if inputs.lost:
        lost = list_first(dict.fromkeys(inputs.lost), _LISTED_MAX)
        notes.append(f"the stored bytes of {lost} are missing or damaged; the program ran without them")
    if inputs.workspace is not None and inputs.workspace.lost is not None:
        entries = _entries(inputs.workspace.lost.entries)
        notes.append(
            f"the stored links, empty folders and modes of the working directory ({entries}) are missing or "
            "damaged; the program ran without them"
        )
    notes += [] if bounds is None else _notes_on_rest(collected, inputs, bounds)
    if replaced := [*inputs.replaced, *_list_replaced(stored, inputs)]:
        listed = list_first(replaced, _LISTED_MAX)
        notes.append(f"{listed}: another call wrote it while this one ran; the file of this call is the newest")
    gone = {FilePath.from_physical(path).rel for path in removed}.intersection(outdated)
    if changed := [name for name in outdated if name not in gone]:
        listed = list_first(changed, _LISTED_MAX)
        notes.append(f"{listed}: the copy that the user has is an older version; promise the file to renew it")
    if gone:
        notes.append(f"the user still has a copy of {list_first(sorted(gone), _LISTED_MAX)}")
    return notes


def _list_replaced(stored: Sequence[StoredArtifact], inputs: "JobInputs") -> list[str]:
    """The names of files whose version before was stored by another call, after this one took its inputs."""
    if inputs.workspace is None:
        return []
    return [
        each.path.rel
        for each in stored
        if each.follows is not None
        and each.follows.number > inputs.workspace.covers
        and each.follows.tool_call_id != each.tool_call_id
    ]


def _notes_on_rest(collected: Collected, inputs: "JobInputs", bounds: ArchiveBounds) -> list[str]:
    found, notes = collected.workspace, []
    if found is not None and (found.is_too_large or inputs.unmerged):
        of_others = " and those of calls beside it are more than the limits" if inputs.unmerged else ""
        notes.append(
            "of the working directory only the files that other tools see were stored: others, links and empty "
            f"folders are {_entries(found.entries)} of {_bytes(found.size_bytes)}{of_others} (limits "
            f"{bounds.entries_max} and {bounds.bytes_max}); delete some, or work in /tmp"
        )
    if found is not None and found.left_out:
        what = "sockets, pipes, paths over 4,096 bytes, folders in whose place in files/ is a file or link"
        notes.append(f"{_entries(found.left_out)} of the working directory cannot be stored ({what})")
    return notes


def _entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count:,} entries"


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size:,} bytes"
