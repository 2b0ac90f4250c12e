"""Brings all that a call refers to into place before the program starts, with a ledger of what came from where."""

import asyncio
import fnmatch
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

from contracts.blocks import Block
from contracts.codes import NoticeCode
from contracts.paths import FilePath
from contracts.tool_calls import Asset, Rehosted, SourceRow
from service.artifacts.conversation_files import CallFiles, Origin, TurnFile, TurnFiles, measure
from service.artifacts.port import SourcePool
from service.artifacts.staging import Staging
from service.calls.param_references import References
from service.errors import AssetRefusedError
from service.file_content import FileBytes, all_of
from service.identity import Scope
from service.jobs.code_text import runnable_text
from service.jobs.file_aliases import is_named
from service.jobs.inputs import Gathered, inodes_of, pages_bytes
from service.jobs.path_mentions import Mention, find_mentions, find_sids
from service.sandbox.port import InputFile
from service.timeline.block_writer import Notice

_LEFT_OUT_LISTED = 20
_NAMING_BYTES_MAX = 10 * 1024 * 1024
"""The largest text in which files are looked for: a theme, a document that is appended to another."""
_BINARY = (b"%PDF", b"PK")


@dataclass(frozen=True, slots=True)
class WorkspaceBounds:
    """How much is put into OUT_DIR without being mentioned.

    Attributes:
        bytes_max: of the turn's own workspace, all files together.
        files_max: how many of those.
        others_bytes_max: of files and attachments of other turns, all together.
        others_files_max: how many of those.
    """

    bytes_max: int
    files_max: int
    others_bytes_max: int = 0
    others_files_max: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """What one call may refer to.

    Attributes:
        scope: whose conversation.
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
        theme: where files are named whose own text names files: a theme, documents to append.
    """

    scope: Scope
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
    further_texts: Sequence[str] = ()


