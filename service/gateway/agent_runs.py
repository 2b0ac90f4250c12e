"""The port of an agent's own runs, as its tools see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.service.calls.port import Effect
from proofbox.service.gateway.runs_port import RunStatus, StoredRun
from proofbox.service.identity import Principal

RUN_TOOLS_MAX = 20
"""Calls that are listed of each run, the newest ones."""


@dataclass(frozen=True, slots=True)
class CalledTool:
    """A call of a run.

    Attributes:
        name: the tool's name for the model.
        state: ``running``, ``waiting``, ``done``, ``failed`` or ``cancelled``.
    """

    name: str
    state: str


@dataclass(frozen=True, slots=True)
class AgentRun:
    """A run of an agent with its newest calls.

    Attributes:
        run: the run.
        tools: its calls, at most `RUN_TOOLS_MAX`, the oldest first.
    """

    run: StoredRun
    tools: Sequence[CalledTool]


@dataclass(frozen=True, slots=True)
class StopRun(Effect):
    """End the run of the call with which it is stored, as cancelled, unless it has ended.

    Attributes:
        run_id: the run.
        reason: why, for its summary.
    """

    run_id: str
    reason: str | None


class AgentRuns(Protocol):
    """The runs of one agent. All methods raise StoreFailedError if the store fails."""

    async def newest(
        self, principal: Principal, agent_id: str, status: RunStatus | None, limit: int
    ) -> tuple[Sequence[AgentRun], int]:
        """Runs of an agent, or those of one status, the newest first; and how many of all have not ended."""

    async def stop(self, principal: Principal, agent_id: str, run_id: str, reason: str | None) -> RunStatus | None:
        """End a run of an agent as cancelled; its calls are cancelled afterwards.

        One that has ended stays as it is.

        Returns:
            Its status before; None if the agent has no such run.
        """
