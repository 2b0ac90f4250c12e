"""API keys: whom each speaks for, and the hash of its secret."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

_TEXT = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
_NEEDED = ("name", "tenant", "permissions", "limits", "sha256", "created")


def upgrade() -> None:
    """Makes the table; no key is in it."""
    op.create_table(
        "api_keys",
        sa.Column("id", _TEXT, primary_key=True),
        *[
            sa.Column(name, _TEXT, nullable=name not in _NEEDED)
            for name in ("name", "tenant", "project", "user_type", "user", "permissions", "limits", "sha256")
        ],
        *[
            sa.Column(name, _TEXT, nullable=name not in _NEEDED)
            for name in ("old_sha256", "old_until", "created", "expires", "revoked", "used")
        ],
    )
