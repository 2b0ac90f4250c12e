"""Text files of the current turn: names, measures, storing, digests."""

import asyncio
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from proofbox.contracts.blocks import Digest
from proofbox.contracts.codes import NoticeCode, ToolCode, VerdictCode
from proofbox.contracts.paths import FilePath, NamedPath, Namespace, UnsafePathError, in_turn, is_turn_id
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.artifacts.conversation_files import CallFiles, ConversationFiles
from proofbox.service.artifacts.port import NewArtifact, NewSave, PreparedSave, SourcePool, StoredArtifact
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.file_content import FileContent
from proofbox.service.jobs.path_mentions import find_sids
from proofbox.service.jobs.produced_files import Content, content_of
from proofbox.service.text_encoding import UTF_8, encode_text
from proofbox.service.timeline.artifact_versions import has_path
from proofbox.service.timeline.block_writer import Notice, now_text
from proofbox.service.timeline.token_counter import TokenCounter, count_tokens


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a text is stored.

    Attributes:
        name: its codec.
        like: the first bytes of the file whose mark it gets.
    """

    name: str = UTF_8
    like: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of a text.

        Raises:
            UnicodeEncodeError: the encoding does not have a character of it.
        """
        return encode_text(text, self.name, self.like)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text on its way into the store.

    Attributes:
        path: the file, in the current turn.
        text: its content.
        mime: its media type.
        kind: ``display`` or ``file``.
        visibility: only ``external`` ones are hosted.
        channel: where it is shown.
        encoding: how it is stored.
    """

    path: FilePath
    text: str
    mime: str
    kind: Literal["display", "file"]
    visibility: Literal["external", "internal"]
    channel: str | None
    encoding: Encoding = Encoding()


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a text before it is stored.

    Attributes:
        size_bytes: its size as it is stored.
        sha256: the SHA-256 of that, in hex.
        tokens: its length in tokens.
        cited: the source ids that it cites, ascending.
        unknown: cited ids that the pool does not have, and ranges of such.
    """

    size_bytes: int
    sha256: str
    tokens: int
    cited: list[int]
    unknown: list[int | str]


class TextFiles:
    """Measures and stores text files; holds nothing of any call.

    Args:
        files: where they are stored and found.
        sources: the pool that they cite, and that external ones become part of.
        tokens: counts their tokens.
        inline_bytes_max: how many bytes of an image (SVG) a block carries.
    """

    def __init__(
        self, files: ConversationFiles, sources: SourcePool, tokens: TokenCounter, inline_bytes_max: int
    ) -> None:
        self._files = files
        self._sources = sources
        self._tokens = tokens
        self._inline_bytes_max = inline_bytes_max

    def files_of(self, call: ReactCall[Any]) -> CallFiles:
        """The files that a call can reach."""
        return self._files.of_call(call.scope, call.request.timeline)

    async def refuse_folder(self, files: CallFiles, path: FilePath) -> None:
        """Refuses a path that cannot lie in one tree with the files of its turn.

        Raises:
            ToolRefusedError: ``missing_artifact_name`` if files lie below it, ``unsafe_path`` if it lies below a
                file.
            StoreFailedError: the store failed.
        """
        for other in await files.of_turn(path.turn_id):
            if other.path.namespace is not Namespace.FILES:
                continue
            if other.path.rel.startswith(path.rel + "/"):
                raise ToolRefusedError(
                    ToolCode.MISSING_ARTIFACT_NAME, f"'{path.rel}' is a folder; give the name of a file below it"
                )
            if path.rel.startswith(other.path.rel + "/"):
                raise ToolRefusedError(
                    ToolCode.UNSAFE_PATH, f"'{other.path.rel}' is a file, so nothing can lie below it"
                )

    async def measure(self, call: ReactCall[Any], file: TextFile) -> Measured:
        """Measures a text against the pool.

        Raises:
            StoreFailedError: the store failed.
        """
        known = await self._sources.sids(call.scope) if "[[" in file.text else frozenset()
        return await asyncio.to_thread(_measure, file, known, self._tokens)

    async def prepare(self, call: ReactCall[Any], files: Sequence[TextFile]) -> PreparedSave:
        """Puts texts in place as new versions, to be stored with the answer of their call.

        Raises:
            StoreFailedError, StoreFullError: nothing was stored.
        """
        new = [await asyncio.to_thread(_new, file, call.request.tool_call_id) for file in files]
        return await self._files.artifacts.prepare(NewSave(call.scope, new))

    async def note_outdated(self, call: ReactCall[Any], file: TextFile) -> str | None:
        """What to know of a text that will not be hosted: the user has an older version. None if that is not so.

        Raises:
            StoreFailedError: the store failed.
        """
        name = file.path.rel
        is_hosted = file.visibility == "external"
        if is_hosted or not await self._files.artifacts.hosted_names(call.scope, [name]):
            return None
        renew = "give kind file and a channel other than internal to renew it"
        return f"{name}: the copy that the user has is an older version; {renew}"

    async def content(self, file: TextFile) -> Content:
        """What the content block of a stored text carries."""
        encoded = io.BytesIO(file.text.encode())
        size = encoded.getbuffer().nbytes
        return await asyncio.to_thread(content_of, file.mime, size, encoded, self._inline_bytes_max)


