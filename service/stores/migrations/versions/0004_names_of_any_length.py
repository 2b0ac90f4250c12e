"""Names of unfinished saves may be longer than a key of PostgreSQL; the view of calls is not used any more."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Gives the table a key of its own, and keeps its rows: a save may have been cut short by the old release."""
    op.execute("DROP VIEW IF EXISTS named_calls")
    op.rename_table("unfinished", "unfinished_before")
    op.create_table(
        "unfinished",
        sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True),
        sa.Column("name", _TEXT, nullable=False),
    )
    op.execute("INSERT INTO unfinished (name) SELECT name FROM unfinished_before")
    op.drop_table("unfinished_before")
