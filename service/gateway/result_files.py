"""Files of inputs and results: what is too large for a record or block, and what is neither JSON nor text."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any, Literal

from proofbox.contracts.blocks import Block, Digest
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.gateway.messages import VALUE_BYTES_MAX
from proofbox.contracts.media_types import MIME_BY_EXTENSION, canonical_mime
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.artifacts.port import ArtifactStore, NewArtifact, NewSave, StoredArtifact
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, Closing
from proofbox.service.file_content import FileContent
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.tool_call import GatewayCall, is_too_large
from proofbox.service.timeline.block_writer import now_text

_OTHER_EXTENSION = ".bin"


class ResultFiles:
    """Stores files of results.

    Args:
        artifacts: the files of conversations.
    """

    def __init__(self, artifacts: ArtifactStore) -> None:
        self._artifacts = artifacts

    async def succeed(
        self,
        call: GatewayCall,
        ret: Any,
        *,
        files: Sequence[NewArtifact] = (),
        report: str | None = None,
    ) -> CallResponse:
        """Builds the response of a call that succeeded; a result that is too large for a block is also a file.

        Args:
            call: the call.
            ret: the result, any JSON; already redacted.
            files: the files that it names, see `new_file`.
            report: one line for the model; absent: the beginning of the result.

        Raises:
            StoreFailedError, StoreFullError: a file cannot be stored.
        """
        text = await asyncio.to_thread(compact_json, ret)
        new = list(files)
        if is_too_large(text):
            content = text.encode(errors="replace")
            new.append(await _new(call, call.result_path, content, "application/json", "internal"))

        def build(stored: Sequence[StoredArtifact]) -> ToolCallResponse:
            response = call.succeed(ret, report=report, artifacts=[_result(each) for each in stored])
            blocks = [*response.blocks, *_blocks(call, stored[: len(files)])]
            return response.model_copy(update={"blocks": blocks})

        return Closing(await self._artifacts.prepare(NewSave(call.scope, new)), build) if new else build(())

    async def keep_input(self, call: GatewayCall, observer: CallObserver) -> None:
        """Stores an input that is too large for the record of its call, so that a space can read what it approves.

        Nothing is stored of a call that no space shows.

        Raises:
            StoreFailedError, StoreFullError: it is not stored.
        """
        if call.posting.space_id is None:
            return
        content = await asyncio.to_thread(lambda: compact_json(call.whole_input).encode(errors="replace"))
        if len(content) > VALUE_BYTES_MAX:
            new = await _new(call, call.input_path, content, "application/json", "internal")
            observer.on_stored(await self._artifacts.save(call.scope, [new]))
            call.input_file = call.input_path


async def new_file(call: GatewayCall, content: bytes, mime: str, *, number: int = 1) -> NewArtifact:
    """What is neither JSON nor text, as an external file ``files/<tool_call_id>.<extension>``.

    Args:
        call: the call.
        content: the bytes.
        mime: the media type.
        number: 2, 3, … of further files of the call: ``files/<tool_call_id>.2.<extension>``.
    """
    suffix = extension_for(mime) if number == 1 else f".{number}{extension_for(mime)}"
    name = f"{call.turn_id}/files/{call.tool_call_id}{suffix}"
    return await _new(call, FilePath.from_physical(name), content, mime, "external")


def data_of(file: NewArtifact) -> dict[str, Any]:
    """How a result names a file."""
    return {
        "artifact_path": file.path.logical,
        "mime": file.mime,
        "size_bytes": file.size_bytes,
        "sha256": file.sha256,
    }


async def _new(
    call: GatewayCall, path: FilePath, content: bytes, mime: str, visibility: Literal["external", "internal"]
) -> NewArtifact:
    sha256 = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
    return NewArtifact(
        path=path,
        source=FileContent(content),
        size_bytes=len(content),
        sha256=sha256,
        mime=mime,
        visibility=visibility,
        description=f"{'input' if path == call.input_path else 'result'} of {call.tool.name}",
        tool_call_id=call.tool_call_id,
    )


def _result(stored: StoredArtifact) -> ArtifactResult:
    return ArtifactResult(
        logical_path=stored.path.logical,
        physical_path=stored.path.physical,
        mime=stored.mime,
        visibility=stored.visibility,
        verdict=VerdictCode.PRODUCED,
        size_bytes=stored.size_bytes,
        sid=stored.sid,
        sha256=stored.sha256,
        **stored.hosting(),
    )


def extension_for(mime: str) -> str:
    """The extension of a file of a media type, with its dot."""
    mime = canonical_mime(mime)
    return next((f".{name}" for name, known in MIME_BY_EXTENSION.items() if known == mime), _OTHER_EXTENSION)


def _blocks(call: GatewayCall, files: Sequence[StoredArtifact]) -> list[Block]:
    blocks: list[Block] = []
    for stored in files:
        digest = Digest(
            artifact_path=stored.path.logical,
            physical_path=stored.path.physical,
            sid=stored.sid,
            mime=stored.mime,
            kind="file",
            visibility=stored.visibility,
            tool_call_id=call.tool_call_id,
            tool_id=call.tool.tool_id,
            edited=True if stored.version > 1 else None,
            ts=now_text(),
            size_bytes=stored.size_bytes,
            sha256=stored.sha256,
            description=stored.description,
        )
        blocks += call.write.artifact(digest, stored.hosting(), text=None, base64=None)
    return blocks
