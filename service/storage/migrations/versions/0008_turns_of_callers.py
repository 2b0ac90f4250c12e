"""Turns of callers in the queue of many processes, and the settings and releases of those."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the columns and indexes."""
    op.add_column("dispatches", sa.Column("caller", _TEXT, nullable=False, server_default=""))
    for name in ("caller_max", "is_deferred"):
        op.add_column("dispatches", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.create_index("dispatches_caller", "dispatches", ["caller", "state", "is_deferred"])
    is_deferred = sa.text("is_deferred = 1")
    op.create_index(
        "dispatches_deferred",
        "dispatches",
        ["caller", "call"],
        sqlite_where=is_deferred,
        postgresql_where=is_deferred,
    )
    for name, default in (("release", ""), ("settings", "{}")):
        op.add_column("members_of_service", sa.Column(name, _TEXT, nullable=False, server_default=default))