class Rehosting:
    """Resolves mentions, citations, assets and the turn's workspace against the stores and the timeline."""

    def __init__(self, files: TurnFiles, sources: SourcePool, bounds: WorkspaceBounds) -> None:
        self._files = files
        self._sources = sources
        self._bounds = bounds
        self.references = References(files)
        """Finds the texts that parameters name by their paths."""

    async def gather(self, wish: Wish, staging: Staging) -> Gathered:
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
        mentions = await _mentions(wish.text)
        for text in wish.further_texts:
            mentions = list(dict.fromkeys([*mentions, *await _mentions(text)]))
        files = self._files.of_call(wish.scope, wish.timeline)
        await _fetch_together(mentions, files, staging, gathered)
        for mention in mentions:
            await self._resolve(wish, mention, files, staging, gathered)
        if gathered.missing and wish.language:
            gathered.missing = await asyncio.to_thread(_needed, wish, mentions, gathered.missing)
        texts = [wish.text]
        texts += [
            await self._resolve_theme(wish, mention, files, staging, gathered)
            for mention in find_mentions(wish.theme)
        ]
        await self._resolve_citations(replace(wish, text="\n".join(texts)), files, staging, gathered)
        await self._add_workspace(wish, files, staging, gathered)
        if wish.language:
            await self._add_others(wish, files, staging, gathered)
        return gathered

    async def _take_asset(self, wish: Wish, index: int, asset: Asset, staging: Staging, gathered: Gathered) -> None:
        began = time.perf_counter()
        path = FilePath.from_physical(asset.physical_path)
        if not gathered.places.take(path):
            raise AssetRefusedError(
                f"assets[{index}].physical_path '{path.physical}' is a file and the folder of another asset; "
                "give one of them another path"
            )
        source: Origin = "asset"
        if asset.uri is not None:
            source = "uri"
            found = await self._files.fetch_uri(wish.scope, asset.uri, staging)
            if found is None:
                raise AssetRefusedError(
                    f"assets[{index}].uri is not below a store that the operator allows, or nothing is there; "
                    "hand the file over as base64 or text"
                )
            local = found
        else:
            content = asset.base64 if asset.base64 is not None else (asset.text or "").encode()
            local = await staging.folder() / f"asset-{index}"
            await asyncio.to_thread(local.write_bytes, content)
        size, sha256 = await asyncio.to_thread(measure, local)
        self._add(wish, path, local, size, gathered)
        gathered.ledger.append(_line("assets", source, path, sha256, size, began))

    async def _resolve(
        self,
        wish: Wish,
        mention: Mention,
        files: CallFiles,
        staging: Staging,
        gathered: Gathered,
    ) -> None:
        known = await files.by_rel(mention.turn_id, mention.namespace)
        if _is_there(mention, known, gathered):
            return
        meant = _meant(mention, known)
        if not meant and mention.turn_id != wish.turn_id:
            meant = await _read_elsewhere(mention, files, in_blocks=wish.timeline is not None)
        taking = [await self._take(wish, mention.asked, file, files, staging, gathered) for file in meant]
        if (wish.own_may_be_absent and mention.turn_id == wish.turn_id) or (meant and all(taking)):
            return
        if not meant and (mention.pattern is not None or any(_below(mention, path) for path in gathered.inputs)):
            return
        if mention.asked not in gathered.missing:
            gathered.missing.append(mention.asked)

    async def _resolve_theme(
        self,
        wish: Wish,
        mention: Mention,
        files: CallFiles,
        staging: Staging,
        gathered: Gathered,
    ) -> str:
        """The text of a file; what it names is gathered: files of turns, and those beside it by their names."""
        readings = (f"{mention.turn_id}/{mention.namespace}/{rel}" for rel in mention.readings)
        file = next((gathered.inputs[path] for path in readings if path in gathered.inputs), None)
        if file is None or file.size_bytes > _NAMING_BYTES_MAX:
            return ""
        content = await asyncio.to_thread(all_of, file.source)
        if content.startswith(_BINARY):
            return ""
        text = content.decode(errors="replace")
        for named in await _mentions(text):
            await self._resolve(wish, named, files, staging, gathered)
        folder = PurePosixPath(file.path.physical).parent
        for near in await files.of_turn(mention.turn_id):
            beside = PurePosixPath(near.path.physical)
            if beside.parent == folder and beside.name in text:
                await self._take(wish, beside.name, near, files, staging, gathered)
        return text

    async def _resolve_citations(self, wish: Wish, files: CallFiles, staging: Staging, gathered: Gathered) -> None:
        if "[[" not in wish.text:
            return
        cited, unknown = find_sids(wish.text, await self._sources.sids(wish.scope))
        pool = {row.sid: row for row in await self._sources.pick(wish.scope, stretches(cited), len(cited))}
        for sid in cited:
            gathered.cited.append(pool[sid])
            path = pool[sid].file
            if path is None or path.physical in gathered.inputs:
                continue
            file = await files.latest(path)
            taken = file is not None and await self._take(wish, f"[[S:{sid}]]", file, files, staging, gathered)
            if not taken and not (wish.own_may_be_absent and path.turn_id == wish.turn_id):
                gathered.missing_cited.append(path.physical)
        if unknown:
            gathered.notices.append(
                Notice(
                    NoticeCode.MISSING_SOURCES,
                    "sources are cited that are not in the sources pool",
                    {"missing_sids": unknown},
                )
            )

    async def _add_workspace(self, wish: Wish, files: CallFiles, staging: Staging, gathered: Gathered) -> None:
        """The turn's own files and attachments, then what ``react.read`` brought: each if all of it fits.

        What was mentioned is there already.
        """
        left_out: list[str] = []
        for group in (await files.of_turn(wish.turn_id), await files.brought(wish.turn_id)):
            waiting = [file for file in group if file.path.physical not in gathered.inputs]
            if not self._fits(wish, gathered, waiting):
                left_out += [file.path.physical for file in waiting]
                continue
            await files.fetch_stored(waiting, staging)
            for file in waiting:
                await self._take(wish, "workspace", file, files, staging, gathered)
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

    async def _add_others(self, wish: Wish, files: CallFiles, staging: Staging, gathered: Gathered) -> None:
        """Files and attachments of other turns, the newest first: small ones, and those that the program names.

        A program names them in ways that are no mention: joined from parts, by a pattern, or by their name alone.
        """
        known = await files.recent(wish.turn_id)
        waiting: dict[str, list[TurnFile]] = {"conversation": [], "named": []}
        sizes = dict.fromkeys(waiting, 0)
        bounds = {
            "conversation": (self._bounds.others_bytes_max, self._bounds.others_files_max),
            "named": (self._bounds.bytes_max, self._bounds.files_max),
        }
        pages, inodes = gathered.out_dir_bytes, gathered.out_dir_inodes
        for file in known:
            if file.path.physical in gathered.inputs or file.size_bytes is None:
                continue
            more_pages = pages_bytes(file.size_bytes)
            more_inodes = inodes_of([file.path.physical])
            if not _fit(wish, pages + more_pages, inodes + more_inodes):
                continue
            for asked, (bytes_max, files_max) in bounds.items():
                fits = sizes[asked] + file.size_bytes <= bytes_max and len(waiting[asked]) < files_max
                if fits and (asked == "conversation" or is_named(wish.text, file.path.rel)):
                    waiting[asked].append(file)
                    sizes[asked] += file.size_bytes
                    pages, inodes = pages + more_pages, inodes + more_inodes
                    break
        await files.fetch_stored([file for group in waiting.values() for file in group], staging)
        for asked, group in waiting.items():
            for file in group:
                await self._take(wish, asked, file, files, staging, gathered)
        own = [file.path.physical for file in await files.of_turn(wish.turn_id)]
        gathered.known = list(dict.fromkeys([*own, *gathered.inputs, *(file.path.physical for file in known)]))

    def _fits(self, wish: Wish, gathered: Gathered, waiting: list[TurnFile]) -> bool:
        sizes = [file.size_bytes for file in waiting]
        known = [size for size in sizes if size is not None]
        return (
            len(known) == len(sizes)  # nobody says how large the others are
            and sum(known) <= self._bounds.bytes_max - gathered.size_bytes
            and len(waiting) <= self._bounds.files_max - len(gathered.inputs)
            and _has_room(wish, gathered, waiting)
        )

    async def _take(
        self, wish: Wish, asked: str, file: TurnFile, files: CallFiles, staging: Staging, gathered: Gathered
    ) -> bool:
        """Puts a file in; False if its bytes cannot be had."""
        began = time.perf_counter()
        if file.path.physical in gathered.inputs:
            return True
        got = await files.fetch(file, staging)
        if got is None:
            return False
        if gathered.places.take(file.path):
            self._add(wish, file.path, got.source, got.size_bytes, gathered)
            if file.stored is not None:
                gathered.versions[file.path.physical] = file.stored.version
                gathered.stored[file.path.physical] = file.stored
            began -= got.ms / 1000
            gathered.ledger.append(_line(asked, got.origin, file.path, got.sha256, got.size_bytes, began))
        return True

    def _add(self, wish: Wish, path: FilePath, source: FileBytes, size: int, gathered: Gathered) -> None:
        writable = path.turn_id == wish.turn_id
        gathered.inputs[path.physical] = InputFile(path, source, size, writable)


