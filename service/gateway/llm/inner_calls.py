"""The calls of a sub-agent's tools: each is run and has an audit line of its own; none is posted or stored."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.audit.audit_port import AuditStore
from proofbox.service.calls.audit.audit_record import AuditedCall, build_draft, log_audit_line
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import CallKey, CallState
from proofbox.service.calls.registration import payload_sha256
from proofbox.service.calls.suspension import Closing, Suspension
from proofbox.service.errors import CallCancelledError, ServiceError
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.llm.inner_tools import InnerTools
from proofbox.service.gateway.posting import Posting
from proofbox.service.gateway.run_tools import OWN, audit_part, canonical_request, check_input, variant_of
from proofbox.service.gateway.tool_call import GatewayCall, RunTool, ToolExecution
from proofbox.service.observability.tracing import open_span, span
from proofbox.service.timeline.block_writer import embedded_text, now_text

_PARENT_CHARACTERS_MAX = 110  # with the suffix an id has at most 128
_HASH_CHARACTERS = 16
_CANCELLED = "the call was cancelled with its sub-agent, or the sub-agent's time was over"


@dataclass(frozen=True, slots=True)
class InnerCallParts:
    """What the calls of sub-agents' tools need.

    Attributes:
        executions: runs the calls of each variant of ``execution``.
        audit: stores their audit lines.
        service: the service that writes these.
    """

    executions: Mapping[str, ToolExecution]
    audit: AuditStore
    service: AuditService


@dataclass(frozen=True, slots=True)
class InnerResult:
    """The result of one call.

    Attributes:
        ok: whether it succeeded.
        text: what the sub-agent's model reads of it.
    """

    ok: bool
    text: str


@dataclass(slots=True)
class InnerCalls:
    """Runs the calls of the tools of one sub-agent.

    Attributes:
        tools: the tools.
        artifacts: the external files that they stored.
    """

    _parts: InnerCallParts
    _parent: GatewayCall
    _observer: CallObserver
    tools: InnerTools
    artifacts: list[ArtifactResult] = field(default_factory=list)

    def knows(self, name: str) -> bool:
        """Whether the sub-agent has a tool of that name."""
        return name in self.tools.by_name

    async def run(self, name: str, params: dict[str, Any], call_id: str) -> InnerResult:
        """Runs one call; what goes wrong in it is its result.

        Args:
            name: the name of a tool that it knows.
            params: the arguments.
            call_id: the id of the call.
        """
        tool, parent = self.tools.by_name[name], self._parent
        update = {"tool_id": tool.tool_id, "tool_call_id": call_id, "params": params, "code": None, "notes": None}
        request = canonical_request(parent.request.model_copy(update=update), tool)
        call = GatewayCall(parent.scope, request, parent.run, tool, Posting())
        observer = CallObserver(self._observer.owner)
        asked = await self._asked(call)
        with span("sub-agent call", {"proofbox.tool": tool.tool_id}):
            try:
                response = await self._respond(call, observer)
            except asyncio.CancelledError:
                why = CallCancelledError(_CANCELLED)
                await asyncio.shield(self._store_line(asked, call, observer, why))
                raise
            except ServiceError as exc:
                await self._store_line(asked, call, observer, exc)
                error = {"code": str(exc.code), "message": exc.message}
                return InnerResult(ok=False, text=compact_json({"error": error}))
            except Exception as exc:
                await self._store_line(asked, call, observer, exc)
                raise
            await self._store_line(asked, call, observer, response)
        self._observer.on_stored(observer.record.stored)
        self.artifacts += [each for each in response.artifacts if each.visibility == "external"]
        return InnerResult(response.ok, _text_of(tool, response))

    async def _asked(self, call: GatewayCall) -> AuditedCall:
        digest = await asyncio.to_thread(payload_sha256, call.request)
        key = CallKey(call.scope, call.tool_call_id)
        return AuditedCall(key, call.request, digest, now_text(), traceparent=open_span().traceparent)

    async def _respond(self, call: GatewayCall, observer: CallObserver) -> ToolCallResponse:
        if errors := await asyncio.to_thread(check_input, call):
            return call.refuse_input(errors)
        execution = self._parts.executions[variant_of(call.tool)]
        await execution.check(call)
        response = await execution.run(call, observer)
        if isinstance(response, Suspension):  # refused when the configuration was written
            return call.fail(GatewayCode.NOT_AVAILABLE, "the tool waits for an answer, which no sub-agent can do")
        # At once: the sub-agent's next call reads them.
        return await response.store(observer) if isinstance(response, Closing) else response

    async def _store_line(
        self,
        asked: AuditedCall,
        call: GatewayCall,
        observer: CallObserver,
        ended: ToolCallResponse | Exception,
    ) -> None:
        observer.record.gateway = audit_part(call)
        response = ended if isinstance(ended, ToolCallResponse) else None
        state = CallState.CANCELLED if isinstance(ended, CallCancelledError) else CallState.FAILED

        def build() -> Any:
            if response is not None:
                body = response.model_dump_json()
                return build_draft(asked, observer.record, self._parts.service, CallState.DONE, body, response)
            body = build_problem_answer(ended, "").body  # type: ignore[arg-type]
            return build_draft(asked, observer.record, self._parts.service, state, body, None)

        draft = await asyncio.to_thread(build)
        log_audit_line(await self._parts.audit.add(call.principal, draft))


def inner_call_id(parent_id: str, step: int, number: int) -> str:
    """The id of a call: ``<tool_call_id>:s<step>:<number>``; a long id of the parent is shortened by its hash."""
    if len(parent_id) > _PARENT_CHARACTERS_MAX:
        digest = hashlib.sha256(parent_id.encode()).hexdigest()[:_HASH_CHARACTERS]
        parent_id = f"{parent_id[: _PARENT_CHARACTERS_MAX - _HASH_CHARACTERS - 1]}-{digest}"
    return f"{parent_id}:s{step}:{number}"


def _text_of(tool: RunTool, response: ToolCallResponse) -> str:
    """What a model reads of a response: of our own tools their text, else the result."""
    if variant_of(tool) == OWN:
        text = response.text
    elif response.error is None:
        text = compact_json(response.ret)
    else:
        error = {"code": response.error.code, "message": response.error.message}
        text = compact_json({"error": error} if response.ret is None else {"error": error, "result": response.ret})
    return embedded_text(text.encode(errors="replace"), more=False)
