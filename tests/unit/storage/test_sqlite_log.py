"""The write-ahead log is copied into the file when the database is idle, and the writer keeps its lock."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys

import pytest
from sqlalchemy import text

from proofbox.service.storage.database import Database

PAGE_BYTES = 4_096


@pytest.fixture
async def database(tmp_path):
    database = Database(tmp_path)
    await database.open()
    await database.write(lambda connection: connection.execute(text("CREATE TABLE kept (content)")))
    yield database
    await database.close()


def put(pages: int):
    return lambda connection: connection.execute(
        text("INSERT INTO kept VALUES (randomblob(:size))"), {"size": pages * PAGE_BYTES}
    )


def rows_in_the_file_itself(tmp_path) -> int:
    """What the file has without its log."""
    alone = tmp_path / "alone.sqlite3"
    alone.write_bytes((tmp_path / "proofbox.sqlite3").read_bytes())
    try:
        with contextlib.closing(sqlite3.connect(alone)) as connection:
            return connection.execute("SELECT count(*) FROM kept").fetchone()[0]
    except sqlite3.OperationalError:  # no such table
        return 0
    except sqlite3.DatabaseError:  # copied in the middle of a checkpoint
        return -1
    finally:
        alone.unlink()


async def checkpointed(tmp_path, rows: int) -> None:
    """Waits until the file has so many rows without its log."""
    for _ in range(600):
        if rows_in_the_file_itself(tmp_path) == rows:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the log was not copied into the file")


async def test_the_log_is_copied_into_the_file_some_seconds_after_a_write(database, tmp_path):
    await database.write(put(1))
    await checkpointed(tmp_path, 1)


async def test_another_process_waits_for_the_writer_after_a_checkpoint(database, tmp_path):
    await database.write(put(300))
    await checkpointed(tmp_path, 1)
    other = (
        "import sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)\n"
        "try:\n    connection.execute('BEGIN IMMEDIATE')\nexcept sqlite3.OperationalError as exc:\n    print(exc)\n"
    )

    def try_from_outside(connection):
        connection.execute(text("INSERT INTO kept VALUES (1)"))
        asked = [sys.executable, "-c", other, str(tmp_path / "proofbox.sqlite3")]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    assert await database.write(try_from_outside) == "database is locked\n"