def stretches(sids: Sequence[int]) -> list[tuple[int, int]]:
    """Ids as inclusive ranges, so that a pool is asked for a run of them at once."""
    ordered = sorted(set(sids))
    ends = [a for a, b in pairwise(ordered) if b != a + 1] + ordered[-1:]
    starts = ordered[:1] + [b for a, b in pairwise(ordered) if b != a + 1]
    return list(zip(starts, ends, strict=True))


def _has_room(wish: Wish, gathered: Gathered, waiting: list[TurnFile]) -> bool:
    """Whether OUT_DIR can take the workspace beside what was gathered."""
    pages = sum(pages_bytes(file.size_bytes or 0) for file in waiting)
    inodes = inodes_of(file.path.physical for file in waiting)
    return _fit(wish, gathered.out_dir_bytes + pages, gathered.out_dir_inodes + inodes)


def _fit(wish: Wish, pages: int, inodes: int) -> bool:
    return (wish.room_bytes is None or pages <= wish.room_bytes) and (
        wish.room_inodes is None or inodes <= wish.room_inodes
    )


async def _mentions(text: str) -> list[Mention]:
    return await asyncio.to_thread(find_mentions, text)


def _needed(wish: Wish, mentions: Sequence[Mention], missing: Sequence[str]) -> list[str]:
    """Those missing paths that the program itself names, and not only a comment or what it prints."""
    named = {
        (mention.turn_id, mention.namespace, reading)
        for mention in find_mentions(runnable_text(wish.text, wish.language))
        for reading in mention.readings or ("",)
    }
    asked = {
        mention.asked: {(mention.turn_id, mention.namespace, rel) for rel in mention.readings or ("",)}
        for mention in mentions
    }
    return [path for path in missing if named & asked[path]]


