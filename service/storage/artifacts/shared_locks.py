"""Locks of names that hold in all processes of a service, until a transaction ends."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

_OUR_LOCK = 0x50_42_4F_4E  # "PBON": names of bytes, among all advisory locks of a database
_EXCLUSIVE = text(
    "SELECT pg_advisory_xact_lock(:ours, number) "
    "FROM (SELECT DISTINCT hashtext(current_schema() || name) AS number "
    "FROM unnest(CAST(:names AS text[])) AS name ORDER BY 1) AS numbers"
)
_SHARED = text(_EXCLUSIVE.text.replace("pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"))


def lock_names(connection: Connection, names: Sequence[str], *, shared: bool) -> None:
    """Lock names on a PostgreSQL server until the transaction ends; SQLite has one process anyway.

    Args:
        connection: in a transaction.
        names: what is locked, in the order of their hashes, so that no two transactions wait for each other.
        shared: whether others may share the lock.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_SHARED if shared else _EXCLUSIVE, {"ours": _OUR_LOCK, "names": list(names)})
