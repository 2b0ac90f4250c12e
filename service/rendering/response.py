"""The response to a rendering call: envelope, blocks and verdict. It decides nothing."""

import json
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.blocks import Block, Digest
from proofbox.contracts.codes import ContractCode, NoticeCode, RuntimeCode
from proofbox.contracts.paths import FilePath
from proofbox.contracts.render_tools import OutputFormat, RenderParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, Timings, ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.param_references import find_reference
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.error_lines import error_line
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.produced_files import ProducedFiles, artifact_result, usage
from proofbox.service.jobs.runner import JobResult
from proofbox.service.jobs.verdicts import Verdict
from proofbox.service.sandbox.limits import CallBounds
from proofbox.service.sandbox.port import ProcessOutcome
from proofbox.service.sandbox.program_output import stderr_text
from proofbox.service.timeline.artifact_versions import has_path
from proofbox.service.timeline.block_writer import BlockWriter, Notice, now_text, shorten_param, with_notices
from proofbox.service.visible_text import visible_line

_WARNINGS_MAX = 100
_WARNINGS_SHOWN_MAX = 20
_WARNING_CHARS_MAX = 400
_NOTICE_OF_REFUSAL = {
    ContractCode.MISSING_ASSETS: NoticeCode.MISSING_ASSETS,
    ContractCode.PARAM_REF_NOT_VISIBLE: NoticeCode.PARAM_REF_NOT_VISIBLE,
}
"""The notices of refusals that have one of their own."""


@dataclass(frozen=True, slots=True)
class RenderCall:
    """One rendering call.

    Attributes:
        scope: its conversation.
        request: the request.
        output: the format that is written.
        params: its parameters.
        bounds: what it may use.
        target: the file that is written.
        is_rewritten: the path meant another turn or an attachment, and was rewritten.
        began: when it came, as its blocks have it.
    """

    scope: ConversationKey
    request: ToolCallRequest
    output: OutputFormat
    params: RenderParams
    bounds: CallBounds
    target: FilePath
    is_rewritten: bool = False
    began: str = field(default_factory=now_text)


@dataclass(frozen=True, slots=True)
class RendererAnswer:
    """What the renderer printed of its work.

    Attributes:
        error: why nothing was rendered: code and message.
        warnings: what a reader should know: code, message, details.
        facts: what was measured: pages, slides, width.
    """

    error: tuple[str, str] | None = None
    warnings: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, printed: bytes) -> "RendererAnswer":
        """Parses the last line of the renderer's output; without one it has failed."""
        lines = printed.splitlines()
        try:
            fields = json.loads(lines[-1]) if lines else {}
        except ValueError:
            fields = {}
        if fields.get("ok") is True:
            return cls(None, list(fields.get("warnings", []))[:_WARNINGS_MAX], dict(fields.get("facts", {})))
        error = fields.get("error") or {}
        return cls((str(error.get("code", "render_failed")), str(error.get("message", ""))))


@dataclass(frozen=True, slots=True)
class RenderRun:
    """A rendering and what came of it.

    Attributes:
        inputs: its inputs.
        result: how the renderer ended.
        answer: what it printed of its work.
        files: the document, if there is one.
    """

    inputs: JobInputs
    result: JobResult
    answer: RendererAnswer
    files: ProducedFiles


def refuse(
    call: RenderCall, error: ContractError, timings: Timings, inputs: JobInputs | None = None
) -> ToolCallResponse:
    """Builds the response to a call that the model has to write differently; nothing was rendered."""
    is_asset = error.code is ContractCode.MISSING_ASSETS
    code = _NOTICE_OF_REFUSAL.get(error.code, NoticeCode.TOOL_CALL_ERROR)
    notice = Notice(code, error.message, error.details if is_asset else {"error": error.code, **error.details})
    notices = [*(inputs.notices if inputs is not None else ()), notice]
    return _build_failed(
        call,
        str(error.code),
        error.message,
        notices,
        rehosted=inputs.ledger if inputs is not None else [],
        timings_ms=timings,
        usage=usage(ProcessOutcome()),
    ).refused()


def build_interrupted(call: RenderCall, why: Interruption) -> ToolCallResponse:
    """Builds the response to a call that was ended from outside; it never runs again under its id."""
    notice = Notice(NoticeCode.TOOL_RESULT_ERROR, why.message, {"error": why.code})
    return _build_failed(call, why.code, why.message, [notice], usage=usage(ProcessOutcome()), sandbox=why.sandbox)


