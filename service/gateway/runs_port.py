"""The port of the store of runs, with its records."""

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from proofbox.contracts.gateway.runs import RunContext
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool, PinnedTools
from proofbox.service.gateway.spaces.port import Actor, RequestKey
from proofbox.service.identity import Principal

RUN_ATTEMPTS_MAX = 3
"""After how many passed leases a run has failed."""
RUN_QUEUED_MAX = 1_000
"""Queued runs of one agent."""
RUN_AGE_DAYS_MAX = 7
"""After how many days a run that has not ended has failed."""

STOPPED_TOPIC = "runs stopped"
"""The topic of `Changes` that is announced when a tool of an agent has ended a run, whose calls are left."""
_ID_BYTES = 12
QUEUE_TOPIC = "runs queued"
"""The topic of `Changes` that is announced when a run of any project is queued."""


def new_run_id() -> str:
    """Return a new id of a run."""
    return f"run_{secrets.token_hex(_ID_BYTES)}"


def run_topic(run_id: str) -> str:
    """The topic of `Changes` of the events of a run."""
    return f"run {run_id}"


class RunStatus(StrEnum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING_TOOL = "waiting_tool"
    WAITING_REPLY = "waiting_reply"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether it is over for good."""
        return self in {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}

    @property
    def is_waiting(self) -> bool:
        """Whether a call of it waits for an answer from outside."""
        return self in {RunStatus.WAITING_TOOL, RunStatus.WAITING_REPLY}


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store knows it.

    Attributes:
        run_id: its id.
        agent_id: its agent.
        agent_handle: the agent's handle.
        agent_version: the version of the configuration that it uses.
        principal: whose conversation it has; None until a queued run is claimed.
        conversation_id: the conversation of its calls.
        status: where it stands.
        trigger: why it was made, as on the wire.
        chain_depth: how many runs that were made by mentions are before it.
        active_space_id: the space where its calls are shown.
        lease: the number of its lease; 0 before the first one.
        lease_until: when that passes: UTC, RFC 3339, ``Z``; None while none is held, or the run waits.
        is_held: whether a holder has it.
        attempt: 1, and one more for each lease that passed.
        waiting_for: its open waits, each as on the wire.
        warnings: what was noticed when it began, each as on the wire.
        metadata: what its creator gave.
        created: when it was made.
        started: when it was first claimed.
        ended: when it ended.
        summary: what its holder reported at the end.
        error: why it failed: ``code`` and ``message``.
        number: its number in the store; a later run has a greater one.
    """

    run_id: str
    agent_id: str
    agent_handle: str
    agent_version: int
    principal: Principal | None
    conversation_id: str
    status: RunStatus
    trigger: Mapping[str, Any]
    chain_depth: int
    active_space_id: str | None
    lease: int
    lease_until: str | None
    is_held: bool
    attempt: int
    waiting_for: Sequence[Mapping[str, Any]]
    warnings: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any]
    created: str
    started: str | None
    ended: str | None
    summary: str | None
    error: Mapping[str, Any] | None
    number: int = 0


def run_json(run: StoredRun) -> dict[str, Any]:
    """A run as the wire has it."""
    lease = None
    if run.is_held and run.lease:
        lease = {"number": run.lease, "until": run.lease_until}
    return {
        "run_id": run.run_id,
        "agent_id": run.agent_id,
        "agent_version": run.agent_version,
        "conversation_id": run.conversation_id,
        "status": run.status.value,
        "trigger": dict(run.trigger),
        "chain_depth": run.chain_depth,
        "active_space_id": run.active_space_id,
        "lease": lease,
        "attempt": run.attempt,
        "waiting_for": [dict(wait) for wait in run.waiting_for],
        "warnings": [dict(warning) for warning in run.warnings],
        "metadata": dict(run.metadata),
        "created": run.created,
        "started": run.started,
        "ended": run.ended,
        "summary": run.summary,
        "error": None if run.error is None else dict(run.error),
    }


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run that is to be made.

    Attributes:
        run_id: its id.
        agent_id: its agent, whose current version it uses.
        conversation_id: the conversation of its calls.
        trigger: why it is made, as on the wire.
        space_id: its active space at the start.
        actor: who asks for it: the space must be open to it; None: the service itself, which may name any.
        chain_depth: how many runs that were made by mentions are before it.
        metadata: anything that its creator wants to find again.
        queued: whether it waits for a claim; otherwise its creator holds its first lease, unless as many runs of
            the agent run as may.
        lease_s: how long that lease is.
        pinned: the tools of MCP servers that it gets if it runs at once.
    """

    run_id: str
    agent_id: str
    conversation_id: str
    trigger: Mapping[str, Any]
    space_id: str | None = None
    actor: Actor | None = None
    chain_depth: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    queued: bool = False
    lease_s: float = 60.0
    pinned: PinnedTools | None = None


class AgentMovedError(Exception):
    """The agent's current version is not the one whose tools are to be pinned; nothing was stored."""


@dataclass(frozen=True, slots=True)
class QueuedKind:
    """What the oldest queued runs need before one of them is claimed.

    Attributes:
        agent_id: their agent.
        version: the version of its configuration.
        has_tools: whether the tools of MCP servers are pinned to them: they ran before.
    """

    agent_id: str
    version: int
    has_tools: bool

    @property
    def key(self) -> tuple[str, int]:
        """Agent and version."""
        return self.agent_id, self.version


