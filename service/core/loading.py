"""Turns a logical path into what ``react.read`` shows of it: digests and content, or why there is nothing."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

from contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from contracts.logical import SkillPath, SourcesPath, TurnPath, parse
from contracts.media_types import is_inline_binary, is_text
from contracts.paths import FilePath, UnsafePathError
from contracts.tool_calls import SourceRow
from service.core.artifact_answers import hosting
from service.core.blocks import embedded_text
from service.core.discovery import digest_of_block, discover, latest_blocks, main_block, safe_text
from service.core.line_stretches import Stretch, excerpt, stretch_of
from service.core.rehosting import stretches
from service.core.scopes import Scope
from service.core.skills import Skills
from service.core.staging import Staging
from service.core.store_ports import ArtifactStore, PlacedBlock, SourcePool
from service.core.tokens import TokenCounter
from service.core.turn_files import CallFiles, TurnFile, digest_json, digest_of

JSON = "application/json"
SOURCES_MAX = 200
"""How many sources one path shows."""
NO_SUCH_SOURCES = "the sources pool has no such ids"
_ROW_BYTES_MIN = 500
_ABSENT = "the conversation has nothing at this path"


class CannotLoadError(Exception):
    """Nothing can be shown of a path; the text says why, for the model."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One block that is about to be shown.

    Attributes:
        path: its logical path; None for a digest, which stands at the path of the call's results.
        mime: its media type.
        text: its text.
        base64: its binary content.
        meta: its meta fields.
        mark: what tells whether the same is in view already; None if nothing does.
    """

    path: str | None
    mime: str
    text: str | None = None
    base64: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is shown of one path.

    Attributes:
        path: the canonical path.
        pieces: the blocks, in order.
        partly: what is left out, and how to get it; None if nothing is.
        absent: what was asked for beside it and is not there.
    """

    path: str
    pieces: tuple[Piece, ...]
    partly: str | None = None
    absent: tuple[str, ...] = ()


def mark_of(placed: PlacedBlock) -> str | None:
    """What two blocks have in common that show the same: the hash of a file or of a text, and what is carried."""
    block = placed.block
    sha256 = digest_of_block(block).get("sha256")
    # A stretch of lines and a patch stand at a file's path with its digest, and are not what it says.
    if isinstance(sha256, str) and not {"lines", "patch"} & block.meta.keys():
        carried = "text" if block.text is not None else "base64" if placed.base64_chars else "nothing"
        return f"{sha256}:{carried}"
    text = safe_text(block)
    return None if text is None else _text_mark(text)


