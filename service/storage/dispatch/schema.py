"""The tables of a service of many processes; on the same metadata as `storage/schema.py`."""

from sqlalchemy import CheckConstraint, Column, Double, ForeignKey, Index, Integer, Table

from proofbox.service.storage.schema import ROW_ID, metadata
from proofbox.service.storage.text_columns import TEXT

# The calls of a service of many processes that have not ended: which worker has which, and until when.
# Times are seconds since 1970 by the clock of the database.
_DISPATCH_STATES = "state IN ('queued', 'claimed', 'started', 'suspended', 'dead')"

dispatches = Table(
    "dispatches",
    metadata,
    Column(
        "call",
        ROW_ID,
        ForeignKey("calls.id", ondelete="CASCADE"),
        primary_key=True,
        nullable=False,
        autoincrement=False,
    ),
    Column("state", TEXT, CheckConstraint(_DISPATCH_STATES), nullable=False),
    # The number of the newest claim; it only rises, and each write of a worker names it.
    Column("claim", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("worker", TEXT),
    # When its claim expires, or when a queued call is published again.
    Column("due", Double, nullable=False),
    # Until when a queued call has to have a worker; NULL: it waits for one.
    Column("deadline", Double),
    Column("stop", TEXT, CheckConstraint("stop IN ('cancelled', 'abandoned')")),
    Column("detached", Integer, CheckConstraint("detached IN (0, 1)"), nullable=False),
    Column("events", Integer, nullable=False),
    Column("key_id", TEXT),
    Column("request_id", TEXT, nullable=False),
    Column("reason", TEXT),
    # How the wait ended after which it runs on, as JSON.
    Column("outcome", TEXT),
    CheckConstraint("(state IN ('claimed', 'started')) = (worker IS NOT NULL)"),
)
Index("dispatches_due", dispatches.c.state, dispatches.c.due)
Index("dispatches_worker", dispatches.c.worker)

# The processes of such a service, and which of them does what one alone may do.
members = Table(
    "members_of_service",
    metadata,
    Column("boot_id", TEXT, primary_key=True),
    Column("role", TEXT, nullable=False),
    Column("until", Double, nullable=False),
)
leaders = Table(
    "leaders",
    metadata,
    Column("name", TEXT, primary_key=True),
    Column("boot_id", TEXT, nullable=False),
    Column("until", Double, nullable=False),
)
