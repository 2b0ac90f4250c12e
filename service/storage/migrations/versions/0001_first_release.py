"""The schema of the first release; a later change of `service.storage.schema` is a revision of its own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Create all tables and indexes."""
    _create_conversations()
    _create_artifacts()
    _create_sources()
    _create_calls()
    _create_audit()
    _create_blocks()
    _create_passages()
    op.create_table(
        "api_keys",
        _text("id", primary_key=True),
        *_texts("name", "tenant"),
        *_texts("project", "user_type", "user", nullable=True),
        *_texts("permissions", "limits", "sha256"),
        *_texts("old_sha256", "old_until", nullable=True),
        _text("created"),
        *_texts("expires", "revoked", "used", nullable=True),
    )


def _create_conversations() -> None:
    names = ("tenant", "project", "user_type", "user")
    op.create_table("principals", _id(), *_texts(*names), sa.UniqueConstraint(*names))
    op.create_table(
        "conversations",
        _id(),
        _reference("principal", "principals.id"),
        _text("name"),
        sa.UniqueConstraint("principal", "name"),
    )


def _create_artifacts() -> None:
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
        *_texts("hosted_name", "removed", nullable=True),
        sa.UniqueConstraint("conversation", "turn", "namespace", "rel", "version"),
        sa.CheckConstraint("(visibility = 'external') = (hosted_name IS NOT NULL)"),
    )
    op.create_index("artifacts_sha256", "artifacts", ["sha256"])
    op.create_index("artifacts_newest", "artifacts", ["conversation", "id"])
    is_hosted = sa.text("hosted_name IS NOT NULL")
    op.create_index(
        "artifacts_hosted", "artifacts", ["hosted_name"], sqlite_where=is_hosted, postgresql_using="hash"
    )
    op.create_table("unfinished", _id(), *_texts("save", "name"))
    op.create_index("unfinished_save", "unfinished", ["save"])
    op.create_index("unfinished_name", "unfinished", ["name"], postgresql_using="hash")


def _create_sources() -> None:
    op.create_table(
        "sources",
        _reference("conversation", "conversations.id", primary_key=True),
        sa.Column("sid", sa.Integer, primary_key=True, autoincrement=False),
        _text("file", nullable=True),
        _text("source"),
        _text("url", nullable=True),
    )
    _index_short("sources_file", "sources", "file", "sid")
    _index_short("sources_url", "sources", "url", "sid")


def _create_calls() -> None:
    op.create_table(
        "calls",
        _id(),
        _reference("conversation", "conversations.id"),
        *_texts("tool_call_id", "payload_sha256"),
        _text("state", sa.CheckConstraint("state IN ('open', 'done', 'failed', 'cancelled')")),
        *_texts("boot_id", "created", "request"),
        *_texts("answer", "partial_response", nullable=True),
        sa.UniqueConstraint("conversation", "tool_call_id"),
        sa.CheckConstraint("(state = 'open') = (answer IS NULL)"),
    )
    op.create_index("calls_tool_call_id", "calls", ["tool_call_id"])
    is_open = sa.text("state = 'open'")
    op.create_index("calls_open", "calls", ["boot_id"], sqlite_where=is_open, postgresql_where=is_open)
    op.create_table(
        "idempotency_keys",
        _reference("principal", "principals.id", primary_key=True),
        _text("name", primary_key=True),
        sa.Column("call", _ROW_ID, sa.ForeignKey("calls.id", ondelete="CASCADE"), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("idempotency_keys_call", "idempotency_keys", ["call"])


def _create_audit() -> None:
    op.create_table("chains", _id(), *_texts("tenant", "project"), sa.UniqueConstraint("tenant", "project"))
    op.create_table(
        "audit",
        _reference("chain", "chains.id", primary_key=True),
        sa.Column("seq", _ROW_ID, sa.CheckConstraint("seq >= 1"), primary_key=True, autoincrement=False),
        sa.Column("call", _ROW_ID, sa.ForeignKey("calls.id", ondelete="SET NULL"), unique=True),
        *_texts("ended", "sha256", "line"),
    )
    op.create_table("audit_keys", _text("public", primary_key=True), _text("added"), sqlite_with_rowid=False)


def _create_blocks() -> None:
    op.create_table(
        "blocks",
        _reference("conversation", "conversations.id", primary_key=True),
        sa.Column(
            "position", sa.Integer, sa.CheckConstraint("position >= 1"), primary_key=True, autoincrement=False
        ),
        _text("call_id", nullable=True),
        *_texts("path", "block"),
        sa.Column("content", sa.LargeBinary),
        _text("turn"),
        *_texts("describes", "hides", nullable=True),
    )
    op.create_index(
        "blocks_path",
        "blocks",
        ["conversation", "path", "position"],
        postgresql_where=sa.text("length(path) <= 600"),
    )
    _index_short("blocks_describes", "blocks", "describes", "position")
    _index_short("blocks_call", "blocks", "call_id", "position")
    hides = sa.text("hides IS NOT NULL")
    op.create_index(
        "blocks_hides", "blocks", ["conversation", "position"], sqlite_where=hides, postgresql_where=hides
    )
    op.create_index("blocks_turn", "blocks", ["conversation", "turn", "position"])
    op.create_table(
        "turns",
        _reference("conversation", "conversations.id", primary_key=True),
        _text("turn", primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_passages() -> None:
    op.create_table(
        "passages",
        _id(),
        _reference("conversation", "conversations.id"),
        sa.Column("position", sa.Integer, nullable=False),
        *_texts("turn", "target", "ts", "path", "text"),
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_index("passages_conversation", "passages", ["conversation", "target", "ts"])
    op.create_table(
        "passages_through",
        _reference("conversation", "conversations.id", primary_key=True),
        sa.Column("position", sa.Integer, nullable=False),
    )


def _id() -> sa.Column[int]:
    return sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True)


def _text(
    name: str, *more: sa.CheckConstraint, nullable: bool = False, primary_key: bool = False
) -> sa.Column[str]:
    return sa.Column(name, _TEXT, *more, nullable=nullable, primary_key=primary_key)


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [_text(name, nullable=nullable) for name in names]


def _reference(name: str, to: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(name, _ROW_ID, sa.ForeignKey(to), primary_key=primary_key, nullable=False, autoincrement=False)


def _index_short(name: str, table: str, column: str, last: str) -> None:
    """Index a column that may be NULL; PostgreSQL indexes no long texts."""
    op.create_index(
        name,
        table,
        ["conversation", column, last],
        sqlite_where=sa.text(f"{column} IS NOT NULL"),
        postgresql_where=sa.text(f"length({column}) <= 600"),
    )
