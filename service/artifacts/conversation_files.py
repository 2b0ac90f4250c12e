"""The files of turns: from the artifact store, else from what the blocks of the timeline hold or point to."""

import asyncio
import codecs
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from proofbox.contracts.blocks import Block
from proofbox.contracts.checks import encoding_name
from proofbox.contracts.logical_paths import LogicalPath
from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError
from proofbox.service.artifacts.found_file import ConversationFile, Fetched, decode_base64
from proofbox.service.artifacts.line_ranges import parse_stretch
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.artifacts.path_tree import PathTree
from proofbox.service.artifacts.port import ArtifactStore, DamagedBytesError, DeletedFile, StoredArtifact
from proofbox.service.artifacts.staging import Staging
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.text_encoding import encode_text
from proofbox.service.timeline.artifact_versions import Version, find_versions
from proofbox.service.timeline.port import TimelineStore
from proofbox.service.timeline.view import StoredTimelineView, SuppliedTimelineView, TimelineView

log = logging.getLogger("proofbox.artifacts")

LOST = "its stored bytes are missing or damaged"
"""Why a file is not there, for a model: it is as if it were deleted."""

_SMALL_BYTES_MAX = 256 * 1024  # of one file that stays in memory; so much is one piece in every store
_IN_MEMORY_BYTES_MAX = 2 * 1024 * 1024  # of all those of a call, until they are in its sandbox
_LOST_MAX = 1_000  # are remembered
RECENT_MAX = 100
"""How many files that only blocks have are known without being named."""
NAMES_MAX = 20_000
"""How many names of files a conversation is known by: no OUT_DIR of the usual size holds more."""


class AssetSource(Protocol):
    """Where a caller's own files are read from by URI."""

    async def fetch(self, uri: str, staging: Path) -> Path | None:
        """A local file with the bytes behind ``uri``; None if it is not below a store that the operator allows.

        Raises:
            StoreFailedError: it is allowed, but cannot be read.
        """


class ConversationFiles:
    """Where files of turns are found.

    Args:
        artifacts: the artifact store.
        timelines: the stored timelines.
        assets: where a caller's own files are read from by URI.
    """

    def __init__(self, artifacts: ArtifactStore, timelines: TimelineStore, assets: AssetSource) -> None:
        self.artifacts = artifacts
        self._timelines = timelines
        self._assets = assets
        self._lost: dict[tuple[str, str], None] = {}

    def report_lost(self, scope: ConversationKey, what: str) -> None:
        """Logs once that the bytes of something are missing or damaged."""
        lost = (scope.conversation_id, what)
        if lost in self._lost:
            return
        if len(self._lost) >= _LOST_MAX:
            self._lost.pop(next(iter(self._lost)))
        self._lost[lost] = None
        log.warning("conversation %s: the stored bytes of %s are missing or damaged; calls go on without it", *lost)

    def report_lost_file(self, scope: ConversationKey, stored: StoredArtifact) -> None:
        """Logs once that the bytes of a version are missing or damaged."""
        self.report_lost(scope, f"{stored.path.physical}, version {stored.version},")

    def of_call(self, scope: ConversationKey, timeline: Sequence[Block] | None = None) -> "CallFiles":
        """The files that one call can reach; ``timeline`` is the one that it brings, in place of the stored one."""
        memory = StoredTimelineView(self._timelines, scope) if timeline is None else SuppliedTimelineView(timeline)
        return CallFiles(self, scope, memory)

    async def fetch_uri(self, scope: ConversationKey, uri: str, staging: Staging) -> Path | None:
        """A local file with the bytes behind a URI: hosted for this tenant and project, or of an allowed store.

        None if nothing is there, also if the stored bytes are missing or damaged.

        Raises:
            StoreFailedError: it is allowed, but cannot be read.
        """
        folder = await staging.folder()
        try:
            local = await self.artifacts.fetch_uri(scope, uri, folder)
        except DamagedBytesError:
            self.report_lost(scope, uri)
            return None
        return local or await self._assets.fetch(uri, folder)


