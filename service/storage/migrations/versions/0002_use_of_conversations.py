"""When conversations were created and used, and which of their files were deleted.

Conversations of earlier releases get the times of their calls and files; those without any count as used now.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# A block's own time is the loop's; that of the calls and files is the service's.
_TIMES = """
    UPDATE conversations SET
        created = COALESCE((
            SELECT MIN(times.at) FROM (
                SELECT calls.created AS at FROM calls WHERE calls.conversation = conversations.id
                UNION ALL
                SELECT artifacts.created AS at FROM artifacts WHERE artifacts.conversation = conversations.id
            ) AS times
        ), :now),
        used = COALESCE((
            SELECT MAX(times.at) FROM (
                SELECT calls.created AS at FROM calls WHERE calls.conversation = conversations.id
                UNION ALL
                SELECT artifacts.created AS at FROM artifacts WHERE artifacts.conversation = conversations.id
            ) AS times
        ), :now)
"""


def upgrade() -> None:
    """Add the columns, the table and the indexes."""
    for name in ("created", "used"):
        op.add_column("conversations", sa.Column(name, _TEXT, nullable=False, server_default=""))
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    op.get_bind().execute(sa.text(_TIMES), {"now": now})
    op.create_index("conversations_principal", "conversations", ["principal", "id"])
    op.create_index("conversations_used", "conversations", ["used"])
    op.create_table(
        "deleted_files",
        sa.Column(
            "conversation",
            _ROW_ID,
            sa.ForeignKey("conversations.id"),
            primary_key=True,
            nullable=False,
            autoincrement=False,
        ),
        *(sa.Column(name, _TEXT, primary_key=True, nullable=False) for name in ("turn", "namespace", "rel")),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("deleted", _TEXT, nullable=False),
        sqlite_with_rowid=False,
    )
