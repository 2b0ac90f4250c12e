"""Parameters given by reference: a content or a program that is one path stands for the text behind that path."""

import asyncio
import hashlib
import re
from dataclasses import dataclass

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode
from proofbox.contracts.logical_paths import TurnPath
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.tool_call_request import CODE_BYTES_MAX, ToolCallRequest
from proofbox.service.artifacts.conversation_files import LOST, CallFiles, ConversationFiles
from proofbox.service.artifacts.near_names import describe_near
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.artifacts.port import DamagedBytesError, StoredArtifact
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.calls.observer import UsedReference
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.text_encoding import as_utf_8
from proofbox.service.timeline.artifact_versions import find_latest_blocks, pick_main_block, redact_text

TEXT_BYTES_MAX = CODE_BYTES_MAX
"""The largest text behind a reference: as large as a program or a content that a call carries itself."""
_CHARS_MAX = 2_048
ABSENT = "the conversation has nothing at this path"
_LOGICAL = r"(?:fi|ar|tc|so|su|sk):\S.*"
_PHYSICAL = r"turn_[A-Za-z0-9_.-]+/(?:files|attachments)/.+"
# Below a folder that only a sandbox has, one word is a path; behind "ref:" any word is.
_PLACED = r"(?:sandbox:/|/mnt/data/|/mnt/user-data/|/out/)\S+"
_PLACED_TURN = r"(?:\./|(?:sandbox:)?/(?:mnt/data|out)/)turn_[A-Za-z0-9_.-]+/(?:files|attachments)/"
_MARKED = r"ref:[ \t]*(\S+)"
_CONTENT = re.compile(rf"\s*(?:(?:ref:\s*)?({_LOGICAL}|{_PHYSICAL}|{_PLACED}|{_PLACED_TURN}.+)|{_MARKED})\s*")
# A program may be one command that begins with a path: a physical path needs its "ref:", a placed one is one word.
_CODE = re.compile(rf"\s*(?:ref:\s*({_LOGICAL}|{_PHYSICAL})|({_LOGICAL}|{_PLACED}|{_PLACED_TURN}\S+)|{_MARKED})\s*")


@dataclass(frozen=True, slots=True)
class Reference:
    """A parameter that is a path and nothing else.

    Attributes:
        param: the parameter, such as ``content``.
        path: the path as the call has it, without ``ref:``.
    """

    param: str
    path: str


@dataclass(frozen=True, slots=True)
class _Found:
    """What a path leads to.

    Attributes:
        path: the canonical logical path.
        content: its bytes.
        version: its version in the artifact store; None if it is not one.
    """

    path: str
    content: bytes
    version: int | None = None


def find_reference(param: str, text: str) -> Reference | None:
    """The reference that a parameter is; None for a text that stands for itself.

    The whole text is one line with one logical or physical path, with or without ``ref:`` before it, or with a path
    below a folder of a sandbox, ``/mnt/data/a.md``. Behind ``ref:`` any word is a path. A program has to be a
    logical path, one word below such a folder, or a path with ``ref:``.
    """
    if len(text) > _CHARS_MAX:
        return None
    match = (_CODE if param == "code" else _CONTENT).fullmatch(text)
    if match is None:
        return None
    return Reference(param, next(group for group in match.groups() if group).strip())


