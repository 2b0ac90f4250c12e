"""Runs of agents, their events and their context."""

from typing import Annotated, Any, Literal

from pydantic import Field

from proofbox.contracts.gateway.messages import Member, Message
from proofbox.contracts.gateway.names import AgentId, MessageId, SpaceId
from proofbox.contracts.gateway.records import Goal, Memory, Plan
from proofbox.contracts.gateway.waits import RunWait
from proofbox.contracts.gateway.wire import GatewayWarning, JsonObject
from proofbox.contracts.tool_call_request import ConversationId
from proofbox.contracts.wire_model import WireModel

RUN_LEASE_HEADER = "Run-Lease"
CLAIM_WAIT_S_MAX = 30
LEASE_S_MAX = 600
SUMMARY_CHARACTERS_MAX = 20_000
RunStatus = Literal["queued", "running", "waiting_tool", "waiting_reply", "completed", "failed", "cancelled"]
ENDED_STATUSES: frozenset[str] = frozenset({"completed", "failed", "cancelled"})
RunEventName = Literal[
    "run.queued",
    "run.started",
    "run.waiting_tool",
    "run.waiting_reply",
    "run.resumed",
    "run.completed",
    "run.failed",
    "run.cancelled",
    "call.answered",
]
LeaseSeconds = Annotated[float, Field(gt=0, le=LEASE_S_MAX)]


class RunTrigger(WireModel):
    """Why a run exists."""

    type: Literal["manual", "service", "message", "reply", "plan"]
    """Who made it: an API call, another service, a mention, a reply or a plan."""
    name: Annotated[str, Field(max_length=200)] | None = None
    """A name that the creator gave."""
    payload: Any = None
    """What the creator passes to the agent's loop, as JSON."""
    space_id: str | None = None
    """The space of the message."""
    message_id: str | None = None
    """The message."""
    sender: str | None = None
    """The entity that sent it."""
    plan_id: str | None = None
    """The plan that fired."""
    late_s: float | None = None
    """How many seconds after its time the plan fired."""


class GivenTrigger(WireModel):
    """The trigger of a run that an API call makes."""

    type: Literal["manual", "service"] = "manual"
    """Whether a person or another service asks for the run."""
    name: Annotated[str, Field(max_length=200)] | None = None
    """A name, such as the event of the other service."""
    payload: Any = None
    """What the agent's loop gets, as JSON, at most 256 KiB."""
    space_id: SpaceId | None = None
    """A space that the trigger is about."""
    message_id: MessageId | None = None
    """A message that the trigger is about."""


class RunCreation(WireModel):
    """Makes a run."""

    agent_id: AgentId
    """Which agent."""
    conversation_id: ConversationId | None = None
    """The conversation of its calls; absent: ``run:<run_id>``."""
    space_id: SpaceId | None = None
    """The active space at its start."""
    trigger: GivenTrigger = GivenTrigger()
    """Why it is made."""
    queued: bool = False
    """Whether it waits for a claim; else the creator holds its first lease."""
    metadata: JsonObject = {}
    """What the creator wants to find again, at most 16 KiB."""


class RunClaim(WireModel):
    """Asks for a queued run."""

    agent_ids: Annotated[list[AgentId], Field(min_length=1, max_length=100)] | None = None
    """Of these agents; absent: of any in the project."""
    wait_s: Annotated[float, Field(ge=0, le=CLAIM_WAIT_S_MAX)] = 0
    """How long to wait for one."""
    lease_s: LeaseSeconds | None = None
    """How long the lease lasts without a heartbeat or call; absent: the operator's value."""


class RunHeartbeat(WireModel):
    """Renews a lease."""

    lease_s: LeaseSeconds | None = None
    """For how long; absent: the operator's value."""


class RunError(WireModel):
    """Why a run failed."""

    code: Annotated[str, Field(min_length=1, max_length=100)]
    """A stable code: the loop's own, ``lease_lost`` or ``run_timeout``."""
    message: Annotated[str, Field(max_length=4_096)] = ""
    """One sentence."""


