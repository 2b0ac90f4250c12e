"""Brings all that a call refers to into place before the program starts, with a ledger of what came from where."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from proofbox.contracts.codes import NoticeCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import Asset, ToolCallRequest
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.found_file import ConversationFile, Origin
from proofbox.service.artifacts.port import SourcePool
from proofbox.service.artifacts.staging import Staging
from proofbox.service.calls.observer import UsedReference
from proofbox.service.calls.param_references import Reference, References
from proofbox.service.errors import AssetRefusedError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.file_aliases import is_named, turns_named
from proofbox.service.jobs.inputs import (
    OF_WORKSPACE,
    InputRequest,
    JobInputs,
    inodes_of,
    nanoseconds,
    pages_bytes,
)
from proofbox.service.jobs.named_files import names_in
from proofbox.service.jobs.path_mentions import (
    Mention,
    files_meant,
    find_elsewhere,
    find_mentions,
    find_sids,
    id_ranges,
    is_below,
    is_there,
    mentions_in,
    needed,
)
from proofbox.service.jobs.workspace import open_workspace
from proofbox.service.sandbox.port import InputFile
from proofbox.service.text_encoding import UTF_8, as_utf_8
from proofbox.service.timeline.block_writer import Notice

_LEFT_OUT_LISTED = 20
_NAMING_BYTES_MAX = 10 * 1024 * 1024
"""The largest text in which files are searched for: a theme, a document that is appended to another."""
_BINARY = (b"%PDF", b"PK")


@dataclass(frozen=True, slots=True)
class WorkspaceBounds:
    """How much is put into OUT_DIR without being named.

    Attributes:
        bytes_max: all files together.
        files_max: how many.
    """

    bytes_max: int
    files_max: int


class InputResolver:
    """Resolves mentions, citations, assets and the turn's workspace against the stores and the timeline."""

    def __init__(self, files: ConversationFiles, sources: SourcePool, bounds: WorkspaceBounds) -> None:
        self._files = files
        self._sources = sources
        self._bounds = bounds
        self._references = References(files)

    @property
    def pinned_packages(self) -> None:
        """See `InputSource.pinned_packages`."""

    async def resolve_reference(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference
    ) -> tuple[str, UsedReference]:
        """See `References.resolve`."""
        return await self._references.resolve(scope, request, reference)

    async def resolve_inputs(self, request: InputRequest, staging: Staging) -> JobInputs:
        """Resolves all that a call refers to; the files are valid while ``staging`` is.

        Raises:
            AssetRefusedError: an asset's URI is not allowed, or nothing is there.
            SidConflictError: a row of the call gives a known source id another meaning.
            StoreFailedError, StoreFullError: a store failed.
        """
        await self._sources.complete(request.scope, request.rows)
        return await _Resolution(self._files, self._sources, self._bounds, request, staging).run()


