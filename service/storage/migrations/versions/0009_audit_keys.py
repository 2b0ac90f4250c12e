"""The public keys that heads of audit lines are signed with."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Makes the table; lines of an older release are signed by the first key that the service makes."""
    op.create_table(
        "audit_keys",
        sa.Column("public", _TEXT, primary_key=True),
        sa.Column("added", _TEXT, nullable=False),
        sqlite_with_rowid=False,
    )
