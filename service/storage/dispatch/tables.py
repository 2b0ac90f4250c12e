"""The tables of many processes; on the same metadata as `storage/schema.py`."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Table,
    literal_column,
)

from proofbox.service.storage.schema import metadata
from proofbox.service.storage.text_columns import TEXT

# SQLite's own row ids are 64 bits wide under the name INTEGER only.
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")

# The calls of a service of many processes that have not ended: which worker has which, and until when.
# Times are seconds since 1970 by the clock of the database.
_DISPATCH_STATES = "state IN ('queued', 'claimed', 'started', 'suspended', 'dead')"

dispatches = Table(
    "dispatches",
    metadata,
    Column(
        "call",
        _ROW_ID,
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
    # Who asked, how many of its calls workers may have at a time (0: any number), and whether the call waits in
    # the database until it is its turn: then it has no message in the queue.
    Column("caller", TEXT, nullable=False, server_default=""),
    Column("caller_max", Integer, nullable=False, server_default="0"),
    Column("is_deferred", Integer, nullable=False, server_default="0"),
    # The conversation whose workspace the call has, as long as its claim is valid; no other call has it then.
    Column("workspace", _ROW_ID),
    CheckConstraint("(state IN ('claimed', 'started')) = (worker IS NOT NULL)"),
)
Index("dispatches_due", dispatches.c.state, dispatches.c.due)
Index("dispatches_worker", dispatches.c.worker)
Index("dispatches_caller", dispatches.c.caller, dispatches.c.state, dispatches.c.is_deferred)
_has_workspace = dispatches.c.workspace.is_not(None)
Index(
    "dispatches_workspace",
    dispatches.c.workspace,
    sqlite_where=_has_workspace,
    postgresql_where=_has_workspace,
)
_is_deferred = dispatches.c.is_deferred == literal_column("1")
Index(
    "dispatches_deferred",
    dispatches.c.caller,
    dispatches.c.call,
    sqlite_where=_is_deferred,
    postgresql_where=_is_deferred,
)

# The processes of such a service, and which of them does what one alone may do.
members = Table(
    "members_of_service",
    metadata,
    Column("boot_id", TEXT, primary_key=True),
    Column("role", TEXT, nullable=False),
    Column("until", Double, nullable=False),
    # The release that it runs, and short digests of its settings by their names, as JSON.
    Column("release", TEXT, nullable=False, server_default=""),
    Column("settings", TEXT, nullable=False, server_default="{}"),
)
leaders = Table(
    "leaders",
    metadata,
    Column("name", TEXT, primary_key=True),
    Column("boot_id", TEXT, nullable=False),
    Column("until", Double, nullable=False),
)

__all__ = ["dispatches", "leaders", "members", "metadata"]
