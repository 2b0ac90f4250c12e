"""``react.patch``: a text file gets a new version by a diff, or by its whole new text."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.contracts.codes import ToolCode
from proofbox.contracts.media_types import is_text
from proofbox.contracts.paths import FilePath, NamedPath, Namespace, UnsafePathError
from proofbox.contracts.react_tools import CONTENT_BYTES_MAX, PatchParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.conversation_files import CallFiles
from proofbox.service.artifacts.found_file import ConversationFile
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.react.hunks import HunkHeaderError, HunkMismatchError
from proofbox.service.react.patch_forms import apply_diff, is_diff
from proofbox.service.react.syntax_check import find_syntax_problem
from proofbox.service.react.text_file import (
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
from proofbox.service.timeline.block_writer import shorten_param, text_head

_SVG = "image/svg+xml"


@dataclass(frozen=True, slots=True)
class _Patched:
    """What a patch came to.

    Attributes:
        text: the new text.
        summary: mode, hunks, lines and offsets, for the summary of the call.
        warning: what is odd about the new text; None if nothing is.
    """

    text: str
    summary: dict[str, Any]
    warning: str | None


class PatchTool:
    """Patches texts. A file of another turn, or an attachment, is copied into the current turn first."""

    def __init__(self, files: TextFiles, paths: LogicalPathResolver) -> None:
        self._files = files
        self._paths = paths

    async def patch(self, call: ReactCall[PatchParams]) -> ToolCallResponse:
        """Answers ``react.patch``.

        Raises:
            ToolRefusedError: there is no patch, no such text, or the patch does not fit; nothing is stored.
            ServiceError: the caller's program or the service is at fault; nothing is stored.
        """
        params = call.params
        paths = self._paths.for_call(call.scope, call.turn_id, call.request.timeline)
        source = await paths.find_file(params.path.strip())
        named = (
            resolve_target(params.path, call.turn_id) if source is None else _named_as(params.path, source, call)
        )
        if not params.patch.strip():
            raise ToolRefusedError(
                ToolCode.MISSING_PATCH, "patch is blank; give a unified diff or the whole new text"
            )
        if source is None:
            raise ToolRefusedError(
                ToolCode.PATCH_TARGET_MISSING,
                f"there is no file {named.source.physical}; react.search_files lists those of this turn",
                path=named.source.physical,
            )
        async with staging(self._paths.files.artifacts) as folder:
            old = await _read(source, paths.files, folder)
        patched = await asyncio.to_thread(_apply_patch, named.file.rel, old, params.patch)
        if named.foreign:
            await self._files.refuse_folder(paths.files, named.file)
        file = _file(call, named.file, source.mime, patched.text)
        copy = TextFile(named.file, old, file.mime, "file", "internal", None)
        measured = await self._files.measure(call, file.text)
        try:
            *_, stored = await self._files.store(call, [copy, file] if named.foreign else [file])
        except (StoreFailedError, StoreFullError) as exc:
            return build_hosting_failure(call, file, measured, build_rewrite_notices(named), exc)
        return _build_response(call, named, file, measured, patched, stored)


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


async def _read(source: ConversationFile, files: CallFiles, folder: Staging) -> str:
    """The text of a file.

    Raises:
        ToolRefusedError: ``patch_target_unreadable``.
        StoreFailedError: a store failed.
    """
    content = b""
    size = source.size_bytes or 0
    if size <= CONTENT_BYTES_MAX:
        content = await files.head(source, CONTENT_BYTES_MAX + 1, folder) or b""
        size = max(size, len(content))
    if size > CONTENT_BYTES_MAX:
        reason = f"it is {size} bytes large, {CONTENT_BYTES_MAX} are allowed"
    elif len(content) < size:
        reason = "only a description of it is left, its bytes cannot be had"
    else:
        try:
            text = content.decode()
        except UnicodeDecodeError as exc:
            reason = f"it is no UTF-8 text (byte {exc.start})"
        else:
            if "\x00" not in text:
                return text
            reason = "it is a binary file"
    raise ToolRefusedError(
        ToolCode.PATCH_TARGET_UNREADABLE,
        f"{source.path.physical} cannot be patched: {reason}",
        path=source.path.physical,
    )


def _file(call: ReactCall[PatchParams], path: FilePath, mime: str, text: str) -> TextFile:
    kind, channel = call.params.kind, call.params.channel
    is_external = kind == "file" and channel != "internal"
    return TextFile(
        path,
        text,
        mime if is_text(mime) or mime == _SVG else choose_text_mime(path, kind),
        kind,
        "external" if is_external else "internal",
        channel,
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
        **({"copied_from": named.original} if named.foreign else {}),
        **more,
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
    report, warned = f"Patched: {file.path.physical}", "" if patched.warning is None else f"\n- {patched.warning}"
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
