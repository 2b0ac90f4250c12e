"""Writes the answer to an exec call: envelope, report, blocks and verdicts. It decides nothing."""

import base64
from dataclasses import dataclass

from contracts.artifacts import Contract, ContractError
from contracts.blocks import TEXT_BYTES_MAX, Block, Digest
from contracts.codes import ContractCode, NoticeCode, RuntimeCode, VerdictCode
from contracts.media_types import is_inline_binary, is_text
from contracts.tool_calls import ArtifactResult, EnvelopeError, Timings, ToolCallResponse, Usage
from service.core.blocks import BlockWriter, Notice, embedded_text, now_text
from service.core.exec_call import Attempt, ExecCall
from service.core.outcomes import RuntimeFailure
from service.core.ports import FileState, Found, StoredArtifact
from service.core.reports import RunReport, Unpromised, refusal_text, report_text, run_error
from service.core.verdicts import Verdict, extras, produced_once


def refused(
    call: ExecCall, error: ContractError, timings: Timings, attempt: Attempt | None = None
) -> ToolCallResponse:
    """The answer to a call that the model has to write differently; nothing of it ran."""
    is_path = error.code is ContractCode.PRE_EXEC_MISSING_PATHS
    code = NoticeCode.PRE_EXEC_MISSING_PATHS if is_path else NoticeCode.EXEC_CONTRACT_INVALID
    details = error.details if is_path else {"error": error.code, **error.details}
    notices = [Notice(code, error.message, details)]
    if attempt is not None:
        notices = [*_rewrites(attempt.contract), *attempt.gathered.notices, *notices]
    report = refusal_text(error)
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(
            code=error.code, message=error.message, where="rehost" if is_path else "contract", managed=True
        ),
        report=report,
        blocks=_opening_blocks(call, notices, report),
        timings_ms=timings,
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


@dataclass(frozen=True, slots=True)
class Content:
    """What the content block of a produced file carries: text, or base64, or neither."""

    text: str | None = None
    base64: str | None = None


def read_contents(verdicts: list[Verdict], inline_bytes_max: int) -> dict[str, Content]:
    """The contents of produced files by physical path, read from where they were collected.

    Of PDFs and images ``inline_bytes_max`` bytes together, in contract order; the others are hosted and no more.
    The answer is one JSON text, in memory several times until it is stored and sent: without a bound a program
    could give one large image two hundred names by hard links, and have each of them in it.
    """
    contents: dict[str, Content] = {}
    left = inline_bytes_max
    for verdict in verdicts:
        if verdict.produced and verdict.found is not None:
            content = _content(verdict.mime, verdict.found, left)
            left -= verdict.found.size_bytes if content.base64 is not None else 0
            contents[verdict.path.physical] = content
    return contents


def _content(mime: str, found: Found, inline_bytes_max: int) -> Content:
    if found.local is None:
        raise AssertionError("a produced file has been collected")
    if is_inline_binary(mime):
        if found.size_bytes > inline_bytes_max:
            return Content()
        return Content(base64=base64.b64encode(found.local.read_bytes()).decode("ascii"))
    if not is_text(mime):
        return Content()
    with found.local.open("rb") as file:
        head = file.read(TEXT_BYTES_MAX + 4)  # four more, to see where the last character begins
    return Content(text=embedded_text(head, more=found.size_bytes > len(head)))


def answered(
    call: ExecCall,
    attempt: Attempt,
    verdicts: list[Verdict],
    contents: dict[str, Content],
    stored: dict[str, StoredArtifact],
) -> ToolCallResponse:
    """The answer to a call that ran, from all that is known of it."""
    unpromised = extras(attempt.collected)
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
    notices = [*_rewrites(attempt.contract), *attempt.gathered.notices]
    blocks = _opening_blocks(call, notices, text)
    if blocks:
        for verdict in produced_once(verdicts):
            physical = verdict.path.physical
            blocks += _artifact_blocks(call, verdict, stored[physical], contents[physical])
    outcome = attempt.outcome
    return ToolCallResponse(
        ok=error is None,
        error=error,
        ret={
            "produced": [v.path.physical for v in produced_once(verdicts)],
            "failed": [v.path.physical for v in verdicts if not v.produced],
        },
        report=text,
        blocks=blocks,
        artifacts=[_result(v, stored) for v in verdicts]
        + [_extra_result(f, stored) for f in unpromised if f.local],
        rehosted=attempt.gathered.ledger,
        timings_ms=attempt.timings,
        usage=Usage(
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            cpu_ms=round(outcome.cpu_ms, 3),
            memory_peak_bytes=outcome.memory_peak_bytes,
            stdout_bytes=outcome.stdout_bytes,
            stderr_bytes=outcome.stderr_bytes,
        ),
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
    if request.code:
        blocks.append(write.code(request.code, call.language))
    return [*blocks, write.call(request.params), write.report(report)]


def _artifact_blocks(call: ExecCall, verdict: Verdict, stored: StoredArtifact, content: Content) -> list[Block]:
    promise = verdict.promise
    if promise is None:
        raise AssertionError("a verdict has the promise that it is on")
    earlier = {block.path for block in call.request.timeline or []}
    digest = Digest(
        artifact_path=verdict.path.logical,
        physical_path=verdict.path.physical,
        mime=verdict.mime,
        visibility=promise.visibility,
        tool_call_id=call.request.tool_call_id,
        tool_id=call.request.tool_id,
        edited=True if stored.version > 1 or verdict.path.logical in earlier else None,
        ts=now_text(),
        size_bytes=stored.size_bytes,
        sha256=stored.sha256,
        description=promise.description,
    )
    write = _writer(call)
    return [write.meta(digest), write.content(digest, _hosting(stored), text=content.text, base64=content.base64)]


def _writer(call: ExecCall) -> BlockWriter:
    request = call.request
    return BlockWriter(request.turn_id or "", request.tool_call_id, request.tool_id)


def _hosting(stored: StoredArtifact) -> dict[str, str]:
    fields = {"hosted_uri": stored.hosted_uri, "rn": stored.rn, "key": stored.key}
    return {name: value for name, value in fields.items() if value is not None}


def _result(verdict: Verdict, stored: dict[str, StoredArtifact]) -> ArtifactResult:
    artifact = stored.get(verdict.path.physical) if verdict.produced else None
    promised = verdict.promise.visibility if verdict.promise else "internal"
    size = verdict.found.size_bytes if verdict.found and verdict.found.state is not FileState.MISSING else None
    return ArtifactResult(
        logical_path=verdict.path.logical,
        physical_path=verdict.path.physical,
        mime=verdict.mime,
        visibility=artifact.visibility if artifact else promised,
        verdict=verdict.code,
        message=verdict.message,
        size_bytes=size,
        sha256=artifact.sha256 if artifact else None,
        **(_hosting(artifact) if artifact else {}),
    )


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
