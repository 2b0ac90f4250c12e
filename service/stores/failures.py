"""Errors of SQLite and of the file system, translated once into the errors that the ports list."""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.core.errors import StoreFailedError, StoreFullError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
# What SQLite reports for a refused quota and for a shared memory file that cannot grow.
_MAYBE_FULL = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_PROBE_BYTES = 64 * 1024  # more than SQLite asks for at once

_SQLITE_SAYS = {
    sqlite3.SQLITE_READONLY: "is read-only",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is damaged or no database",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "cannot be opened",
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_IOERR: "cannot be read or written",
    sqlite3.SQLITE_TOOBIG: "does not take a value of that size",
}


@contextmanager
def translated(role: str, folder: Path) -> Iterator[None]:
    """Turns what the block raises into an error of the core.

    Args:
        role: what is used, as the client's text names it: absolute paths stay in the log.
        folder: where it lies; asked for free space when SQLite does not say why it failed.

    Raises:
        StoreFullError: no space or no quota is left.
        StoreFailedError: any other ``sqlite3.Error`` or ``OSError``.
    """
    try:
        yield
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or (code in _MAYBE_FULL and _no_space(folder)):
            raise _full(role) from exc
        raise StoreFailedError(f"{role} {_SQLITE_SAYS.get(code, 'failed')}") from exc
    except OSError as exc:
        if exc.errno in _FULL:
            raise _full(role) from exc
        reason = "is read-only" if exc.errno == errno.EROFS else f"failed: {os.strerror(exc.errno or 0)}"
        raise StoreFailedError(f"{role} {reason}") from exc


def _full(role: str) -> StoreFullError:
    return StoreFullError(f"{role} has no space left; the operator has to free some")


def _no_space(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as exc:
        return exc.errno in _FULL
    return False