class CallFiles:
    """The files that one call can reach; each is searched once."""

    def __init__(self, files: ConversationFiles, scope: ConversationKey, memory: TimelineView) -> None:
        self._files = files
        self._scope = scope
        self.memory = memory
        self._turns: dict[str, list[ConversationFile]] = {}
        self._removed: dict[FilePath, ConversationFile] = {}
        self._block_paths: dict[str, list[FilePath]] = {}
        self._newest: dict[str, dict[str, ConversationFile]] = {}
        self._by_rel: dict[tuple[str, Namespace], dict[str, ConversationFile]] = {}
        self._fetched: dict[StoredArtifact, Fetched] = {}
        self._in_memory_bytes = 0
        self._deletions: dict[FilePath, DeletedFile] | None = None

    async def of_turn(self, turn_id: str) -> list[ConversationFile]:
        """The latest versions of a turn's files and attachments that can lie in one tree, by their paths.

        What a program of the turn removed is not among them.

        Raises:
            StoreFailedError: a store failed.
        """
        if turn_id not in self._turns:
            stored, in_blocks = await asyncio.gather(
                self._files.artifacts.of_turn(self._scope, turn_id), self._paths_of_turn(turn_id)
            )
            found = {
                artifact.path: ConversationFile.of_store(artifact) for artifact in stored if not artifact.removed
            }
            gone = {artifact.path: ConversationFile.of_store(artifact) for artifact in stored if artifact.removed}
            self._removed.update(gone)
            out_of_blocks = await self._removed_in_blocks(path for path in in_blocks if path not in found)
            for path in in_blocks:
                is_new = path.turn_id == turn_id and path not in found and path not in gone
                if is_new and path not in out_of_blocks and (file := await self.find_in_blocks(path)):
                    found[path] = file
            self._turns[turn_id] = _newest_per_path(sorted(found.values(), key=lambda file: file.path))
        return self._turns[turn_id]

    async def newest_by_name(self, turn_id: str) -> dict[str, ConversationFile]:
        """The workspace: each name of the conversation with its newest version, newest first, `NAMES_MAX` at most.

        A name is a path below ``files/`` or ``attachments/`` of any turn. What a program removed last is not there,
        nor what lies in the place of a newer file or folder.

        Args:
            turn_id: the turn of the call; of a stored timeline only its blocks are searched for files that the
                artifact store does not have.

        Raises:
            StoreFailedError: a store failed.
        """
        if turn_id not in self._newest:
            stored = await self._files.artifacts.newest_of_names(self._scope, NAMES_MAX)
            files = {artifact.path.rel: ConversationFile.of_store(artifact) for artifact in stored}
            in_blocks = await self._newest_in_blocks(turn_id, files)
            if in_blocks:
                files = dict(sorted((files | in_blocks).items(), key=lambda item: item[1].created, reverse=True))
            places = PathTree()
            self._newest[turn_id] = {
                name: file
                for name, file in files.items()
                if not (file.stored is not None and file.stored.removed) and places.take_name(name)
            }
        return self._newest[turn_id]

    async def _newest_in_blocks(
        self, turn_id: str, stored: Mapping[str, ConversationFile]
    ) -> dict[str, ConversationFile]:
        """The newest files that only blocks have, by their names, if they are newer than the stored ones."""
        newest = await self.memory.newest_files(RECENT_MAX)
        paths = [*await self._paths_of_turn(turn_id), *(at for path in newest if (at := _file_path(path)))]
        removals = sorted((await self.memory.removals()).items(), key=itemgetter(1))
        gone = {_name_of(path): position for path, position in removals}
        found: dict[str, ConversationFile] = {}
        for path in dict.fromkeys(paths):
            known = stored.get(path.rel)
            if (known is not None and known.path == path) or (file := await self.find_in_blocks(path)) is None:
                continue
            if file.version is None or file.version.position < gone.get(path.rel, 0):
                continue
            if known is not None and (
                file.created <= known.created or await self._files.artifacts.latest(self._scope, path) is not None
            ):
                continue
            other = found.get(path.rel)
            if other is None or other.version is None or other.version.position < file.version.position:
                found[path.rel] = file
        return found

    async def named(self, name: str, turn_id: str) -> ConversationFile | None:
        """The file that a name means in a call: the newest version of that name, or the very file of a path.

        A bare path, one below ``files/``, ``attachments/``, the home folder or the folder of another sandbox, and a
        path of the current turn's ``files/`` are names. A path of another turn, or of a turn's attachments, is that
        file, also if a program removed it later. Each is tried as it stands, then without percent signs.

        Args:
            name: the text of a program, a document or a model.
            turn_id: the turn of the call.

        Raises:
            StoreFailedError: a store failed.
        """
        try:
            paths = [path for path in possible_paths(name, turn_id) if isinstance(path, FilePath)]
        except UnsafePathError:
            return None
        for path in await self.meant(paths, turn_id):
            if isinstance(path, FilePath) and (file := await self.latest(path)) is not None:
                return file
        return None

    async def meant(self, paths: Sequence[LogicalPath], turn_id: str) -> list[LogicalPath]:
        """The paths that a text may mean, those of `possible_paths`, with the newest file in place of each name.

        Raises:
            StoreFailedError: a store failed.
        """
        # A bare path may mean a file or an attachment of the turn; a path of an attachment means nothing else.
        if not any(is_own(path, turn_id) for path in paths):
            return list(paths)
        newest = await self.newest_by_name(turn_id)
        found: dict[LogicalPath, None] = {}
        for path in paths:
            if not isinstance(path, FilePath) or path.turn_id != turn_id:
                found[path] = None
            elif path.rel in newest:
                found[newest[path.rel].path] = None
            elif is_own(path, turn_id) and await self.latest(path) is None:
                found[path] = None  # it may have been deleted by a client; what a program removed is no more
        return list(found)

    def removed(self, path: FilePath) -> ConversationFile | None:
        """The last version of a file that a program removed from a turn, if `of_turn` was asked for that turn."""
        return self._removed.get(path)

    async def _removed_in_blocks(self, paths: Iterable[FilePath]) -> set[FilePath]:
        """Those of some files that the blocks have, and that a program removed after their last version."""
        removals = await self.memory.removals()
        if not removals:
            return set()
        removed = set()
        for path in paths:
            at = removals.get(path.physical)
            if at is not None and all(
                version.position < at for version in await find_versions(self.memory, path.logical)
            ):
                removed.add(path)
        return removed

    async def by_rel(self, turn_id: str, namespace: Namespace) -> dict[str, ConversationFile]:
        """Those of `of_turn` in one namespace, by their paths in it.

        Raises:
            StoreFailedError: a store failed.
        """
        where = (turn_id, namespace)
        if where not in self._by_rel:
            files = await self.of_turn(turn_id)
            self._by_rel[where] = {file.path.rel: file for file in files if file.path.namespace is namespace}
        return self._by_rel[where]

    async def latest(self, path: FilePath) -> ConversationFile | None:
        """The latest version of a path, if there is one whose bytes can be had.

        Raises:
            StoreFailedError: a store failed.
        """
        artifact = await self._files.artifacts.latest(self._scope, path)
        return ConversationFile.of_store(artifact) if artifact is not None else await self.find_in_blocks(path)

    async def find_in_blocks(self, path: FilePath) -> ConversationFile | None:
        """The latest version that the blocks know, if they have its bytes or know where they are.

        Raises:
            StoreFailedError: the store failed.
        """
        versions = await find_versions(self.memory, path.logical)
        latest = versions[-1] if versions else None
        if latest is not None and isinstance(self.memory, StoredTimelineView):
            deletion = await self._deletion(path)
            if deletion is not None and latest.position <= deletion.position:
                return None
        if latest is None or not (latest.has_payload or latest.hosted_uri):
            return None
        return ConversationFile.of_version(path, latest)

    async def deleted_at(self, path: FilePath) -> str | None:
        """When a client deleted a file; None if nobody did.

        Raises:
            StoreFailedError: the store failed.
        """
        deletion = await self._deletion(path)
        return None if deletion is None else deletion.deleted

    async def _deletion(self, path: FilePath) -> DeletedFile | None:
        if self._deletions is None:
            self._deletions = await self._files.artifacts.deletions(self._scope)
        return self._deletions.get(path)

    async def read_in_turn(self, turn_id: str, paths_max: int | None = None) -> list[ConversationFile]:
        """The files of other turns that ``react.read`` brought in during a turn, of the first ``paths_max`` paths.

        Raises:
            StoreFailedError: a store failed.
        """
        found: dict[FilePath, ConversationFile] = {}
        for path in (await self._paths_of_turn(turn_id))[:paths_max]:
            stretch = parse_stretch(path.logical)
            whole = [] if stretch is None else [FilePath.from_logical(stretch.path)]
            for meant in [path, *whole] if path.turn_id != turn_id else ():
                if meant in found:
                    break
                if (file := await self.latest(meant)) is not None:
                    found[meant] = file
                    break
        return list(found.values())

    async def fetch_stored(self, files: Sequence[ConversationFile], staging: Staging) -> None:
        """Has the bytes of those that the artifact store has at hand for `fetch`, all at once.

        Raises:
            StoreFailedError: a store failed.
        """
        stored = [file.stored for file in files if file.stored is not None and file.stored not in self._fetched]
        if not stored:
            return
        began = time.perf_counter()
        sources = await self._bytes_of(stored, staging)
        ms = (time.perf_counter() - began) * 1000 / len(stored)
        for artifact, source in sources.items():
            self._fetched[artifact] = Fetched(source, artifact.size_bytes, artifact.sha256, "store", ms)

    async def _bytes_of(
        self, stored: Sequence[StoredArtifact], staging: Staging
    ) -> dict[StoredArtifact, FileContent]:
        """The bytes of versions, without those that are missing or damaged: each of these costs itself alone."""
        try:
            return await self._all_bytes_of(stored, staging)
        except DamagedBytesError:
            if len(stored) == 1:
                self._files.report_lost_file(self._scope, stored[0])
                return {}
        half = len(stored) // 2
        return {
            **await self._bytes_of(stored[:half], staging),
            **await self._bytes_of(stored[half:], staging),
        }

    async def _all_bytes_of(
        self, stored: Sequence[StoredArtifact], staging: Staging
    ) -> dict[StoredArtifact, FileContent]:
        small, large = list[StoredArtifact](), list[StoredArtifact]()
        for artifact in stored:
            (small if self._fits_in_memory(artifact.size_bytes) else large).append(artifact)
        store, sources = self._files.artifacts, dict[StoredArtifact, FileContent]()
        if small:
            contents = await store.contents(self._scope, small)
            sources.update(zip(small, map(FileContent, contents), strict=True))
        if large:
            fetched = await store.fetch_all(self._scope, large, await staging.folder())
            sources.update(zip(large, map(FileContent, fetched), strict=True))
        return sources

    def _fits_in_memory(self, size: int) -> bool:
        if size > _SMALL_BYTES_MAX or self._in_memory_bytes + size > _IN_MEMORY_BYTES_MAX:
            return False
        self._in_memory_bytes += size
        return True

    async def fetch(self, file: ConversationFile, staging: Staging) -> Fetched | None:
        """The bytes of a file, checked against their digest; None if they cannot be had.

        Raises:
            StoreFailedError: a store failed.
        """
        if file.stored is not None:
            await self.fetch_stored([file], staging)
            return self._fetched.get(file.stored)
        if file.version is None:
            return None
        content = await self.carried(file.version)
        if content is not None:
            name = hashlib.sha256(file.path.physical.encode()).hexdigest()
            source = FileContent(content)
            if not self._fits_in_memory(len(content)):
                source = FileContent(await staging.write(f"block-{name}", content))
            return Fetched(source, len(content), hashlib.sha256(content).hexdigest(), "timeline")
        return await self._hosted(file.version, staging)

    async def read(self, file: ConversationFile, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes of a stored or fetched file from ``start`` to before ``end``, in pieces.

        Raises:
            DamagedBytesError: they are missing or damaged.
            StoreFailedError: the store failed.
        """
        if file.stored is not None:
            try:
                async for piece in self._files.artifacts.read(self._scope, file.stored, start, end):
                    yield piece
            except DamagedBytesError:
                self._files.report_lost_file(self._scope, file.stored)
                raise
        elif file.fetched is not None:
            at = 0
            async for piece in file.fetched.source.pieces(min(end, file.fetched.size_bytes)):
                yield piece[max(start - at, 0) :]
                at += len(piece)

    async def head(self, file: ConversationFile, limit: int, staging: Staging) -> bytes | None:
        """The first ``limit`` bytes of a file; None if they cannot be had.

        Raises:
            StoreFailedError: a store failed.
        """
        if file.stored is None and file.fetched is None:
            fetched = await self.fetch(file, staging)
            if fetched is None:
                return None
            file = file.with_content(fetched)
        return await self._first(file, limit)

    async def _first(self, file: ConversationFile, limit: int) -> bytes | None:
        """The first ``limit`` bytes of a stored or fetched file; None if they are missing or damaged."""
        try:
            return b"".join([piece async for piece in self.read(file, 0, min(limit, file.size_bytes or 0))])
        except DamagedBytesError:
            return None

    async def read_at_hand(self, file: ConversationFile, limit: int) -> bytes | None:
        """The first ``limit`` bytes of a file of this conversation; None if only other places have them, or none.

        Raises:
            StoreFailedError: a store failed.
        """
        if file.stored is not None:
            return await self._first(file, limit)
        content = None if file.version is None else await self.carried(file.version)
        return None if content is None else content[:limit]

    async def carried(self, version: Version) -> bytes | None:
        """What the content block of a version carries, if it is the whole file.

        Raises:
            StoreFailedError: the store failed.
        """
        content = version.content
        if content is not None and content.block.base64 is None and content.base64_chars:
            content = await self.memory.at(content.position)
        if content is None:
            return None
        block = content.block
        if block.base64 is not None:
            carried = await asyncio.to_thread(decode_base64, block.base64)
        elif block.text is not None and version.is_whole_text:
            carried = await asyncio.to_thread(_encode, block.text, version)
        else:
            carried = None
        if carried is None or not await asyncio.to_thread(version.holds, carried):
            return None
        return carried

    async def _hosted(self, version: Version, staging: Staging) -> Fetched | None:
        if version.hosted_uri is None:
            return None
        local = await self._files.fetch_uri(self._scope, version.hosted_uri, staging)
        if local is None:
            return None
        content = FileContent(local)
        size, sha256 = await asyncio.to_thread(content.measure)
        if version.sha256 not in {None, sha256} or version.size_bytes not in {None, size}:
            return None
        return Fetched(content, size, sha256, "uri")

    async def _paths_of_turn(self, turn_id: str) -> list[FilePath]:
        """The files that the blocks of a turn have."""
        if turn_id not in self._block_paths:
            paths = await self.memory.files_of_turn(turn_id)
            self._block_paths[turn_id] = [file for path in paths if (file := _file_path(path)) is not None]
        return self._block_paths[turn_id]


def _file_path(path: str) -> FilePath | None:
    try:
        return FilePath.from_logical(path)
    except UnsafePathError:  # code, or another program's own idea of a path
        return None


def is_own(path: LogicalPath, turn_id: str) -> bool:
    """Whether a path is one of a turn's ``files/``: in a call of that turn, a name."""
    return isinstance(path, FilePath) and path.turn_id == turn_id and path.namespace is Namespace.FILES


def _encode(text: str, version: Version) -> bytes | None:
    """The bytes of a file by the text of its block, in the encoding of its digest; None if they are others."""
    named = version.digest.get("encoding")
    encoding = encoding_name(named) if isinstance(named, str) else None
    if encoding is None:
        return text.encode(errors="replace")
    for mark in (b"", codecs.BOM_UTF16_BE):
        try:
            carried = encode_text(text, codecs.lookup(encoding).name, mark)
        except UnicodeEncodeError:
            return None
        if version.holds(carried):
            return carried
    return None


def _name_of(physical: str) -> str:
    """The name of a file by its physical path."""
    return physical.split("/", 2)[-1]


def _newest_per_path(files: list[ConversationFile]) -> list[ConversationFile]:
    """Those in whose place no newer one lies: a program may have made a folder where a file was, or the reverse."""
    places = PathTree()
    newest_first = sorted(files, key=lambda file: file.created, reverse=True)
    newest = {file.path for file in newest_first if places.take(file.path)}
    return [file for file in files if file.path in newest]
