"""The log of a conversation."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the table of blocks; what base64 says is kept as bytes beside the rest of its block."""
    op.create_table(
        "blocks",
        sa.Column(
            "conversation", _ROW_ID, sa.ForeignKey("conversations.id"), primary_key=True, autoincrement=False
        ),
        sa.Column(
            "position", sa.Integer, sa.CheckConstraint("position >= 1"), primary_key=True, autoincrement=False
        ),
        sa.Column("call_id", _TEXT),
        sa.Column("path", _TEXT, nullable=False),
        sa.Column("block", _TEXT, nullable=False),
        sa.Column("content", sa.LargeBinary),
    )
    op.create_index(
        "blocks_path",
        "blocks",
        ["conversation", "path", "position"],
        postgresql_where=sa.text("length(path) <= 600"),
    )