class Loading:
    """Loads the paths of one call.

    Args:
        scope: whose conversation.
        files: the files and blocks that the call can reach.
        artifacts: the bytes of stored files.
        sources: the sources pool.
        skills: the skills.
        tokens: counts tokens.
        staging: a folder for bytes that come by URI.
        inline_bytes_max: how many bytes of PDFs and images all blocks together carry.
    """

    def __init__(  # noqa: PLR0913 - all that a path can lead to
        self,
        scope: Scope,
        *,
        files: CallFiles,
        artifacts: ArtifactStore,
        sources: SourcePool,
        skills: Skills,
        tokens: TokenCounter,
        staging: Staging,
        inline_bytes_max: int,
    ) -> None:
        self._scope = scope
        self._files = files
        self._artifacts = artifacts
        self._sources = sources
        self._skills = skills
        self._tokens = tokens
        self._staging = staging
        self._inline_bytes_left = inline_bytes_max

    async def load(self, text: str) -> list[Loaded]:
        """What a path shows; a stretch of lines where nothing has that very name.

        Raises:
            CannotLoadError: nothing; why.
            StoreFailedError: a store failed.
        """
        stretch = stretch_of(text)
        if stretch is None:
            return await self._whole(_parsed(text))
        try:
            return await self._whole(_parsed(text))
        except CannotLoadError:
            return [await self._stretch(stretch, _parsed(stretch.path))]

    async def _whole(self, path: FilePath | TurnPath | SourcesPath | SkillPath) -> list[Loaded]:
        match path:
            case FilePath():
                return [await self._file(path)]
            case TurnPath():
                return [await self._blocks(path)]
            case SourcesPath():
                return await self._rows(path)
            case SkillPath():
                return [await self._skill(path)]

    # ---- files ----

    async def _file(self, path: FilePath) -> Loaded:
        file = await self._found(path)
        digest = await self._digest(file)
        text = encoded = partly = None
        size = file.size_bytes or 0
        if is_text(file.mime):
            head = b"".join([piece async for piece in self._pieces(file, TEXT_BYTES_MAX + 4)])
            text = embedded_text(head, more=size > len(head))
            if size > TEXT_BYTES_MAX:
                partly = (
                    f"the first {TEXT_BYTES_MAX} of {size} bytes; give {path.logical}#L<from>-<to> for other lines"
                )
            elif "tokens" not in digest:
                digest["tokens"] = await asyncio.to_thread(self._tokens.count, text)
        elif is_inline_binary(file.mime):
            if size <= self._inline_bytes_left:
                self._inline_bytes_left -= size
                content = b"".join([piece async for piece in self._pieces(file, size)])
                encoded = (await asyncio.to_thread(base64.b64encode, content)).decode("ascii")
            else:
                partly = f"its {size} bytes are too many to show; code can open it at {path.physical}"
        meta = self._meta(file, digest)
        carried = "base64" if encoded is not None else "text" if text is not None else "nothing"
        piece = Piece(path.logical, file.mime, text, encoded, meta, f"{digest['sha256']}:{carried}")
        return Loaded(path.logical, (Piece(None, JSON, digest_json(digest)), piece), partly)

    async def _found(self, path: FilePath) -> TurnFile:
        """A file whose size is known; one that only blocks know is in staging by now.

        Raises:
            CannotLoadError: there is none, or its bytes cannot be had.
        """
        file = await self._files.latest(path)
        if file is None:
            raise CannotLoadError(_ABSENT)
        if file.stored is None:
            got = await self._files.fetch(file, self._staging)
            if got is None:
                raise CannotLoadError("the timeline names the file, but its bytes cannot be had")
            file = file.at(got)
        return file

    async def _digest(self, file: TurnFile) -> dict[str, Any]:
        """The digest that came with the file's latest version, or one made of what is known of it."""
        known = {} if file.stored is None else digest_of(file.stored)
        if file.fetched is not None:
            known = {
                "artifact_path": file.path.logical,
                "physical_path": file.path.physical,
                "mime": file.mime,
                "kind": "file",
                "size_bytes": file.fetched.size_bytes,
                "sha256": file.fetched.sha256,
            }
        versions = await discover(self._files.memory, file.path.logical)
        told = dict(versions[-1].digest) if versions else {}
        if told.get("sha256") not in {None, known["sha256"]}:
            told = {}  # of a version before the one in the store
        return {**known, **told, "sha256": known["sha256"]}

    async def _stretch(self, stretch: Stretch, path: FilePath | TurnPath | SourcesPath | SkillPath) -> Loaded:
        """Some lines of a text.

        Raises:
            CannotLoadError: nothing is there, it is no text, or it has no such lines.
        """
        digest: dict[str, Any] = {}
        if isinstance(path, FilePath):
            file = await self._found(path)
            if not is_text(file.mime):
                raise CannotLoadError(f"{file.mime} has no lines; give the path without #L")
            digest = await self._digest(file)
            pieces, mime = self._pieces(file, file.size_bytes or 0), file.mime
            name, meta = path.logical, self._meta(file, digest)
        else:
            loaded = await self._texts(path)
            pieces, mime, name, meta = _one(loaded.encode(errors="replace")), "text/plain", str(path), {}
        found = await excerpt(pieces, stretch)
        if found.last == 0:
            raise CannotLoadError(f"it has {found.total} lines, none from {stretch.first} on")
        lines = {"lines": [found.first, found.last], "lines_total": found.total}
        shown = f"{name}#L{stretch.first}-{stretch.last}"
        partly = None
        if found.last < min(stretch.last, found.total):
            partly = f"lines {found.first} to {found.last}: {TEXT_BYTES_MAX} bytes are shown at once"
        piece = Piece(shown, mime, found.shown, None, {**meta, **lines}, _text_mark(found.shown))
        head = (Piece(None, JSON, digest_json({**digest, **lines})),) if digest else ()
        return Loaded(shown, (*head, piece), partly)

    def _meta(self, file: TurnFile, digest: dict[str, Any]) -> dict[str, Any]:
        hosted = hosting(file.stored) if file.stored is not None else {}
        if file.version is not None and file.version.hosted_uri is not None:
            hosted = {"hosted_uri": file.version.hosted_uri}
        return {"digest": digest_json(digest), **hosted, "physical_path": file.path.physical}

    async def _pieces(self, file: TurnFile, limit: int) -> AsyncIterator[bytes]:
        """The first bytes of a file, never all of a large one at once."""
        if file.stored is not None:
            async for piece in self._artifacts.read(self._scope, file.stored, 0, limit):
                yield piece
        elif file.fetched is not None:
            async for piece in file.fetched.pieces(limit):
                yield piece

    # ---- blocks ----

    async def _blocks(self, path: TurnPath) -> Loaded:
        placed = await latest_blocks(self._files.memory, path)
        if not placed:
            raise CannotLoadError(_ABSENT)
        pieces = []
        partly = None
        for item in placed:
            block, mark = item.block, mark_of(item)
            text, encoded = safe_text(block), None
            if text is not None and len(raw := text.encode(errors="replace")) > TEXT_BYTES_MAX:
                text = embedded_text(raw[: TEXT_BYTES_MAX + 4], more=True)
                partly = f"the first {TEXT_BYTES_MAX} of {len(raw)} bytes; give {path}#L<from>-<to> for other lines"
            if item.base64_chars:
                size = item.base64_chars * 3 // 4
                if size > self._inline_bytes_left:
                    partly = f"its {size} bytes are too many to show"
                elif (whole := await self._files.memory.at(item.position)) is not None:
                    self._inline_bytes_left -= size
                    encoded = whole.block.base64
            pieces.append(Piece(str(path), block.mime, text, encoded, {}, mark))
        return Loaded(str(path), tuple(pieces), partly)

    async def _texts(self, path: TurnPath | SourcesPath | SkillPath) -> str:
        """The whole text of what is no file."""
        if isinstance(path, TurnPath):
            placed = await latest_blocks(self._files.memory, path)
            text = safe_text(main_block(placed).block) if placed else None
        elif isinstance(path, SkillPath):
            text = await self._skill_text(path)
        else:
            found = await self._sources.pick(self._scope, path.ranges, SOURCES_MAX)
            text = "".join(_row_text(row, None) for row in found) or None
        if text is None:
            raise CannotLoadError(_ABSENT)
        return text

    # ---- sources ----

    async def _rows(self, path: SourcesPath) -> list[Loaded]:
        """Files as files, in their order, then all other rows as one text."""
        found = await self._sources.pick(self._scope, path.ranges, SOURCES_MAX + 1)
        if not found:
            raise CannotLoadError(NO_SUCH_SOURCES)
        rows = found[:SOURCES_MAX]
        loaded: list[Loaded] = []
        others: list[SourceRow] = []
        for row in rows:
            try:
                loaded += [await self._file(row.file)] if row.file is not None else []
            except CannotLoadError:
                others.append(row)
            else:
                others += [row] if row.file is None else []
        if others:
            loaded.append(_source_text(others, more=len(found) > len(rows)))
        if len(found) == len(rows):
            unmet = (span for span in path.ranges if not any(span[0] <= row.sid <= span[1] for row in rows))
            loaded[0] = replace(loaded[0], absent=tuple(str(SourcesPath((span,))) for span in unmet))
        return loaded

    # ---- skills ----

    async def _skill(self, path: SkillPath) -> Loaded:
        text = await self._skill_text(path)
        return Loaded(str(path), (Piece(str(path), "text/markdown", text, mark=_text_mark(text)),))

    async def _skill_text(self, path: SkillPath) -> str:
        skill = await self._skills.read(path.skill_id)
        if skill is None:
            raise CannotLoadError("there is no such skill")
        return skill.active_text


