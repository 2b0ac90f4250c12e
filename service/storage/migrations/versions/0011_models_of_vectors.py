"""What made the vectors of passages: those of another model are made again."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def upgrade() -> None:
    """Add the column; all vectors that are there were made by the model of the first release."""
    op.add_column("passages", sa.Column("model", _TEXT, nullable=False, server_default=""))
    op.execute(sa.text("UPDATE passages SET model = 'minilm' WHERE length(vector) > 0"))
    op.create_index("passages_model", "passages", ["model"])
