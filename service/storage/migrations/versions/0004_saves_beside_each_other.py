"""Saves run beside each other: each has its own list of what it is about to put into the store."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_ROW_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the table anew, and keeps its rows: a save may have been cut short by the old release."""
    # Made by releases from before Alembic, and not asked any more.
    op.execute("DROP VIEW IF EXISTS named_calls")
    names = op.get_bind().exec_driver_sql("SELECT name FROM unfinished").scalars().all()
    op.drop_table("unfinished")
    unfinished = op.create_table(
        "unfinished",
        sa.Column("id", _ROW_ID, sa.Identity(), primary_key=True),
        sa.Column("save", _TEXT, nullable=False),
        sa.Column("name", _TEXT, nullable=False),
    )
    op.bulk_insert(unfinished, [{"save": "before", "name": name} for name in names])
    op.create_index("unfinished_save", "unfinished", ["save"])
    op.create_index("unfinished_name", "unfinished", ["name"], postgresql_using="hash")
    if op.get_context().dialect.name == "sqlite":
        # One index for both databases: names of any length are no key of an ordered index of PostgreSQL.
        op.drop_index("artifacts_hosted", "artifacts")
        hosted = sa.text("hosted_name IS NOT NULL")
        op.create_index("artifacts_hosted", "artifacts", ["hosted_name"], sqlite_where=hosted)
