"""What every react tool does the same way: its parameters are read, it answers in blocks, or it refuses."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from contracts.artifacts import ContractError
from contracts.blocks import Block
from contracts.codes import ContractCode, NoticeCode
from contracts.react_tools import TOOL_ALIASES
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import ArtifactResult, EnvelopeError, Rehosted, Timings, ToolCallResponse
from service.artifacts.port import SourcePool
from service.calls.interruptions import Interruption
from service.calls.invalid_params import parse_params
from service.calls.param_references import References, find_reference
from service.calls.run_record import call_record
from service.calls.tool import CallObserver, NullObserver, PreparedCall
from service.calls.validation import invalid_value
from service.identity import ConversationKey
from service.timeline.block_writer import BlockWriter, Notice, bounded_params, now_text
from service.visible_text import visible_text

P = TypeVar("P", bound=BaseModel)
_BY_REFERENCE = ("content", "patch")
"""Parameters that may be the path of their text."""


class ToolRefusedError(Exception):
    """The model has to call differently: HTTP 200, ``ok=false``, nothing changed.

    Args:
        code: the stable code.
        message: one sentence for the model: what is wrong, what to do.
        details: more fields of the notice and of the result.
    """

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


@dataclass(frozen=True, slots=True)
class ReactCall(Generic[P]):
    """One call of a react tool.

    Attributes:
        scope: whose conversation.
        request: the call as it came.
        params: its parameters.
        began: when it came, on the performance counter.
        watcher: who is told how it goes on.
    """

    scope: ConversationKey
    request: ToolCallRequest
    params: P
    began: float = field(default_factory=time.perf_counter)
    watcher: CallObserver = field(default_factory=NullObserver)

    @property
    def turn_id(self) -> str:
        """The current turn."""
        return self.request.turn_id or ""

    @property
    def write(self) -> BlockWriter:
        """Writes the blocks of this call."""
        return BlockWriter(self.turn_id, self.request.tool_call_id, self.request.tool_id)

    def opening_blocks(
        self, notices: Sequence[Notice] = (), *, shown_params: dict[str, Any] | None = None
    ) -> list[Block]:
        """Notes, notices and the call itself; ``shown_params`` in place of long parameters."""
        notes = [self.write.notes(self.request.notes)] if self.request.notes else []
        told = [self.write.notice(notice) for notice in notices]
        params = bounded_params(self.request.params) if shown_params is None else shown_params
        return [*notes, *told, self.write.call(params)]

    def answered(
        self,
        blocks: list[Block],
        *,
        report: str,
        ret: Any = None,
        artifacts: Sequence[ArtifactResult] = (),
        rehosted: Sequence[Rehosted] = (),
    ) -> ToolCallResponse:
        """The answer of a call that went well; ``blocks`` are all of the call's."""
        return ToolCallResponse(
            ok=True,
            ret=ret,
            report=visible_text(report),
            blocks=blocks,
            artifacts=list(artifacts),
            rehosted=list(rehosted),
            timings_ms=self._timings(),
        )

    def refused(
        self,
        code: str,
        message: str,
        notices: Sequence[Notice] = (),
        notice_code: NoticeCode = NoticeCode.TOOL_CALL_ERROR,
        **details: Any,
    ) -> ToolCallResponse:
        """The answer of a call that changed nothing, with one notice more than ``notices``."""
        notice = Notice(notice_code, message, {"error": code, **details})
        blocks: list[Block] = []
        if self.request.turn_id:  # every block path needs a turn
            payload = {
                "tool_id": self.request.tool_id,
                "tool_call_id": self.request.tool_call_id,
                "error": {"code": code, "message": message, **details},
                "ts": now_text(),
            }
            blocks = [*self.opening_blocks([*notices, notice]), self.write.result_json(payload)]
        return self.failed(code, message, blocks)

    def failed(self, code: str, message: str, blocks: list[Block]) -> ToolCallResponse:
        """The answer of a call that did not do what it was asked for; ``blocks`` are all of the call's."""
        message = visible_text(message)
        return ToolCallResponse(
            ok=False,
            error=EnvelopeError(code=code, message=message, where=self.request.tool_id, managed=True),
            report=f"{self.request.tool_id} failed: {code} — {message}",
            blocks=blocks,
            timings_ms=self._timings(),
        )

    def _timings(self) -> Timings:
        return Timings(total=round((time.perf_counter() - self.began) * 1000, 3))


class DirectTool(Generic[P]):
    """The story of one react tool; see `Tool`.

    Args:
        tool_ids: the ids that it answers to.
        params: the model of its parameters.
        tell: answers one call; a ToolRefusedError is the model's mistake.
        sources: the pool that the ``sources_pool`` of a call completes before it is answered; None for no pool.
        references: finds the texts of ``content`` and ``patch`` that are given by their paths; None if the tool has
            no such parameter.
    """

    def __init__(
        self,
        tool_ids: Sequence[str],
        params: type[P],
        tell: Callable[[ReactCall[P]], Awaitable[ToolCallResponse]],
        sources: SourcePool | None = None,
        references: References | None = None,
    ) -> None:
        self._tool_ids = frozenset(tool_ids)
        self._params = params
        self._tell = tell
        self._sources = sources
        self._references = references

    def open(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall | None:
        """See `Tool.open`."""
        if TOOL_ALIASES.get(request.tool_id, request.tool_id) not in self._tool_ids:
            return None
        if request.code is not None:
            raise invalid_value("code", f"{request.tool_id} takes no code")
        call = ReactCall(scope, request, parse_params(self._params, request.params))
        return PreparedCall(lambda watcher: self._told(call, watcher), partial(_interrupted, call))

    async def _told(self, call: ReactCall[P], watcher: CallObserver) -> ToolCallResponse:
        if not call.request.turn_id:
            return call.refused(ContractCode.MISSING_TURN_ID, "the call has no turn_id; give the current turn's id")
        if self._sources is not None:
            await self._sources.complete(call.scope, call.request.sources_pool)
        try:
            call = await self._resolved(call)
            return await self._tell(replace(call, watcher=watcher))
        except ContractError as exc:
            notice_code = NoticeCode.PARAM_REF_NOT_VISIBLE
            return call.refused(exc.code, exc.message, notice_code=notice_code, **exc.details)
        except ToolRefusedError as exc:
            return call.refused(exc.code, exc.message, **exc.details)

    async def _resolved(self, call: ReactCall[P]) -> ReactCall[P]:
        """The call with the texts that its parameters name by their paths.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
        """
        if self._references is None:
            return call
        texts: dict[str, str] = {}
        for name in _BY_REFERENCE:
            reference = find_reference(name, getattr(call.params, name, ""))
            if reference is not None:
                texts[name], used = await self._references.resolve(call.scope, call.request, reference)
                call_record().references.append(used)
        return replace(call, params=call.params.model_copy(update=texts)) if texts else call


def _interrupted(call: ReactCall[Any], why: Interruption) -> ToolCallResponse:
    """The answer of a call that was ended from outside; it is never run again under its id."""
    if not call.turn_id:  # every block path needs a turn
        return call.failed(why.code, why.message, [])
    notice = Notice(NoticeCode.TOOL_RESULT_ERROR, why.message, {"error": why.code})
    payload = {
        "tool_id": call.request.tool_id,
        "tool_call_id": call.request.tool_call_id,
        "error": {"code": why.code, "message": why.message},
        "ts": now_text(),
    }
    blocks = [*call.opening_blocks([notice]), call.write.result_json(payload)]
    return call.failed(why.code, why.message, blocks)
