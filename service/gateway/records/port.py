"""The ports of the stores of goals, memories and plans, with what is written to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from proofbox.contracts.gateway.records import AgentState, Goal, GoalStatus, Memory, Plan, PlanStatus
from proofbox.service.identity import Principal

PLANS_TOPIC = "plans"
"""The topic of `Changes` that is announced when plans of any agent have changed."""
New_contra = TypeVar("New_contra", contravariant=True)
Item_co = TypeVar("Item_co", covariant=True)


class ItemsRefusedError(Exception):
    """Items are not written or deleted, none of them.

    Args:
        code: the stable code for the model.
        message: what is wrong (limit, got), and what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class NewGoal:
    """A goal that is to be set.

    Attributes:
        id: of the goal that it replaces; None: a new one.
        description: what the agent wants to reach.
        priority: the higher, the more important.
        is_long_term: whether it outlasts the task at hand.
        status: how it stands.
    """

    id: str | None
    description: str
    priority: int = 0
    is_long_term: bool = False
    status: GoalStatus = "active"


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory that is to be set; it replaces the one of its key.

    Attributes:
        key: its name.
        value: what is remembered.
        topic: what it belongs to.
    """

    key: str
    value: str
    topic: str | None = None


@dataclass(frozen=True, slots=True)
class NewPlan:
    """A plan that is to be set. Either ``run_at`` or ``cron`` is given; times are UTC, RFC 3339, ``Z``.

    Attributes:
        id: of the plan that it replaces; None: a new one.
        name: its name.
        instruction: what its runs are to do.
        run_at: when it fires, if once.
        cron: when it fires, if more than once.
        time_zone: the time zone of ``cron``.
        next_run: when it fires next; None: it is cancelled.
    """

    id: str | None
    name: str
    instruction: str
    run_at: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    next_run: str | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """What a deletion did.

    Attributes:
        deleted: how many were deleted.
        left: how many the agent still has.
    """

    deleted: int
    left: int


class RecordStore(Protocol, Generic[New_contra, Item_co]):
    """Records of one kind; all methods raise UnknownAgentError and StoreFailedError."""

    async def set(self, principal: Principal, agent_id: str, items: Sequence[New_contra]) -> Sequence[Item_co]:
        """Writes items, all or none, and returns all that the agent has then.

        Raises:
            ItemsRefusedError: one has an unknown id, or the agent would have too many.
        """

    async def delete(self, principal: Principal, agent_id: str, names: Sequence[str] | None) -> Removal:
        """Deletes items by their ids or keys, all or none; None: all that the agent has.

        Raises:
            ItemsRefusedError: a name is unknown.
        """


GoalStore = RecordStore[NewGoal, Goal]
MemoryStore = RecordStore[NewMemory, Memory]


class PlanStore(RecordStore[NewPlan, Plan], Protocol):
    """The plans of agents."""

    async def newest(
        self, principal: Principal, agent_id: str, statuses: Sequence[PlanStatus], limit: int
    ) -> Sequence[Plan]:
        """Plans of some statuses, the newest first."""


class AgentStates(Protocol):
    """Reads all that an agent has noted."""

    async def state(self, principal: Principal, agent_id: str) -> AgentState:
        """All that an agent of the principal's project has noted.

        Raises:
            UnknownAgentError: there is no such agent.
            StoreFailedError: the store failed.
        """


@dataclass(frozen=True, slots=True)
class DuePlan:
    """A plan whose time has come.

    Attributes:
        row: its row.
        plan_id: its id.
        agent_id: its agent.
        cron: its schedule; None: it fires once.
        time_zone: the time zone of ``cron``.
        next_run: the time that has come: UTC, RFC 3339, ``Z``.
    """

    row: int
    plan_id: str
    agent_id: str
    cron: str | None
    time_zone: str | None
    next_run: str


@dataclass(frozen=True, slots=True)
class Firing:
    """What becomes of a due plan.

    Attributes:
        at: the newest time of it that has come: UTC, RFC 3339, ``Z``.
        late_s: how long ago that was.
        following: when it fires next; None: never again.
        run_id: the run that it makes; None: it was missed.
    """

    at: str
    late_s: float
    following: str | None
    run_id: str | None


class DuePlanStore(Protocol):
    """The plans of all projects, for the timer."""

    async def due(self, now: str, after: DuePlan | None) -> Sequence[DuePlan]:
        """Plans whose time has come, the earliest first; those that come after another one in that order."""

    async def next_time(self, now: str) -> str | None:
        """The earliest time of a plan after ``now``."""

    async def fire(self, plan: DuePlan, firing: Firing) -> bool:
        """Makes the run of a due plan and moves the plan on, in one transaction.

        Returns:
            Whether it did: False if the plan was changed meanwhile, or another process has fired it.

        Raises:
            QueueFullError: the agent has as many queued runs as may be; the plan stays as it is.
        """
