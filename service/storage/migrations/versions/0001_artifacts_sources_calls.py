"""Artifacts, sources and calls."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _id() -> sa.Column[int]:
    return sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True)


def _text(name: str, *more: sa.CheckConstraint, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *more, nullable=nullable)


def _reference(name: str, to: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(name, _ROW_ID, sa.ForeignKey(to), primary_key=primary_key, nullable=False, autoincrement=False)


def upgrade() -> None:
    """Makes the tables; the row ids of PostgreSQL are as wide as those of SQLite."""
    on_postgres = op.get_context().dialect.name == "postgresql"
    op.create_table(
        "principals",
        _id(),
        *[_text(name) for name in ("tenant", "project", "user_type", "user")],
        sa.UniqueConstraint("tenant", "project", "user_type", "user"),
    )
    op.create_table(
        "conversations",
        _id(),
        _reference("principal", "principals.id"),
        _text("name"),
        sa.UniqueConstraint("principal", "name"),
    )
    op.create_table(
        "artifacts",
        _id(),
        _reference("conversation", "conversations.id"),
        _text("turn"),
        _text("namespace", sa.CheckConstraint("namespace IN ('files', 'attachments')")),
        _text("rel"),
        sa.Column("version", sa.Integer, sa.CheckConstraint("version >= 1"), nullable=False),
        _text("sha256"),
        sa.Column("size_bytes", _ROW_ID, sa.CheckConstraint("size_bytes >= 0"), nullable=False),
        _text("mime"),
        _text("visibility", sa.CheckConstraint("visibility IN ('external', 'internal')")),
        _text("description"),
        _text("tool_call_id", nullable=True),
        _text("created"),
        _text("hosted_name", nullable=True),
        sa.UniqueConstraint("conversation", "turn", "namespace", "rel", "version"),
        sa.CheckConstraint("(visibility = 'external') = (hosted_name IS NOT NULL)"),
    )
    op.create_index("artifacts_sha256", "artifacts", ["sha256"])
    if on_postgres:
        op.create_index("artifacts_hosted", "artifacts", ["hosted_name"], postgresql_using="hash")
    else:
        hosted = sa.text("hosted_name IS NOT NULL")
        op.create_index("artifacts_hosted", "artifacts", ["hosted_name", "version"], sqlite_where=hosted)
    op.create_table("unfinished", sa.Column("name", _TEXT, primary_key=True), sqlite_with_rowid=False)
    op.create_table(
        "sources",
        _reference("conversation", "conversations.id", primary_key=True),
        sa.Column("sid", sa.Integer, primary_key=True, autoincrement=False),
        _text("file", nullable=True),
        _text("source"),
    )
    op.create_index(
        "sources_file",
        "sources",
        ["conversation", "file", "sid"],
        sqlite_where=sa.text("file IS NOT NULL"),
        postgresql_where=sa.text("length(file) <= 600"),
    )
    _make_calls()


def _make_calls() -> None:
    op.create_table(
        "calls",
        _id(),
        _reference("conversation", "conversations.id"),
        _text("tool_call_id"),
        _text("payload_sha256"),
        _text("state", sa.CheckConstraint("state IN ('open', 'done', 'failed', 'cancelled')")),
        _text("boot_id"),
        _text("created"),
        _text("request"),
        _text("answer", nullable=True),
        sa.UniqueConstraint("conversation", "tool_call_id"),
        sa.CheckConstraint("(state = 'open') = (answer IS NULL)"),
    )
    op.create_index("calls_tool_call_id", "calls", ["tool_call_id"])
    is_open = sa.text("state = 'open'")
    op.create_index("calls_open", "calls", ["boot_id"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_table(
        "idempotency_keys",
        _reference("principal", "principals.id", primary_key=True),
        sa.Column("name", _TEXT, primary_key=True),
        sa.Column("call", _ROW_ID, sa.ForeignKey("calls.id", ondelete="CASCADE"), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idempotency_keys_call", "idempotency_keys", ["call"])
