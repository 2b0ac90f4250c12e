"""Turns of callers in the queue of many processes, their shared workspaces, settings and releases."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")

_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Add the columns and indexes."""
    op.add_column("dispatches", sa.Column("caller", _TEXT, nullable=False, server_default=""))
    for name in ("caller_max", "is_deferred"):
        op.add_column("dispatches", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    op.add_column("dispatches", sa.Column("workspace", _ROW_ID))
    op.create_index("dispatches_caller", "dispatches", ["caller", "state", "is_deferred"])
    is_deferred = sa.text("is_deferred = 1")
    op.create_index(
        "dispatches_deferred",
        "dispatches",
        ["caller", "call"],
        sqlite_where=is_deferred,
        postgresql_where=is_deferred,
    )
    has_workspace = sa.text("workspace IS NOT NULL")
    op.create_index(
        "dispatches_workspace",
        "dispatches",
        ["workspace"],
        sqlite_where=has_workspace,
        postgresql_where=has_workspace,
    )
    for name, default in (("release", ""), ("settings", "{}")):
        op.add_column("members_of_service", sa.Column(name, _TEXT, nullable=False, server_default=default))
