"""Blocks are found by turn, call, digest and what they hide; sources by URL; passages have a place."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")

# Only a database from before Alembic can hold rows here, and those are all SQLite's.
_OLD_BLOCKS = (
    "UPDATE blocks SET turn = json_extract(block, '$.turn_id')",
    """
    UPDATE blocks SET describes = json_extract(json_extract(block, '$.text'), '$.artifact_path')
    WHERE json_extract(block, '$.mime') = 'application/json' AND json_valid(json_extract(block, '$.text'))
    AND (path LIKE 'tc:%' OR json_extract(block, '$.type') = 'user.attachment.meta')
    """,
)
_OLD_TURNS = """
    INSERT INTO turns SELECT conversation, turn, MIN(position), MAX(position) FROM blocks
    GROUP BY conversation, turn
    """
_OLD_SOURCES = "UPDATE sources SET url = json_extract(source, '$.url') WHERE file IS NULL"


def upgrade() -> None:
    """Adds the columns and tables, and fills them from what is there."""
    on_sqlite = op.get_context().dialect.name == "sqlite"
    op.add_column("blocks", sa.Column("turn", _TEXT, nullable=False, server_default=""))
    op.add_column("blocks", sa.Column("describes", _TEXT))
    op.add_column("blocks", sa.Column("hides", _TEXT))
    op.create_table(
        "turns",
        _conversation(),
        sa.Column("turn", _TEXT, primary_key=True),
        sa.Column("first", sa.Integer, nullable=False),
        sa.Column("last", sa.Integer, nullable=False),
        sqlite_with_rowid=False,
    )
    op.add_column("sources", sa.Column("url", _TEXT))
    for statement in (*_OLD_BLOCKS, _OLD_TURNS, _OLD_SOURCES) if on_sqlite else ():
        op.get_bind().exec_driver_sql(statement)
    _index("blocks_describes", "blocks", ["conversation", "describes", "position"], only="describes")
    hides = sa.text("hides IS NOT NULL")
    op.create_index(
        "blocks_hides", "blocks", ["conversation", "position"], sqlite_where=hides, postgresql_where=hides
    )
    op.create_index("blocks_turn", "blocks", ["conversation", "turn", "position"])
    _index("blocks_call", "blocks", ["conversation", "call_id", "position"], only="call_id")
    _index("sources_url", "sources", ["conversation", "url", "sid"], only="url")
    _make_passages()


def _conversation(*, primary_key: bool = True) -> sa.Column[int]:
    return sa.Column(
        "conversation",
        _ROW_ID,
        sa.ForeignKey("conversations.id"),
        primary_key=primary_key,
        nullable=False,
        autoincrement=False,
    )


def _index(name: str, table: str, columns: list[str], *, only: str) -> None:
    op.create_index(
        name,
        table,
        columns,
        sqlite_where=sa.text(f"{only} IS NOT NULL"),
        postgresql_where=sa.text(f"length({only}) <= 600"),
    )


def _make_passages() -> None:
    op.create_table(
        "passages",
        sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True),
        _conversation(primary_key=False),
        sa.Column("position", sa.Integer, nullable=False),
        *[sa.Column(name, _TEXT, nullable=False) for name in ("turn", "target", "ts", "path", "text")],
        sa.Column("vector", sa.LargeBinary, nullable=False),
    )
    op.create_index("passages_conversation", "passages", ["conversation", "target", "ts"])
    op.create_table("passages_through", _conversation(), sa.Column("position", sa.Integer, nullable=False))
