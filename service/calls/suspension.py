"""Calls that wait for an answer from outside: how a run stops for one, and how it goes on."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import PreparedSave, StoredArtifact
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import CallState, Effect

KEY_OF_WAIT = "key_id"
"""The entry of what a wait stores that names the API key of its call: the limits of the key hold as it runs on."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """What a tool returns in place of a response: the call waits for an answer from outside.

    Nobody runs it meanwhile, and it outlives the process of the service. Its answer comes through
    `PreparedCall.resume` of the same request, prepared again.

    Attributes:
        effects: what is stored with its new state, in that order; one of them stores what it waits for.
        refuse: builds the response, from a code and a message, if an effect raises `EffectRefusedError`.
    """

    effects: Sequence[Effect]
    refuse: Callable[[str, str], ToolCallResponse]


@dataclass(frozen=True, slots=True)
class Closing:
    """What a tool returns in place of a response: its files are stored in the transaction of its answer.

    So a call that is cancelled, or whose process ends, has an answer and files, or neither.

    Attributes:
        save: the files. Whoever gets this stores or discards them.
        build: builds the response from the stored files, in their order; it changes nothing, does not block, and
            may be called again.
    """

    save: PreparedSave
    build: Callable[[Sequence[StoredArtifact]], ToolCallResponse]

    async def store(self, observer: CallObserver) -> ToolCallResponse:
        """Stores the files alone, of a call that has no answer of its own; the response.

        Raises:
            StoreFailedError, StoreFullError: they are not stored.
        """
        stored = await self.save.store()
        observer.record.stored += stored
        return self.build(stored)


CallResponse = ToolCallResponse | Closing
"""What ends a call."""
RunOutcome = CallResponse | Suspension
"""What a run comes to."""
CallRun = Callable[[CallObserver], Awaitable[RunOutcome]]
"""Runs a call until it has a response, or has to wait."""


def change_response(response: CallResponse, change: Callable[[ToolCallResponse], ToolCallResponse]) -> CallResponse:
    """What ends a call, with a changed response."""
    if isinstance(response, ToolCallResponse):
        return change(response)
    return replace(response, build=lambda stored: change(response.build(stored)))


@dataclass(frozen=True, slots=True)
class WaitOutcome:
    """How a wait ended.

    Attributes:
        kind: what it was for: ``space``, ``external``, ``approval``, …
        how: ``result``, ``error`` or ``cancelled``, as it was answered; ``expired`` if nobody answered in time.
        value: the result (any JSON value), or the message of the error.
        answered_by: the entity that answered, ``callback``, or ``key:<id>``; None if it expired.
        spec: what was stored when the call began to wait.
    """

    kind: str
    how: Literal["result", "error", "cancelled", "expired"]
    value: Any
    answered_by: str | None
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a call ended, for the effects that are stored with its answer.

    Attributes:
        state: done, failed or cancelled.
        code: ``ok``, or the code of the error or problem.
        message: of the error or problem; empty if there is none.
        response: the response; of a cancelled call what it had done; None for another problem.
    """

    state: CallState
    code: str
    message: str
    response: ToolCallResponse | None


async def cannot_resume(_outcome: WaitOutcome) -> CallResponse | CallRun:
    """Stands for `PreparedCall.resume` of a tool that never waits."""
    raise AssertionError("the tool never waits")


def no_effects(_end: CallEnd) -> Sequence[Effect]:
    """Stands for `PreparedCall.conclude` of a call that only has its answer."""
    return ()
