"""Provenance: the audit lines of calls, and reruns that compare a call with its line."""

import asyncio
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from proofbox.contracts.provenance import (
    AuditLine,
    AuditOutput,
    AuditService,
    Compared,
    ComparedOutput,
    RerunReport,
)
from proofbox.contracts.tool_call_request import Limits, ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse, Usage
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.port import SourcePool
from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.audit.audit_port import AuditStore
from proofbox.service.calls.audit.audit_record import AuditedCall, build_draft, canonical_json, log_audit_line
from proofbox.service.calls.invalid_params import prepare_call
from proofbox.service.calls.lookup import find_call
from proofbox.service.calls.observer import CallObserver, CallRecord
from proofbox.service.calls.port import AuditedLine, CallKey, CallState, CallStore, StoredCall
from proofbox.service.calls.tool import PreparedCall, Tools
from proofbox.service.errors import (
    NetworkNotAllowedError,
    NoProvenanceError,
    NotRerunnableError,
    PackagesNotAllowedError,
)
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.replay_inputs import ReplayInputs, UnsavedOutputs
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.observability.log_context import about
from proofbox.service.observability.tracing import open_span, span
from proofbox.service.sandbox.limits import CallLimits

ToolsOver = Callable[[JobRunner], Tools]
"""Builds the tools that run programs, over a job runner of the caller's."""


@dataclass(frozen=True, slots=True)
class RerunDependencies:
    """What reruns need.

    Attributes:
        jobs: runs programs.
        tools_over: builds the tools whose calls can be run again.
        files: the files of conversations.
        sources: the sources of conversations.
        limits: the operator's.
        service: the service that writes the audit lines.
    """

    jobs: JobRunner
    tools_over: ToolsOver
    files: ConversationFiles
    sources: SourcePool
    limits: CallLimits
    service: AuditService


