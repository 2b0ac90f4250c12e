"""Calls that wait for an answer from outside: how a run stops for one, and how it goes on."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from proofbox.contracts.tool_call_response import ToolCallResponse
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


CallRun = Callable[[CallObserver], Awaitable[ToolCallResponse | Suspension]]
"""Runs a call until it has a response, or has to wait."""


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


async def cannot_resume(_outcome: WaitOutcome) -> ToolCallResponse | CallRun:
    """Stands for `PreparedCall.resume` of a tool that never waits."""
    raise AssertionError("the tool never waits")


def no_effects(_end: CallEnd) -> Sequence[Effect]:
    """Stands for `PreparedCall.conclude` of a call that only has its answer."""
    return ()