class _Resolution:
    """The resolution of one call's inputs."""

    def __init__(
        self,
        files: ConversationFiles,
        sources: SourcePool,
        bounds: WorkspaceBounds,
        request: InputRequest,
        staging: Staging,
    ) -> None:
        self._all_files = files
        self._files = files.of_call(request.scope, request.timeline)
        self._sources = sources
        self._bounds = bounds
        self._request = request
        self._staging = staging
        self._inputs = JobInputs()

    async def run(self) -> JobInputs:
        """Resolves what is named, then adds the workspace."""
        request, inputs = self._request, self._inputs
        if request.has_workspace:
            await self._open_workspace()
        for index, asset in enumerate(request.assets):
            await self._take_asset(index, asset)
        mentions = await mentions_in(request.text)
        for text in request.further_texts:
            mentions = list(dict.fromkeys([*mentions, *await mentions_in(text)]))
        paths = [mention for mention in mentions if not self._is_name(mention)]
        await self._fetch_together(paths)
        for mention in paths:
            await self._resolve(mention)
        if inputs.missing and request.language:
            inputs.missing = await asyncio.to_thread(needed, request, paths, inputs.missing)
        named = await self._resolve_naming() if request.theme else []
        await self._resolve_citations("\n".join([request.text, *named]))
        if request.text and not request.language:
            await self._add_named(request.text, request.target.rpartition("/")[0])
        if request.language:
            await self._add_names([mention for mention in mentions if self._is_name(mention)])
            for turn_id in turns_named(request.text, request.turn_id):
                await self._add_versions(turn_id)
        else:
            await self._add_turn()
        return inputs

    def _is_name(self, mention: Mention) -> bool:
        """Whether a mention is another spelling of a name: a path of the program's own turn."""
        request = self._request
        return (
            bool(request.language) and mention.turn_id == request.turn_id and mention.namespace is Namespace.FILES
        )

    async def _open_workspace(self) -> None:
        began, turn_id = time.perf_counter(), self._request.turn_id
        workspace = await open_workspace(self._all_files.artifacts, self._request.scope, self._staging)
        if workspace.lost is not None:
            what = f"the workspace's archive, version {workspace.lost.number},"
            self._all_files.report_lost(self._request.scope, what)
        self._inputs.add_workspace(workspace, turn_id, _ms_since(began))

    async def _fetch_together(self, mentions: Sequence[Mention]) -> None:
        """Fetches what the mentions mean: one trip to the store for all, not one for each."""
        meant: dict[FilePath, ConversationFile] = {}
        for mention in mentions:
            known = await self._known(mention)
            if not is_there(mention, known, self._inputs):
                meant.update({file.path: file for file in files_meant(mention, known)})
        await self._files.fetch_stored(list(meant.values()), self._staging)

    async def _take_asset(self, index: int, asset: Asset) -> None:
        began = time.perf_counter()
        path = FilePath.from_physical(asset.physical_path)
        if not self._inputs.places.take(path):
            raise AssetRefusedError(
                f"assets[{index}].physical_path '{path.physical}' is a file and the folder of another asset; "
                "give one of them another path"
            )
        source: Origin = "asset"
        if asset.uri is not None:
            source = "uri"
            found = await self._all_files.fetch_uri(self._request.scope, asset.uri, self._staging)
            if found is None:
                raise AssetRefusedError(
                    f"assets[{index}].uri is not below a store that the operator allows, or nothing is there; "
                    "hand the file over as base64 or text"
                )
            local = FileContent(found)
        else:
            content = asset.base64 if asset.base64 is not None else (asset.text or "").encode()
            local = FileContent(await self._staging.write(f"asset-{index}", content))
        size, sha256 = await asyncio.to_thread(local.measure)
        self._add(path, local, size)
        self._inputs.names.pop(path.rel, None)  # the later of two with one name is the newer one
        self._inputs.names[path.rel] = path.physical
        self._inputs.ledger.append(_line("assets", source, path, sha256, size, began))

    async def _resolve(self, mention: Mention) -> None:
        known = await self._known(mention)
        if is_there(mention, known, self._inputs):
            return
        meant = files_meant(mention, known)
        if not meant and (mention.turn_id != self._request.turn_id or mention.namespace is Namespace.ATTACHMENTS):
            meant = await find_elsewhere(mention, self._files, in_blocks=self._request.timeline is not None)
        taking = [await self._take(mention.asked, file) for file in meant]
        if (self._request.own_may_be_absent and mention.turn_id == self._request.turn_id) or (
            meant and all(taking)
        ):
            return
        if not meant and (
            mention.pattern is not None or any(is_below(mention, path) for path in self._inputs.files)
        ):
            return
        if mention.asked not in self._inputs.missing:
            self._inputs.missing.append(mention.asked)

    async def _resolve_naming(self) -> list[str]:
        """Resolve the files that files of the call name, and return their texts.

        They are files of turns, and files beside them by their names alone, such as the logo of a theme.
        """
        texts = []
        for line in self._request.theme.split("\n"):
            named = await self._files.named(line, self._request.turn_id) if line else None
            given = None if named is None else self._inputs.files.get(named.path.physical)
            for mention in find_mentions(line):
                readings = (f"{mention.turn_id}/{mention.namespace}/{rel}" for rel in mention.readings)
                given = given or next((self._inputs.files[at] for at in readings if at in self._inputs.files), None)
            if given is None and named is not None and await self._take(line, named):
                given = self._inputs.files.get(named.path.physical)
            if given is not None:
                texts.append(await self._resolve_named_by(given))
        return texts

    async def _resolve_named_by(self, file: InputFile) -> str:
        """Resolve the files that a file of the call names, and return its text."""
        if file.size_bytes > _NAMING_BYTES_MAX:
            return ""
        content = await asyncio.to_thread(file.source.read)
        if content.startswith(_BINARY):
            return ""
        content, encoding = await asyncio.to_thread(as_utf_8, content, is_whole=True)
        if encoding != UTF_8:
            self._inputs.encodings[file.path.physical] = encoding
        text = content.decode(errors="replace")
        for named in await mentions_in(text):
            await self._resolve(named)
        folder = PurePosixPath(file.path.physical).parent
        for near in await self._files.of_turn(file.path.turn_id):
            beside = PurePosixPath(near.path.physical)
            if beside.parent == folder and beside.name in text:
                await self._take(beside.name, near)
        await self._add_named(text, file.path.rel.rpartition("/")[0])
        return text

    async def _add_named(self, text: str, folder: str) -> None:
        """The newest version of each name that a document has in any spelling, as far as there is room."""
        inputs, newest = self._inputs, await self._files.newest_by_name(self._request.turn_id)
        found = await asyncio.to_thread(names_in, text, newest, self._request.turn_id, folder)
        names = [name for name in found if name not in inputs.names]
        waiting = [newest[name] for name in names if newest[name].path.physical not in inputs.files]
        if not _has_room(self._request, inputs, waiting):
            waiting = [file for file in waiting if _has_room(self._request, inputs, [file])]
        await self._files.fetch_stored(waiting, self._staging)
        for name in names:
            file = newest[name]
            if _has_room(self._request, inputs, [file]) and await self._take(name, file):
                inputs.names[name] = file.path.physical

    async def _known(self, mention: Mention) -> dict[str, ConversationFile]:
        """The files that a mention may mean, by their names; by paths of its turn a document means the newest."""
        is_own = mention.turn_id == self._request.turn_id and mention.namespace is Namespace.FILES
        if is_own and not self._request.language:
            return await self._files.newest_by_name(mention.turn_id)
        return await self._files.by_rel(mention.turn_id, mention.namespace)

    async def _resolve_citations(self, text: str) -> None:
        if "[[" not in text:
            return
        cited, unknown = find_sids(text, await self._sources.sids(self._request.scope))
        pool = {row.sid: row for row in await self._sources.pick(self._request.scope, id_ranges(cited), len(cited))}
        for sid in cited:
            self._inputs.cited.append(pool[sid])
            path = pool[sid].file
            if path is None or path.physical in self._inputs.files:
                continue
            file = await self._files.latest(path)
            taken = file is not None and await self._take(f"[[S:{sid}]]", file)
            if not taken and not (self._request.own_may_be_absent and path.turn_id == self._request.turn_id):
                self._inputs.missing_cited.append(path.physical)
        if unknown:
            self._inputs.notices.append(
                Notice(
                    NoticeCode.MISSING_SOURCES,
                    "sources are cited that are not in the sources pool",
                    {"missing_sids": unknown},
                )
            )

    async def _add_turn(self) -> None:
        """The turn's own files and attachments, then what ``react.read`` brought: each if all of it fits.

        What was mentioned is there already.
        """
        left_out: list[str] = []
        for group in (
            await self._files.of_turn(self._request.turn_id),
            await self._files.read_in_turn(self._request.turn_id),
        ):
            waiting = [file for file in group if file.path.physical not in self._inputs.files]
            if not self._fits(waiting):
                left_out += [file.path.physical for file in waiting]
                continue
            await self._files.fetch_stored(waiting, self._staging)
            for file in waiting:
                await self._take("workspace", file)
        if left_out:
            self._inputs.notices.append(
                Notice(
                    NoticeCode.WORKSPACE_TRUNCATED,
                    f"the files of the workspace are more than {self._bounds.files_max} or "
                    f"{self._bounds.bytes_max} bytes, or than OUT_DIR has room for: some are not in OUT_DIR",
                    {"left_out": left_out[:_LEFT_OUT_LISTED], "left_out_total": len(left_out)},
                )
            )

    async def _add_names(self, mentions: Sequence[Mention]) -> None:
        """The files of the working directory: all, or those that the program names and the smallest of the others.

        A program names a file by a path of its turn, by its name alone, or in parts that it joins.
        """
        request, inputs = self._request, self._inputs
        newest = await self._files.newest_by_name(request.turn_id)
        handed_over = list(inputs.names)
        waiting = {rel: file for rel, file in newest.items() if rel not in inputs.names}
        named = set[str]()
        if not (request.has_workspace and self._fits(list(waiting.values()))):
            spelled = {file.path for mention in mentions for file in files_meant(mention, waiting)}
            texts = "\n".join([request.text, *request.further_texts])
            named = {rel for rel, file in waiting.items() if file.path in spelled}
            named |= await asyncio.to_thread(lambda: {rel for rel in waiting if is_named(texts, rel)})
            waiting = self._choose(waiting, named)
        await self._files.fetch_stored(list(waiting.values()), self._staging)
        for rel, file in waiting.items():
            if await self._take("named" if rel in named else "workspace", file):
                inputs.names[rel] = file.path.physical
        there = [rel for rel in dict.fromkeys([*handed_over, *newest]) if rel not in inputs.lost]
        inputs.known = [f"{request.turn_id}/{Namespace.FILES}/{rel}" for rel in there]

    async def _add_versions(self, turn_id: str) -> None:
        """The files of a turn that a program names without the rest of a path, as far as there is room."""
        for namespace in Namespace:
            found = (await self._files.by_rel(turn_id, namespace)).values()
            waiting = [file for file in found if file.path.physical not in self._inputs.files]
            if not self._fits(waiting):
                self._inputs.left_out.update({file.path.physical: file.size_bytes or 0 for file in waiting})
                continue
            await self._files.fetch_stored(waiting, self._staging)
            for file in waiting:
                await self._take(turn_id, file)

    def _choose(
        self, waiting: Mapping[str, ConversationFile], named: Collection[str]
    ) -> dict[str, ConversationFile]:
        """Those files that there is room for: named ones, then the smallest; the others are noted as left out."""
        pages, inodes = self._inputs.out_dir_bytes, self._inputs.out_dir_inodes
        size, count, taken = 0, 0, dict[str, ConversationFile]()
        for rel, file in sorted(waiting.items(), key=lambda item: (item[0] not in named, item[1].size_bytes or 0)):
            if file.size_bytes is None or (not self._request.has_workspace and rel not in named):
                continue
            more_pages, more_inodes = pages_bytes(file.size_bytes), inodes_of([f"files/{rel}"])
            fits = _fit(self._request, pages + more_pages, inodes + more_inodes)
            if rel not in named:
                fits = fits and size + file.size_bytes <= self._bounds.bytes_max and count < self._bounds.files_max
            if not fits:
                self._inputs.left_out[rel] = file.size_bytes
                continue
            if rel not in named:
                size, count = size + file.size_bytes, count + 1
            pages, inodes = pages + more_pages, inodes + more_inodes
            taken[rel] = file
        return taken

    def _fits(self, waiting: list[ConversationFile]) -> bool:
        sizes = [file.size_bytes for file in waiting]
        known = [size for size in sizes if size is not None]
        return (
            len(known) == len(sizes)  # the sizes of the others are not known
            and sum(known) <= self._bounds.bytes_max - self._inputs.size_bytes
            and len(waiting) <= self._bounds.files_max - len(self._inputs.files)
            and _has_room(self._request, self._inputs, waiting)
        )

    async def _take(self, asked: str, file: ConversationFile) -> bool:
        """Puts a file in; False if its bytes cannot be had."""
        began = time.perf_counter()
        if file.path.physical in self._inputs.files:
            return True
        got = await self._files.fetch(file, self._staging)
        if got is None:
            if file.stored is not None and (self._request.language or asked != "workspace"):
                self._inputs.lost.append(file.path.rel if asked in OF_WORKSPACE else file.path.physical)
            return False
        if self._inputs.places.take(file.path):
            made_ns = nanoseconds(file.created)
            yields = self._inputs.yields(file.stored)
            self._add(file.path, got.source, got.size_bytes, yields=yields, made_ns=made_ns)
            if file.stored is not None:
                self._inputs.versions[file.path.physical] = file.stored.version
                self._inputs.stored[file.path.physical] = file.stored
            began -= got.ms / 1000
            self._inputs.ledger.append(_line(asked, got.origin, file.path, got.sha256, got.size_bytes, began))
        return True

    def _add(
        self, path: FilePath, source: FileContent, size: int, *, yields: bool = False, made_ns: int | None = None
    ) -> None:
        writable = path.turn_id == self._request.turn_id
        self._inputs.files[path.physical] = InputFile(path, source, size, writable, yields=yields, made_ns=made_ns)


def _has_room(request: InputRequest, inputs: JobInputs, waiting: list[ConversationFile]) -> bool:
    """Whether OUT_DIR can take the workspace beside what was inputs."""
    pages = sum(pages_bytes(file.size_bytes or 0) for file in waiting)
    inodes = inodes_of(file.path.physical for file in waiting)
    return _fit(request, inputs.out_dir_bytes + pages, inputs.out_dir_inodes + inodes)


def _fit(request: InputRequest, pages: int, inodes: int) -> bool:
    return (request.room_bytes is None or pages <= request.room_bytes) and (
        request.room_inodes is None or inodes <= request.room_inodes
    )


def _line(
    asked: str,
    source: Origin,
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
        ms=_ms_since(began),
    )


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
