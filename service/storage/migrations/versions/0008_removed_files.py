"""Files that a program removed from its turn, and the newest files of a conversation."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Adds the column and the index; no file of an older release counts as removed."""
    op.add_column("artifacts", sa.Column("removed", _TEXT))
    op.create_index("artifacts_newest", "artifacts", ["conversation", "id"])
