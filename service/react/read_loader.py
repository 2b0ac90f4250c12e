"""Turns a logical path into what ``react.read`` shows of it: digests and content, or why there is nothing."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from contracts.blocks import TEXT_BYTES_MAX
from contracts.logical import LogicalPath, SkillPath, SourcesPath, TurnPath
from contracts.media_types import is_inline_binary, is_text
from contracts.paths import FilePath, UnsafePathError
from contracts.tool_calls import SourceRow
from service.artifacts.conversation_files import CallFiles, ConversationFile, digest_json, digest_of
from service.artifacts.line_ranges import Stretch, is_utf8, rest_of_file, stretch_of
from service.artifacts.port import ArtifactStore, SourcePool
from service.artifacts.read_paths import meanings
from service.artifacts.skills import Skills
from service.artifacts.staging import Staging
from service.identity import ConversationKey
from service.react.document_reader import DOCUMENT_KINDS, DocumentUnreadableError
from service.react.read_content import Content, bytes_of, lines_of, text_content
from service.react.read_items import (
    EXTRACTED,
    JSON,
    CannotLoadError,
    Loaded,
    ShownBlock,
    content_fingerprint,
    text_mark,
)
from service.react.source_texts import row_text, source_text
from service.timeline.artifact_versions import discover, latest_blocks, main_block, safe_text
from service.timeline.block_writer import embedded_text
from service.timeline.token_counter import TokenCounter

SOURCES_MAX = 200
"""How many sources one path shows."""
NO_SUCH_SOURCES = "the sources pool has no such ids"
_ABSENT = "the conversation has nothing at this path"
_MARKDOWN = "text/markdown"
_HEAD_BYTES = TEXT_BYTES_MAX + 4

DocumentText = Callable[[ConversationFile], Awaitable[str]]
"""The text of a document; raises DocumentUnreadableError."""


class ReadLoader:
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
        turn_id: the current turn, whose files bare paths name.
        document_text: extracts the text of a document; None if nothing does.
    """

    def __init__(  # noqa: PLR0913 - all that a path can lead to
        self,
        scope: ConversationKey,
        *,
        files: CallFiles,
        artifacts: ArtifactStore,
        sources: SourcePool,
        skills: Skills,
        tokens: TokenCounter,
        staging: Staging,
        inline_bytes_max: int,
        turn_id: str,
        document_text: DocumentText | None = None,
    ) -> None:
        self._scope = scope
        self._files = files
        self._artifacts = artifacts
        self._sources = sources
        self._skills = skills
        self._tokens = tokens
        self._staging = staging
        self._inline_bytes_left = inline_bytes_max
        self._turn_id = turn_id
        self._document_text = document_text

    async def load(self, text: str) -> list[Loaded]:
        """What a path shows; a stretch of it where nothing has that very name.

        Raises:
            CannotLoadError: nothing; why.
            StoreFailedError: a store failed.
        """
        stretch = stretch_of(text)
        try:
            return await self._first(text, self._whole)
        except CannotLoadError:
            if stretch is None:
                raise
        if stretch.problem is not None:
            raise CannotLoadError(stretch.problem)
        return await self._first(stretch.path, partial(self._stretch, stretch))

    async def _first(self, text: str, load: Callable[[LogicalPath], Awaitable[list[Loaded]]]) -> list[Loaded]:
        """What the first thing that a path may mean shows.

        Raises:
            CannotLoadError: none shows anything; why the likeliest one does not.
        """
        reason: CannotLoadError | None = None
        try:
            paths = meanings(text, self._turn_id)
        except UnsafePathError as exc:
            raise CannotLoadError(str(exc)) from exc
        for path in paths:
            try:
                return await load(path)
            except CannotLoadError as exc:
                reason = reason or exc
        raise reason or CannotLoadError(_ABSENT)

    async def _whole(self, path: LogicalPath) -> list[Loaded]:
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
        text = encoded = None
        partly: list[str] = []
        size = file.size_bytes or 0
        if is_inline_binary(file.mime):
            if size <= self._inline_bytes_left:
                self._inline_bytes_left -= size
                content = b"".join([piece async for piece in self._read(file, 0, size)])
                encoded = (await asyncio.to_thread(base64.b64encode, content)).decode("ascii")
            else:
                partly.append(f"its {size} bytes are too many to show; code can open it at {path.physical}")
        elif file.mime not in DOCUMENT_KINDS:
            head = b"".join([piece async for piece in self._read(file, 0, min(size, _HEAD_BYTES))])
            if is_text(file.mime) or (head and is_utf8(head)):
                text = embedded_text(head, more=size > len(head))
                if size > TEXT_BYTES_MAX:
                    partly.append(rest_of_file(path.logical, head, size))
                elif "tokens" not in digest:
                    digest["tokens"] = await asyncio.to_thread(self._tokens.count, text)
        meta = self._meta(file, digest)
        carried = "base64" if encoded is not None else "text" if text is not None else "nothing"
        piece = ShownBlock(path.logical, file.mime, text, encoded, meta, f"{digest['sha256']}:{carried}")
        pieces = [ShownBlock(None, JSON, digest_json(digest)), piece]
        if file.mime in DOCUMENT_KINDS and self._document_text is not None:
            try:
                pieces.append(_extracted(path, await self._document_text(file), meta, digest, partly))
            except DocumentUnreadableError as exc:
                partly.append(f"its text cannot be extracted: {exc}")
        return Loaded(path.logical, tuple(pieces), "; ".join(partly) or None)

    async def _found(self, path: FilePath) -> ConversationFile:
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

    async def _digest(self, file: ConversationFile) -> dict[str, Any]:
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

    async def _stretch(self, stretch: Stretch, path: LogicalPath) -> list[Loaded]:
        """Some lines or bytes.

        Raises:
            CannotLoadError: nothing is there, or it has no such lines or bytes.
        """
        content = await self._content(path)
        if stretch.unit == "bytes":
            shown, part, partly = await bytes_of(content, stretch)
        elif not content.is_text:
            raise CannotLoadError(f"{content.mime} has no lines; give the path without #L, or #B0- for its bytes")
        else:
            shown, part, partly = await lines_of(content, stretch)
        name = f"{content.name}{stretch.mark(stretch.first, stretch.last)}"
        piece = ShownBlock(name, content.mime, shown, None, {**content.meta, **part}, text_mark(shown))
        head = (ShownBlock(None, JSON, digest_json({**content.digest, **part})),) if content.digest else ()
        return [Loaded(name, (*head, piece), partly)]

    async def _content(self, path: LogicalPath) -> Content:
        """What a path leads to, for stretches of it.

        Raises:
            CannotLoadError: nothing, or a document whose text cannot be extracted.
        """
        if not isinstance(path, FilePath):
            text = (await self._texts(path)).encode(errors="replace")
            return text_content(str(path), "text/plain", text)
        file = await self._found(path)
        digest = await self._digest(file)
        meta = self._meta(file, digest)
        if file.mime in DOCUMENT_KINDS and self._document_text is not None:
            try:
                text = (await self._document_text(file)).encode(errors="replace")
            except DocumentUnreadableError as exc:
                raise CannotLoadError(f"its text cannot be extracted: {exc}") from exc
            return text_content(path.logical, _MARKDOWN, text, {**meta, EXTRACTED: True}, digest)
        size = file.size_bytes or 0
        head = b"".join([piece async for piece in self._read(file, 0, min(size, _HEAD_BYTES))])
        has_lines = is_text(file.mime) or is_utf8(head)
        return Content(path.logical, file.mime, size, partial(self._read, file), has_lines, meta, digest)

    def _meta(self, file: ConversationFile, digest: dict[str, Any]) -> dict[str, Any]:
        hosted = file.stored.hosting() if file.stored is not None else {}
        if file.version is not None and file.version.hosted_uri is not None:
            hosted = {"hosted_uri": file.version.hosted_uri}
        return {"digest": digest_json(digest), **hosted, "physical_path": file.path.physical}

    async def _read(self, file: ConversationFile, start: int, end: int) -> AsyncIterator[bytes]:
        """Some bytes of a file, never all of a large one at once."""
        if file.stored is not None:
            async for piece in self._artifacts.read(self._scope, file.stored, start, end):
                yield piece
        elif file.fetched is not None:
            at = 0
            async for piece in file.fetched.pieces(end):
                yield piece[max(start - at, 0) :]
                at += len(piece)

    # ---- blocks ----

    async def _blocks(self, path: TurnPath) -> Loaded:
        placed = await latest_blocks(self._files.memory, path)
        if not placed:
            raise CannotLoadError(_ABSENT)
        pieces = []
        partly = None
        for item in placed:
            block, mark = item.block, content_fingerprint(item)
            text, encoded = safe_text(block), None
            if text is not None and len(raw := text.encode(errors="replace")) > TEXT_BYTES_MAX:
                text = embedded_text(raw[: TEXT_BYTES_MAX + 4], more=True)
                partly = rest_of_file(str(path), raw, len(raw))
            if item.base64_chars:
                size = item.base64_chars * 3 // 4
                if size > self._inline_bytes_left:
                    partly = f"its {size} bytes are too many to show"
                elif (whole := await self._files.memory.at(item.position)) is not None:
                    self._inline_bytes_left -= size
                    encoded = whole.block.base64
            pieces.append(ShownBlock(str(path), block.mime, text, encoded, {}, mark))
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
            text = "".join(row_text(row, None) for row in found) or None
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
            loaded.append(source_text(others, more=len(found) > len(rows)))
        if len(found) == len(rows):
            unmet = (span for span in path.ranges if not any(span[0] <= row.sid <= span[1] for row in rows))
            loaded[0] = replace(loaded[0], absent=tuple(str(SourcesPath((span,))) for span in unmet))
        return loaded

    # ---- skills ----

    async def _skill(self, path: SkillPath) -> Loaded:
        text = await self._skill_text(path)
        return Loaded(str(path), (ShownBlock(str(path), _MARKDOWN, text, mark=text_mark(text)),))

    async def _skill_text(self, path: SkillPath) -> str:
        skill = await self._skills.read(path.skill_id)
        if skill is None:
            raise CannotLoadError("there is no such skill")
        return skill.active_text


def _extracted(
    path: FilePath, whole: str, meta: dict[str, Any], digest: dict[str, Any], partly: list[str]
) -> ShownBlock:
    """The text of a document, at the document's own path; ``partly`` learns how to read on."""
    raw = whole.encode(errors="replace")
    if len(raw) > TEXT_BYTES_MAX:
        partly.append(f"of its text {rest_of_file(path.logical, raw, len(raw))}")
    text = embedded_text(raw[:_HEAD_BYTES], more=len(raw) > _HEAD_BYTES)
    mark = f"{digest['sha256']}:{EXTRACTED}"
    return ShownBlock(path.logical, _MARKDOWN, text, None, {**meta, EXTRACTED: True}, mark)
