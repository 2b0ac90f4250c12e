"""What of a workspace is no stored file, on its way into a sandbox and out of it: an archive that sandboxes unpack.

The service reads its lines only to join the archives of two calls; no path of it becomes one of this machine.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from proofbox.service.artifacts.staging import build_staging_error
from proofbox.service.errors import StoreFailedError
from proofbox.service.file_content import FileContent

_LINE_BYTES_MAX = 128 * 1024
_ENTRIES_MAX = 200_000
_PIECE_BYTES = 256 * 1024


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
        entries: its files, folders, links and modes, without the files that are stored by themselves.
        size_bytes: the size of its archive.
        left_out: what an archive cannot hold: sockets, pipes, paths that are too long, what was written below a
            folder in whose place in ``files/`` is something else; and what could not be restored before.
        is_too_large: whether it is larger than the bounds.
        source: the archive; None if it is too large, or is what the call began with.
        sha256: the SHA-256 of the archive, in hex.
    """

    entries: int
    size_bytes: int
    left_out: int = 0
    is_too_large: bool = False
    source: FileContent | None = None
    sha256: str = ""


class Merged(NamedTuple):
    """Two archives as one: its bytes, how many entries it has, and the files that both changed."""

    content: FileContent
    entries: int
    replaced: list[str]


class _Entry(NamedTuple):
    """An entry of an archive: its line, and where its bytes are."""

    line: dict[str, Any]
    archive: FileContent
    at: int
    size: int


def merge_archives(base: FileContent | None, theirs: FileContent, ours: FileContent, into: Path) -> Merged:
    """Puts on ``theirs`` what ``ours`` changed of ``base``: entries that are new or other, and those that are gone.

    Args:
        base: what our call began with; None for nothing.
        theirs: what other calls stored since.
        ours: what our call left; its entries state whether they are those of ``base``.
        into: the new file of the result.

    Raises:
        StoreFailedError: one of them is no archive, or the file cannot be written.
    """
    merged = dict(_entries(theirs))
    left = dict(_entries(ours))
    before = {} if base is None else dict(_entries(base))
    for path in before:
        if path not in left:
            merged.pop(path, None)
    changed = {path: entry for path, entry in left.items() if not entry.line.get("is_same")}
    replaced = [
        path
        for path in changed
        if path in merged
        and merged[path].line["kind"] == "file"
        and (path not in before or _without_flag(before[path]) != _without_flag(merged[path]))
    ]
    merged.update(changed)
    for path in list(changed):  # folders above what we changed, which another call may have removed
        while path := path.rpartition("/")[0]:
            if path in left:
                merged.setdefault(path, left[path])
    try:
        with into.open("xb") as file:
            for _, entry in sorted(merged.items()):
                file.write(json.dumps(_without_flag(entry)).encode() + b"\n")
                for at in range(entry.at, entry.at + entry.size, _PIECE_BYTES):
                    file.write(entry.archive.read(at, min(_PIECE_BYTES, entry.at + entry.size - at)))
    except OSError as exc:
        raise build_staging_error(exc) from exc
    return Merged(FileContent(into), len(merged), replaced)


def _without_flag(entry: _Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.line.items() if name != "is_same"}


def _entries(archive: FileContent) -> Iterator[tuple[str, _Entry]]:
    with archive.open() as file:
        count = at = 0
        while text := file.readline(_LINE_BYTES_MAX + 1):
            try:
                line = json.loads(text)
                path, size = str(line["path"]), int(line.get("size", 0))
                count += 1
                if size < 0 or count > _ENTRIES_MAX or not text.endswith(b"\n"):
                    raise ValueError(size)  # noqa: TRY301 - as what is no number
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as exc:
                raise StoreFailedError("a stored workspace is damaged; it is replaced by the next call") from exc
            at += len(text)
            yield path, _Entry(line, archive, at, size)
            at += size
            file.seek(at)