def _parsed(text: str) -> FilePath | TurnPath | SourcesPath | SkillPath:
    """A logical path, or the physical path that a model took for one.

    Raises:
        CannotLoadError: it is neither.
    """
    try:
        return parse(text)
    except UnsafePathError as exc:
        try:
            return FilePath.from_physical(text)
        except UnsafePathError:
            raise CannotLoadError(str(exc)) from exc


def _source_text(rows: list[SourceRow], *, more: bool) -> Loaded:
    """The rows as one readable text, each with a fair part of the room."""
    path = str(SourcesPath(tuple(stretches([row.sid for row in rows]))))
    room = max(_ROW_BYTES_MIN, TEXT_BYTES_MAX // len(rows))
    raw = "\n".join(_row_text(row, room) for row in rows).encode(errors="replace")
    text = embedded_text(raw[: TEXT_BYTES_MAX + 4], more=len(raw) > TEXT_BYTES_MAX + 4)
    whole = sum(len(_row_text(row, None).encode(errors="replace")) for row in rows) + len(rows) - 1
    partly = None
    if more or whole > len(text.encode()):
        partly = "texts are cut; give a single id, and #L<from>-<to> behind it for lines"
    return Loaded(path, (Piece(path, "text/plain", text, mark=_text_mark(text)),), partly)


def _row_text(row: SourceRow, room_bytes: int | None) -> str:
    about = [f"[S:{row.sid}] {row.title}".rstrip(), *([f"url: {row.url}"] if row.url else [])]
    if row.file is not None:
        about.append(f"path: {row.file.logical}")
    text = "\n".join([*about, *([row.text] if row.text else [])]) + "\n"
    raw = text.encode(errors="replace")
    if room_bytes is None or len(raw) <= room_bytes:
        return text
    return raw[:room_bytes].decode(errors="ignore") + "…\n"


def _text_mark(text: str) -> str:
    """The hash of what a block shows of a text: a long one and its cut form have the same."""
    shown = text.removesuffix(TRUNCATED_SUFFIX).encode(errors="replace")[:TEXT_BYTES_MAX]
    return hashlib.sha256(shown.decode(errors="ignore").encode()).hexdigest()


async def _one(content: bytes) -> AsyncIterator[bytes]:
    yield content