async def _fetch_together(
    mentions: Sequence[Mention], files: CallFiles, staging: Staging, gathered: Gathered
) -> None:
    """Has what the mentions mean at hand before it is taken: one trip to the store for all, not one for each."""
    meant: dict[FilePath, TurnFile] = {}
    for mention in mentions:
        known = await files.by_rel(mention.turn_id, mention.namespace)
        if not _is_there(mention, known, gathered):
            meant.update({file.path: file for file in _meant(mention, known)})
    await files.fetch_stored(list(meant.values()), staging)


def _is_there(mention: Mention, known: dict[str, TurnFile], gathered: Gathered) -> bool:
    """Whether a mention means what was gathered already, and not a likelier reading of it."""
    for rel in mention.readings:
        if f"{mention.turn_id}/{mention.namespace}/{rel}" in gathered.inputs:
            return True
        if rel in known:
            return False
    return False


def _meant(mention: Mention, known: dict[str, TurnFile]) -> list[TurnFile]:
    """Which files of the turn a mention means: a file, all below a folder, or all that match a pattern."""
    for rel in mention.readings:
        if rel in known:
            return [known[rel]]
    if mention.pattern is not None:
        # Without its slash `**/` also stands for no folder, as in Python's glob.
        pattern = mention.pattern.replace("**/", "**")
        return [file for rel, file in known.items() if fnmatch.fnmatchcase(rel, pattern)]
    if not mention.readings:
        return list(known.values())
    for reading in mention.readings:
        below = [file for rel, file in known.items() if rel.startswith(f"{reading}/")]
        if below:
            return below
    return []


async def _read_elsewhere(mention: Mention, files: CallFiles, *, in_blocks: bool) -> list[TurnFile]:
    """A file that its turn does not have any more, as a program removed it, or that no block of its own turn has.

    A loop may hand in only the blocks that came after, and what was read then.
    """
    for rel in mention.readings:
        path = FilePath(mention.turn_id, mention.namespace, rel)
        file = files.removed(path) or (await files.remembered(path) if in_blocks else None)
        if file is not None:
            return [file]
    return []


def _below(mention: Mention, physical: str) -> bool:
    folder = f"{mention.turn_id}/{mention.namespace}/"
    if not physical.startswith(folder):
        return False
    rel = physical.removeprefix(folder)
    return not mention.readings or any(rel.startswith(f"{reading}/") for reading in mention.readings)


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
        ms=round((time.perf_counter() - began) * 1000, 3),
    )
