"""The interface of a tool."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver, CallRecord
from proofbox.service.calls.port import Effect
from proofbox.service.calls.suspension import (
    CallEnd,
    CallResponse,
    CallRun,
    Closing,
    Suspension,
    WaitOutcome,
    cannot_resume,
    no_effects,
)
from proofbox.service.identity import ConversationKey


def admit_all() -> None:
    """Takes a call whatever is going on."""


def _keep(_spec: dict[str, Any]) -> None:
    """Stands for `PreparedCall.restore` of a call that has nothing to restore."""


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
        record: the facts of its audit line, if it is answered without running on: after a wait, or an interruption.
        on_accept: the changes of other records that are stored with a new call. A call with such changes has an
            answer whatever happens; it is never forgotten.
        admit: raises QueueFullError if there is no place for it; only a new call is refused.
        restore: gives a call that was prepared again what it had when its newest wait began, from what that stored.
        check: refuses what `run` would refuse before it begins: raises ContractError.
        announces_start: whether ``run`` awaits `CallObserver.before_start` before it has effects; of others, the
            whole of ``run`` may have them.
    """

    run: CallRun
    interrupt: Callable[[Interruption], ToolCallResponse]
    resume: Callable[[WaitOutcome], Awaitable[CallResponse | CallRun]] = cannot_resume
    conclude: Callable[[CallEnd], Sequence[Effect]] = no_effects
    record: CallRecord = field(default_factory=CallRecord)
    on_accept: Sequence[Effect] = ()
    admit: Callable[[], None] = admit_all
    restore: Callable[[dict[str, Any]], None] = _keep
    check: Callable[[], object] = admit_all
    announces_start: bool = False

    @property
    def may_be_forgotten(self) -> bool:
        """Whether it may come again as if it never came, if the service fails before it ran."""
        return not self.on_accept

    async def respond(self, observer: CallObserver) -> ToolCallResponse:
        """Runs a call of a tool that never waits, and stores its files by themselves."""
        response = await self.run(observer)
        if isinstance(response, Suspension):
            raise AssertionError("a call that is not stored cannot wait")  # noqa: TRY004
        return await response.store(observer) if isinstance(response, Closing) else response


class Tool(Protocol):
    """Runs the calls of one or more tool ids."""

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """Parses the parameters of a call.

        Raises:
            InvalidParamsError: a parameter does not fit its schema.
            InvalidRequestError: the call has code and the tool takes none.
            LimitNotAllowedError: a limit is above the operator's.
            NetworkNotAllowedError: the call asks for a network that it does not get.
            PackagesNotAllowedError: the call asks for packages that it does not get.
        """


Tools = Mapping[str, Tool]
"""The tools by the ids that they are called by."""


class RunTools(Protocol):
    """The tools of runs: they come before the tools of the service, which they hand on."""

    async def prepare(
        self, scope: ConversationKey, request: ToolCallRequest, lease: int | None
    ) -> tuple[ToolCallRequest, PreparedCall]:
        """Finds the tool of a call of a run and checks its input; a mistake of the model becomes the answer.

        Args:
            scope: the conversation that the request names.
            request: the request, which has a ``run_id``.
            lease: the lease of its sender; None for a call that was accepted before.

        Returns:
            The request under the tool's own id and with its turn, and the call.

        Raises:
            UnknownToolError: the run has no such tool.
            CallerError: the run does not take the call: ``lease_lost``, ``run_ended``, ``wrong_conversation``, …
        """

    def conclude_lost(self, end: CallEnd) -> Sequence[Effect]:
        """The changes that are stored with the answer of a call that cannot be prepared again, of a run or not."""
