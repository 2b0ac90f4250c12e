"""The tables of agents, their records, runs, spaces and waits; on the same metadata as `storage/schema.py`.

Times are texts: UTC, RFC 3339, milliseconds, ``Z``; so they are compared as texts. JSON is text too.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    UniqueConstraint,
)

from proofbox.service.storage.dispatch.tables import metadata
from proofbox.service.storage.text_columns import TEXT, Words

# SQLite's own row ids are 64 bits wide under the name INTEGER only.
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")
_RUN_STATES = "status IN ('queued', 'running', 'waiting_tool', 'waiting_reply', 'completed', 'failed', 'cancelled')"

_PLAN_STATES = "status IN ('pending', 'completed', 'cancelled', 'missed')"


def _id() -> Column[int]:
    return Column("id", _ROW_ID, Identity(), primary_key=True)


def _reference(name: str, to: str, *, nullable: bool = False, ondelete: str | None = None) -> Column[int]:
    return Column(name, _ROW_ID, ForeignKey(to, ondelete=ondelete), nullable=nullable, autoincrement=False)


def _key(name: str, to: str) -> Column[int]:
    return Column(name, _ROW_ID, ForeignKey(to), primary_key=True, nullable=False, autoincrement=False)


projects = Table(
    "projects",
    metadata,
    _id(),
    Column("tenant", Words, nullable=False),
    Column("project", Words, nullable=False),
    UniqueConstraint("tenant", "project"),
)

agents = Table(
    "agents",
    metadata,
    _id(),
    _reference("project", "projects.id"),
    Column("agent_id", Words, nullable=False),
    # The number of the newest version; numbers continue after a deletion.
    Column("current", Integer, CheckConstraint("current >= 1"), nullable=False),
    # Which secret signs webhooks; until 24 h after `rotated` the one before it signs too.
    Column("secret_generation", Integer, nullable=False, server_default="1"),
    Column("rotated", TEXT),
    Column("created", TEXT, nullable=False),
    Column("deleted", TEXT),
    UniqueConstraint("project", "agent_id"),
)

# Old versions stay while a run uses them.
agent_versions = Table(
    "agent_versions",
    metadata,
    _key("agent", "agents.id"),
    Column(
        "version", Integer, CheckConstraint("version >= 1"), primary_key=True, autoincrement=False, nullable=False
    ),
    Column("sha256", TEXT, nullable=False),
    Column("config", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

# Persons and agents: whatever can be a member of a space and be mentioned.
entities = Table(
    "entities",
    metadata,
    _id(),
    _reference("project", "projects.id"),
    Column("entity_id", Words, nullable=False),
    Column("type", TEXT, CheckConstraint("type IN ('human', 'agent')"), nullable=False),
    # NULL for the entity of a deleted agent: its handle is free.
    Column("handle", Words),
    Column("handle_folded", Words),
    Column("display_name", Words, nullable=False),
    # The user of principals that act as this person.
    Column("user", Words),
    _reference("agent", "agents.id", nullable=True),
    Column("created", TEXT, nullable=False),
    UniqueConstraint("project", "entity_id"),
    UniqueConstraint("project", "handle_folded"),
    UniqueConstraint("project", "user"),
    CheckConstraint("(type = 'agent') = (agent IS NOT NULL)"),
)
Index("entities_agent", entities.c.agent)

spaces = Table(
    "spaces",
    metadata,
    _id(),
    _reference("project", "projects.id"),
    Column("space_id", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("metadata", TEXT, nullable=False, server_default="{}"),
    Column("created", TEXT, nullable=False),
    Column("archived", TEXT),
    # Taken under the row's lock, so numbers have no gaps.
    Column("next_seq", _ROW_ID, nullable=False, server_default="1"),
    Column("next_event", _ROW_ID, nullable=False, server_default="1"),
    UniqueConstraint("space_id"),
)
Index("spaces_project", spaces.c.project, spaces.c.id)

members = Table(
    "members",
    metadata,
    _key("space", "spaces.id"),
    _key("entity", "entities.id"),
    Column("joined", TEXT, nullable=False),
    Column("seen_seq", _ROW_ID, nullable=False, server_default="0"),
    sqlite_with_rowid=False,
)
Index("members_entity", members.c.entity)

runs = Table(
    "runs",
    metadata,
    _id(),
    _reference("project", "projects.id"),
    Column("run_id", Words, nullable=False),
    _reference("agent", "agents.id"),
    Column("version", Integer, nullable=False),
    # Of the first holder, NULL until a queued run is claimed; with `conversation` it names the conversation.
    _reference("principal", "principals.id", nullable=True),
    Column("conversation", Words, nullable=False),
    Column("status", TEXT, CheckConstraint(_RUN_STATES), nullable=False),
    Column("trigger", TEXT, nullable=False),
    Column("metadata", TEXT, nullable=False, server_default="{}"),
    Column("chain_depth", Integer, nullable=False, server_default="0"),
    _reference("space", "spaces.id", nullable=True),
    # The number of the lease: a holder with an older one is fenced off.
    Column("lease", Integer, nullable=False, server_default="0"),
    Column("lease_until", TEXT),
    # The key or tenant that holds the lease; NULL: it was released, or never claimed.
    Column("holder", Words),
    Column("attempt", Integer, nullable=False, server_default="1"),
    # The tools as they were when the run began, as JSON.
    Column("tools", TEXT),
    Column("warnings", TEXT, nullable=False, server_default="[]"),
    # Seconds of work before `counted_from`; NULL there: the time stands still.
    Column("worked_s", Float, nullable=False, server_default="0"),
    Column("counted_from", TEXT),
    Column("next_event", _ROW_ID, nullable=False, server_default="1"),
    Column("created", TEXT, nullable=False),
    Column("started", TEXT),
    Column("ended", TEXT),
    Column("summary", Words),
    Column("error", TEXT),
    UniqueConstraint("run_id"),
)
Index("runs_agent", runs.c.agent, runs.c.status, runs.c.id)
Index("runs_lease", runs.c.status, runs.c.lease_until)
Index("runs_project", runs.c.project, runs.c.id)
_ended = runs.c.ended
Index("runs_ended", _ended, sqlite_where=_ended.is_not(None), postgresql_where=_ended.is_not(None))

run_events = Table(
    "run_events",
    metadata,
    _key("run", "runs.id"),
    Column("id", _ROW_ID, primary_key=True, autoincrement=False, nullable=False),
    Column("event", TEXT, nullable=False),
    Column("data", TEXT, nullable=False),
    Column("ts", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

messages = Table(
    "messages",
    metadata,
    _id(),
    Column("message_id", Words, nullable=False),
    _reference("space", "spaces.id"),
    Column("seq", _ROW_ID, CheckConstraint("seq >= 1"), nullable=False),
    Column("revision", Integer, nullable=False, server_default="1"),
    Column("kind", TEXT, CheckConstraint("kind IN ('text', 'tool_call')"), nullable=False),
    _reference("entity", "entities.id"),
    _reference("run", "runs.id", nullable=True),
    _reference("call", "calls.id", nullable=True, ondelete="SET NULL"),
    # The id of the tool call: it is known before the call is registered, while its arguments stream.
    Column("stream_id", Words),
    Column("reply_to", Words),
    # Of a tool call's record; NULL for text.
    Column("state", TEXT),
    Column("body", TEXT, nullable=False),
    Column("ts", TEXT, nullable=False),
    Column("updated", TEXT, nullable=False),
    UniqueConstraint("message_id"),
    UniqueConstraint("space", "seq"),
)
_call, _stream, _run = messages.c.call, messages.c.stream_id, messages.c.run
Index("messages_run", _run, sqlite_where=_run.is_not(None), postgresql_where=_run.is_not(None))
Index("messages_call", _call, sqlite_where=_call.is_not(None), postgresql_where=_call.is_not(None))
Index(
    "messages_stream",
    messages.c.run,
    _stream,
    sqlite_where=_stream.is_not(None),
    postgresql_where=_stream.is_not(None),
)

space_events = Table(
    "space_events",
    metadata,
    _key("space", "spaces.id"),
    Column("id", _ROW_ID, primary_key=True, autoincrement=False, nullable=False),
    Column("event", TEXT, nullable=False),
    Column("data", TEXT, nullable=False),
    Column("ts", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

waits = Table(
    "waits",
    metadata,
    _id(),
    Column("wait_id", Words, nullable=False),
    _reference("run", "runs.id", nullable=True),
    _reference("call", "calls.id", ondelete="CASCADE"),
    Column(
        "kind",
        TEXT,
        CheckConstraint("kind IN ('space', 'approval', 'external', 'reply', 'elicitation')"),
        nullable=False,
    ),
    _reference("space", "spaces.id", nullable=True),
    _reference("message", "messages.id", nullable=True),
    Column(
        "state",
        TEXT,
        CheckConstraint("state IN ('pending', 'answered', 'expired', 'cancelled')"),
        nullable=False,
    ),
    Column("created", TEXT, nullable=False),
    Column("expires", TEXT, nullable=False),
    Column("spec", TEXT, nullable=False),
    Column("answer", TEXT),
    Column("answer_sha256", TEXT),
    Column("answered_by", Words),
    Column("answered", TEXT),
    UniqueConstraint("wait_id"),
)
Index("waits_expires", waits.c.state, waits.c.expires)
Index("waits_space", waits.c.space, waits.c.state)
Index("waits_call", waits.c.call)
Index("waits_run", waits.c.run, waits.c.state)

# Which message a wait for replies is about and who may answer it; one row for each awaited entity.
reply_waits = Table(
    "reply_waits",
    metadata,
    _id(),
    _reference("wait", "waits.id", ondelete="CASCADE"),
    # NULL: the first message of anyone answers.
    _reference("entity", "entities.id", nullable=True),
    _reference("message", "messages.id"),
    # The message that answered, and when; NULL until then.
    _reference("reply", "messages.id", nullable=True),
    Column("responded", TEXT),
    UniqueConstraint("wait", "entity"),
    CheckConstraint("(reply IS NULL) = (responded IS NULL)"),
)
Index("reply_waits_message", reply_waits.c.message)

goals = Table(
    "goals",
    metadata,
    _id(),
    _reference("agent", "agents.id"),
    Column("goal_id", Words, nullable=False),
    Column("description", Words, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("is_long_term", Integer, CheckConstraint("is_long_term IN (0, 1)"), nullable=False),
    Column("status", TEXT, CheckConstraint("status IN ('active', 'completed', 'abandoned')"), nullable=False),
    Column("created", TEXT, nullable=False),
    Column("updated", TEXT, nullable=False),
    UniqueConstraint("agent", "goal_id"),
)

memories = Table(
    "memories",
    metadata,
    _id(),
    _reference("agent", "agents.id"),
    Column("key", Words, nullable=False),
    Column("value", Words, nullable=False),
    Column("topic", Words),
    Column("created", TEXT, nullable=False),
    Column("updated", TEXT, nullable=False),
    UniqueConstraint("agent", "key"),
)

plans = Table(
    "plans",
    metadata,
    _id(),
    _reference("agent", "agents.id"),
    Column("plan_id", Words, nullable=False),
    Column("name", Words, nullable=False),
    Column("instruction", Words, nullable=False),
    # Either the time of a plan that fires once, or the schedule of one that repeats.
    Column("run_at", TEXT),
    Column("cron", Words),
    Column("time_zone", Words),
    Column("status", TEXT, CheckConstraint(_PLAN_STATES), nullable=False),
    # NULL: it does not fire any more. Who moves it on fires the plan.
    Column("next_run", TEXT),
    Column("last_run", TEXT),
    # The newest time at which it did not fire, because the service was down for too long.
    Column("missed", TEXT),
    # Of its newest runs, as a JSON list.
    Column("run_ids", TEXT, nullable=False, server_default="[]"),
    Column("created", TEXT, nullable=False),
    Column("updated", TEXT, nullable=False),
    UniqueConstraint("agent", "plan_id"),
    CheckConstraint("(run_at IS NULL) = (cron IS NOT NULL)"),
    CheckConstraint("(status = 'pending') = (next_run IS NOT NULL)"),
)
_next = plans.c.next_run
Index("plans_next_run", _next, sqlite_where=_next.is_not(None), postgresql_where=_next.is_not(None))

# Answers of creating routes by the `Idempotency-Key` of their requests; calls have `idempotency_keys`.
created_records = Table(
    "created_records",
    metadata,
    _key("principal", "principals.id"),
    Column("name", Words, primary_key=True, nullable=False),
    Column("request_sha256", TEXT, nullable=False),
    Column("status", Integer, nullable=False),
    Column("answer", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    sqlite_with_rowid=False,
)
Index("created_records_created", created_records.c.created)

__all__ = [
    "agent_versions",
    "agents",
    "created_records",
    "entities",
    "goals",
    "members",
    "memories",
    "messages",
    "metadata",
    "plans",
    "projects",
    "reply_waits",
    "run_events",
    "runs",
    "space_events",
    "spaces",
    "waits",
]
