"""Writes the answer to an exec call: envelope, report, blocks and verdicts. It decides nothing."""

from contracts.artifacts import Contract, ContractError
from contracts.blocks import Block, Digest
from contracts.codes import ContractCode, NoticeCode, RuntimeCode, VerdictCode
from contracts.tool_calls import ArtifactResult, EnvelopeError, ToolCallResponse
from service.core.artifact_answers import Content, artifact_result, hosting, usage
from service.core.blocks import BlockWriter, Notice, now_text
from service.core.discovery import remembered_paths
from service.core.engine_port import FileState, Found
from service.core.exec_call import ExecCall
from service.core.outcomes import RuntimeFailure
from service.core.references import find_reference
from service.core.reports import RunReport, Unpromised, refusal_text, report_text, run_error
from service.core.sandbox_runs import Attempt
from service.core.store_ports import StoredArtifact
from service.core.verdicts import Verdict, extras, produced_once

_REFUSED_BY = {
    ContractCode.PRE_EXEC_MISSING_PATHS: NoticeCode.PRE_EXEC_MISSING_PATHS,
    ContractCode.PARAM_REF_NOT_VISIBLE: NoticeCode.PARAM_REF_NOT_VISIBLE,
}
"""The notices of refusals that have one of their own."""


def refused(
    call: ExecCall, error: ContractError, attempt: Attempt, contract: Contract | None = None
) -> ToolCallResponse:
    """The answer to a call that the model has to write differently; nothing of it ran."""
    is_path = error.code is ContractCode.PRE_EXEC_MISSING_PATHS
    code = _REFUSED_BY.get(error.code, NoticeCode.EXEC_CONTRACT_INVALID)
    details = error.details if is_path else {"error": error.code, **error.details}
    notices = [Notice(code, error.message, details)]
    if contract is not None:
        notices = [*_rewrites(contract), *attempt.gathered.notices, *notices]
    report = refusal_text(error)
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(
            code=error.code, message=error.message, where="rehost" if is_path else "contract", managed=True
        ),
        report=report,
        blocks=_opening_blocks(call, notices, report),
        timings_ms=attempt.timings,
    )


def interrupted(call: ExecCall) -> ToolCallResponse:
    """The answer to a call that was running when the service stopped; it is never run again under its id."""
    failure = RuntimeFailure(
        RuntimeCode.SANDBOX_FAILED,
        "the service stopped while the call ran, its outcome is unknown; call again under a new tool_call_id",
    )
    report = report_text(RunReport(failure, [], [], 0, b""))
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(code=failure.code, message=failure.message, where="run", managed=True),
        report=report,
        blocks=_opening_blocks(call, [], report),
    )


def answered(
    call: ExecCall,
    contract: Contract,
    attempt: Attempt,
    verdicts: list[Verdict],
    contents: dict[str, Content],
    stored: dict[str, StoredArtifact],
) -> ToolCallResponse:
    """The answer to a call that ran, from all that is known of it."""
    unpromised = extras(attempt.collected, contract.promises)
    report = RunReport(
        attempt.failure,
        verdicts if attempt.sandbox is not None else [],
        [_mention(found) for found in unpromised]
        + [Unpromised(n, "not kept") for n in attempt.collected.odd_names],
        attempt.collected.extras_total,
        attempt.outcome.log_tail,
    )
    text = report_text(report)
    error = run_error(report)
    notices = [*_rewrites(contract), *attempt.gathered.notices]
    blocks = _opening_blocks(call, notices, text)
    if blocks:
        earlier = remembered_paths(call.request.timeline)
        for verdict in produced_once(verdicts):
            artifact, content = stored[verdict.path.physical], contents[verdict.path.physical]
            is_edited = artifact.version > 1 or verdict.path.logical in earlier
            blocks += _artifact_blocks(call, verdict, artifact, content, is_edited=is_edited)
    return ToolCallResponse(
        ok=error is None,
        error=error,
        ret={
            "produced": [v.path.physical for v in produced_once(verdicts)],
            "failed": [v.path.physical for v in verdicts if not v.produced],
        },
        report=text,
        blocks=blocks,
        artifacts=[artifact_result(v, stored.get(v.path.physical)) for v in verdicts]
        + [_extra_result(f, stored) for f in unpromised if f.source is not None],
        rehosted=attempt.gathered.ledger,
        timings_ms=attempt.timings,
        usage=usage(attempt.outcome),
        sandbox=attempt.sandbox,
    )


def _opening_blocks(call: ExecCall, notices: list[Notice], report: str) -> list[Block]:
    """The blocks that every exec call has: notes, notices, code, call, report. None without a turn to be in."""
    request = call.request
    if request.turn_id is None:
        return []
    write = _writer(call)
    blocks = [write.notes(request.notes)] if request.notes else []
    blocks += [write.notice(notice) for notice in notices]
    # A program that was given by reference and not resolved is in the conversation already, if anywhere.
    if request.code and find_reference("code", request.code) is None:
        blocks.append(write.code(request.code, call.language))
    return [*blocks, write.call(request.params), write.report(report)]


def _artifact_blocks(
    call: ExecCall, verdict: Verdict, stored: StoredArtifact, content: Content, *, is_edited: bool
) -> tuple[Block, Block]:
    promise = verdict.promise
    if promise is None:
        raise AssertionError("a verdict has the promise that it is on")
    digest = Digest(
        artifact_path=verdict.path.logical,
        physical_path=verdict.path.physical,
        sid=stored.sid,
        mime=verdict.mime,
        visibility=promise.visibility,
        tool_call_id=call.request.tool_call_id,
        tool_id=call.request.tool_id,
        edited=True if is_edited else None,
        ts=now_text(),
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        description=promise.description,
        sources_used=list(content.sources_used) or None,
        tokens=content.tokens,
    )
    return _writer(call).artifact(digest, hosting(stored), text=content.text, base64=content.base64)


def _writer(call: ExecCall) -> BlockWriter:
    request = call.request
    return BlockWriter(request.turn_id or "", request.tool_call_id, request.tool_id)


def _extra_result(found: Found, stored: dict[str, StoredArtifact]) -> ArtifactResult:
    artifact = stored[found.path.physical]
    return ArtifactResult(
        logical_path=found.path.logical,
        physical_path=found.path.physical,
        mime=artifact.mime,
        visibility="internal",
        verdict=VerdictCode.PRODUCED,
        message="not in the contract",
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
    )


def _mention(found: Found) -> Unpromised:
    notes = {FileState.FILE: None, FileState.TOO_LARGE: "too large, not kept"}
    return Unpromised(found.path.physical, notes.get(found.state, "no regular file, not kept"))


def _rewrites(contract: Contract) -> list[Notice]:
    if not contract.rewritten:
        return []
    rewritten = [{"original": original, "rewritten": path} for original, path in contract.rewritten]
    return [
        Notice(
            NoticeCode.EXEC_CONTRACT_REWRITTEN,
            "names of the contract were rewritten; write to the rewritten paths",
            {"rewritten": rewritten},
        )
    ]
