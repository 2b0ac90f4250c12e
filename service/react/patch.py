"""``react.patch``: a text file gets a new version by a diff, or by its whole new text."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.contracts.codes import ToolCode
from proofbox.contracts.media_types import is_text
from proofbox.contracts.paths import FilePath, NamedPath, Namespace, UnsafePathError
from proofbox.contracts.react_tools import CONTENT_BYTES_MAX, PatchParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.conversation_files import LOST, CallFiles
from proofbox.service.artifacts.found_file import ConversationFile
from proofbox.service.artifacts.near_names import describe_near
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.calls.suspension import CallResponse, Closing
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.react.hunks import HunkHeaderError, HunkMismatchError
from proofbox.service.react.patch_forms import apply_diff, is_diff
from proofbox.service.react.syntax_check import find_syntax_problem
from proofbox.service.react.text_file import (
    Encoding,
    Measured,
    TextFile,
    TextFiles,
    build_artifact_result,
    build_hosting_failure,
    build_rewrite_notices,
    digest_of,
    resolve_target,
)
from proofbox.service.react.text_formats import choose_text_mime
from proofbox.service.text_encoding import decode_text, encode_text, find_encoding
from proofbox.service.timeline.block_writer import shorten_param, text_head

_SVG = "image/svg+xml"


@dataclass(frozen=True, slots=True)
class _Patched:
    """What a patch came to.

    Attributes:
        text: the new text.
        summary: mode, hunks, lines and offsets, for the summary of the call.
        warning: what is odd about the new text; None if nothing is.
        started: the file that the text was one of, if that is not the one that was named.
        note: what else to know of the file.
    """

    text: str
    summary: dict[str, Any]
    warning: str | None
    started: dict[str, str] = field(default_factory=dict)
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Old:
    """The text that is patched, and how it is stored."""

    text: str
    encoding: Encoding


class PatchTool:
    """Patches texts. A file of another turn, or an attachment, is copied into the current turn first."""

    def __init__(self, files: TextFiles, paths: LogicalPathResolver) -> None:
        self._files = files
        self._paths = paths

    async def patch(self, call: ReactCall[PatchParams]) -> CallResponse:
        """Answers ``react.patch``.

        Raises:
            ToolRefusedError: there is no patch, no such text, or the patch does not fit; nothing is stored.
            ServiceError: the caller's program or the service is at fault; nothing is stored.
        """
        params = call.params
        paths = self._paths.for_call(call.scope, call.turn_id, call.request.timeline)
        asked = await paths.find_file(params.path.strip())
        named = resolve_target(params.path, call.turn_id) if asked is None else _named_as(params.path, asked, call)
        # An older version goes on where the newest one is, so that no patch undoes the one before it.
        source = (await paths.files.newest_by_name(call.turn_id)).get(named.file.rel, asked)
        if not params.patch.strip():
            raise ToolRefusedError(
                ToolCode.MISSING_PATCH, "patch is blank; give a unified diff or the whole new text"
            )
        if source is None:
            near = await describe_near(paths.files, named.source, call.turn_id)
            raise ToolRefusedError(
                ToolCode.PATCH_TARGET_MISSING,
                f"there is no file {named.source.physical}; {near}",
                path=named.source.physical,
            )
        async with staging(self._paths.files.artifacts) as folder:
            content = await _read(source, paths.files, folder)
        old = await asyncio.to_thread(_decode, source, content)
        patched = await asyncio.to_thread(_apply_patch, named.file.rel, old.text, params.patch)
        patched, old = _keep_encoding(patched, old)
        is_copy = source.path != named.file
        if is_copy:
            await self._files.refuse_folder(paths.files, named.file)
        file = _file(call, named.file, source.mime, patched.text, old.encoding)
        copy = TextFile(named.file, old.text, file.mime, "file", "internal", None, old.encoding)
        measured = await self._files.measure(call, file)
        note = await self._files.note_outdated(call, file)
        try:
            save = await self._files.prepare(call, [copy, file] if is_copy else [file])
        except (StoreFailedError, StoreFullError) as exc:
            return build_hosting_failure(call, file, measured, build_rewrite_notices(named), exc)
        is_asked = asked is not None and asked.path == source.path
        started = {"copied_from": named.original if is_asked else source.path.physical} if is_copy else {}
        if not is_asked:
            started["started_from"] = source.path.physical
        patched = replace(patched, started=started, note=note)
        return Closing(save, lambda stored: _build_response(call, named, file, measured, patched, stored[-1]))


def _named_as(text: str, source: ConversationFile, call: ReactCall[PatchParams]) -> NamedPath:
    """The file of the current turn that gets the new version of a file that a path names.

    Raises:
        ToolRefusedError: ``unsafe_path``: its path is too long below the current turn.
    """
    try:
        file = FilePath(call.turn_id, Namespace.FILES, source.path.rel)
    except UnsafePathError as exc:
        raise ToolRefusedError(ToolCode.UNSAFE_PATH, f"path: {exc}") from exc
    return NamedPath(file, text, source.path != file, source.path)


async def _read(source: ConversationFile, files: CallFiles, folder: Staging) -> bytes:
    """The bytes of a file.

    Raises:
        ToolRefusedError: ``patch_target_unreadable``, or ``patch_target_missing`` if its bytes are lost.
        StoreFailedError: a store failed.
    """
    content = b""
    size = source.size_bytes or 0
    if size <= CONTENT_BYTES_MAX:
        read = await files.head(source, CONTENT_BYTES_MAX + 1, folder)
        if read is None and source.stored is not None:
            raise ToolRefusedError(
                ToolCode.PATCH_TARGET_MISSING,
                f"{source.path.physical} cannot be patched: {LOST}; write it anew",
                path=source.path.physical,
            )
        content = read or b""
        size = max(size, len(content))
    if size > CONTENT_BYTES_MAX:
        raise _unreadable(source, f"it is {size} bytes large, {CONTENT_BYTES_MAX} are allowed")
    if len(content) < size:
        raise _unreadable(source, "only a description of it is left, its bytes cannot be had")
    return content


def _decode(source: ConversationFile, content: bytes) -> _Old:
    """The text of a file; blocking.

    Raises:
        ToolRefusedError: ``patch_target_unreadable``.
    """
    encoding = find_encoding(content)
    if encoding is None:
        raise _unreadable(source, "it is a binary file")
    text = decode_text(content, encoding)
    try:
        is_same = encode_text(text, encoding, content) == content
    except UnicodeEncodeError:
        is_same = False
    if not is_same:
        raise _unreadable(source, f"some of its bytes are no {encoding}")
    return _Old(text, Encoding(encoding, content[:4]))


def _unreadable(source: ConversationFile, reason: str) -> ToolRefusedError:
    return ToolRefusedError(
        ToolCode.PATCH_TARGET_UNREADABLE,
        f"{source.path.physical} cannot be patched: {reason}",
        path=source.path.physical,
    )


def _keep_encoding(patched: _Patched, old: _Old) -> tuple[_Patched, _Old]:
    """The new text in the encoding of the old one; in UTF-8, with a warning, if that lacks a character of it."""
    try:
        old.encoding.encode(patched.text)
    except UnicodeEncodeError as exc:
        missing = patched.text[exc.start]
        warning = f"{old.encoding.name} has no '{missing}': the file is UTF-8 now"
        warning = warning if patched.warning is None else f"{warning}; {patched.warning}"
        return replace(patched, warning=warning), replace(old, encoding=Encoding())
    return patched, old


def _file(call: ReactCall[PatchParams], path: FilePath, mime: str, text: str, encoding: Encoding) -> TextFile:
    kind, channel = call.params.kind, call.params.channel
    is_external = kind == "file" and channel != "internal"
    return TextFile(
        path,
        text,
        mime if is_text(mime) or mime == _SVG else choose_text_mime(path, kind),
        kind,
        "external" if is_external else "internal",
        channel,
        encoding,
    )


def _apply_patch(name: str, old: str, patch: str) -> _Patched:
    """Applies a patch and looks at what it made; blocking.

    Raises:
        ToolRefusedError: it cannot be read, does not fit, or makes the file too large.
    """
    if is_diff(patch):
        bom = "\ufeff" if old.startswith("\ufeff") else ""
        try:
            applied = apply_diff(old.removeprefix(bom), patch)
        except HunkHeaderError as exc:
            raise ToolRefusedError(
                ToolCode.INVALID_HUNK_HEADER, f"{exc}; nothing was changed", line=exc.line, text=exc.text
            ) from exc
        except HunkMismatchError as exc:
            raise ToolRefusedError(
                ToolCode.HUNK_MISMATCH,
                str(exc),
                shown=f"expected: {exc.expected}\nfound: {exc.found}",
                hunk=exc.hunk,
                line=exc.line,
                expected=exc.expected,
                found=exc.found,
            ) from exc
        text = bom + applied.text
        offsets = [{"hunk": hunk, "lines": lines} for hunk, lines in applied.offsets.items()]
        summary: dict[str, Any] = {
            "mode": "diff",
            "hunks": applied.hunks,
            "added": applied.added,
            "removed": applied.removed,
            **({"offsets": offsets} if offsets else {}),
        }
    else:
        text, summary = patch, {"mode": "replacement"}
    size = len(text.encode())
    if size > CONTENT_BYTES_MAX:
        raise ToolRefusedError(
            ToolCode.CONTENT_TOO_LARGE,
            f"the patched file would have {size} bytes, {CONTENT_BYTES_MAX} are allowed; nothing was changed",
        )
    warning = find_syntax_problem(name, text) if text else "file is empty"
    return _Patched(text, summary, warning)


def _build_response(
    call: ReactCall[PatchParams],
    named: NamedPath,
    file: TextFile,
    measured: Measured,
    patched: _Patched,
    stored: StoredArtifact,
) -> ToolCallResponse:
    more = {} if patched.warning is None else {"write_warning": patched.warning}
    digest = digest_of(call, file, measured, stored, **more)
    patch = call.params.patch
    # No artifact_path: that would make it another description of the file.
    summary = {
        "status": "patched",
        "path": file.path.physical,
        **patched.summary,
        "size_bytes": measured.size_bytes,
        **patched.started,
        **more,
        **({} if patched.note is None else {"note": patched.note}),
    }
    # The block has the change, not the file: the mark "patch" keeps readers from taking it for the content.
    marks = {**stored.hosting(), "patch": str(patched.summary["mode"])}
    blocks: list[Block] = [
        *call.opening_blocks(
            build_rewrite_notices(named),
            shown_params={**call.request.params, "patch": shorten_param(patch, file.path.logical)},
        ),
        *call.write.artifact(digest, marks, text=text_head(patch), base64=None),
        call.write.result_json(summary),
    ]
    begun = next(iter(patched.started.values()), None)
    report = f"Patched: {file.path.physical}" + (f", from {begun}" if begun else "")
    warned = "" if patched.warning is None else f"\n- {patched.warning}"
    warned += "" if patched.note is None else f"\nNote: {patched.note}"
    return call.build_response(
        blocks,
        report=f"{report}{warned}",
        text=f"{report} ({_in_words(patched.summary)}, {measured.size_bytes} bytes){warned}",
        ret=summary,
        artifacts=[build_artifact_result(file, stored)],
    )


def _in_words(summary: Mapping[str, Any]) -> str:
    """What a patch changed, in words."""
    if summary["mode"] == "replacement":
        return "the whole text replaced"
    moved = ", ".join(f"hunk {each['hunk']} {each['lines']:+} lines off" for each in summary.get("offsets", ()))
    words = f"{summary['hunks']} hunks, {summary['added']} lines added, {summary['removed']} removed"
    return f"{words}; {moved}" if moved else words
