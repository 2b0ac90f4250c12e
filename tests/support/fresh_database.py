"""A new SQLite database of this release's schema, as a copy: making its tables takes longer than most tests."""

import tempfile
from functools import cache
from pathlib import Path

from proofbox.service.storage.sqlite import SqliteFile

NAME = "proofbox.sqlite3"


def lay_out(data_dir: Path) -> Path:
    """Put the database of a service that has stored nothing into a data folder, unless it has one.

    Returns:
        The data folder.
    """
    file = data_dir / NAME
    if not file.exists():
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_bytes(_read_new())
    return data_dir


@cache
def _read_new() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / NAME
        made = SqliteFile(file)
        made.open(1)
        made.close()
        return file.read_bytes()
