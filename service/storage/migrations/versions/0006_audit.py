"""The audit lines of calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the chains and their lines; calls that were answered before have none."""
    op.create_table(
        "chains",
        sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True),
        sa.Column("tenant", _TEXT, nullable=False),
        sa.Column("project", _TEXT, nullable=False),
        sa.UniqueConstraint("tenant", "project"),
    )
    op.create_table(
        "audit",
        sa.Column(
            "chain", _ROW_ID, sa.ForeignKey("chains.id"), primary_key=True, nullable=False, autoincrement=False
        ),
        sa.Column(
            "seq", _ROW_ID, sa.CheckConstraint("seq >= 1"), primary_key=True, nullable=False, autoincrement=False
        ),
        sa.Column("call", _ROW_ID, sa.ForeignKey("calls.id", ondelete="SET NULL"), unique=True),
        sa.Column("ended", _TEXT, nullable=False),
        sa.Column("sha256", _TEXT, nullable=False),
        sa.Column("line", _TEXT, nullable=False),
    )
