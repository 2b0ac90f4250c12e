"""What calls had done when they were cancelled."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the column; calls that were cancelled before have nothing in it."""
    text = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    op.add_column("calls", sa.Column("partial_response", text))