def resolve_target(path: str, turn_id: str) -> NamedPath:
    """The file of the current turn that a path means.

    Raises:
        ToolRefusedError: ``missing_artifact_name`` or ``unsafe_path``.
    """
    text = path.strip()
    try:
        named = in_turn(text.rstrip("/") or text or "none", turn_id)
    except UnsafePathError as exc:
        raise ToolRefusedError(ToolCode.UNSAFE_PATH, f"path: {exc}") from exc
    if not text or _is_folder(text, turn_id):
        raise ToolRefusedError(
            ToolCode.MISSING_ARTIFACT_NAME,
            f"path: '{text}' names no file; give a file below files/, such as report.md",
        )
    return named


def _is_folder(text: str, turn_id: str) -> bool:
    head, _, rest = text.removeprefix("./").partition("/")
    is_namespace = is_turn_id(head) and rest in set(Namespace)
    return text.endswith("/") or is_namespace or (not rest and head in {Namespace.FILES, turn_id})


def build_rewrite_notices(named: NamedPath) -> list[Notice]:
    """The notice of a path that meant another turn or an attachment."""
    if not named.foreign:
        return []
    details = {"original": named.original, "rewritten": named.file.physical}
    return [Notice(NoticeCode.PATH_REWRITTEN, "the path was rewritten to the current turn", details)]


def digest_of(
    call: ReactCall[Any], file: TextFile, measured: Measured, stored: StoredArtifact | None = None, **more: str
) -> Digest:
    """The digest of a text; ``stored`` is None if it could not be stored."""
    is_edited = stored is not None and (stored.version > 1 or has_path(call.request.timeline, file.path.logical))
    return Digest(
        artifact_path=file.path.logical,
        physical_path=file.path.physical,
        sid=None if stored is None else stored.sid,
        mime=file.mime,
        kind=file.kind,
        visibility=file.visibility,
        channel=file.channel,
        tool_call_id=call.request.tool_call_id,
        tool_id=call.request.tool_id,
        edited=True if is_edited else None,
        ts=now_text(),
        size_bytes=measured.size_bytes,
        sha256=measured.sha256,
        sources_used=measured.cited or None,
        tokens=measured.tokens,
        encoding=None if file.encoding.name == UTF_8 else file.encoding.name,
        **more,
    )


def build_artifact_result(file: TextFile, stored: StoredArtifact) -> ArtifactResult:
    """What became of a text, for the caller's program."""
    return ArtifactResult(
        logical_path=file.path.logical,
        physical_path=file.path.physical,
        mime=file.mime,
        kind=file.kind,
        visibility=stored.visibility,
        verdict=VerdictCode.PRODUCED,
        size_bytes=stored.size_bytes,
        sid=stored.sid,
        sha256=stored.sha256,
        **stored.hosting(),
    )


def build_hosting_failure(
    call: ReactCall[Any],
    file: TextFile,
    measured: Measured,
    notices: Sequence[Notice],
    error: StoreFailedError | StoreFullError,
) -> ToolCallResponse:
    """The answer of a call whose file could not be stored; its text is in the call block, its id is free again."""
    # Not the store's own words: they may name places that a model must not see.
    message = f"the file could not be stored ({error.code}); call again"
    details = {"error": str(error.code), "path": file.path.physical, "retryable": error.retryable}
    notice = Notice(NoticeCode.HOSTING_FAILED, message, details)
    digest = digest_of(call, file, measured, error=f"{ToolCode.HOSTING_FAILED}: {error.code}")
    return call.build_failed(
        ToolCode.HOSTING_FAILED, message, [*call.opening_blocks([*notices, notice]), call.write.meta(digest)]
    ).refused()


def _measure(file: TextFile, known: frozenset[int], tokens: TokenCounter) -> Measured:
    content = file.encoding.encode(file.text)
    cited, unknown = find_sids(file.text, known)
    return Measured(
        len(content), hashlib.sha256(content).hexdigest(), count_tokens(tokens, file.text), sorted(cited), unknown
    )


def _new(file: TextFile, tool_call_id: str) -> NewArtifact:
    content = file.encoding.encode(file.text)
    return NewArtifact(
        path=file.path,
        source=FileContent(content),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        mime=file.mime,
        visibility=file.visibility,
        description="",
        tool_call_id=tool_call_id,
    )
