"""Writes the answer to a rendering call: envelope, blocks and verdict. It decides nothing."""

import json
from dataclasses import dataclass, field
from typing import Any

from contracts.artifacts import ContractError
from contracts.blocks import Block, Digest
from contracts.codes import ContractCode, NoticeCode, RuntimeCode
from contracts.paths import FilePath
from contracts.render_tools import OutputFormat, RenderParams
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import EnvelopeError, ToolCallResponse
from service.artifacts.port import StoredArtifact
from service.calls.interruptions import Interruption
from service.calls.param_references import find_reference
from service.identity import ConversationKey
from service.jobs.error_lines import error_line
from service.jobs.produced_files import Content, artifact_result, usage
from service.jobs.runner import Attempt
from service.jobs.verdicts import Verdict
from service.sandbox.limits import CallBounds
from service.sandbox.program_output import stderr_text
from service.timeline.artifact_versions import has_path
from service.timeline.block_writer import BlockWriter, Notice, now_text, shortened
from service.visible_text import visible_line

_WARNINGS_MAX = 100
_WARNINGS_SHOWN_MAX = 20
_WARNING_CHARS_MAX = 400
_REFUSED_BY = {
    ContractCode.MISSING_ASSETS: NoticeCode.MISSING_ASSETS,
    ContractCode.PARAM_REF_NOT_VISIBLE: NoticeCode.PARAM_REF_NOT_VISIBLE,
}
"""The notices of refusals that have one of their own."""


@dataclass(frozen=True, slots=True)
class RenderCall:
    """One rendering call at the door.

    Attributes:
        scope: whose conversation.
        request: the call as it came.
        output: the format that is written.
        params: its parameters.
        bounds: what it may use.
        target: the file that is written.
        is_rewritten: the path meant another turn or an attachment, and was rewritten.
    """

    scope: ConversationKey
    request: ToolCallRequest
    output: OutputFormat
    params: RenderParams
    bounds: CallBounds
    target: FilePath
    is_rewritten: bool = False


@dataclass(frozen=True, slots=True)
class RenderResult:
    """What the renderer said.

    Attributes:
        error: why nothing was rendered: code and message.
        warnings: what a reader should know: code, message, details.
        facts: what was measured: pages, slides, width.
    """

    error: tuple[str, str] | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, said: bytes) -> "RenderResult":
        """Reads the last line of the renderer's output; a renderer that said nothing has failed."""
        lines = said.splitlines()
        try:
            fields = json.loads(lines[-1]) if lines else {}
        except ValueError:
            fields = {}
        if fields.get("ok") is True:
            return cls(None, list(fields.get("warnings", []))[:_WARNINGS_MAX], dict(fields.get("facts", {})))
        error = fields.get("error") or {}
        return cls((str(error.get("code", "render_failed")), str(error.get("message", ""))))


def refused(call: RenderCall, error: ContractError, attempt: Attempt) -> ToolCallResponse:
    """The answer to a call that the model has to write differently; nothing was rendered."""
    is_asset = error.code is ContractCode.MISSING_ASSETS
    code = _REFUSED_BY.get(error.code, NoticeCode.TOOL_CALL_ERROR)
    notice = Notice(code, error.message, error.details if is_asset else {"error": error.code, **error.details})
    return _failed(call, str(error.code), error.message, [*attempt.gathered.notices, notice], attempt)


def interrupted(call: RenderCall, why: Interruption) -> ToolCallResponse:
    """The answer to a call that was ended from outside; it is never run again under its id."""
    notice = Notice(NoticeCode.TOOL_RESULT_ERROR, why.message, {"error": why.code})
    return _failed(call, why.code, why.message, [notice], Attempt(sandbox=why.sandbox))


def answered(
    call: RenderCall,
    attempt: Attempt,
    result: RenderResult,
    verdict: Verdict,
    contents: dict[str, Content],
    stored: dict[str, StoredArtifact],
) -> ToolCallResponse:
    """The answer to a call that was rendered, or failed to be."""
    artifact = stored.get(call.target.physical)
    if artifact is None:
        code, message = _failure(attempt, result, verdict)
        notice = Notice(NoticeCode.TOOL_RESULT_ERROR, message, {"error": code})
        return _failed(call, code, message, [*_notices(call, attempt), notice], attempt, result)
    digest = Digest(
        artifact_path=call.target.logical,
        physical_path=call.target.physical,
        sid=artifact.sid,
        mime=verdict.mime,
        visibility="external",
        tool_call_id=call.request.tool_call_id,
        tool_id=call.request.tool_id,
        edited=True if artifact.version > 1 or has_path(call.request.timeline, call.target.logical) else None,
        ts=now_text(),
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
        description=call.params.title or None,
        sources_used=[row.sid for row in attempt.gathered.cited] or None,
        write_warning=None if verdict.produced else str(verdict.code),
    )
    write = _writer(call)
    blocks = _opening_blocks(call, _notices(call, attempt))
    if result.warnings:
        blocks.append(write.report(_summary(call, result)))
    blocks.append(write.meta(digest))
    content = contents.get(call.target.physical)
    if content is not None and content.base64 is not None:
        blocks.append(write.content(digest, artifact.hosting(), text=None, base64=content.base64))
    return ToolCallResponse(
        ok=True,
        ret={"warnings": result.warnings, "facts": result.facts},
        report=_report(call, result),
        blocks=blocks,
        artifacts=[artifact_result(verdict, artifact)],
        rehosted=attempt.gathered.ledger,
        timings_ms=attempt.timings,
        usage=usage(attempt.outcome),
        sandbox=attempt.sandbox,
    )


