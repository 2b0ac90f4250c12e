"""One exec call on its way: what came through the door, and what is known of it so far."""

from dataclasses import dataclass
from typing import Protocol

from contracts.artifacts import Contract
from contracts.tool_calls import SandboxInfo, Timings, ToolCallRequest
from contracts.tools import ExecParams, Language
from service.core.limits import CallLimits
from service.core.outcomes import RuntimeFailure
from service.core.ports import Collected, ProcessOutcome, Scope, StreamName
from service.core.rehosting import Gathered


class Watcher(Protocol):
    """Who is told how a call goes on."""

    def queued(self, position: int) -> None:
        """It waits; so many calls are before it."""

    def started(self, sandbox: SandboxInfo) -> None:
        """It has a sandbox: from here on the program may have had effects."""

    def output(self, stream: StreamName, piece: bytes, truncated: bool) -> None:
        """The program wrote something."""


@dataclass(frozen=True, slots=True)
class ExecCall:
    """One exec call at the door.

    Attributes:
        scope: whose conversation.
        request: the call as it came.
        language: what its code is.
        params: its parameters.
        limits: what it may use.
        deadline: until when it has to have a place, on the monotonic clock.
        lifetime_s: how long its sandbox may exist.
    """

    scope: Scope
    request: ToolCallRequest
    language: Language
    params: ExecParams
    limits: CallLimits
    deadline: float
    lifetime_s: float


@dataclass(slots=True)
class Attempt:
    """What is known of a call while it goes through the story; the answer is written from it."""

    contract: Contract
    code: bytes
    gathered: Gathered
    timings: Timings
    outcome: ProcessOutcome
    collected: Collected
    sandbox: SandboxInfo | None = None
    failure: RuntimeFailure | None = None
