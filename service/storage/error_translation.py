"""Errors of databases and of the file system, translated once into the errors that the ports list."""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import (
    DBAPIError,
    IntegrityError,
    MultipleResultsFound,
    NoResultFound,
    OperationalError,
    SQLAlchemyError,
)

from proofbox.service.errors import DISK_FULL, StoreDefectError, StoreFailedError, StoreFullError

# What SQLite reports for a refused quota and for a shared memory file that cannot grow.
_MAYBE_FULL = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_PROBE_BYTES = 64 * 1024  # more than SQLite writes at once

_SQLITE_TEXTS = {
    sqlite3.SQLITE_READONLY: "is read-only",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is damaged or not a database",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "cannot be opened",
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_IOERR: "cannot be read or written",
    sqlite3.SQLITE_TOOBIG: "does not take a value of that size",
}

_SQLITE_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_POSTGRES_DAMAGED = "XX"
# Deadlocks, and transactions that could not be put in order: the same transaction again may succeed.
_POSTGRES_AGAIN = frozenset({"40001", "40P01"})
# SQLSTATE, or the class in its first two characters. https://www.postgresql.org/docs/current/errcodes-appendix.html
_POSTGRES_FULL = frozenset({"53100"})
_POSTGRES_TEXTS = {
    "08": "does not answer, or refuses the connection",
    "22": "does not take such a value",
    "25006": "is read-only",
    "25P03": "ended a transaction in which nothing was asked for too long",
    "28": "does not accept the user or password",
    "3D": "does not exist on its server",
    "42501": "does not let its user do that",
    "53300": "has no connection left",
    "54": "does not take a value of that size",
    "57014": "did not answer in time",
    "57": "has gone away",
    "XX": "is damaged",
}


class InUseError(StoreFailedError):
    """Another process of the service uses the data folder or the database."""


class DamagedDatabaseError(StoreFailedError):
    """The database is damaged: a page or row of it cannot be read."""


def is_deadlock(exc: BaseException) -> bool:
    """Whether a server ended a transaction, all of which is undone, because others were in its way."""
    return isinstance(exc, DBAPIError) and getattr(exc.orig, "sqlstate", None) in _POSTGRES_AGAIN


@contextmanager
def translate_errors(role: str, folder: Path) -> Iterator[None]:
    """Translate the exceptions of the block.

    Args:
        role: the name of the resource in the message; absolute paths stay in the log.
        folder: its folder, whose free space is checked where SQLite gives no reason.

    Raises:
        StoreFullError: no space or no quota is left.
        StoreDefectError: rows are missing, or do not fit the schema.
        StoreFailedError: any other ``SQLAlchemyError``, ``sqlite3.Error`` or ``OSError``.
    """
    try:
        yield
    except (NoResultFound, MultipleResultsFound, IntegrityError) as exc:
        raise StoreDefectError(f"{role} failed") from exc
    except DBAPIError as exc:
        raise _of_sqlalchemy(exc, role, folder) from exc
    except SQLAlchemyError as exc:
        raise StoreFailedError(f"{role} failed") from exc
    except sqlite3.Error as exc:
        raise _of_sqlite(exc, role, folder) from exc
    except OSError as exc:
        if exc.errno in DISK_FULL:
            raise _full(role) from exc
        reason = "is read-only" if exc.errno == errno.EROFS else f"failed: {os.strerror(exc.errno or 0)}"
        raise StoreFailedError(f"{role} {reason}") from exc


def _of_sqlalchemy(exc: DBAPIError, role: str, folder: Path) -> StoreFailedError | StoreFullError:
    if isinstance(exc.orig, sqlite3.Error):
        return _of_sqlite(exc.orig, role, folder)
    state = getattr(exc.orig, "sqlstate", None)
    if state is None and isinstance(exc, OperationalError):
        state = "08"  # no connection, so no SQLSTATE
    if state in _POSTGRES_FULL:
        return _full(role)
    reason = _POSTGRES_TEXTS.get(state or "") or _POSTGRES_TEXTS.get((state or "")[:2], "failed")
    kind = DamagedDatabaseError if (state or "").startswith(_POSTGRES_DAMAGED) else StoreFailedError
    return kind(f"{role} {reason}")


def _of_sqlite(exc: sqlite3.Error, role: str, folder: Path) -> StoreFailedError | StoreFullError:
    code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code in _MAYBE_FULL and _no_space(folder)):
        return _full(role)
    kind = DamagedDatabaseError if code in _SQLITE_DAMAGED else StoreFailedError
    return kind(f"{role} {_SQLITE_TEXTS.get(code, 'failed')}")


def _full(role: str) -> StoreFullError:
    return StoreFullError(f"{role} has no space left; the operator has to free some")


def _no_space(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as exc:
        return exc.errno in DISK_FULL
    return False
