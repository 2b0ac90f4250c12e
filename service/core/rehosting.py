"""Brings all that a call refers to into place before the program starts, with a ledger of what came from where."""

import asyncio
import fnmatch
import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, Protocol

from contracts.codes import NoticeCode
from contracts.paths import FilePath
from contracts.tool_calls import Asset, Rehosted, SourceRow
from service.core.blocks import Notice
from service.core.engine_port import InputFile
from service.core.errors import AssetRefusedError
from service.core.mentions import Mention, find_mentions, find_sids
from service.core.scopes import Scope
from service.core.store_ports import ArtifactStore, SourcePool, StoredArtifact

_LEFT_OUT_LISTED = 20
_THEME_BYTES_MAX = 200_000
_PAGE_BYTES = 4096  # a file system in memory gives a file whole pages
_OWN_INODES = 4  # OUT_DIR itself, the turn's folder, files/ and its other name


class AssetSource(Protocol):
    """Where a caller's own files are read from by URI."""

    async def fetch(self, uri: str, staging: Path) -> Path | None:
        """A local file with the bytes behind ``uri``; None if it is not below a store that the operator allows.

        Raises:
            StoreFailedError: it is allowed, but cannot be read.
        """


@dataclass(frozen=True, slots=True)
class WorkspaceBounds:
    """How much of a turn's workspace is put into OUT_DIR without being mentioned.

    Attributes:
        bytes_max: all files together.
        files_max: how many.
    """

    bytes_max: int
    files_max: int


class Places:
    """Paths that can lie in one tree: none of them is a folder of another."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def take(self, path: FilePath) -> bool:
        """Adds a path; False, and not added, if a folder lies there or a file lies where it needs a folder."""
        folders = {str(folder) for folder in PurePosixPath(path.physical).parents}
        if path.physical in self._folders or folders & self._files:
            return False
        self._files.add(path.physical)
        self._folders |= folders
        return True


@dataclass(slots=True)
class Gathered:
    """What is to be put into OUT_DIR.

    Attributes:
        inputs: the files, each path once.
        ledger: where each came from.
        missing: physical paths that cannot be had.
        missing_cited: physical paths of cited sources that cannot be had.
        cited: the rows of the sources pool that the text cites.
        notices: what the agent should learn.
        places: where the inputs lie.
    """

    inputs: dict[str, InputFile] = field(default_factory=dict)
    ledger: list[Rehosted] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_cited: list[str] = field(default_factory=list)
    cited: list[SourceRow] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    places: Places = field(default_factory=Places)

    @property
    def size_bytes(self) -> int:
        """All inputs together."""
        return sum(file.size_bytes for file in self.inputs.values())

    @property
    def out_dir_bytes(self) -> int:
        """What they take of OUT_DIR."""
        return sum(_pages_bytes(file.size_bytes) for file in self.inputs.values())

    @property
    def out_dir_inodes(self) -> int:
        """What they take of OUT_DIR's files and folders, its own few included."""
        folders = {folder for path in self.inputs for folder in PurePosixPath(path).parents}
        return len(self.inputs) + len(folders) + _OWN_INODES


@dataclass(frozen=True, slots=True)
class Wish:
    """What one call may refer to.

    Attributes:
        scope: whose conversation.
        turn_id: the current turn.
        text: the code or content that is scanned.
        assets: files that the caller hands over.
        rows: rows of the sources pool that came with the call.
        own_may_be_absent: a file of the current turn that is not there is no error, for the program may write it.
        room_bytes: what OUT_DIR can take; the workspace does not fill it beyond; None for no bound.
        room_inodes: as many files and folders.
        theme: where a theme file is named, if there is one: what it names in turn is gathered too.
    """

    scope: Scope
    turn_id: str
    text: str
    assets: Sequence[Asset]
    rows: Sequence[SourceRow]
    own_may_be_absent: bool = True
    room_bytes: int | None = None
    room_inodes: int | None = None
    theme: str = ""