def build_response(call: RenderCall, run: RenderRun, timings: Timings) -> ToolCallResponse:
    """Builds the response to a call whose renderer ran."""
    inputs, result, answer = run.inputs, run.result, run.answer
    (verdict,) = run.files.verdicts
    known: dict[str, Any] = {
        "ret": {"warnings": answer.warnings, "facts": answer.facts},
        "rehosted": inputs.ledger,
        "timings_ms": timings,
        "usage": usage(result.outcome),
        "sandbox": result.sandbox,
    }
    artifact = run.files.stored.get(call.target.physical)
    if artifact is None:
        code, message = _failure(result, answer, verdict)
        notice = Notice(NoticeCode.TOOL_RESULT_ERROR, message, {"error": code})
        return _build_failed(call, code, message, [*_notices(call, inputs), notice], **known)
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
        sources_used=[row.sid for row in inputs.cited] or None,
        write_warning=None if verdict.produced else str(verdict.code),
    )
    write = _writer(call)
    blocks = _opening_blocks(call, _notices(call, inputs))
    if answer.warnings:
        blocks.append(write.report(_summary(call, answer)))
    blocks.append(write.meta(digest))
    content = run.files.contents.get(call.target.physical)
    if content is not None and content.base64 is not None:
        blocks.append(write.content(digest, artifact.hosting(), text=None, base64=content.base64))
    return ToolCallResponse(
        ok=True,
        report=(report := _report(call, answer)),
        text=with_notices(report, blocks),
        blocks=blocks,
        artifacts=[artifact_result(verdict, artifact)],
        **known,
    )


def _failure(result: JobResult, answer: RendererAnswer, verdict: Verdict) -> tuple[str, str]:
    """Why there is no file: the sandbox, then the renderer, then the file itself."""
    failure = result.failure
    if failure is not None and failure.code is not RuntimeCode.NONZERO_EXIT:
        return failure.code, failure.message
    if answer.error is not None:
        code, message = answer.error
        last = error_line(stderr_text(result.outcome.output))
        return code, message or last or "the document could not be rendered"
    return verdict.code, f"{verdict.path.physical}: {verdict.message}"


def _build_failed(
    call: RenderCall, code: str, message: str, notices: list[Notice], **known: Any
) -> ToolCallResponse:
    """Builds the response of a call without a document; ``known`` are further fields of it."""
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
        report=(report := f"Rendering failed: {code} — {message}"),
        text=with_notices(report, blocks),
        blocks=blocks,
        **known,
    )


def _notices(call: RenderCall, inputs: JobInputs) -> list[Notice]:
    notices = list(inputs.notices)
    if call.is_rewritten:
        details = {"original": call.params.path, "rewritten": call.target.physical}
        notices.insert(0, Notice(NoticeCode.PATH_REWRITTEN, "the path was rewritten to the current turn", details))
    missing = list(dict.fromkeys([*inputs.missing, *inputs.lost]))
    if missing := [path for path in missing if path not in inputs.missing_cited]:
        text = "the document names files that are not in the conversation; placeholders stand in their places"
        text += inputs.lost_among(missing)
        notices.append(Notice(NoticeCode.MISSING_ASSETS, text, {"missing": missing}))
    if inputs.missing_cited:
        text = f"cited sources are files that cannot be had{inputs.lost_among(inputs.missing_cited)}"
        notices.append(Notice(NoticeCode.MISSING_SID_ASSETS, text, {"missing": inputs.missing_cited}))
    return notices


def _opening_blocks(call: RenderCall, notices: list[Notice]) -> list[Block]:
    request = call.request
    if request.turn_id is None:
        return []
    given = str(request.params.get("content", ""))
    shown = given if find_reference("content", given) else shorten_param(given, call.target.logical)
    return _writer(call).opening({**request.params, "content": shown}, notices, notes=request.notes)


def _report(call: RenderCall, answer: RendererAnswer) -> str:
    return "\n".join([visible_line(f"Rendered: {call.target.physical}"), *_warning_lines(answer)])


def _summary(call: RenderCall, answer: RendererAnswer) -> str:
    """The report block of a rendering that went well with warnings: what was made, and what is wrong with it."""
    return "\n".join(["ok", visible_line(f"- {call.target.physical}"), "Warnings:", *_warning_lines(answer)])


def _warning_lines(answer: RendererAnswer) -> list[str]:
    shown = answer.warnings[:_WARNINGS_SHOWN_MAX]
    lines = [
        visible_line(f"- {warning.get('code')}: {warning.get('message')}")[:_WARNING_CHARS_MAX] for warning in shown
    ]
    more = len(answer.warnings) - len(shown)
    return [*lines, *([f"- and {more} more"] if more else [])]


def _writer(call: RenderCall) -> BlockWriter:
    request = call.request
    return BlockWriter(request.turn_id or "", request.tool_call_id, request.tool_id, call.began)
