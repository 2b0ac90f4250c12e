"""What agents note for later runs: goals, memories and plans."""

from typing import Literal

from proofbox.contracts.wire_model import WireModel

GOALS_MAX = 200
"""Goals of one agent."""
MEMORIES_MAX = 1_000
"""Memories of one agent."""
PLANS_MAX = 200
"""Plans of one agent."""
TEXT_CHARACTERS_MAX = 20_000
"""Of a goal's description and of a plan's instruction."""
TEXTS_BYTES_MAX = 256 * 1024
"""Of all descriptions of an agent's goals, and of all instructions of its plans, in UTF-8."""
NAME_CHARACTERS_MAX = 200
"""Of a plan's name, and of a memory's key and topic."""
MEMORY_BYTES_MAX = 4_096
"""Of a memory's value, in UTF-8."""
PLAN_RUNS_MAX = 20
"""Runs that a plan lists, the newest ones."""
LATE_S_MAX = 86_400
"""A plan that is later than this is missed."""

GoalStatus = Literal["active", "completed", "abandoned"]
PlanStatus = Literal["pending", "completed", "cancelled", "missed"]


class Goal(WireModel):
    """A goal of an agent."""

    id: str
    """Its id."""
    description: str
    """What the agent wants to reach."""
    priority: int
    """The higher, the more important: -1,000 to 1,000."""
    is_long_term: bool
    """Whether it outlasts the task at hand."""
    status: GoalStatus
    """How it stands."""
    created: str
    """When it was first set: UTC, RFC 3339, ``Z``."""
    updated: str
    """When it was last set."""


class Memory(WireModel):
    """A memory of an agent."""

    key: str
    """Its name, unique for the agent."""
    value: str
    """What the agent remembers, at most 4 KiB."""
    topic: str | None
    """What it belongs to."""
    created: str
    """When it was first set: UTC, RFC 3339, ``Z``."""
    updated: str
    """When it was last set."""


class Plan(WireModel):
    """A plan of an agent: at its time it makes a queued run."""

    id: str
    """Its id."""
    name: str
    """Its name; also that of the trigger of its runs."""
    instruction: str
    """What its runs are to do."""
    run_at: str | None
    """When it fires, if once: UTC, RFC 3339, ``Z``."""
    cron: str | None
    """When it fires, if more than once: minute, hour, day, month, weekday."""
    time_zone: str | None
    """The time zone of ``cron``, such as ``Europe/Berlin``; null for a plan that fires once."""
    status: PlanStatus
    """``completed``: it has fired for the last time. ``missed``: its only time passed over 24 hours unused."""
    next_run: str | None
    """When it fires next; null if it does not. A time that has passed is being caught up."""
    last_run: str | None
    """When it last fired."""
    missed: str | None
    """The newest time for which no run was made, because it had passed by more than 24 hours."""
    run_ids: list[str]
    """The runs that it made, at most 20, the newest first."""
    created: str
    """When it was first set: UTC, RFC 3339, ``Z``."""
    updated: str
    """When it was last set."""


class AgentState(WireModel):
    """All that an agent has noted."""

    goals: list[Goal]
    """Its goals, by priority."""
    memories: list[Memory]
    """Its memories, the oldest first."""
    plans: list[Plan]
    """Its plans, the oldest first."""
