"""Names in the journal of saves that several processes share: each removal of bytes is announced before it begins.

No lock is held while bytes are removed. A name whose bytes are about to go away is in the journal as
``removing/…``, and saves with these bytes begin after that.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, bindparam, select, text, update

from proofbox.service.artifacts.port import StoreAwayError
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.database import UNREAD
from proofbox.service.storage.schema import unfinished

BLOBS, HOSTED = "blobs/", "hosted/"  # prefixes of the names in the journal
REMOVING = "removing/"  # before the name of a blob
_OUR_LOCK = 0x50_42_4F_4E  # "PBON": names of bytes, among all advisory locks of a database
_EXCLUSIVE = text(
    "SELECT pg_advisory_xact_lock(:ours, number) "
    "FROM (SELECT DISTINCT hashtext(current_schema() || name) AS number "
    "FROM unnest(CAST(:names AS text[])) AS name ORDER BY 1) AS numbers"
)
_SHARED = text(_EXCLUSIVE.text.replace("pg_advisory_xact_lock", "pg_advisory_xact_lock_shared"))
_MARKED = select(unfinished.c.name).where(unfinished.c.name.like(f"{REMOVING}%"))
_NAMED = (
    unfinished.c.save == bindparam("of_save"),
    unfinished.c.name.in_(bindparam("of_names", expanding=True)),
)
_TAKEN = update(unfinished).where(*_NAMED).values(save=bindparam("into_save")).returning(unfinished.c.name)
_RENAMED = (
    update(unfinished)
    .where(unfinished.c.save == bindparam("of_save"), unfinished.c.name == bindparam("of_name"))
    .values(name=bindparam("new_name"))
)


class NamesBusyError(StoreAwayError):
    """Another process removes the same bytes at this moment."""


def begin_shared(connection: Connection, save: str, names: Iterable[str]) -> None:
    """Record the names of a save, of which none may be about to be removed.

    Raises:
        NamesBusyError: one is.
    """
    wanted = sorted(names)
    _lock_names(connection, wanted, shared=True)
    if not {f"{REMOVING}{name}" for name in wanted}.isdisjoint(connection.scalars(_MARKED)):
        raise NamesBusyError("the same bytes are being removed at this moment; try again")
    rows.begin_save(connection, save, wanted)


def take_over(connection: Connection, save: str, into: str, names: Sequence[str]) -> list[str]:
    """Give names of a save to another save, which undoes them; the transaction that ends the save waits, and fails.

    Args:
        connection: in a transaction.
        save: the save to be undone.
        into: the save that gets its names; may be the same.
        names: those of the save, or some of them.

    Returns:
        The names to be undone: hosted names, and those of blobs that nobody wants, now marked as ``removing/…``.
    """
    _lock_names(connection, sorted({name.removeprefix(REMOVING) for name in names}), shared=False)
    values = {"of_save": save, "into_save": into, "of_names": list(names)}
    taken = sorted(connection.scalars(_TAKEN, values))
    blobs = [name for name in taken if name.startswith(BLOBS)]
    wanted = [name for name in blobs if rows.is_wanted(connection, name.removeprefix(BLOBS), into)]
    if wanted:
        rows.end_names(connection, into, wanted)
    marked = {name: f"{REMOVING}{name}" for name in blobs if name not in wanted}
    _rename(connection, into, marked)
    return sorted(marked.get(name, name) for name in taken if name not in wanted)


def end_removals(connection: Connection, save: str, done: Sequence[str], failed: Iterable[str]) -> None:
    """Remove undone names from the journal; unmark the others, so that saves with their bytes can begin."""
    if done:
        rows.end_names(connection, save, done)
    _rename(connection, save, {name: name.removeprefix(REMOVING) for name in failed if name.startswith(REMOVING)})


def _rename(connection: Connection, save: str, names: dict[str, str]) -> None:
    if names:
        renamed = [{"of_save": save, "of_name": old, "new_name": new} for old, new in sorted(names.items())]
        connection.execute(_RENAMED, renamed)


def _lock_names(connection: Connection, names: Sequence[str], *, shared: bool) -> None:
    """Lock names on a PostgreSQL server until the transaction ends; SQLite has one process anyway.

    In the order of their hashes, so that no two transactions wait for each other.
    """
    if connection.dialect.name == "postgresql":
        locks = _SHARED if shared else _EXCLUSIVE
        connection.execute(locks, {"ours": _OUR_LOCK, "names": list(names)}, execution_options=UNREAD)
