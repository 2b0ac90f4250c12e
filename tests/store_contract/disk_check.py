"""What has to lie on the disk below a local artifact store."""

import hashlib
import sqlite3
from urllib.parse import unquote


def path_of(uri, data_dir):
    """The hosted file of a URI, which itself names no folder of the machine."""
    return data_dir / unquote(uri.removeprefix("file://proofbox/"))


def files_below(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()}


def assert_disk_says_what_the_rows_say(data_dir):
    """Every row's blob is there with its bytes, the hosted tree serves the latest rows, nothing else is there."""
    with sqlite3.connect(data_dir / "proofbox.sqlite3") as connection:
        named = connection.execute("SELECT sha256 FROM artifacts UNION SELECT sha256 FROM workspaces")
        hashes = {sha256 for (sha256,) in named}
        hosted = dict(
            connection.execute(
                "SELECT hosted_name, sha256 FROM artifacts WHERE hosted_name IS NOT NULL ORDER BY version"
            )
        )
        unfinished = connection.execute("SELECT name FROM unfinished").fetchall()
    connection.close()
    assert files_below(data_dir / "blobs") == {f"{sha256[:2]}/{sha256}" for sha256 in hashes}
    for sha256 in hashes:
        blob = data_dir / "blobs" / sha256[:2] / sha256
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == sha256
    assert files_below(data_dir / "hosted") == set(hosted)
    for name, sha256 in hosted.items():
        assert hashlib.sha256((data_dir / "hosted" / name).read_bytes()).hexdigest() == sha256
    assert (list((data_dir / "staging").iterdir()), unfinished) == ([], [])
