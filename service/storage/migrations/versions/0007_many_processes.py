"""Calls that workers run, and the processes of a service."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_STATES = "state IN ('queued', 'claimed', 'started', 'suspended', 'dead')"


def upgrade() -> None:
    """Create the tables and their indexes."""
    op.create_table(
        "dispatches",
        sa.Column(
            "call",
            _ROW_ID,
            sa.ForeignKey("calls.id", ondelete="CASCADE"),
            primary_key=True,
            nullable=False,
            autoincrement=False,
        ),
        sa.Column("state", _TEXT, sa.CheckConstraint(_STATES), nullable=False),
        sa.Column("claim", sa.Integer, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("worker", _TEXT),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("deadline", sa.Double),
        sa.Column("stop", _TEXT, sa.CheckConstraint("stop IN ('cancelled', 'abandoned')")),
        sa.Column("detached", sa.Integer, sa.CheckConstraint("detached IN (0, 1)"), nullable=False),
        sa.Column("events", sa.Integer, nullable=False),
        sa.Column("key_id", _TEXT),
        sa.Column("request_id", _TEXT, nullable=False),
        sa.Column("reason", _TEXT),
        sa.Column("outcome", _TEXT),
        sa.CheckConstraint("(state IN ('claimed', 'started')) = (worker IS NOT NULL)"),
    )
    op.create_index("dispatches_due", "dispatches", ["state", "due"])
    op.create_index("dispatches_worker", "dispatches", ["worker"])
    op.create_table(
        "members_of_service",
        sa.Column("boot_id", _TEXT, primary_key=True),
        sa.Column("role", _TEXT, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "leaders",
        sa.Column("name", _TEXT, primary_key=True),
        sa.Column("boot_id", _TEXT, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
