"""The schema of the records; `service.storage.migrations` creates it and upgrades older databases to it."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    UniqueConstraint,
    and_,
    func,
    literal_column,
)

from proofbox.service.storage.text_columns import TEXT, Words, storable

_SHORT = 600
"""Characters of a text that PostgreSQL indexes: an index entry has 2,704 bytes, and a path or URL may be longer."""

# SQLite's own row ids are 64 bits wide under the name INTEGER only.
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()


def _conversation(*, primary_key: bool = False) -> Column[int]:
    return Column(
        "conversation",
        _ROW_ID,
        ForeignKey("conversations.id"),
        primary_key=primary_key,
        nullable=False,
        autoincrement=False,
    )


def short(column: Column[str]) -> ColumnElement[bool]:
    """Whether the index of a column has the text; PostgreSQL uses the index only with this condition."""
    return func.length(column) <= literal_column(str(_SHORT))


def is_text(column: Column[str], text: str) -> ColumnElement[bool]:
    """Whether a column equals a text, in a form with which PostgreSQL uses its index of short texts."""
    equal = column == text
    return and_(equal, short(column)) if is_short(text) else equal


def is_short(text: str) -> bool:
    """Whether the index has a text as it is stored."""
    return len(storable(text)) <= _SHORT


principals = Table(
    "principals",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    Column("tenant", Words, nullable=False),
    Column("project", Words, nullable=False),
    Column("user_type", Words, nullable=False),
    Column("user", Words, nullable=False),
    UniqueConstraint("tenant", "project", "user_type", "user"),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    Column("principal", _ROW_ID, ForeignKey("principals.id"), nullable=False),
    Column("name", Words, nullable=False),
    # When it was first and last written to; `used` to the minute, so that a call writes it at most once.
    Column("created", TEXT, nullable=False, server_default=""),
    Column("used", TEXT, nullable=False, server_default=""),
    UniqueConstraint("principal", "name"),
)
Index("conversations_principal", conversations.c.principal, conversations.c.id)
Index("conversations_used", conversations.c.used)

artifacts = Table(
    "artifacts",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    _conversation(),
    Column("turn", Words, nullable=False),
    Column("namespace", TEXT, CheckConstraint("namespace IN ('files', 'attachments')"), nullable=False),
    Column("rel", Words, nullable=False),
    Column("version", Integer, CheckConstraint("version >= 1"), nullable=False),
    Column("sha256", TEXT, nullable=False),
    Column("size_bytes", _ROW_ID, CheckConstraint("size_bytes >= 0"), nullable=False),
    Column("mime", Words, nullable=False),
    Column("visibility", TEXT, CheckConstraint("visibility IN ('external', 'internal')"), nullable=False),
    Column("description", Words, nullable=False),
    Column("tool_call_id", Words),
    Column("created", TEXT, nullable=False),
    Column("hosted_name", Words),
    # When a program removed the file: its turn's workspace does not have it until a later version.
    Column("removed", TEXT),
    UniqueConstraint("conversation", "turn", "namespace", "rel", "version"),
    CheckConstraint("(visibility = 'external') = (hosted_name IS NOT NULL)"),
)
Index("artifacts_sha256", artifacts.c.sha256)
# The newest files of a conversation, however many it has.
Index("artifacts_newest", artifacts.c.conversation, artifacts.c.id)
_hosted = artifacts.c.hosted_name
# Only compared as a whole; it may have thousands of bytes.
Index("artifacts_hosted", _hosted, sqlite_where=_hosted.is_not(None), postgresql_using="hash")

# The workspaces of conversations: the newest, and a few before it for reruns.
workspaces = Table(
    "workspaces",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    _conversation(),
    Column("turn", Words, nullable=False),
    Column("tool_call_id", Words, nullable=False),
    Column("sha256", TEXT, nullable=False),
    Column("size_bytes", _ROW_ID, CheckConstraint("size_bytes >= 0"), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("covers", _ROW_ID, nullable=False),
    Column("created", TEXT, nullable=False),
)
Index("workspaces_newest", workspaces.c.conversation, workspaces.c.id)
Index("workspaces_sha256", workspaces.c.sha256)

# The files that a client deleted: when, and where the timeline records it. The path may have a later version.
deleted_files = Table(
    "deleted_files",
    metadata,
    _conversation(primary_key=True),
    Column("turn", Words, primary_key=True, nullable=False),
    Column("namespace", TEXT, primary_key=True, nullable=False),
    Column("rel", Words, primary_key=True, nullable=False),
    Column("version", Integer, nullable=False),
    Column("position", Integer, nullable=False),
    Column("deleted", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

# The journal of saves and removals; empty unless one is under way or incomplete.
unfinished = Table(
    "unfinished",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    Column("save", TEXT, nullable=False),
    Column("name", Words, nullable=False),
)
Index("unfinished_save", unfinished.c.save)
Index("unfinished_name", unfinished.c.name, postgresql_using="hash")

sources = Table(
    "sources",
    metadata,
    _conversation(primary_key=True),
    Column("sid", Integer, primary_key=True, autoincrement=False, nullable=False),
    Column("file", Words),
    Column("source", TEXT, nullable=False),
    Column("url", Words),
)
_file, _url = sources.c.file, sources.c.url
Index(
    "sources_file",
    sources.c.conversation,
    _file,
    sources.c.sid,
    sqlite_where=_file.is_not(None),
    postgresql_where=short(_file),
)
Index(
    "sources_url",
    sources.c.conversation,
    _url,
    sources.c.sid,
    sqlite_where=_url.is_not(None),
    postgresql_where=short(_url),
)

_CALL_STATES = "state IN ('open', 'waiting', 'done', 'failed', 'cancelled')"

calls = Table(
    "calls",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    _conversation(),
    Column("tool_call_id", Words, nullable=False),
    Column("payload_sha256", TEXT, nullable=False),
    Column("state", TEXT, CheckConstraint(_CALL_STATES), nullable=False),
    Column("boot_id", TEXT, nullable=False),
    Column("created", TEXT, nullable=False),
    # Up to tens of megabytes of JSON.
    Column("request", TEXT, nullable=False),
    Column("answer", TEXT),
    # Of a call that was cancelled: the blocks that it left and what it had printed. Of one that printed more than
    # its answer has: all of that.
    Column("partial_response", TEXT),
    # The run of an agent that it belongs to; `storage/gateway/schema.py` has the table.
    Column("run", _ROW_ID, ForeignKey("runs.id", ondelete="SET NULL")),
    # Of a call of a run: where its record is, as its acceptance bound it; JSON.
    Column("place", TEXT),
    # Of a call that was refused before anything ran: the position of its last block.
    Column("refused", Integer),
    # 1 while it waits for a slot, so that no part of it ran: the next start runs it.
    Column("queued", Integer, nullable=False, server_default="0"),
    UniqueConstraint("conversation", "tool_call_id"),
    CheckConstraint("(state IN ('open', 'waiting')) = (answer IS NULL)"),
)
Index("calls_tool_call_id", calls.c.tool_call_id)
# The calls of the last hours, however many a conversation has.
Index("calls_recent", calls.c.conversation, calls.c.created)
_is_open = calls.c.state == literal_column("'open'")
_run = calls.c.run
Index("calls_run", _run, calls.c.id, sqlite_where=_run.is_not(None), postgresql_where=_run.is_not(None))
Index("calls_open", calls.c.boot_id, sqlite_where=_is_open, postgresql_where=_is_open)

# A chain of audit lines; its row is the lock of writers that add a line.
chains = Table(
    "chains",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    Column("tenant", Words, nullable=False),
    Column("project", Words, nullable=False),
    UniqueConstraint("tenant", "project"),
)

audit = Table(
    "audit",
    metadata,
    Column("chain", _ROW_ID, ForeignKey("chains.id"), primary_key=True, nullable=False, autoincrement=False),
    Column("seq", _ROW_ID, CheckConstraint("seq >= 1"), primary_key=True, nullable=False, autoincrement=False),
    # A line outlives its call; that of a call that was run again belongs to none.
    Column("call", _ROW_ID, ForeignKey("calls.id", ondelete="SET NULL"), unique=True),
    Column("ended", TEXT, nullable=False),
    Column("sha256", TEXT, nullable=False),
    Column("line", TEXT, nullable=False),
)

# The keys that signed heads: so the removal of a key together with its records is noticed.
audit_keys = Table(
    "audit_keys",
    metadata,
    Column("public", TEXT, primary_key=True),
    Column("added", TEXT, nullable=False),
    sqlite_with_rowid=False,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("principal", _ROW_ID, ForeignKey("principals.id"), primary_key=True, autoincrement=False),
    Column("name", Words, primary_key=True),
    Column("call", _ROW_ID, ForeignKey("calls.id", ondelete="CASCADE"), nullable=False),
    sqlite_with_rowid=False,
)
Index("idempotency_keys_call", idempotency_keys.c.call)

# The log of a conversation; base64 content is stored as bytes beside its block.
blocks = Table(
    "blocks",
    metadata,
    _conversation(primary_key=True),
    Column(
        "position", Integer, CheckConstraint("position >= 1"), primary_key=True, autoincrement=False, nullable=False
    ),
    Column("call_id", Words),
    Column("path", Words, nullable=False),
    Column("block", TEXT, nullable=False),
    Column("content", LargeBinary),
    # What blocks are found by: their turn, the artifact that a digest describes, the path that a block hides.
    Column("turn", Words, nullable=False),
    Column("describes", Words),
    Column("hides", Words),
)
_b = blocks.c
Index("blocks_path", _b.conversation, _b.path, _b.position, postgresql_where=short(_b.path))
Index(
    "blocks_describes",
    _b.conversation,
    _b.describes,
    _b.position,
    sqlite_where=_b.describes.is_not(None),
    postgresql_where=short(_b.describes),
)
Index(
    "blocks_hides",
    _b.conversation,
    _b.position,
    sqlite_where=_b.hides.is_not(None),
    postgresql_where=_b.hides.is_not(None),
)
Index("blocks_turn", _b.conversation, _b.turn, _b.position)
Index(
    "blocks_call",
    _b.conversation,
    _b.call_id,
    _b.position,
    sqlite_where=_b.call_id.is_not(None),
    postgresql_where=short(_b.call_id),
)

turns = Table(
    "turns",
    metadata,
    _conversation(primary_key=True),
    Column("turn", Words, primary_key=True),
    Column("first", Integer, nullable=False),
    Column("last", Integer, nullable=False),
    sqlite_with_rowid=False,
)

passages = Table(
    "passages",
    metadata,
    Column("id", _ROW_ID, Identity(), primary_key=True),
    _conversation(),
    Column("position", Integer, nullable=False),
    Column("turn", Words, nullable=False),
    Column("target", Words, nullable=False),
    Column("ts", Words, nullable=False),
    Column("path", Words, nullable=False),
    Column("text", Words, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("model", Words, nullable=False, server_default=""),
)
Index("passages_conversation", passages.c.conversation, passages.c.target, passages.c.ts)
Index("passages_model", passages.c.model)

passages_through = Table(
    "passages_through",
    metadata,
    _conversation(primary_key=True),
    Column("position", Integer, nullable=False),
)

# API keys. Only the hash of a secret is stored.
api_keys = Table(
    "api_keys",
    metadata,
    Column("id", TEXT, primary_key=True),
    Column("name", Words, nullable=False),
    Column("tenant", Words, nullable=False),
    Column("project", Words),
    Column("user_type", Words),
    Column("user", Words),
    Column("permissions", TEXT, nullable=False),
    Column("limits", TEXT, nullable=False),
    Column("sha256", TEXT, nullable=False),
    Column("old_sha256", TEXT),
    Column("old_until", TEXT),
    Column("created", TEXT, nullable=False),
    Column("expires", TEXT),
    Column("revoked", TEXT),
    Column("used", TEXT),
)
