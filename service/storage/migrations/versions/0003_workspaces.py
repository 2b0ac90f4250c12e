"""The workspaces of conversations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create the table and its indexes."""
    op.create_table(
        "workspaces",
        sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True),
        sa.Column("conversation", _ROW_ID, sa.ForeignKey("conversations.id"), nullable=False),
        *(sa.Column(name, _TEXT, nullable=False) for name in ("turn", "tool_call_id", "sha256")),
        sa.Column("size_bytes", _ROW_ID, sa.CheckConstraint("size_bytes >= 0"), nullable=False),
        sa.Column("entries", sa.Integer, nullable=False),
        sa.Column("covers", _ROW_ID, nullable=False),
        sa.Column("created", _TEXT, nullable=False),
    )
    op.create_index("workspaces_newest", "workspaces", ["conversation", "id"])
    op.create_index("workspaces_sha256", "workspaces", ["sha256"])
