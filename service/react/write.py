"""``react.write``, ``react.stream`` and ``react.file``: write a text as a file of the turn."""

from dataclasses import dataclass
from typing import Literal

from proofbox.contracts.codes import NoticeCode, ToolCode, VerdictCode
from proofbox.contracts.react_tools import FileParams, WriteParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.calls.param_references import find_reference
from proofbox.service.calls.suspension import CallResponse, Closing
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.jobs.produced_files import Content
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
from proofbox.service.react.text_formats import choose_text_mime, refuse_format
from proofbox.service.timeline.block_writer import Notice, shorten_param, text_head


class WriteTool:
    """Writes texts, new ones and new versions of old ones."""

    def __init__(self, files: TextFiles) -> None:
        self._files = files

    async def write(self, call: ReactCall[WriteParams]) -> CallResponse:
        """Answers ``react.write`` and ``react.stream``. Raises as `_write`."""
        return await self._write(call, call.params.channel, call.params.kind)

    async def file(self, call: ReactCall[FileParams]) -> CallResponse:
        """Answers ``react.file``. Raises as `_write`."""
        return await self._write(call, None, "file")

    async def _write(
        self,
        call: ReactCall[WriteParams] | ReactCall[FileParams],
        channel: str | None,
        kind: Literal["display", "file"],
    ) -> CallResponse:
        """Writes a text.

        Raises:
            ToolRefusedError: the path or the format is not one that can be written; nothing is stored.
            ServiceError: the caller's program or the service is at fault; nothing is stored.
        """
        named = resolve_target(call.params.path, call.turn_id)
        refuse_format(named.file, channel, kind)
        await self._files.refuse_folder(self._files.files_of(call), named.file)
        file = TextFile(
            named.file,
            call.params.content,
            choose_text_mime(named.file, kind),
            kind,
            "internal" if channel == "internal" else "external",
            channel,
        )
        measured = await self._files.measure(call, file)
        notices = build_rewrite_notices(named)
        if not file.text:
            return _empty(call, file, measured, notices)
        if measured.unknown:
            text = "the text cites sources that are not in the pool"
            notices.append(Notice(NoticeCode.MISSING_SOURCES, text, {"missing_sids": measured.unknown}))
        note = await self._files.note_outdated(call, file)
        carried = Content() if channel == "internal" else await self._files.content(file)
        try:
            save = await self._files.prepare(call, [file])
        except (StoreFailedError, StoreFullError) as exc:
            return build_hosting_failure(call, file, measured, notices, exc)
        written = _Text(file, measured, notices, note, carried)
        return Closing(save, lambda stored: _build_response(call, written, stored[0]))


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that is written.

    Attributes:
        file: the file.
        measured: what is known of it.
        notices: what the model should know.
        note: what else, in the report; None if nothing.
        carried: what its content block carries; nothing for an internal one.
    """

    file: TextFile
    measured: Measured
    notices: list[Notice]
    note: str | None
    carried: Content


def _build_response(
    call: ReactCall[WriteParams] | ReactCall[FileParams], text: _Text, stored: StoredArtifact
) -> ToolCallResponse:
    file, measured = text.file, text.measured
    more = {} if text.note is None else {"write_warning": text.note}
    digest = digest_of(call, file, measured, stored, **more)
    given = str(call.request.params["content"])
    content = given if find_reference("content", given) else shorten_param(given, file.path.logical)
    shown = {**call.request.params, "content": content}
    blocks = [*call.opening_blocks(text.notices, shown_params=shown), call.write.meta(digest)]
    if file.channel == "internal":
        blocks.append(call.write.internal_note(digest, text_head(file.text)))
    else:
        carried = text.carried
        blocks.append(call.write.content(digest, stored.hosting(), text=carried.text, base64=carried.base64))
    return call.build_response(
        blocks,
        report=f"Written: {file.path.physical} ({measured.size_bytes} bytes, {measured.tokens} tokens)"
        + ("" if text.note is None else f"\nNote: {text.note}"),
        ret={
            "artifact_path": file.path.logical,
            "physical_path": file.path.physical,
            "size_bytes": measured.size_bytes,
            "edited": bool(digest.edited),
        },
        artifacts=[build_artifact_result(file, stored)],
    )


def _empty(
    call: ReactCall[WriteParams] | ReactCall[FileParams], file: TextFile, measured: Measured, notices: list[Notice]
) -> ToolCallResponse:
    message = f"{file.path.physical}: file is empty; nothing was written. Give the text as content"
    notice = Notice(NoticeCode.TOOL_RESULT_ERROR, message, {"error": ToolCode.EMPTY_FILE})
    digest = digest_of(call, file, measured, error=f"{VerdictCode.EMPTY_FILE}: {message}")
    blocks = [*call.opening_blocks([*notices, notice]), call.write.meta(digest)]
    return call.build_failed(ToolCode.EMPTY_FILE, message, blocks).refused()
