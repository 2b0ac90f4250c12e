"""What the data folder takes and has left, for metrics: asked of the file system, in microseconds."""

import os
from pathlib import Path


def free_bytes(data_dir: Path) -> float:
    """What is free for the service where its data folder is; NaN if nobody can say."""
    try:
        found = os.statvfs(data_dir)
    except OSError:
        return float("nan")
    return float(found.f_bavail * found.f_frsize)


def file_bytes(data_dir: Path) -> float:
    """The database in the folder, its write-ahead log included; 0 if there is none."""
    total = 0
    for name in ("proofbox.sqlite3", "proofbox.sqlite3-wal"):
        try:
            total += (data_dir / name).stat().st_size
        except OSError:
            continue
    return float(total)
