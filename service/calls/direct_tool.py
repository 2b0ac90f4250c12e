"""The parts that all tools without a sandbox share: parameters, blocks and refusals."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.blocks import Block
from proofbox.contracts.codes import ContractCode, NoticeCode
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ArtifactResult, EnvelopeError, Rehosted, Timings, ToolCallResponse
from proofbox.service.artifacts.port import SourcePool
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.invalid_params import Refusals, parse_params
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.param_references import References, find_reference
from proofbox.service.calls.suspension import CallResponse
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.calls.validation import invalid_value
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_writer import BlockWriter, Notice, bounded_params, now_text, with_notices
from proofbox.service.visible_text import visible_text

P = TypeVar("P", bound=BaseModel)
_BY_REFERENCE = ("content", "patch")
"""Parameters that may be the path of their text."""


class ToolRefusedError(Exception):
    """The model has to call differently: HTTP 200, ``ok=false``, nothing changed.

    Args:
        code: the stable code.
        message: one sentence for the model: what is wrong, what to do.
        shown: the details in words, for a model that does not see them.
        has_run: something was done beyond this service: the id of the call is used up.
        details: more fields of the notice and of the result.
    """

    def __init__(self, code: str, message: str, *, shown: str = "", has_run: bool = False, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.shown = shown
        self.has_run = has_run
        self.details = details


@dataclass(frozen=True, slots=True)
class ReactCall(Generic[P]):
    """One call of a tool without a sandbox.

    Attributes:
        scope: its conversation.
        request: the request.
        params: its parameters.
        began: when it came, on the performance counter.
        began_ts: the same for its blocks.
        observer: observes it.
    """

    scope: ConversationKey
    request: ToolCallRequest
    params: P
    began: float = field(default_factory=time.perf_counter)
    began_ts: str = field(default_factory=now_text)
    observer: CallObserver = field(default_factory=CallObserver)

    @property
    def turn_id(self) -> str:
        """The current turn."""
        return self.request.turn_id or ""

    @property
    def write(self) -> BlockWriter:
        """Writes the blocks of this call."""
        return BlockWriter(self.turn_id, self.request.tool_call_id, self.request.tool_id, self.began_ts)

    def opening_blocks(
        self, notices: Sequence[Notice] = (), *, shown_params: dict[str, Any] | None = None
    ) -> list[Block]:
        """Builds the blocks of notes, notices and the call; ``shown_params`` in place of long parameters."""
        params = bounded_params(self.request.params) if shown_params is None else shown_params
        return self.write.opening(params, notices, notes=self.request.notes)

    def build_response(
        self,
        blocks: list[Block],
        *,
        report: str,
        text: str = "",
        ret: Any = None,
        artifacts: Sequence[ArtifactResult] = (),
        rehosted: Sequence[Rehosted] = (),
    ) -> ToolCallResponse:
        """Builds the response of a call that succeeded.

        Args:
            blocks: all its blocks.
            report: what was done.
            text: the same with what was found, for a model that does not see the blocks; empty: the report.
            ret: what the tool returns.
            artifacts: the files that it wrote.
            rehosted: what it fetched.
        """
        return ToolCallResponse(
            ok=True,
            ret=ret,
            report=visible_text(report),
            text=with_notices(visible_text(text or report), blocks),
            blocks=blocks,
            artifacts=list(artifacts),
            rehosted=list(rehosted),
            timings_ms=self._timings(),
        )

    def refuse(
        self,
        code: str,
        message: str,
        notices: Sequence[Notice] = (),
        notice_code: NoticeCode = NoticeCode.TOOL_CALL_ERROR,
        *,
        shown: str = "",
        **details: Any,
    ) -> ToolCallResponse:
        """Builds the response of a call that changed nothing, with one notice more than ``notices``."""
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
        return self.build_failed(code, message, blocks, shown)

    def build_failed(self, code: str, message: str, blocks: list[Block], shown: str = "") -> ToolCallResponse:
        """Builds the response of a call that failed; ``blocks`` are all its blocks, ``shown`` ends its text."""
        message = visible_text(message)
        report = f"{self.request.tool_id} failed: {code} — {message}"
        return ToolCallResponse(
            ok=False,
            error=EnvelopeError(code=code, message=message, where=self.request.tool_id, managed=True),
            report=report,
            text=with_notices(visible_text(f"{report}\n{shown}" if shown else report), blocks),
            blocks=blocks,
            timings_ms=self._timings(),
        )

    def _timings(self) -> Timings:
        return Timings(total=round((time.perf_counter() - self.began) * 1000, 3))


class DirectTool(Generic[P]):
    """A tool without a sandbox; see `Tool`.

    Args:
        params: the model of its parameters.
        run: runs one call; a ToolRefusedError is the model's mistake.
        sources: the pool that the ``sources_pool`` of a call completes before it is answered; None for no pool.
        references: finds the texts of ``content`` and ``patch`` that are given by their paths; None if the tool has
            no such parameter.
    """

    def __init__(
        self,
        params: type[P],
        run: Callable[[ReactCall[P]], Awaitable[CallResponse]],
        sources: SourcePool | None = None,
        references: References | None = None,
    ) -> None:
        self._params = params
        self._run = run
        self._sources = sources
        self._references = references

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """See `Tool.prepare`."""
        refusals, params = Refusals(), None
        if request.code is not None:
            with refusals.collecting():
                raise invalid_value("code", f"{request.tool_id} takes no code")
        with refusals.collecting():
            params = parse_params(self._params, request.params)
        refusals.raise_any()
        if params is None:
            raise AssertionError("params that are not refused are parsed")
        call = ReactCall(scope, request, params)
        return PreparedCall(
            lambda observer: self._run_call(replace(call, observer=observer)), partial(_build_interrupted, call)
        )

    async def _run_call(self, call: ReactCall[P]) -> CallResponse:
        if not call.request.turn_id:
            message = "the call has no turn_id; give the current turn's id"
            return call.refuse(ContractCode.MISSING_TURN_ID, message).refused()
        if self._sources is not None:
            await self._sources.complete(call.scope, call.request.sources_pool)
        try:
            return await self._run(await self._resolve_references(call))
        except ContractError as exc:
            notice_code = NoticeCode.PARAM_REF_NOT_VISIBLE
            return call.refuse(exc.code, exc.message, notice_code=notice_code, **exc.details).refused()
        except ToolRefusedError as exc:
            response = call.refuse(exc.code, exc.message, shown=exc.shown, **exc.details)
            return response if exc.has_run else response.refused()

    async def _resolve_references(self, call: ReactCall[P]) -> ReactCall[P]:
        """Returns the call with the texts that its parameters give by their paths.

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
                call.observer.on_reference(used)
        return replace(call, params=call.params.model_copy(update=texts)) if texts else call


def _build_interrupted(call: ReactCall[Any], why: Interruption) -> ToolCallResponse:
    """Builds the response of a call that was ended from outside; it never runs again under its id."""
    if not call.turn_id:  # every block path needs a turn
        return call.build_failed(why.code, why.message, [])
    notice = Notice(NoticeCode.TOOL_RESULT_ERROR, why.message, {"error": why.code})
    payload = {
        "tool_id": call.request.tool_id,
        "tool_call_id": call.request.tool_call_id,
        "error": {"code": why.code, "message": why.message},
        "ts": now_text(),
    }
    blocks = [*call.opening_blocks([notice]), call.write.result_json(payload)]
    return call.build_failed(why.code, why.message, blocks)
