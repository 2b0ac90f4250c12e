"""The response to an exec call: envelope, report, blocks and verdicts. It decides nothing."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from proofbox.contracts.artifacts import Contract, ContractError
from proofbox.contracts.blocks import Block, Digest
from proofbox.contracts.codes import ContractCode, NoticeCode, VerdictCode
from proofbox.contracts.network import NetworkUse
from proofbox.contracts.paths import Namespace, output_path
from proofbox.contracts.tool_call_response import (
    ArtifactResult,
    EnvelopeError,
    Timings,
    ToolCallResponse,
)
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.param_references import find_reference
from proofbox.service.execution.call import ExecCall
from proofbox.service.execution.report import (
    RunReport,
    Unpromised,
    answer_text,
    refusal_text,
    report_text,
    run_error,
)
from proofbox.service.execution.report_hints import RanProgram, missing_path_hints, run_hints
from proofbox.service.jobs.failures import RuntimeFailure, memory_failure
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.produced_files import Content, ProducedFiles, artifact_result, usage
from proofbox.service.jobs.runner import JobResult
from proofbox.service.jobs.verdicts import Verdict, extras, produced_once
from proofbox.service.packages.port import InstalledPackages
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.sandbox.port import CollectedFile, FileState
from proofbox.service.sandbox.program_output import printed_text, program_output
from proofbox.service.timeline.artifact_versions import collect_paths
from proofbox.service.timeline.block_writer import BlockWriter, Notice, notice_sentences, now_text, with_notices
from proofbox.service.visible_text import visible_line

_NOTICE_OF_REFUSAL = {
    ContractCode.PRE_EXEC_MISSING_PATHS: NoticeCode.PRE_EXEC_MISSING_PATHS,
    ContractCode.PARAM_REF_NOT_VISIBLE: NoticeCode.PARAM_REF_NOT_VISIBLE,
}
"""The notices of refusals that have one of their own."""
_TURN_PATTERN = re.compile(r"(?<![\w./}-])turn_\w*[*?\[][^\s'\"/]*/(?:files|attachments)")
_TURN_PATTERN_NOTE = (
    "a pattern such as turn_* matches nothing in the working directory, which has the newest version of each file; "
    "write it behind OUT_DIR: /out/turn_*/files/…"
)
_STDIN_SHOWN_CHARS = 2_000
_NETWORK_NOTES_MAX = 5


@dataclass(frozen=True, slots=True)
class ExecRun:
    """A run and what came of it.

    Attributes:
        inputs: its inputs.
        result: how it ended.
        files: the files that it produced.
        libraries: name and version of what is installed in the image, where a hint needs it and it is known.
        notes: what else the model should know, a sentence each.
        network: the connections of the program; None for one without network.
        packages: what was installed for the program; None for one that asks for no packages.
        has_index: calls may have packages installed.
        earlier: the hint on a name that an earlier program assigned.
    """

    inputs: JobInputs
    result: JobResult
    files: ProducedFiles
    libraries: Mapping[str, str] | None = None
    notes: Sequence[str] = ()
    network: NetworkUse | None = None
    packages: InstalledPackages | None = None
    has_index: bool = False
    earlier: str | None = None


def refuse(
    call: ExecCall,
    error: ContractError,
    timings: Timings,
    contract: Contract | None = None,
    inputs: JobInputs | None = None,
) -> ToolCallResponse:
    """Builds the response to a call that the model has to write differently; nothing was run."""
    is_path = error.code is ContractCode.PRE_EXEC_MISSING_PATHS
    code = _NOTICE_OF_REFUSAL.get(error.code, NoticeCode.EXEC_CONTRACT_INVALID)
    details = error.details if is_path else {"error": error.code, **error.details}
    notices = [Notice(code, error.message, details)]
    hints: Sequence[str] = ()
    if contract is not None and inputs is not None:
        notices = [*_rewrite_notices(contract), *inputs.notices, *notices]
        hints = missing_path_hints(error.details["missing"], inputs.known)
    report = refusal_text(error, hints)
    blocks = _opening_blocks(call, notices, report)
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(
            code=error.code,
            message=visible_line(error.message),
            where="rehost" if is_path else "packages" if isinstance(error, PackageRefusedError) else "contract",
            managed=True,
        ),
        report=report,
        text=with_notices(report, blocks),
        blocks=blocks,
        timings_ms=timings,
    ).refused()


def build_interrupted(call: ExecCall, why: Interruption) -> ToolCallResponse:
    """Builds the response to a call that was ended from outside; it never runs again under its id."""
    failure = RuntimeFailure(why.code, why.message)
    whole = _whole_log(call, "its beginning is" if why.output.truncated else "all of it is")
    ended = RunReport(failure, [], [], 0, why.output.combined, whole_log=whole)
    report = report_text(ended)
    return ToolCallResponse(
        ok=False,
        error=EnvelopeError(code=failure.code, message=failure.message, where="run", managed=True),
        report=report,
        text=answer_text(ended, has_run=why.sandbox is not None),
        output=why.output,
        blocks=_opening_blocks(call, [], report),
        usage=why.usage,
        sandbox=why.sandbox,
    )


def build_response(call: ExecCall, contract: Contract, run: ExecRun, timings: Timings) -> ToolCallResponse:
    """Builds the response to a call that ran."""
    result, files = run.result, run.files
    output = program_output(result.outcome.output)
    printed = printed_text(result.outcome.output) if output.truncated else output.combined
    report = _run_report(call, contract, run, printed)
    text, error = report_text(report), run_error(report)
    blocks = _opening_blocks(call, [*_rewrite_notices(contract), *run.inputs.notices], text, files.removed)
    if blocks:
        blocks += _file_blocks(call, files)
    unpromised = [found for found in extras(result.collected, contract.promises) if found.source is not None]
    artifacts = [artifact_result(v, files.stored.get(v.path.physical)) for v in files.verdicts]
    artifacts += [_extra_result(found, files.stored, report) for found in unpromised]
    by_path = {found.physical_path: found for found in reversed(artifacts)}
    response = ToolCallResponse(
        ok=error is None,
        error=error,
        ret={
            "produced": [v.path.physical for v in produced_once(files.verdicts)],
            "failed": [v.path.physical for v in files.verdicts if not v.produced],
        },
        report=text,
        text=answer_text(
            replace(report, notes=[*report.notes, *notice_sentences(blocks)]), has_run=result.sandbox is not None
        ),
        output=output,
        blocks=blocks,
        artifacts=artifacts,
        shown=[by_path[path] for path in report.shown],
        last_value=report.last_value,
        rehosted=run.inputs.ledger,
        timings_ms=timings,
        usage=usage(result.outcome),
        sandbox=result.sandbox,
        network=run.network,
        packages=None if run.packages is None else list(run.packages.packages),
    )
    if output.truncated and call.request.turn_id is not None:
        response.add_printed(printed)
    return response if result.sandbox is not None else response.refused()


def _run_report(call: ExecCall, contract: Contract, run: ExecRun, printed: str) -> RunReport:
    result, collected, verdicts = run.result, run.result.collected, run.files.verdicts
    rest = collected.workspace
    shown = _shown_paths(call, result)
    others = extras(collected, contract.promises)
    listed = [_mention(found) for found in others if found.path.physical not in shown]
    return RunReport(
        result.failure,
        verdicts if result.sandbox is not None else [],
        listed + [Unpromised(name, "not kept") for name in collected.odd_names],
        collected.extras_total - (len(others) - len(listed)),
        printed,
        unstored=collected.extras_total - len(others) - len(collected.odd_names),
        lasts=rest is not None and not rest.is_too_large and not run.inputs.unmerged,
        explored=call.params.explore,
        whole_log=_whole_log(call, lost_bytes=sum(piece.left_out for piece in result.outcome.output)),
        shown=shown,
        last_value=result.outcome.last_value,
        notes=[
            *_notes(call, result),
            *result.outcome.shown_notes,
            *run.notes,
            *_network_notes(run.network),
            *_package_notes(run.packages),
        ],
        removed=run.files.removed,
        in_other_turns=list(collected.in_other_turns),
        hints=[run.earlier]
        if run.earlier is not None
        else run_hints(
            RanProgram(
                call.request.code or "",
                call.language,
                call.request.turn_id or "",
                contract,
                result,
                verdicts,
                run.inputs.known,
                run.libraries,
                shown=shown,
                has_network=call.request.network is not None,
                has_index=run.has_index,
            )
        ),
    )


def _shown_paths(call: ExecCall, result: JobResult) -> list[str]:
    """The physical paths of the files with what the program showed, as far as they are there."""
    turn_id = call.request.turn_id or ""
    stored = {found.path.physical for found in result.collected.found if found.source is not None}
    paths = (f"{turn_id}/{Namespace.FILES}/{name}" for name in result.outcome.shown)
    return [path for path in paths if path in stored]


def _whole_log(call: ExecCall, what_is: str = "all of it is", lost_bytes: int = 0) -> str | None:
    """Where the output of a call is that its report leaves out; ``lost_bytes`` of it are nowhere."""
    turn_id = call.request.turn_id
    if turn_id is None:
        return None
    path = output_path(turn_id, call.request.tool_call_id)
    if not lost_bytes:
        return f"{what_is} {path}"
    return f"all but {lost_bytes:,} bytes in the middle is {path}, which counts lines without these"


def _notes(call: ExecCall, result: JobResult) -> list[str]:
    notes = ["the lines of the code end with CRLF; it was run with LF"] if call.has_carriage_returns else []
    notes += [_TURN_PATTERN_NOTE] if _TURN_PATTERN.search(call.request.code or "") else []
    if result.failure is None and (failure := memory_failure(result.outcome, call.bounds.limits)) is not None:
        notes.append(failure.message)
    if result.outcome.left_running:
        names = ", ".join(result.outcome.left_running)
        notes.append(f"processes that still ran were ended with the call, as nothing outlives it: {names}")
    if result.failure is None and result.collected.left_in_tmp:
        names = ", ".join(result.collected.left_in_tmp)
        notes.append(f"files in /tmp ended with the call: {names}; write to files/ what is to stay")
    return notes


def _package_notes(packages: InstalledPackages | None) -> list[str]:
    return [] if packages is None else [packages.note]


def _network_notes(use: NetworkUse | None) -> list[str]:
    """The connections that were refused or broken off, each reason once."""
    if use is None:
        return []
    reasons = list(dict.fromkeys(each.why for each in use.connections if each.why is not None))
    more = len(reasons) - _NETWORK_NOTES_MAX
    return [
        *(f"Network: {reason}" for reason in reasons[:_NETWORK_NOTES_MAX]),
        *([f"Network: {more} more reasons in network.connections of the answer"] if more > 0 else []),
    ]


def _file_blocks(call: ExecCall, files: ProducedFiles) -> list[Block]:
    earlier = collect_paths(call.request.timeline)
    blocks: list[Block] = []
    for verdict in produced_once(files.verdicts):
        artifact, content = files.stored[verdict.path.physical], files.contents[verdict.path.physical]
        is_edited = artifact.version > 1 or verdict.path.logical in earlier
        blocks += _artifact_blocks(call, verdict, artifact, content, is_edited=is_edited)
    return blocks


def _opening_blocks(call: ExecCall, notices: list[Notice], report: str, removed: Sequence[str] = ()) -> list[Block]:
    """The blocks that every exec call has: notes, notices, code, call, report. None without a turn to be in."""
    request = call.request
    if request.turn_id is None:
        return []
    write = _writer(call)
    # A program that was given by reference and not resolved is in the conversation already, if anywhere.
    is_given = bool(request.code) and find_reference("code", request.code or "") is None
    code = (request.code or "", call.language) if is_given else None
    opening = write.opening(_shown_params(request.params), notices, notes=request.notes, code=code)
    return [*opening, write.report(report, removed)]


def _shown_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as the call block has them: of a long input the beginning, for no file holds it."""
    stdin = params.get("stdin")
    if not isinstance(stdin, str) or len(stdin) <= _STDIN_SHOWN_CHARS:
        return params
    return {**params, "stdin": f"{stdin[:_STDIN_SHOWN_CHARS]}... [{len(stdin)} characters]"}


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
        encoding=content.encoding,
    )
    return _writer(call).artifact(digest, stored.hosting(), text=content.text, base64=content.base64)