class Provenance:
    """The audit lines of calls, and running calls again."""

    def __init__(self, calls: CallStore, audit: AuditStore, again: RerunDependencies) -> None:
        self._calls = calls
        self._audit = audit
        self._again = again

    async def line(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> AuditedLine:
        """The audit line of a call.

        Raises:
            UnknownCallError, AmbiguousCallError: no call, or several, of that id.
            NoProvenanceError: it has no line.
            StoreFailedError: the store failed.
        """
        if conversation_id is not None:  # the usual case, which does not need the call itself
            key = CallKey(ConversationKey(principal, conversation_id), tool_call_id)
            if (line := await self._audit.of_call(key)) is not None:
                return line
        return await self._line((await find_call(self._calls, principal, tool_call_id, conversation_id)).key)

    async def rerun(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None, request_id: str
    ) -> RerunReport:
        """Runs a call again on the inputs that it had, and compares; only an audit line is stored.

        Raises:
            UnknownCallError, AmbiguousCallError: no call, or several, of that id.
            NoProvenanceError, NotRerunnableError: it cannot be run again.
            OurError: the service could not do it.
        """
        stored = await find_call(self._calls, principal, tool_call_id, conversation_id)
        stored_line = await self._line(stored.key)
        first = AuditLine.model_validate_json(stored_line.text)
        if first.limits is None or first.sandbox is None:
            raise NotRerunnableError(f"the call '{tool_call_id}' ran no program, so there is nothing to run again")
        rerun_id = f"rerun_{uuid.uuid4().hex[:24]}"
        # The caller of the rerun, whose key may differ from that of the call, and may allow less.
        scope = replace(stored.key.scope, principal=replace(stored.key.scope.principal, key_id=principal.key_id))
        key = CallKey(scope, rerun_id)
        with about(call_id=rerun_id, conversation_id=key.scope.conversation_id), span("rerun"):
            request = await asyncio.to_thread(ToolCallRequest.model_validate_json, stored.request)
            inputs = ReplayInputs(self._again.files, self._again.sources, request, first)
            prepared = self._prepare(key, request, first.limits, inputs)
            asked = AuditedCall(
                key,
                request,
                stored.payload_sha256,
                first.outcome.ended,
                request_id,
                open_span().traceparent,
                stored_line.sha256,
            )
            now, line = await self._run(asked, prepared)
            sources_changed = await inputs.changed_sources(key.scope)
        return _report(stored, (first, stored_line), (now, line), sources_changed)

    async def link_replay(self, key: CallKey) -> None:
        """Links the span of a request to the trace of the call that it replays.

        Raises:
            StoreFailedError: the store failed.
        """
        if not open_span().traceparent:
            return  # without tracing there is nothing to link
        line = await self._audit.of_call(key)
        if line is not None:
            open_span().link(AuditLine.model_validate_json(line.text).call.traceparent or "")

    async def _line(self, key: CallKey) -> AuditedLine:
        line = await self._audit.of_call(key)
        if line is None:
            raise NoProvenanceError(
                f"the call '{key.tool_call_id}' has no audit line: it has not ended, or an old release answered it"
            )
        return line

    def _prepare(
        self, key: CallKey, request: ToolCallRequest, limits: Limits, inputs: ReplayInputs
    ) -> PreparedCall:
        allowed = self._again.limits
        lowered = {name: min(value, getattr(allowed, name)) for name, value in limits if value is not None}
        again = request.model_copy(update={"tool_call_id": key.tool_call_id, "limits": Limits(**lowered)})
        tools = self._again.tools_over(replace(self._again.jobs, inputs=inputs, outputs=UnsavedOutputs()))
        try:
            call = prepare_call(tools, key.scope, again)
        except NetworkNotAllowedError as exc:
            raise NotRerunnableError(f"the network of the call is not allowed any more: {exc.message}") from exc
        except PackagesNotAllowedError as exc:
            raise NotRerunnableError(f"the packages of the call are not allowed any more: {exc.message}") from exc
        if call is not None:
            return call
        raise NotRerunnableError(f"calls of the tool '{request.tool_id}' cannot be run again")

    async def _run(self, asked: AuditedCall, prepared: PreparedCall) -> tuple[AuditLine, AuditedLine]:
        observer = CallObserver(asked.key.scope.principal.caller)
        record = observer.record
        try:
            response = await prepared.respond(observer)
        except BaseException as exc:
            if record.sandbox is not None:  # something ran: that is written down, whatever came of it
                body = build_problem_answer(exc, asked.request_id or "").body
                await asyncio.shield(self._add(asked, record, CallState.FAILED, body, None))
            raise
        body = await asyncio.to_thread(response.model_dump_json)
        return await self._add(asked, record, CallState.DONE, body, response)

    async def _add(
        self, asked: AuditedCall, record: CallRecord, state: CallState, body: str, response: ToolCallResponse | None
    ) -> tuple[AuditLine, AuditedLine]:
        draft = await asyncio.to_thread(build_draft, asked, record, self._again.service, state, body, response)
        line = await self._audit.add(asked.key.scope.principal, draft)
        log_audit_line(line)
        return AuditLine.model_validate_json(line.text), line


def _report(
    stored: StoredCall,
    first: tuple[AuditLine, AuditedLine],
    now: tuple[AuditLine, AuditedLine],
    sources_changed: list[int],
) -> RerunReport:
    (then, stored_line), (facts, line) = first, now
    outputs = _outputs(then.outputs, facts.outputs)
    outcome = _compare_hashes(then.outcome.code, facts.outcome.code)
    ended = _compare_hashes(_exit(then.usage), _exit(facts.usage))
    return RerunReport(
        rerun_id=facts.call.tool_call_id,
        tool_call_id=stored.key.tool_call_id,
        conversation_id=stored.key.scope.conversation_id,
        identical=outcome.equal and ended.equal and all(output.result == "identical" for output in outputs),
        outputs=outputs,
        image=_compare_hashes(
            then.sandbox.image_digest if then.sandbox else None,
            facts.sandbox.image_digest if facts.sandbox else None,
        ),
        outcome=outcome,
        exit=ended,
        limits=_compare_hashes(_limits(then.limits), _limits(facts.limits)),
        sources_changed=sources_changed,
        first_line=stored_line.sha256,
        line=line.sha256,
        sandbox=facts.sandbox,
        usage=facts.usage,
    )


def _outputs(first: Sequence[AuditOutput], now: Sequence[AuditOutput]) -> list[ComparedOutput]:
    before, after = ({output.path: output for output in outputs} for outputs in (first, now))
    compared = []
    for path in sorted(before.keys() | after.keys()):
        then, later = before.get(path), after.get(path)
        one, two = then.sha256 if then else None, later.sha256 if later else None
        if one is None and two is None:
            continue  # nothing came out either time; the verdict is part of the outcome
        compared.append(
            ComparedOutput(
                path=path,
                result="identical"
                if one == two
                else "missing"
                if two is None
                else "new"
                if one is None
                else "differs",
                first_sha256=one,
                now_sha256=two,
                first_verdict=then.verdict if then else None,
                now_verdict=later.verdict if later else None,
            )
        )
    return compared


def _compare_hashes(first: str | None, now: str | None) -> Compared:
    return Compared(first=first, now=now, equal=first == now)


def _exit(usage: Usage) -> str | None:
    if usage.signal is not None:
        return f"signal {usage.signal}"
    return None if usage.exit_code is None else f"exit {usage.exit_code}"


def _limits(limits: Limits | None) -> str | None:
    return None if limits is None else canonical_json(limits.model_dump(exclude_none=True))
