"""Accepted calls that wait for a slot: the next start runs them."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column; of the calls that are open nobody knows whether they had begun."""
    op.add_column("calls", sa.Column("queued", sa.Integer(), nullable=False, server_default="0"))