class Rehosting:
    """Resolves mentions, citations, assets and the turn's workspace against the stores."""

    def __init__(
        self,
        artifacts: ArtifactStore,
        sources: SourcePool,
        asset_source: AssetSource,
        bounds: WorkspaceBounds,
    ) -> None:
        self._artifacts = artifacts
        self._sources = sources
        self._asset_source = asset_source
        self._bounds = bounds

    async def gather(self, wish: Wish, staging: Path) -> Gathered:
        """Resolves all of a call; what it gathers is valid while ``staging`` is.

        Raises:
            AssetRefusedError: an asset's URI is not allowed, or nothing is there.
            SidConflictError: a row of the call gives a known source id another meaning.
            StoreFailedError: a store failed.
        """
        gathered = Gathered()
        await self._sources.complete(wish.scope, wish.rows)
        for index, asset in enumerate(wish.assets):
            await self._take_asset(wish, index, asset, staging, gathered)
        mentions = await asyncio.to_thread(find_mentions, wish.text)
        turns: dict[str, list[StoredArtifact]] = {}
        for mention in mentions:
            await self._resolve(wish, mention, turns, staging, gathered)
        for mention in find_mentions(wish.theme):
            await self._resolve_theme(wish, mention, turns, staging, gathered)
        await self._resolve_citations(wish, staging, gathered)
        await self._add_workspace(wish, staging, gathered)
        return gathered

    async def _take_asset(self, wish: Wish, index: int, asset: Asset, staging: Path, gathered: Gathered) -> None:
        began = time.perf_counter()
        path = FilePath.from_physical(asset.physical_path)
        if not gathered.places.take(path):
            raise AssetRefusedError(
                f"assets[{index}].physical_path '{path.physical}' is a file and the folder of another asset; "
                "give one of them another path"
            )
        source: Literal["asset", "uri"] = "asset"
        if asset.uri is not None:
            source = "uri"
            local = await self._artifacts.fetch_uri(wish.scope, asset.uri, staging)
            local = local or await self._asset_source.fetch(asset.uri, staging)
            if local is None:
                raise AssetRefusedError(
                    f"assets[{index}].uri is not below a store that the operator allows, or nothing is there; "
                    "hand the file over as base64 or text"
                )
        else:
            content = asset.base64 if asset.base64 is not None else (asset.text or "").encode()
            local = staging / f"asset-{index}"
            await asyncio.to_thread(local.write_bytes, content)
        size, sha256 = await asyncio.to_thread(_measure, local)
        self._add(wish, path, local, size, gathered)
        gathered.ledger.append(_line("assets", source, path, sha256, size, began))

    async def _resolve(
        self,
        wish: Wish,
        mention: Mention,
        turns: dict[str, list[StoredArtifact]],
        staging: Path,
        gathered: Gathered,
    ) -> None:
        began = time.perf_counter()
        if mention.turn_id not in turns:
            turns[mention.turn_id] = _standing(await self._artifacts.of_turn(wish.scope, mention.turn_id))
        stored = [a for a in turns[mention.turn_id] if a.path.namespace is mention.namespace]
        rels = {a.path.rel for a in stored}
        for rel in mention.readings:
            if f"{mention.turn_id}/{mention.namespace}/{rel}" in gathered.inputs:
                return
            if rel in rels:
                break  # a likelier reading than one that is there already
        meant = _meant(mention, stored)
        for artifact in meant:
            await self._take(wish, mention.asked, artifact, staging, gathered, began)
        handed_over = any(_below(mention, path) for path in gathered.inputs)
        own = wish.own_may_be_absent and mention.turn_id == wish.turn_id
        may_be_absent = own or mention.pattern is not None or handed_over
        if not meant and not may_be_absent and mention.asked not in gathered.missing:
            gathered.missing.append(mention.asked)

    async def _resolve_theme(
        self,
        wish: Wish,
        mention: Mention,
        turns: dict[str, list[StoredArtifact]],
        staging: Path,
        gathered: Gathered,
    ) -> None:
        """What a theme file names: files of turns, and those beside it by their names alone, such as its logo."""
        began = time.perf_counter()
        readings = (f"{mention.turn_id}/{mention.namespace}/{rel}" for rel in mention.readings)
        file = next((gathered.inputs[path] for path in readings if path in gathered.inputs), None)
        if file is None or file.size_bytes > _THEME_BYTES_MAX:
            return
        text = (await asyncio.to_thread(file.source.read_bytes)).decode(errors="replace")
        for named in await asyncio.to_thread(find_mentions, text):
            await self._resolve(wish, named, turns, staging, gathered)
        folder = PurePosixPath(file.path.physical).parent
        for artifact in turns.get(mention.turn_id, ()):
            beside = PurePosixPath(artifact.path.physical)
            if beside.parent == folder and beside.name in text:
                await self._take(wish, beside.name, artifact, staging, gathered, began)

    async def _resolve_citations(self, wish: Wish, staging: Path, gathered: Gathered) -> None:
        if "[[" not in wish.text:
            return
        began = time.perf_counter()
        pool = {row.sid: row for row in await self._sources.rows(wish.scope)}
        cited, unknown = find_sids(wish.text, frozenset(pool))
        for sid in cited:
            gathered.cited.append(pool[sid])
            path = pool[sid].file
            if path is None or path.physical in gathered.inputs:
                continue
            artifact = await self._artifacts.latest(wish.scope, path)
            if artifact is not None:
                await self._take(wish, f"[[S:{sid}]]", artifact, staging, gathered, began)
            elif not (wish.own_may_be_absent and path.turn_id == wish.turn_id):
                gathered.missing_cited.append(path.physical)
        if unknown:
            gathered.notices.append(
                Notice(
                    NoticeCode.MISSING_SOURCES,
                    "sources are cited that are not in the sources pool",
                    {"missing_sids": unknown},
                )
            )

    async def _add_workspace(self, wish: Wish, staging: Path, gathered: Gathered) -> None:
        """The current turn's own files and attachments, within bounds; what was mentioned is there already."""
        began = time.perf_counter()
        left_out: list[str] = []
        own = _standing(await self._artifacts.of_turn(wish.scope, wish.turn_id))
        waiting = [artifact for artifact in own if artifact.path.physical not in gathered.inputs]
        bytes_left = self._bounds.bytes_max - gathered.size_bytes
        files_left = self._bounds.files_max - len(gathered.inputs)
        fits = sum(a.size_bytes for a in waiting) <= bytes_left and len(waiting) <= files_left
        fits = fits and _has_room(wish, gathered, waiting)
        for artifact in waiting:
            if fits:
                await self._take(wish, "workspace", artifact, staging, gathered, began)
            else:
                left_out.append(artifact.path.physical)
        if left_out:
            gathered.notices.append(
                Notice(
                    NoticeCode.WORKSPACE_TRUNCATED,
                    f"the files of {wish.turn_id} are more than {self._bounds.files_max} or "
                    f"{self._bounds.bytes_max} bytes, or than OUT_DIR has room for: only those that the code names "
                    "were put into it",
                    {"left_out": left_out[:_LEFT_OUT_LISTED], "left_out_total": len(left_out)},
                )
            )

    async def _take(
        self,
        wish: Wish,
        asked: str,
        artifact: StoredArtifact,
        staging: Path,
        gathered: Gathered,
        began: float,
    ) -> None:
        if artifact.path.physical in gathered.inputs or not gathered.places.take(artifact.path):
            return
        local = await self._artifacts.fetch(wish.scope, artifact, staging)
        self._add(wish, artifact.path, local, artifact.size_bytes, gathered)
        gathered.ledger.append(_line(asked, "store", artifact.path, artifact.sha256, artifact.size_bytes, began))

    def _add(self, wish: Wish, path: FilePath, local: Path, size: int, gathered: Gathered) -> None:
        writable = path.turn_id == wish.turn_id
        gathered.inputs[path.physical] = InputFile(path, local, size, writable)


