"""What has to lie in the bucket below an artifact store."""

import hashlib
import sqlite3

from tests.services.s3_server import objects_of, uploads_of


def sha256_of(data):
    return hashlib.sha256(data).hexdigest()


def unfinished_of(data_dir):
    with sqlite3.connect(data_dir / "proofbox.sqlite3") as connection:
        rows = connection.execute("SELECT name FROM unfinished").fetchall()
    connection.close()
    return rows


def assert_bucket_says_what_the_rows_say(bucket, data_dir):
    """Every row's blob is there, the hosted objects are the latest rows', nothing else is there."""
    with sqlite3.connect(data_dir / "proofbox.sqlite3") as connection:
        named = connection.execute("SELECT sha256 FROM artifacts UNION SELECT sha256 FROM workspaces")
        hashes = {sha256 for (sha256,) in named}
        hosted = dict(
            connection.execute(
                "SELECT hosted_name, sha256 FROM artifacts WHERE hosted_name IS NOT NULL ORDER BY version"
            )
        )
    connection.close()
    expected = {f"blobs/{sha256}": sha256 for sha256 in hashes} | hosted
    assert {name: sha256_of(data) for name, data in objects_of(bucket).items()} == expected
    assert (uploads_of(bucket), unfinished_of(data_dir)) == ([], [])
