"""Calls that were refused before anything ran: their ids may be used again."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column."""
    op.add_column("calls", sa.Column("refused", sa.Integer()))
