"""Goals, memories and plans of agents, and whose replies a wait is for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the tables and their indexes."""
    _create_reply_waits()
    op.create_table(
        "goals",
        _id(),
        _reference("agent", "agents.id"),
        *_texts("goal_id", "description"),
        sa.Column("priority", sa.Integer, nullable=False),
        sa.Column("is_long_term", sa.Integer, sa.CheckConstraint("is_long_term IN (0, 1)"), nullable=False),
        _text("status", sa.CheckConstraint("status IN ('active', 'completed', 'abandoned')")),
        *_texts("created", "updated"),
        sa.UniqueConstraint("agent", "goal_id"),
    )
    op.create_table(
        "memories",
        _id(),
        _reference("agent", "agents.id"),
        *_texts("key", "value"),
        _text("topic", nullable=True),
        *_texts("created", "updated"),
        sa.UniqueConstraint("agent", "key"),
    )
    _create_plans()


def _create_reply_waits() -> None:
    op.create_table(
        "reply_waits",
        _id(),
        _reference("wait", "waits.id", ondelete="CASCADE"),
        _reference("entity", "entities.id", nullable=True),
        _reference("message", "messages.id"),
        _reference("reply", "messages.id", nullable=True),
        _text("responded", nullable=True),
        sa.UniqueConstraint("wait", "entity"),
        sa.CheckConstraint("(reply IS NULL) = (responded IS NULL)"),
    )
    op.create_index("reply_waits_message", "reply_waits", ["message"])


def _create_plans() -> None:
    states = "status IN ('pending', 'completed', 'cancelled', 'missed')"
    op.create_table(
        "plans",
        _id(),
        _reference("agent", "agents.id"),
        *_texts("plan_id", "name", "instruction"),
        *_texts("run_at", "cron", "time_zone", nullable=True),
        _text("status", sa.CheckConstraint(states)),
        *_texts("next_run", "last_run", "missed", nullable=True),
        _text("run_ids", server_default="[]"),
        *_texts("created", "updated"),
        sa.UniqueConstraint("agent", "plan_id"),
        sa.CheckConstraint("(run_at IS NULL) = (cron IS NOT NULL)"),
        sa.CheckConstraint("(status = 'pending') = (next_run IS NOT NULL)"),
    )
    fires = sa.text("next_run IS NOT NULL")
    op.create_index("plans_next_run", "plans", ["next_run"], sqlite_where=fires, postgresql_where=fires)


def _id() -> sa.Column[int]:
    return sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True)


def _text(
    name: str, *more: sa.CheckConstraint, nullable: bool = False, server_default: str | None = None
) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *more, nullable=nullable, server_default=server_default)


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [_text(name, nullable=nullable) for name in names]


def _reference(name: str, to: str, *, nullable: bool = False, ondelete: str | None = None) -> sa.Column[int]:
    return sa.Column(name, _ROW_ID, sa.ForeignKey(to, ondelete=ondelete), nullable=nullable, autoincrement=False)
