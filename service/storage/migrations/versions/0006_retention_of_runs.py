"""Indexes by which retention finds ended runs, their messages and old answers of idempotency keys."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the indexes."""
    has_ended, is_of_run = sa.text("ended IS NOT NULL"), sa.text("run IS NOT NULL")
    op.create_index("runs_ended", "runs", ["ended"], sqlite_where=has_ended, postgresql_where=has_ended)
    op.create_index("messages_run", "messages", ["run"], sqlite_where=is_of_run, postgresql_where=is_of_run)
    op.create_index("created_records_created", "created_records", ["created"])