def _failure(attempt: Attempt, result: RenderResult, verdict: Verdict) -> tuple[str, str]:
    """Why there is no file: the sandbox, then the renderer, then the file itself."""
    failure = attempt.failure
    if failure is not None and failure.code is not RuntimeCode.NONZERO_EXIT:
        return failure.code, failure.message
    if result.error is not None:
        code, message = result.error
        last = error_line(stderr_text(attempt.outcome.output))
        return code, message or last or "the document could not be rendered"
    return verdict.code, f"{verdict.path.physical}: {verdict.message}"


def _failed(
    call: RenderCall,
    code: str,
    message: str,
    notices: list[Notice],
    attempt: Attempt,
    result: RenderResult | None = None,
) -> ToolCallResponse:
    message = visible_line(message)
    blocks = _opening_blocks(call, notices)
    if blocks:
        payload = {
            "tool_id": call.request.tool_id,
            "tool_call_id": call.request.tool_call_id,
            "error": {"code": code, "message": message},
            "ts": now_text(),
        }
        blocks.append(_writer(call).result_json(payload))
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(code=code, message=message, where="render", managed=True),
        ret=None if result is None else {"warnings": result.warnings, "facts": result.facts},
        report=f"Rendering failed: {code} — {message}",
        blocks=blocks,
        rehosted=attempt.gathered.ledger,
        timings_ms=attempt.timings,
        usage=usage(attempt.outcome),
        sandbox=attempt.sandbox,
    )


def _notices(call: RenderCall, attempt: Attempt) -> list[Notice]:
    notices = list(attempt.gathered.notices)
    if call.is_rewritten:
        details = {"original": call.params.path, "rewritten": call.target.physical}
        notices.insert(0, Notice(NoticeCode.PATH_REWRITTEN, "the path was rewritten to the current turn", details))
    if attempt.gathered.missing:
        text = "the document names files that are not in the conversation; placeholders stand in their places"
        notices.append(Notice(NoticeCode.MISSING_ASSETS, text, {"missing": attempt.gathered.missing}))
    if attempt.gathered.missing_cited:
        text = "cited sources are files that cannot be had"
        notices.append(Notice(NoticeCode.MISSING_SID_ASSETS, text, {"missing": attempt.gathered.missing_cited}))
    return notices


def _opening_blocks(call: RenderCall, notices: list[Notice]) -> list[Block]:
    request = call.request
    if request.turn_id is None:
        return []
    write = _writer(call)
    blocks = [write.notes(request.notes)] if request.notes else []
    blocks += [write.notice(notice) for notice in notices]
    given = str(request.params.get("content", ""))
    shown = given if find_reference("content", given) else shortened(given, call.target.logical)
    return [*blocks, write.call({**request.params, "content": shown})]


def _report(call: RenderCall, result: RenderResult) -> str:
    return "\n".join([visible_line(f"Rendered: {call.target.physical}"), *_warning_lines(result)])


def _summary(call: RenderCall, result: RenderResult) -> str:
    """The report block of a rendering that went well with warnings: what was made, and what is wrong with it."""
    return "\n".join(["ok", visible_line(f"- {call.target.physical}"), "Warnings:", *_warning_lines(result)])


def _warning_lines(result: RenderResult) -> list[str]:
    shown = result.warnings[:_WARNINGS_SHOWN_MAX]
    lines = [
        visible_line(f"- {warning.get('code')}: {warning.get('message')}")[:_WARNING_CHARS_MAX] for warning in shown
    ]
    more = len(result.warnings) - len(shown)
    return [*lines, *([f"- and {more} more"] if more else [])]


def _writer(call: RenderCall) -> BlockWriter:
    request = call.request
    return BlockWriter(request.turn_id or "", request.tool_call_id, request.tool_id)
