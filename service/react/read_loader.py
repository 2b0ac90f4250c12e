"""Load what ``react.read`` shows of a path: digests and content."""

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.checks import encoding_name
from proofbox.contracts.logical_paths import LogicalPath, SkillPath, SourcesPath
from proofbox.contracts.media_types import is_inline_binary, is_text
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.conversation_files import LOST
from proofbox.service.artifacts.found_file import ConversationFile, format_digest
from proofbox.service.artifacts.line_ranges import Stretch, describe_rest, is_utf8, parse_stretch
from proofbox.service.artifacts.near_names import describe_near
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.artifacts.path_resolver import (
    CallPaths,
    Resolved,
    ResolvedBlocks,
    ResolvedOutput,
    ResolvedSkill,
    ResolvedSources,
)
from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.artifacts.staging import Staging
from proofbox.service.react.document_reader import DOCUMENT_KINDS, DocumentUnreadableError
from proofbox.service.react.read_content import Content, build_text_content, read_bytes, read_lines
from proofbox.service.react.read_items import (
    EXTRACTED,
    JSON,
    CannotLoadError,
    Loaded,
    ShownBlock,
    fingerprint_block,
    fingerprint_text,
)
from proofbox.service.react.source_texts import format_row, load_rows
from proofbox.service.text_encoding import UTF_8, as_utf_8
from proofbox.service.timeline.artifact_versions import find_versions, redact_text
from proofbox.service.timeline.block_writer import embedded_text
from proofbox.service.timeline.token_counter import TokenCounter

SOURCES_MAX = 200
"""How many sources one path shows."""
NO_SUCH_SOURCES = "the sources pool has no such ids"
_ABSENT = "the conversation has nothing at this path"
_NOTHING_BEHIND: dict[type[LogicalPath], str] = {
    SourcesPath: NO_SUCH_SOURCES,
    SkillPath: "there is no such skill",
}
_MARKDOWN = "text/markdown"
_HEAD_BYTES = TEXT_BYTES_MAX + 4

RECODED_BYTES_MAX = 16 * 1024 * 1024
"""The largest text that is not UTF-8 of which lines are shown: all of it is in memory."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of a file as UTF-8.

    Attributes:
        head: its first bytes; all of them if its encoding is another.
        size_bytes: how many there are.
        encoding: that of the file.
    """

    head: bytes
    size_bytes: int
    encoding: str


DocumentText = Callable[[ConversationFile], Awaitable[str]]
"""The text of a document; raises DocumentUnreadableError."""


