"""The interface of a tool."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver, CallRecord
from proofbox.service.calls.port import Effect, EffectRefusedError
from proofbox.service.calls.suspension import (
    CallEnd,
    CallRun,
    Suspension,
    WaitOutcome,
    cannot_amend,
    cannot_resume,
    no_effects,
)
from proofbox.service.identity import ConversationKey


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose parameters were parsed.

    Attributes:
        run: runs it and returns its response, or a `Suspension` if it has to wait for an answer from outside.
        interrupt: builds the response of a call that was cancelled or whose process ended; it never runs again
            under its id.
        resume: takes the answer that the call waited for, and returns its response, or what runs it on.
        conclude: the changes of other records that are stored with its answer, whatever that is. They hold for a
            call that ran and for one that waited.
        amend: builds its response anew if an effect of `conclude` refused; `conclude` is asked again with it, and
            its effects must not refuse then.
        record: the facts of its audit line, if it is answered without running on: after a wait, or an interruption.
    """

    run: CallRun
    interrupt: Callable[[Interruption], ToolCallResponse]
    resume: Callable[[WaitOutcome], Awaitable[ToolCallResponse | CallRun]] = cannot_resume
    conclude: Callable[[CallEnd], Sequence[Effect]] = no_effects
    amend: Callable[[EffectRefusedError, ToolCallResponse], ToolCallResponse] = cannot_amend
    record: CallRecord = field(default_factory=CallRecord)

    async def respond(self, observer: CallObserver) -> ToolCallResponse:
        """Runs a call of a tool that never waits."""
        response = await self.run(observer)
        if isinstance(response, Suspension):
            raise AssertionError("a call that is not stored cannot wait")  # noqa: TRY004
        return response


class Tool(Protocol):
    """Runs the calls of one or more tool ids."""

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """Parses the parameters of a call.

        Raises:
            InvalidParamsError: a parameter does not fit its schema.
            InvalidRequestError: the call has code and the tool takes none.
            LimitNotAllowedError: a limit is above the operator's.
        """


Tools = Mapping[str, Tool]
"""The tools by the ids that they are called by."""