class RunFinish(WireModel):
    """Ends a run."""

    status: Literal["completed", "failed"]
    """How it ended."""
    summary: Annotated[str, Field(max_length=SUMMARY_CHARACTERS_MAX)] | None = None
    """What it did."""
    error: RunError | None = None
    """Why it failed."""
    cancel_waits: bool = False
    """Whether open waits are cancelled; else a run with open waits is not ended."""


class RunLease(WireModel):
    """Who may drive a run."""

    number: int
    """What the holder sends as ``Run-Lease``."""
    until: str | None
    """When it passes: UTC, RFC 3339, ``Z``; null while the run waits."""


class Run(WireModel):
    """One run of an agent."""

    run_id: str
    """Its id."""
    agent_id: str
    """Its agent."""
    agent_version: int
    """The version of the configuration that it uses."""
    conversation_id: str
    """The conversation of its calls."""
    status: RunStatus
    """How it stands."""
    trigger: RunTrigger
    """Why it exists."""
    chain_depth: int
    """How many mentions by agents led to it."""
    active_space_id: str | None
    """The space that shows its calls now."""
    lease: RunLease | None
    """The lease; null if nobody holds one."""
    attempt: int
    """1, and one more after each lease that passed."""
    waiting_for: list[RunWait]
    """Its open waits."""
    warnings: list[GatewayWarning]
    """What concerns its tools, such as an MCP server that does not answer."""
    metadata: JsonObject = {}
    """What its creator gave."""
    created: str
    """When it was made: UTC, RFC 3339, ``Z``."""
    started: str | None
    """When it first ran."""
    ended: str | None
    """When it ended."""
    summary: str | None
    """What it did, by its loop."""
    error: RunError | None
    """Why it failed."""


class RunPage(WireModel):
    """A page of a list of runs, the newest first."""

    items: list[Run]
    """The runs."""
    next: str | None
    """What the next request gives as ``before``; null on the last page."""


class RunEvent(WireModel):
    """The data of an event of a run, except ``call.answered``."""

    run: Run
    """The run as it was then."""


class CallAnsweredEvent(WireModel):
    """The data of ``call.answered``."""

    tool_call_id: str
    """The call that has an answer."""


class RunCall(WireModel):
    """A call of a run."""

    tool_call_id: str
    """Its id."""
    tool_id: str
    """The tool."""
    name: str
    """Its name for the model."""
    status: Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
    """How it stands."""
    ok: bool | None = None
    """Whether a call that is done succeeded."""
    result: Any = None
    """Its ``ret``, at most 20,480 bytes of JSON; null if it is longer or there is none."""
    error: JsonObject | None = None
    """``{code, message}`` of a call that did not succeed."""
    created: str
    """When it was accepted: UTC, RFC 3339, ``Z``."""


class ContextAgent(WireModel):
    """The agent of a run."""

    agent_id: str
    """Its id."""
    entity_id: str
    """Its id as a member of spaces."""
    handle: str
    """Its handle."""
    version: int
    """The version of the configuration that the run uses."""
    configuration: JsonObject
    """That configuration."""


class ContextSpace(WireModel):
    """A space that the agent is a member of."""

    space_id: str
    """Its id."""
    name: str
    """Its name."""
    members: list[Member]
    """Its members."""


class SeenMessage(Message):
    """A message of a history."""

    seen: bool
    """Whether the agent has seen it in an earlier run."""


class RunContext(WireModel):
    """What a loop needs to know before it asks its model: facts, no prompt."""

    agent: ContextAgent
    """The agent."""
    trigger: RunTrigger
    """Why the run exists."""
    active_space: ContextSpace | None
    """The space that shows its calls now."""
    spaces: list[ContextSpace]
    """The spaces that the agent is a member of."""
    history: list[SeenMessage]
    """The newest messages of the active space, the oldest first."""
    goals: list[Goal] = []
    """Its goals, by priority."""
    memories: list[Memory] = []
    """Its memories, the oldest first."""
    plans: list[Plan] = []
    """Its pending plans."""
    runs: list[Run]
    """Its runs that have not ended, this one included."""
    calls: list[RunCall]
    """The calls of this run, the oldest first."""
