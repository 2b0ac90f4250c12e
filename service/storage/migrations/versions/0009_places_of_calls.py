"""The places of calls of runs in spaces, as their acceptance bound them: another process may run them."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0009"
down_revision = "0008"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column."""
    op.add_column("calls", sa.Column("place", _TEXT))
