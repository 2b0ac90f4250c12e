"""Agents, runs, spaces and waits; calls belong to runs and can wait."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_RUN_STATES = "status IN ('queued', 'running', 'waiting_tool', 'waiting_reply', 'completed', 'failed', 'cancelled')"


def upgrade() -> None:
    """Create the tables and change the one of the calls."""
    _create_agents()
    _create_spaces()
    _create_runs()
    if op.get_bind().dialect.name == "sqlite":
        _change_calls_of_sqlite()
    else:
        _change_calls()
    is_of_run = sa.text("run IS NOT NULL")
    op.create_index("calls_run", "calls", ["run", "id"], sqlite_where=is_of_run, postgresql_where=is_of_run)
    op.create_index("calls_recent", "calls", ["conversation", "created"])
    _create_messages()
    _create_waits()
    op.create_table(
        "created_records",
        _key("principal", "principals.id"),
        _text("name", primary_key=True),
        _text("request_sha256"),
        sa.Column("status", sa.Integer, nullable=False),
        *_texts("answer", "created"),
        sqlite_with_rowid=False,
    )


def _change_calls() -> None:
    op.add_column("calls", _reference("run", "runs.id", nullable=True, ondelete="SET NULL"))
    op.execute("ALTER TABLE calls DROP CONSTRAINT calls_check")
    op.execute("ALTER TABLE calls DROP CONSTRAINT calls_state_check")
    op.execute("ALTER TABLE calls ADD CHECK (state IN ('open', 'waiting', 'done', 'failed', 'cancelled'))")
    op.execute("ALTER TABLE calls ADD CHECK ((state IN ('open', 'waiting')) = (answer IS NULL))")


def _change_calls_of_sqlite() -> None:
    """Edit the stored text of the table: a copy of it would remove the rows that refer to the original.

    SQLite documents this way for constraints; rows that were written before have NULL in the last column.
    https://www.sqlite.org/lang_altertable.html#otheralter
    """
    bind = op.get_bind()
    table = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'calls'")
    sql = bind.execute(table).scalar_one()
    for before, after in (
        ("state IN ('open', 'done'", "state IN ('open', 'waiting', 'done'"),
        ("(state = 'open')", "(state IN ('open', 'waiting'))"),
        ("partial_response TEXT,", "partial_response TEXT, run INTEGER,"),
        (
            "FOREIGN KEY(conversation) REFERENCES conversations (id)",
            (
                "FOREIGN KEY(conversation) REFERENCES conversations (id), "
                "FOREIGN KEY(run) REFERENCES runs (id) ON DELETE SET NULL"
            ),
        ),
    ):
        if sql.count(before) != 1:
            raise ValueError(f"calls: the table of the database is not the one of revision 0003: {sql}")
        sql = sql.replace(before, after)
    bind.exec_driver_sql("PRAGMA writable_schema = ON")
    update = sa.text("UPDATE sqlite_master SET sql = :sql WHERE type = 'table' AND name = 'calls'")
    bind.execute(update, {"sql": sql})
    bind.exec_driver_sql("PRAGMA writable_schema = RESET")


def _create_agents() -> None:
    op.create_table("projects", _id(), *_texts("tenant", "project"), sa.UniqueConstraint("tenant", "project"))
    op.create_table(
        "agents",
        _id(),
        _reference("project", "projects.id"),
        _text("agent_id"),
        sa.Column("current", sa.Integer, sa.CheckConstraint("current >= 1"), nullable=False),
        sa.Column("secret_generation", sa.Integer, nullable=False, server_default="1"),
        _text("rotated", nullable=True),
        _text("created"),
        _text("deleted", nullable=True),
        sa.UniqueConstraint("project", "agent_id"),
    )
    op.create_table(
        "agent_versions",
        _key("agent", "agents.id"),
        sa.Column(
            "version",
            sa.Integer,
            sa.CheckConstraint("version >= 1"),
            primary_key=True,
            autoincrement=False,
            nullable=False,
        ),
        *_texts("sha256", "config", "created"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "entities",
        _id(),
        _reference("project", "projects.id"),
        _text("entity_id"),
        _text("type", sa.CheckConstraint("type IN ('human', 'agent')")),
        *_texts("handle", "handle_folded", nullable=True),
        _text("display_name"),
        _text("user", nullable=True),
        _reference("agent", "agents.id", nullable=True),
        _text("created"),
        sa.UniqueConstraint("project", "entity_id"),
        sa.UniqueConstraint("project", "handle_folded"),
        sa.UniqueConstraint("project", "user"),
        sa.CheckConstraint("(type = 'agent') = (agent IS NOT NULL)"),
    )
    op.create_index("entities_agent", "entities", ["agent"])


def _create_spaces() -> None:
    op.create_table(
        "spaces",
        _id(),
        _reference("project", "projects.id"),
        *_texts("space_id", "name"),
        _text("metadata", server_default="{}"),
        _text("created"),
        _text("archived", nullable=True),
        sa.Column("next_seq", _ROW_ID, nullable=False, server_default="1"),
        sa.Column("next_event", _ROW_ID, nullable=False, server_default="1"),
        sa.UniqueConstraint("space_id"),
    )
    op.create_index("spaces_project", "spaces", ["project", "id"])
    op.create_table(
        "members",
        _key("space", "spaces.id"),
        _key("entity", "entities.id"),
        _text("joined"),
        sa.Column("seen_seq", _ROW_ID, nullable=False, server_default="0"),
        sqlite_with_rowid=False,
    )
    op.create_index("members_entity", "members", ["entity"])
    _create_events("space")


def _create_runs() -> None:
    op.create_table(
        "runs",
        _id(),
        _reference("project", "projects.id"),
        _text("run_id"),
        _reference("agent", "agents.id"),
        sa.Column("version", sa.Integer, nullable=False),
        _reference("principal", "principals.id", nullable=True),
        _text("conversation"),
        _text("status", sa.CheckConstraint(_RUN_STATES)),
        _text("trigger"),
        _text("metadata", server_default="{}"),
        sa.Column("chain_depth", sa.Integer, nullable=False, server_default="0"),
        _reference("space", "spaces.id", nullable=True),
        sa.Column("lease", sa.Integer, nullable=False, server_default="0"),
        *_texts("lease_until", "holder", nullable=True),
        sa.Column("attempt", sa.Integer, nullable=False, server_default="1"),
        _text("tools", nullable=True),
        _text("warnings", server_default="[]"),
        sa.Column("worked_s", sa.Float, nullable=False, server_default="0"),
        _text("counted_from", nullable=True),
        sa.Column("next_event", _ROW_ID, nullable=False, server_default="1"),
        _text("created"),
        *_texts("started", "ended", "summary", "error", nullable=True),
        sa.UniqueConstraint("run_id"),
    )
    op.create_index("runs_agent", "runs", ["agent", "status", "id"])
    op.create_index("runs_lease", "runs", ["status", "lease_until"])
    op.create_index("runs_project", "runs", ["project", "id"])
    _create_events("run")


def _create_messages() -> None:
    op.create_table(
        "messages",
        _id(),
        _text("message_id"),
        _reference("space", "spaces.id"),
        sa.Column("seq", _ROW_ID, sa.CheckConstraint("seq >= 1"), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False, server_default="1"),
        _text("kind", sa.CheckConstraint("kind IN ('text', 'tool_call')")),
        _reference("entity", "entities.id"),
        _reference("run", "runs.id", nullable=True),
        _reference("call", "calls.id", nullable=True, ondelete="SET NULL"),
        *_texts("stream_id", "reply_to", "state", nullable=True),
        *_texts("body", "ts", "updated"),
        sa.UniqueConstraint("message_id"),
        sa.UniqueConstraint("space", "seq"),
    )
    has_call, is_streamed = sa.text("call IS NOT NULL"), sa.text("stream_id IS NOT NULL")
    op.create_index("messages_call", "messages", ["call"], sqlite_where=has_call, postgresql_where=has_call)
    op.create_index(
        "messages_stream", "messages", ["run", "stream_id"], sqlite_where=is_streamed, postgresql_where=is_streamed
    )


def _create_waits() -> None:
    kinds = "kind IN ('space', 'approval', 'external', 'reply', 'elicitation')"
    op.create_table(
        "waits",
        _id(),
        _text("wait_id"),
        _reference("run", "runs.id", nullable=True),
        _reference("call", "calls.id", ondelete="CASCADE"),
        _text("kind", sa.CheckConstraint(kinds)),
        _reference("space", "spaces.id", nullable=True),
        _reference("message", "messages.id", nullable=True),
        _text("state", sa.CheckConstraint("state IN ('pending', 'answered', 'expired', 'cancelled')")),
        *_texts("created", "expires", "spec"),
        *_texts("answer", "answer_sha256", "answered_by", "answered", nullable=True),
        sa.UniqueConstraint("wait_id"),
    )
    op.create_index("waits_expires", "waits", ["state", "expires"])
    op.create_index("waits_space", "waits", ["space", "state"])
    op.create_index("waits_call", "waits", ["call"])
    op.create_index("waits_run", "waits", ["run", "state"])


def _create_events(of: str) -> None:
    op.create_table(
        f"{of}_events",
        _key(of, f"{of}s.id"),
        sa.Column("id", _ROW_ID, primary_key=True, autoincrement=False, nullable=False),
        *_texts("event", "data", "ts"),
        sqlite_with_rowid=False,
    )


def _id() -> sa.Column[int]:
    return sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True)


def _text(
    name: str,
    *more: sa.CheckConstraint,
    nullable: bool = False,
    primary_key: bool = False,
    server_default: str | None = None,
) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *more, nullable=nullable, primary_key=primary_key, server_default=server_default)


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [_text(name, nullable=nullable) for name in names]


def _reference(name: str, to: str, *, nullable: bool = False, ondelete: str | None = None) -> sa.Column[int]:
    return sa.Column(name, _ROW_ID, sa.ForeignKey(to, ondelete=ondelete), nullable=nullable, autoincrement=False)


def _key(name: str, to: str) -> sa.Column[int]:
    return sa.Column(name, _ROW_ID, sa.ForeignKey(to), primary_key=True, nullable=False, autoincrement=False)