class References:
    """Finds the texts behind references, where `react.read` finds files and blocks.

    Args:
        files: the files and blocks of conversations.
    """

    def __init__(self, files: ConversationFiles) -> None:
        self._files = files

    async def resolve(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference
    ) -> tuple[str, UsedReference]:
        """The text behind a reference, and what is recorded of it.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text; the message has the reason.
            AssetRefusedError: an asset's URI is not allowed.
            StoreFailedError: a store failed.
        """
        async with staging(self._files.artifacts) as folder:
            found = await self._find(scope, request, reference, folder)
        return await asyncio.to_thread(_read, reference, found)

    async def restore(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference, used: UsedReference
    ) -> str | None:
        """The text that a reference stood for when it was recorded; None if it cannot be had any more.

        Raises:
            StoreFailedError: a store failed.
        """
        try:
            if used.version is None:
                text, now = await self.resolve(scope, request, reference)
            else:
                path = FilePath.from_logical(used.path)
                stored = await self._files.artifacts.version(scope, path, used.version)
                if stored is None:
                    return None
                text, now = _read(reference, await self._find_stored(scope, reference, stored))
        except ContractError:
            return None
        return text if now.sha256 == used.sha256 else None

    async def _find(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference, folder: Staging
    ) -> _Found:
        reason: ContractError | None = None
        turn_id = request.turn_id or ""
        paths = _list_paths(reference, turn_id)
        for path in paths:
            if isinstance(path, FilePath) and (asset := await self._asset(scope, request, reference, path, folder)):
                return asset
        files = self._files.of_call(scope, request.timeline)
        for meant in await files.meant(paths, turn_id):
            try:
                if isinstance(meant, TurnPath):
                    return await self._block(scope, request, reference, meant)
                if isinstance(meant, FilePath):
                    return await self._file(scope, reference, files, meant, folder)
            except ContractError as exc:
                reason = reason or exc
        if paths and isinstance(paths[0], FilePath) and (reason is None or ABSENT in str(reason)):
            near = await describe_near(files, paths[0], turn_id)
            reason = not_visible(reference, f"{ABSENT}; {near}")
        raise reason or not_visible(reference, "only fi:, ar:, tc: and su: paths can be given by reference")

    async def _asset(
        self,
        scope: ConversationKey,
        request: ToolCallRequest,
        reference: Reference,
        path: FilePath,
        folder: Staging,
    ) -> _Found | None:
        """The text of a file that the caller hands over; None if it hands over no such file."""
        for asset in request.assets:
            if asset.physical_path == path.physical:
                found = asset.base64 if asset.text is None else asset.text.encode()
                source = found if asset.uri is None else await self._files.fetch_uri(scope, asset.uri, folder)
                if source is not None:
                    content = await asyncio.to_thread(_read_bounded, reference, FileContent(source))
                    return _Found(path.logical, content)
        return None

    async def _file(
        self, scope: ConversationKey, reference: Reference, files: CallFiles, path: FilePath, folder: Staging
    ) -> _Found:
        file = await files.latest(path)
        if file is None:
            raise not_visible(reference, ABSENT)
        if file.size_bytes is not None and file.size_bytes > TEXT_BYTES_MAX:
            raise _too_large(reference, file.size_bytes)
        if file.stored is not None:
            return await self._find_stored(scope, reference, file.stored)
        got = await files.fetch(file, folder)
        if got is None:
            raise not_visible(reference, "the timeline names the file, but its bytes cannot be had")
        return _Found(path.logical, await asyncio.to_thread(_read_bounded, reference, got.source))

    async def _find_stored(self, scope: ConversationKey, reference: Reference, stored: StoredArtifact) -> _Found:
        read = self._files.artifacts.read(scope, stored, 0, stored.size_bytes)
        try:
            content = b"".join([piece async for piece in read])
        except DamagedBytesError as exc:
            self._files.report_lost_file(scope, stored)
            raise not_visible(reference, LOST) from exc
        return _Found(stored.path.logical, content, stored.version)

    async def _block(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference, path: TurnPath
    ) -> _Found:
        placed = await find_latest_blocks(self._files.of_call(scope, request.timeline).memory, path)
        text = redact_text(pick_main_block(placed).block) if placed else None
        if text is None:
            raise not_visible(reference, "the conversation has no text at this path")
        return _Found(str(path), _read_bounded(reference, FileContent(text.encode(errors="replace"))))


def not_visible(reference: Reference, reason: str) -> ContractError:
    """The refusal of a reference that leads to no text."""
    return ContractError(
        ContractCode.PARAM_REF_NOT_VISIBLE,
        f"{reference.param} is the reference '{reference.path}', and its text cannot be had: {reason}; give a path "
        "that react.read or react.search_files lists, or the text itself",
        param=reference.param,
        ref=reference.path,
    )


def _too_large(reference: Reference, size_bytes: int) -> ContractError:
    return not_visible(reference, f"it is {size_bytes} bytes large, {TEXT_BYTES_MAX} are allowed")


def _read_bounded(reference: Reference, source: FileContent) -> bytes:
    """The bytes of a file; blocking.

    Raises:
        ContractError: they are too many.
    """
    size = source.size()
    if size > TEXT_BYTES_MAX:
        raise _too_large(reference, size)
    return source.read()


def _list_paths(reference: Reference, turn_id: str) -> list[FilePath | TurnPath]:
    """The paths that a reference may mean, the likeliest first; none for a source or a skill.

    Raises:
        ContractError: it has no form of a path.
    """
    try:
        paths = possible_paths(reference.path, turn_id)
    except UnsafePathError as exc:
        raise not_visible(reference, str(exc)) from exc
    return [path for path in paths if isinstance(path, FilePath | TurnPath)]


def _read(reference: Reference, found: _Found) -> tuple[str, UsedReference]:
    """The text of what was found; blocking.

    Raises:
        ContractError: it is not a text.
    """
    size = len(found.content)
    content, _ = as_utf_8(found.content, is_whole=True)
    try:
        text = content.decode()
    except UnicodeDecodeError as exc:
        raise not_visible(reference, f"it is not UTF-8 text (byte {exc.start})") from exc
    if "\x00" in text:
        raise not_visible(reference, "it is a binary file")
    sha256 = hashlib.sha256(found.content).hexdigest()
    return text, UsedReference(reference.param, found.path, sha256, size, found.version)
