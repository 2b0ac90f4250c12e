"""The size of the database and the free space of the data folder, for metrics."""

import os
from pathlib import Path


def free_bytes(data_dir: Path) -> float:
    """Return the free bytes of the data folder's file system; NaN if unknown."""
    try:
        found = os.statvfs(data_dir)
    except OSError:
        return float("nan")
    return float(found.f_bavail * found.f_frsize)


def file_bytes(data_dir: Path) -> float:
    """Return the size of the SQLite file and its write-ahead log; 0 without one."""
    total = 0
    for name in ("proofbox.sqlite3", "proofbox.sqlite3-wal"):
        try:
            total += (data_dir / name).stat().st_size
        except OSError:
            continue
    return float(total)