def _writer(call: ExecCall) -> BlockWriter:
    request = call.request
    return BlockWriter(request.turn_id or "", request.tool_call_id, request.tool_id, call.began)


def _extra_result(found: CollectedFile, stored: dict[str, StoredArtifact], report: RunReport) -> ArtifactResult:
    artifact = stored[found.path.physical]
    message = "written by a run without a contract" if report.explored else "not in the contract"
    if found.path.physical in report.shown:
        message = "shown by the program"
    return ArtifactResult(
        logical_path=found.path.logical,
        physical_path=found.path.physical,
        mime=artifact.mime,
        visibility="internal",
        verdict=VerdictCode.PRODUCED,
        message=message,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
    )


def _mention(found: CollectedFile) -> Unpromised:
    notes = {FileState.FILE: None, FileState.TOO_LARGE: "too large, not kept"}
    return Unpromised(found.path.physical, notes.get(found.state, "no regular file, not kept"))


def _rewrite_notices(contract: Contract) -> list[Notice]:
    notices = []
    if contract.rewritten:
        rewritten = [{"original": original, "rewritten": path} for original, path in contract.rewritten]
        message = "names of the contract were rewritten; write to the rewritten paths"
        notices.append(Notice(NoticeCode.EXEC_CONTRACT_REWRITTEN, message, {"rewritten": rewritten}))
    if contract.ignored:
        message = "fields of the contract that promise nothing were left out"
        notices.append(Notice(NoticeCode.EXEC_CONTRACT_REWRITTEN, message, {"ignored": list(contract.ignored)}))
    return notices
