"""The calls of a run: their tool is found, their input checked, their record and audit line are tied to them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from proofbox.contracts.gateway.codes import GatewayCode, WarningCode
from proofbox.contracts.gateway.executions import OwnToolExecution, execution_variant
from proofbox.contracts.gateway.messages import ToolState
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.provenance import AuditEffect, AuditGateway
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Posted, ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver, CallRecord
from proofbox.service.calls.port import CallState, Effect
from proofbox.service.calls.suspension import (
    CallEnd,
    CallResponse,
    CallRun,
    Closing,
    RunOutcome,
    Suspension,
    WaitOutcome,
    change_response,
)
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.calls.validation import invalid_value
from proofbox.service.errors import UnknownToolError
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.call_effects import AcceptRunCall, EndLostCall, EndRunCall
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.posting import (
    EndRecord,
    Posting,
    RecordEnding,
    RecordError,
    ShownTool,
    StartRecord,
    ending_of,
)
from proofbox.service.gateway.runs_port import RunStore, StoredRun
from proofbox.service.gateway.schema_check import check_schema
from proofbox.service.gateway.tool_call import GatewayCall, RunTool, ToolExecution
from proofbox.service.gateway.waits.approval import ask_for_approval, decide, needs_approval
from proofbox.service.gateway.waits.policy import WaitPolicy, restore_place
from proofbox.service.gateway.waits.port import CancelWaits
from proofbox.service.gateway_errors import WrongConversationError
from proofbox.service.identity import ConversationKey

OWN, NOTHING, MCP = "own_tool", "none", "mcp"
"""Variants that a configuration does not name: the service's own tools, internal tools without execution, and tools
of MCP servers."""


class CallPlaces(Protocol):
    """Finds where the record of a call belongs."""

    async def bind(self, run_id: str, tool_call_id: str, tool: ShownTool) -> Posting:
        """The place of a call that is accepted now: the active space of its run, or where its arguments stream."""

    def begin(self, run_id: str, tool_call_id: str, params: dict[str, Any]) -> None:
        """The call was made: its parameters win over the arguments that were streamed."""

    def running(self, run_id: str, tool: ShownTool) -> AbstractContextManager[None]:
        """While the call runs: texts are not shown as they are written while it changes the space of its run."""


@dataclass(frozen=True, slots=True)
class RunToolParts:
    """What the calls of runs need.

    Attributes:
        runs: the runs.
        catalogue: the tools of agents.
        places: where records belong.
        executions: runs the calls of each variant of ``execution``.
        built_ins: the tools that every run has.
        waits: the operator's limits of waits.
        lease_s: how long a call extends the lease of its run.
        keep_input: stores an input that is too large for the record of its call.
    """

    runs: RunStore
    catalogue: ToolCatalogue
    places: CallPlaces
    executions: Mapping[str, ToolExecution]
    built_ins: Sequence[BuiltIn]
    waits: WaitPolicy
    lease_s: float
    keep_input: Callable[[GatewayCall, CallObserver], Awaitable[None]]


class GatewayTools:
    """The `RunTools` of agents."""

    def __init__(self, parts: RunToolParts) -> None:
        self._parts = parts
        self._built_ins = {built_in.tool.tool_id: built_in.execution for built_in in parts.built_ins}

    async def prepare(
        self, scope: ConversationKey, request: ToolCallRequest, lease: int | None
    ) -> tuple[ToolCallRequest, PreparedCall]:
        """See `RunTools.prepare`."""
        run_id = request.run_id or ""
        runs = self._parts.runs
        if lease is None:
            run = await runs.find(scope.principal, run_id)
        else:
            run = await runs.require(scope.principal, run_id, lease)
        _require_conversation(run, scope)
        tools = await self._parts.catalogue.tools_of_run(scope.principal, run)
        tool = tools.find(request.tool_id)
        if tool is None:
            raise UnknownToolError(
                f"run '{run_id}' has no tool '{request.tool_id[:80]}'; GET /v1/tools?run_id={run_id} lists them"
            )
        request = canonical_request(request, tool)
        call = GatewayCall(scope, request, run, tool, Posting())
        execution = self._execution_of(tool)
        accept: list[Effect] = []
        if lease is not None:
            accept.append(AcceptRunCall(scope.principal, run_id, lease, self._parts.lease_s))
        # In a thread: a schema may have to be compiled, and an input may be large.
        if errors := await asyncio.to_thread(check_input, call):
            return request, self._refused(call, call.refuse_input(errors), accept)
        await execution.check(call)
        if lease is not None:
            call.posting = await self._parts.places.bind(run_id, request.tool_call_id, tool.shown)
            accept.append(StartRecord(call.recorded, call.posting))
        return request, _AgentCall(call, execution, self._parts).prepared(accept)

    def conclude_lost(self, end: CallEnd) -> Sequence[Effect]:
        """See `RunTools.conclude_lost`."""
        state: ToolState = "cancelled" if end.state is CallState.CANCELLED else "failed"
        ending = RecordEnding(state, error=RecordError(end.code, end.message))
        return [EndLostCall(ending, self._parts.lease_s)]

    def _execution_of(self, tool: RunTool) -> ToolExecution:
        if tool.source == "built_in":
            return self._built_ins[tool.tool_id]
        return self._parts.executions[variant_of(tool)]

    def _refused(self, call: GatewayCall, response: ToolCallResponse, accept: Sequence[Effect]) -> PreparedCall:
        """A call whose input does not fit: it is answered at once, and a record of its streamed input ends."""

        async def run(observer: CallObserver) -> ToolCallResponse:
            observer.record.gateway = audit_part(call)
            return response

        def conclude(_end: CallEnd) -> Sequence[Effect]:
            code, message = GatewayCode.INVALID_INPUT, "the input does not fit the tool; nothing was run"
            ending = RecordEnding("failed", error=RecordError(code, message))
            ended = EndRecord(call.run.run_id, call.tool_call_id, ending, left_warned=True)
            return [EndRunCall(self._parts.lease_s), ended]

        record = CallRecord(gateway=audit_part(call))
        return PreparedCall(run, lambda _why: response, conclude=conclude, record=record, on_accept=accept)


class _AgentCall:
    """One call of a run whose input fits, from its start to what is stored with its answer."""

    def __init__(self, call: GatewayCall, execution: ToolExecution, parts: RunToolParts) -> None:
        self._call = call
        self._execution = execution
        self._parts = parts
        self._record = CallRecord(gateway=audit_part(call))

    def prepared(self, accept: Sequence[Effect]) -> PreparedCall:
        """The call, as `Calls` runs it."""
        return PreparedCall(
            self._run,
            self._interrupt,
            self._resume,
            self._conclude,
            record=self._record,
            on_accept=accept,
            admit=lambda: self._execution.admit(self._call),
            restore=lambda spec: restore_place(self._call, spec),
        )

    async def _run(self, observer: CallObserver) -> RunOutcome:
        call = self._call
        places, run_id = self._parts.places, call.run.run_id
        try:
            with places.running(run_id, call.tool.shown):
                places.begin(run_id, call.tool_call_id, call.input)
                await self._parts.keep_input(call, observer)
                if needs_approval(call):
                    return self._finished(ask_for_approval(call, self._parts.waits))
                return self._finished(await self._execution.run(call, observer))
        finally:
            observer.record.gateway = audit_part(call)

    async def _resume(self, outcome: WaitOutcome) -> CallResponse | CallRun:
        call = self._call
        try:
            if outcome.kind == "approval":
                resumed = decide(call, outcome, self._run)
            else:
                resumed = await self._execution.resume(call, outcome)
        finally:
            self._record.gateway = audit_part(call)
        if isinstance(resumed, ToolCallResponse | Closing):
            return change_response(resumed, partial(with_posting, call))
        return resumed if outcome.kind == "approval" else partial(self._run_on, resumed)

    async def _run_on(self, run: CallRun, observer: CallObserver) -> RunOutcome:
        """Goes on with a call that waited within its run."""
        try:
            return self._finished(await run(observer))
        finally:
            observer.record.gateway = audit_part(self._call)

    def _interrupt(self, why: Interruption) -> ToolCallResponse:
        self._record.gateway = audit_part(self._call)
        return with_posting(self._call, self._execution.interrupt(self._call, why))

    def _finished(self, response: RunOutcome) -> RunOutcome:
        if isinstance(response, Suspension):
            refuse = response.refuse
            return replace(response, refuse=lambda code, message: with_posting(self._call, refuse(code, message)))
        return change_response(response, partial(with_posting, self._call))

    def _conclude(self, end: CallEnd) -> Sequence[Effect]:
        call, lease_s = self._call, self._parts.lease_s
        response = end.response
        left_warned = response is None or any(
            warning.code == WarningCode.LEFT_SPACE for warning in response.warnings
        )
        ended = EndRecord(
            call.run.run_id,
            call.tool_call_id,
            self._ending(end),
            call=call.recorded,
            posting=call.posting,
            left_warned=left_warned,
        )
        # The run is locked before its space.
        is_done = end.state is CallState.DONE
        waits: list[Effect] = [] if is_done else [CancelWaits(lease_s)]
        return [*waits, EndRunCall(lease_s), ended, *(call.on_answer if is_done else ())]

    def _ending(self, end: CallEnd) -> RecordEnding:
        call = self._call
        if end.state is CallState.DONE and end.response is not None:
            is_own = variant_of(call.tool) == OWN
            ending = ending_of(end.response, is_own_tool=is_own, answered_by=call.answered_by)
            return replace(ending, was_approved=call.was_approved)
        state: ToolState = "cancelled" if end.state is CallState.CANCELLED else "failed"
        return RecordEnding(state, error=RecordError(end.code, end.message), answered_by=call.answered_by)


def variant_of(tool: RunTool) -> str:
    """The variant of ``execution`` that runs a tool."""
    if tool.configuration is None:
        return MCP if tool.mcp is not None else OWN
    execution = tool.configuration.execution
    if execution is None:
        return "space" if tool.execution_type == "space" else NOTHING
    return execution_variant(execution) or NOTHING


def with_posting(call: GatewayCall, response: ToolCallResponse) -> ToolCallResponse:
    """The response with where the call is shown, or a warning that it is not."""
    posted = call.posting.posted if call.tool.visibility != "hidden" else None
    warnings = list(response.warnings)
    if call.posting.warning is not None:
        message = f"{call.tool.name} was to be shown, and the run has no active space; its result was given to you"
        warnings.append(GatewayWarning(code=WarningCode.NO_ACTIVE_SPACE, message=message))
    return response.model_copy(
        update={"posted": None if posted is None else Posted.model_validate(posted), "warnings": warnings}
    )


def audit_part(call: GatewayCall) -> AuditGateway:
    """What the audit line of a call has of its run; no secret, no path."""
    return AuditGateway(
        run_id=call.run.run_id,
        agent_id=call.run.agent_id,
        agent_version=call.run.agent_version,
        execution="built_in" if call.tool.source == "built_in" else variant_of(call.tool),
        visibility=call.tool.visibility,
        space_id=call.posting.space_id,
        message_id=call.posting.message_id,
        answered_by=call.answered_by,
        effects=[
            AuditEffect(
                host=effect.host,
                method=effect.method,
                status=effect.status,
                attempt=effect.attempt,
                bytes=effect.size_bytes,
                ms=effect.ms,
            )
            for effect in call.effects
        ],
    )


def _require_conversation(run: StoredRun, scope: ConversationKey) -> None:
    if run.principal is not None and run.principal != scope.principal:
        raise WrongConversationError(
            f"run_id: the conversation of run '{run.run_id}' is another user's; call with a key of that user"
        )
    if run.conversation_id != scope.conversation_id:
        raise WrongConversationError(
            f"conversation_id: run '{run.run_id}' has the conversation '{run.conversation_id}', not "
            f"'{scope.conversation_id}'; send that one"
        )


def canonical_request(request: ToolCallRequest, tool: RunTool) -> ToolCallRequest:
    """The request under the tool's id, with a turn, and with the program in ``code``.

    Raises:
        InvalidRequestError: the tool takes no code, or it is in two places.
    """
    update: dict[str, object] = {"tool_id": tool.tool_id, "turn_id": request.turn_id or f"turn_{request.run_id}"}
    code = request.params.get("code")
    if not tool.takes_code:
        if request.code is not None:
            raise invalid_value("code", f"{tool.tool_id} takes no code")
    elif isinstance(code, str):
        if request.code not in (None, code):
            raise invalid_value("params.code", "differs from code; give the program in one of the two places")
        update["code"] = code
        update["params"] = {name: value for name, value in request.params.items() if name != "code"}
    return request.model_copy(update=update)


def check_input(call: GatewayCall) -> list[dict[str, str]]:
    """What of an input does not fit; the service's own tools check the input of their schema themselves."""
    tool = call.tool
    configuration = tool.configuration
    is_own = tool.source == "own"
    if configuration is not None and isinstance(configuration.execution, OwnToolExecution):
        is_own = configuration.input_schema is None
    if is_own:
        return []
    found = check_schema(tool.input_schema).check(call.whole_input)
    return [{"field": error.field, "message": error.message} for error in found]