ClaimPins = Mapping[tuple[str, int], PinnedTools | None]
"""By agent and version: the tools of MCP servers that a run gets when it is claimed."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The operator's limits of runs.

    Attributes:
        lease_s: how long a lease is.
        work_s: how long a run may work, without its waits.
        running_max: how many runs of an agent run at the same time.
    """

    lease_s: float = 60.0
    work_s: float = 1_800.0
    running_max: int = 20


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ends.

    Attributes:
        status: completed, failed or cancelled.
        summary: what its holder reports.
        error: why it failed: ``code`` and ``message``.
    """

    status: RunStatus
    summary: str | None = None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list has, the newest first.

    Attributes:
        agent_id: those of this agent.
        status: those that stand so.
        before: those older than this run: its number as digits, which stays when it is deleted, or its id.
        limit: how many at most.
    """

    agent_id: str | None = None
    status: RunStatus | None = None
    before: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class StoredRunEvent:
    """An event of a run.

    Attributes:
        id: 1, 2, 3 … within the run.
        name: its kind, such as ``run.started``.
        data: JSON text.
    """

    id: int
    name: str
    data: str


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without an answer, of a run that has ended.

    Attributes:
        principal: whose it is.
        conversation_id: its conversation.
        tool_call_id: its id.
    """

    principal: Principal
    conversation_id: str
    tool_call_id: str


class RunStore(Protocol):
    """Runs of a tenant's project. All methods raise StoreFailedError if the store fails.

    The project is that of ``principal``; runs of other projects are unknown. So are runs that another principal of
    the project has claimed, but to `find`, `list`, `cancel` and `events`.
    """

    async def create(
        self, principal: Principal, new: NewRun, key: RequestKey | None = None
    ) -> tuple[StoredRun, bool]:
        """Makes a run; or finds the one that an earlier request with the key has made, and returns True with it.

        Raises:
            UnknownAgentError, UnknownSpaceError: there is no such agent or space, or the space is not open to the
                actor.
            QueueFullError: too many runs of the agent are queued.
            IdReusedError: the key was used for another request.
            AgentMovedError: the agent was written since its tools were pinned.
        """

    async def find(self, principal: Principal, run_id: str) -> StoredRun:
        """A run.

        Raises:
            UnknownRunError: there is no such run.
        """

    async def find_created(self, principal: Principal, key: RequestKey) -> StoredRun | None:
        """The run that an earlier request with a key has made; None if there was none.

        Raises:
            IdReusedError: the key was used for another request.
        """

    async def tools_of(self, run_id: str) -> Sequence[PinnedTool] | None:
        """The tools of MCP servers that are pinned to a run; None until it has begun, or without servers."""

    async def list(self, principal: Principal, wanted: RunFilter) -> list[StoredRun]:
        """Runs, the newest first."""

    async def queued(
        self, principal: Principal, agent_ids: Sequence[str] | None, without: Collection[tuple[str, int]] = ()
    ) -> Sequence[QueuedKind]:
        """What the oldest queued runs need that the principal may have, each kind once.

        Args:
            principal: who claims.
            agent_ids: of these agents; None: any.
            without: agents and versions that are left out.
        """

    async def claim(
        self,
        principal: Principal,
        agent_ids: Sequence[str] | None,
        lease_s: float,
        pins: ClaimPins | None = None,
    ) -> StoredRun | None:
        """Gives the oldest queued run that the principal may have to it; None if there is none.

        Args:
            principal: who claims.
            agent_ids: of these agents; None: any.
            lease_s: how long its lease is.
            pins: what is pinned to a run without tools; one of another version is left out. None: nothing is, and
                none is left out.
        """

    async def require(self, principal: Principal, run_id: str, lease: int) -> StoredRun:
        """A run of which a lease holds. Raises as `renew`."""

    async def renew(self, principal: Principal, run_id: str, lease: int, lease_s: float) -> StoredRun:
        """Extends a lease.

        Raises:
            UnknownRunError, LeaseLostError, RunNotRunningError, RunEndedError: it cannot be.
        """

    async def release(self, principal: Principal, run_id: str, lease: int) -> StoredRun:
        """Gives a run back: it is queued at once, or when its last wait has ended. Raises as `renew`."""

    async def finish(
        self, principal: Principal, run_id: str, lease: int, end: RunEnd, *, cancel_waits: bool
    ) -> StoredRun:
        """Ends a run. Raises as `renew` does.

        Raises:
            RunWaitingError: it has open waits and ``cancel_waits`` is not set.
        """

    async def cancel(self, principal: Principal, run_id: str) -> StoredRun:
        """Ends a run for whoever asks; one that has ended stays as it is.

        Raises:
            UnknownRunError: there is no such run.
        """

    async def sweep(self) -> None:
        """Takes back the runs whose lease has passed, and ends those whose time is over."""

    async def calls_of_ended(self, run_id: str | None = None) -> Sequence[OpenCall]:
        """The calls of ended runs, or of one, that have no answer yet: they are to be cancelled."""

    async def context(self, principal: Principal, run_id: str) -> RunContext:
        """What a loop needs to know of a run.

        Raises:
            UnknownRunError: there is no such run.
        """

    async def events(self, principal: Principal, run_id: str, after: int, limit: int) -> Sequence[StoredRunEvent]:
        """Events of a run with an id above ``after``, in order."""