class ReadLoader:
    """Loads the paths of one call.

    Args:
        paths: resolves the paths.
        tokens: counts tokens.
        staging: a folder for bytes that come by URI.
        inline_bytes_max: how many bytes of PDFs and images all blocks together carry.
        document_text: extracts the text of a document; None if nothing does.
    """

    def __init__(
        self,
        paths: CallPaths,
        *,
        tokens: TokenCounter,
        staging: Staging,
        inline_bytes_max: int,
        document_text: DocumentText | None = None,
    ) -> None:
        self._paths = paths
        self._files = paths.files
        self._tokens = tokens
        self._staging = staging
        self._inline_bytes_left = inline_bytes_max
        self._document_text = document_text

    async def load(self, text: str) -> list[Loaded]:
        """What a path shows; a stretch of it where nothing has that very name.

        Raises:
            CannotLoadError: nothing; why.
            StoreFailedError: a store failed.
        """
        stretch = parse_stretch(text)
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
            paths = possible_paths(text.rstrip("/") or text, self._paths.turn_id)
        except UnsafePathError as exc:
            raise CannotLoadError(str(exc)) from exc
        for path in await self._files.meant(paths, self._paths.turn_id):
            try:
                return await load(path)
            except CannotLoadError as exc:
                reason = reason or exc
        if (reason is None or str(reason) == _ABSENT) and isinstance(paths[0], FilePath):
            near = await describe_near(self._files, paths[0], self._paths.turn_id)
            raise CannotLoadError(f"{_ABSENT}; {near}")
        raise reason or CannotLoadError(_ABSENT)

    async def _whole(self, path: LogicalPath) -> list[Loaded]:
        match await self._resolve(path):
            case ConversationFile() as file:
                return [await self._file(file)]
            case ResolvedBlocks() as blocks:
                return [await self._blocks(blocks)]
            case ResolvedSources() as sources:
                return await self._rows(sources)
            case ResolvedOutput(text=text):
                return [_show_output(str(path), text)]
            case ResolvedSkill(skill=skill):
                text = skill.active_text
                return [Loaded(str(path), (ShownBlock(str(path), _MARKDOWN, text, mark=fingerprint_text(text)),))]

    async def _resolve(self, path: LogicalPath) -> Resolved:
        """What is behind a path.

        Raises:
            CannotLoadError: nothing.
        """
        found = await self._paths.resolve(path, SOURCES_MAX + 1)
        if found is None and isinstance(path, FilePath):
            deleted = await self._files.deleted_at(path)
            if deleted is not None:
                raise CannotLoadError(f"the file was deleted at {deleted}; make or upload it again if you need it")
        if found is None:
            raise CannotLoadError(_NOTHING_BEHIND.get(type(path), _ABSENT))
        return found

    # ---- files ----

    async def _file(self, found: ConversationFile) -> Loaded:
        file, path = await self._at_hand(found), found.path
        digest = await self._digest(file)
        text = encoded = None
        partly: list[str] = []
        size = file.size_bytes or 0
        if is_inline_binary(file.mime):
            if size <= self._inline_bytes_left:
                self._inline_bytes_left -= size
                content = b"".join([piece async for piece in self._pieces(file, 0, size)])
                encoded = (await asyncio.to_thread(base64.b64encode, content)).decode("ascii")
            else:
                partly.append(f"its {size} bytes are too many to show; code can open it at {path.physical}")
        elif file.mime not in DOCUMENT_KINDS and (read := await self._read_text(file, digest)) is not None:
            text = embedded_text(read.head[:_HEAD_BYTES], more=read.size_bytes > _HEAD_BYTES)
            if read.size_bytes > TEXT_BYTES_MAX:
                partly.append(describe_rest(path.logical, read.head, read.size_bytes))
            elif "tokens" not in digest:
                digest["tokens"] = await asyncio.to_thread(self._tokens.count, text)
        meta = self._meta(file, digest)
        carried = "base64" if encoded is not None else "text" if text is not None else "nothing"
        piece = ShownBlock(path.logical, file.mime, text, encoded, meta, f"{digest['sha256']}:{carried}")
        pieces = [ShownBlock(None, JSON, format_digest(digest)), piece]
        if file.mime in DOCUMENT_KINDS and self._document_text is not None:
            try:
                pieces.append(_show_extracted(path, await self._document_text(file), meta, digest, partly))
            except DocumentUnreadableError as exc:
                partly.append(f"its text cannot be extracted: {exc}")
        return Loaded(path.logical, tuple(pieces), "; ".join(partly) or None)

    async def _read_text(self, file: ConversationFile, digest: dict[str, Any]) -> "_Text | None":
        """The start of a text, or all of one that is not UTF-8; None if it is none. The digest learns its encoding.

        Raises:
            CannotLoadError: it is in another encoding, and too large to be turned into UTF-8.
        """
        size = file.size_bytes or 0
        head = b"".join([piece async for piece in self._pieces(file, 0, min(size, _HEAD_BYTES))])
        promised = digest.get("encoding")
        known = encoding_name(promised) if isinstance(promised, str) else None
        is_whole = len(head) == size
        shown, encoding = await asyncio.to_thread(as_utf_8, head, is_whole=is_whole, encoding=known)
        if encoding == UTF_8:
            return _Text(head, size, UTF_8) if is_text(file.mime) or (head and is_utf8(head)) else None
        if size > RECODED_BYTES_MAX:
            raise CannotLoadError(
                f"it is a text of {size} bytes in {encoding}, {RECODED_BYTES_MAX} are turned into UTF-8; code can "
                f"open it at {file.path.physical} with encoding='{encoding}'"
            )
        digest["encoding"] = encoding
        if not is_whole:
            whole = b"".join([piece async for piece in self._pieces(file, 0, size)])
            shown, _ = await asyncio.to_thread(as_utf_8, whole, is_whole=True, encoding=encoding)
        return _Text(shown, len(shown), encoding)

    async def _pieces(self, file: ConversationFile, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes of a file from one to before another.

        Raises:
            CannotLoadError: they are missing or damaged.
        """
        try:
            async for piece in self._files.read(file, start, end):
                yield piece
        except DamagedBytesError as exc:
            raise CannotLoadError(LOST) from exc

    async def _at_hand(self, file: ConversationFile) -> ConversationFile:
        """A file whose size is known; one that only blocks know is fetched.

        Raises:
            CannotLoadError: its bytes cannot be had.
        """
        if file.stored is None:
            got = await self._files.fetch(file, self._staging)
            if got is None:
                raise CannotLoadError("the timeline names the file, but its bytes cannot be had")
            file = file.with_content(got)
        return file

    async def _digest(self, file: ConversationFile) -> dict[str, Any]:
        """The digest that came with the file's latest version, or one made of what is known of it."""
        known = file.digest()
        versions = await find_versions(self._files.memory, file.path.logical)
        latest = dict(versions[-1].digest) if versions else {}
        if latest.get("sha256") not in {None, known["sha256"]}:
            latest = {}  # of a version before the one in the store
        return {**known, **latest, "sha256": known["sha256"]}

    async def _stretch(self, stretch: Stretch, path: LogicalPath) -> list[Loaded]:
        """Some lines or bytes.

        Raises:
            CannotLoadError: nothing is there, or it has no such lines or bytes.
        """
        content = await self._content(path)
        if stretch.unit == "bytes":
            shown, part, partly = await read_bytes(content, stretch)
        elif not content.is_text:
            raise CannotLoadError(f"{content.mime} has no lines; give the path without #L, or #B0- for its bytes")
        else:
            shown, part, partly = await read_lines(content, stretch)
        name = f"{content.name}{stretch.mark(stretch.first, stretch.last)}"
        piece = ShownBlock(name, content.mime, shown, None, {**content.meta, **part}, fingerprint_text(shown))
        head = (ShownBlock(None, JSON, format_digest({**content.digest, **part})),) if content.digest else ()
        return [Loaded(name, (*head, piece), partly)]

    async def _content(self, path: LogicalPath) -> Content:
        """What a path leads to, for stretches of it.

        Raises:
            CannotLoadError: nothing, or a document whose text cannot be extracted.
        """
        found = await self._resolve(path)
        if not isinstance(found, ConversationFile):
            return build_text_content(str(path), "text/plain", _text_of(found).encode(errors="replace"))
        file = await self._at_hand(found)
        digest = await self._digest(file)
        meta = self._meta(file, digest)
        if file.mime in DOCUMENT_KINDS and self._document_text is not None:
            try:
                text = (await self._document_text(file)).encode(errors="replace")
            except DocumentUnreadableError as exc:
                raise CannotLoadError(f"its text cannot be extracted: {exc}") from exc
            return build_text_content(file.path.logical, _MARKDOWN, text, {**meta, EXTRACTED: True}, digest)
        read = await self._read_text(file, digest)
        if read is not None and read.encoding != UTF_8:
            meta = self._meta(file, digest)
            return build_text_content(file.path.logical, file.mime, read.head, meta, digest)
        size, pieces = file.size_bytes or 0, partial(self._pieces, file)
        return Content(file.path.logical, file.mime, size, pieces, read is not None, meta, digest)

    def _meta(self, file: ConversationFile, digest: dict[str, Any]) -> dict[str, Any]:
        hosted = file.stored.hosting() if file.stored is not None else {}
        if file.version is not None and file.version.hosted_uri is not None:
            hosted = {"hosted_uri": file.version.hosted_uri}
        return {"digest": format_digest(digest), **hosted, "physical_path": file.path.physical}

    # ---- blocks ----

    async def _blocks(self, found: ResolvedBlocks) -> Loaded:
        path = found.path
        pieces = []
        partly = None
        for item in found.placed:
            block, mark = item.block, fingerprint_block(item)
            text, encoded = redact_text(block), None
            if text is not None and len(raw := text.encode(errors="replace")) > TEXT_BYTES_MAX:
                text = embedded_text(raw[: TEXT_BYTES_MAX + 4], more=True)
                partly = describe_rest(str(path), raw, len(raw))
            if item.base64_chars:
                size = item.base64_chars * 3 // 4
                if size > self._inline_bytes_left:
                    partly = f"its {size} bytes are too many to show"
                elif (whole := await self._files.memory.at(item.position)) is not None:
                    self._inline_bytes_left -= size
                    encoded = whole.block.base64
            pieces.append(ShownBlock(str(path), block.mime, text, encoded, {}, mark))
        return Loaded(str(path), tuple(pieces), partly)

    # ---- sources ----

    async def _rows(self, sources: ResolvedSources) -> list[Loaded]:
        """Files as files, in their order, then all other rows as one text."""
        found, rows = sources.rows, sources.rows[:SOURCES_MAX]
        loaded: list[Loaded] = []
        others: list[SourceRow] = []
        for row in rows:
            file = None if row.file is None else await self._files.latest(row.file)
            try:
                loaded += [await self._file(file)] if file is not None else []
            except CannotLoadError:
                file = None
            if file is None:
                others.append(row)
        if others:
            loaded.append(load_rows(others, more=len(found) > len(rows)))
        if len(found) == len(rows):
            unmet = (span for span in sources.path.ranges if not any(span[0] <= row.sid <= span[1] for row in rows))
            loaded[0] = replace(loaded[0], absent=tuple(str(SourcesPath((span,))) for span in unmet))
        return loaded


def _show_output(path: str, whole: str) -> Loaded:
    if not whole:
        raise CannotLoadError("the program printed nothing")
    raw = whole.encode(errors="replace")
    partly = describe_rest(path, raw, len(raw)) if len(raw) > TEXT_BYTES_MAX else None
    text = embedded_text(raw[:_HEAD_BYTES], more=len(raw) > _HEAD_BYTES)
    return Loaded(path, (ShownBlock(path, "text/plain", text, mark=fingerprint_text(text)),), partly)


def _text_of(found: ResolvedBlocks | ResolvedOutput | ResolvedSources | ResolvedSkill) -> str:
    """The whole text of what is not a file.

    Raises:
        CannotLoadError: it has no text.
    """
    match found:
        case ResolvedBlocks() | ResolvedOutput():
            text = found.text
        case ResolvedSources():
            text = "".join(format_row(row, None) for row in found.rows[:SOURCES_MAX]) or None
        case ResolvedSkill():
            text = found.skill.active_text
    if text is None:
        raise CannotLoadError(_ABSENT)
    return text


def _show_extracted(
    path: FilePath, whole: str, meta: dict[str, Any], digest: dict[str, Any], partly: list[str]
) -> ShownBlock:
    """The text of a document, at the document's own path; ``partly`` learns how to read on."""
    raw = whole.encode(errors="replace")
    if len(raw) > TEXT_BYTES_MAX:
        partly.append(f"of its text {describe_rest(path.logical, raw, len(raw))}")
    text = embedded_text(raw[:_HEAD_BYTES], more=len(raw) > _HEAD_BYTES)
    mark = f"{digest['sha256']}:{EXTRACTED}"
    return ShownBlock(path.logical, _MARKDOWN, text, None, {**meta, EXTRACTED: True}, mark)