def _has_room(wish: Wish, gathered: Gathered, waiting: list[StoredArtifact]) -> bool:
    """Whether OUT_DIR can take the workspace beside what was gathered."""
    pages = sum(_pages_bytes(artifact.size_bytes) for artifact in waiting)
    folders = {folder for artifact in waiting for folder in PurePosixPath(artifact.path.physical).parents}
    inodes = len(waiting) + len(folders)
    return (wish.room_bytes is None or gathered.out_dir_bytes + pages <= wish.room_bytes) and (
        wish.room_inodes is None or gathered.out_dir_inodes + inodes <= wish.room_inodes
    )


def _pages_bytes(size_bytes: int) -> int:
    return -(-size_bytes // _PAGE_BYTES) * _PAGE_BYTES


def _standing(artifacts: list[StoredArtifact]) -> list[StoredArtifact]:
    """Those in whose place no newer one lies: a program may have made a folder where a file was, or the reverse."""
    places = Places()
    newest_first = sorted(artifacts, key=lambda artifact: artifact.created, reverse=True)
    standing = {artifact.path for artifact in newest_first if places.take(artifact.path)}
    return [artifact for artifact in artifacts if artifact.path in standing]


def _meant(mention: Mention, stored: list[StoredArtifact]) -> list[StoredArtifact]:
    """Which artifacts of the turn a mention means: a file, all below a folder, or all that match a pattern."""
    for rel in mention.readings:
        exact = [a for a in stored if a.path.rel == rel]
        if exact:
            return exact
    if mention.pattern is not None:
        return [a for a in stored if fnmatch.fnmatchcase(a.path.rel, mention.pattern)]
    if not mention.readings:
        return stored
    for rel in mention.readings:
        below = [a for a in stored if a.path.rel.startswith(f"{rel}/")]
        if below:
            return below
    return []


def _below(mention: Mention, physical: str) -> bool:
    folder = f"{mention.turn_id}/{mention.namespace}/"
    if not physical.startswith(folder):
        return False
    rel = physical.removeprefix(folder)
    return not mention.readings or any(rel.startswith(f"{reading}/") for reading in mention.readings)


def _line(
    asked: str,
    source: Literal["store", "asset", "uri"],
    path: FilePath,
    sha256: str,
    size: int,
    began: float,
) -> Rehosted:
    return Rehosted(
        asked=asked,
        source=source,
        physical_path=path.physical,
        sha256=sha256,
        size_bytes=size,
        ms=round((time.perf_counter() - began) * 1000, 3),
    )


def _measure(local: Path) -> tuple[int, str]:
    with local.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()
