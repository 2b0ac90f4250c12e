"""The rows of artifacts: versions of files, and what saves are about to put into the store. Knows no bytes.

Every function takes a connection inside a transaction of its caller and answers plain values.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from contracts.paths import FilePath, Namespace
from service.core.scopes import Scope
from service.core.store_ports import NewArtifact
from service.stores.sqlite import ensure_conversation, find_conversation, utc_now

_SAME_PATH = "conversation = ? AND turn = ? AND namespace = ? AND rel = ?"


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One version of a file, as the database has it.

    Attributes:
        path: its path.
        version: 1 for the first.
        sha256: the SHA-256 of its bytes, in hex.
        size_bytes: its size.
        mime: its media type.
        visibility: ``external`` or ``internal``.
        description: what it is.
        created: when: UTC, RFC 3339, ``Z``.
        hosted_name: under which name the byte side hosts it; None for internal files.
    """

    path: FilePath
    version: int
    sha256: str
    size_bytes: int
    mime: str
    visibility: Literal["external", "internal"]
    description: str
    created: str
    hosted_name: str | None


# ---- saves that are under way ----


def begin_save(connection: sqlite3.Connection, save: str, names: Iterable[str]) -> None:
    """Writes down what a save is about to put into the store (``blobs/<sha256>``, ``hosted/<hosted name>``)."""
    connection.executemany("INSERT INTO unfinished (save, name) VALUES (?, ?)", [(save, name) for name in names])


def end_save(connection: sqlite3.Connection, save: str) -> None:
    """Forgets what a save was about to do: it is done, or undone."""
    connection.execute("DELETE FROM unfinished WHERE save = ?", (save,))


def unfinished_saves(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """The saves that have begun and not ended, each with the names that it wrote down."""
    saves: dict[str, list[str]] = {}
    for row in connection.execute("SELECT save, name FROM unfinished ORDER BY save, name").fetchall():
        saves.setdefault(row["save"], []).append(row["name"])
    return saves


def is_wanted(connection: sqlite3.Connection, sha256: str, save: str) -> bool:
    """Whether a version has these bytes, or a save other than ``save`` is about to."""
    row = connection.execute(
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM artifacts WHERE sha256 = ?) "
        "OR EXISTS (SELECT 1 FROM unfinished WHERE name = ? AND save <> ?)",
        (sha256, f"blobs/{sha256}", save),
    ).fetchone()
    return row is not None


# ---- versions ----


def insert(
    connection: sqlite3.Connection, scope: Scope, artifact: NewArtifact, hosted_name: str | None
) -> ArtifactRow:
    """Adds the next version of the artifact's path.

    Args:
        connection: the database.
        scope: the conversation.
        artifact: the file.
        hosted_name: where it is hosted; None exactly for an internal file.
    """
    conversation, _ = ensure_conversation(connection, scope)
    path = artifact.path
    where = (conversation, path.turn_id, path.namespace.value, path.rel)
    # A description is a model's text; no database takes lone surrogates.
    description = artifact.description.encode(errors="replace").decode()
    row: sqlite3.Row = connection.execute(
        "INSERT INTO artifacts (conversation, turn, namespace, rel, version, "  # noqa: S608 - a constant
        "sha256, size_bytes, mime, "
        "visibility, description, tool_call_id, created, hosted_name) VALUES (?, ?, ?, ?, "
        f"(SELECT COALESCE(MAX(version), 0) + 1 FROM artifacts WHERE {_SAME_PATH}), "
        "?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            *where,
            *where,
            artifact.sha256,
            artifact.size_bytes,
            artifact.mime,
            artifact.visibility,
            description,
            artifact.tool_call_id,
            utc_now(),
            hosted_name,
        ),
    ).fetchone()
    return _row(row)


def latest(connection: sqlite3.Connection, scope: Scope, path: FilePath) -> ArtifactRow | None:
    """The latest version of a path, if there is one."""
    row = connection.execute(
        f"SELECT * FROM artifacts WHERE {_SAME_PATH} ORDER BY version DESC LIMIT 1",  # noqa: S608 - a constant
        (find_conversation(connection, scope), path.turn_id, path.namespace.value, path.rel),
    ).fetchone()
    return None if row is None else _row(row)


def version(connection: sqlite3.Connection, scope: Scope, path: FilePath, number: int) -> ArtifactRow | None:
    """That version of a path in this conversation, if there is one."""
    row = connection.execute(
        f"SELECT * FROM artifacts WHERE {_SAME_PATH} AND version = ?",  # noqa: S608 - a constant
        (find_conversation(connection, scope), path.turn_id, path.namespace.value, path.rel, number),
    ).fetchone()
    return None if row is None else _row(row)


def of_turn(connection: sqlite3.Connection, scope: Scope, turn_id: str) -> list[ArtifactRow]:
    """The latest versions of all files and attachments of a turn, in no order."""
    rows = connection.execute(
        "SELECT * FROM artifacts AS found WHERE conversation = ? AND turn = ? AND version = "
        "(SELECT MAX(version) FROM artifacts WHERE conversation = found.conversation "
        "AND turn = found.turn AND namespace = found.namespace AND rel = found.rel)",
        (find_conversation(connection, scope), turn_id),
    ).fetchall()
    return [_row(row) for row in rows]


# ---- hosted ----


def hosted_latest(connection: sqlite3.Connection, name: str) -> ArtifactRow | None:
    """The latest version that is hosted under a name."""
    row = connection.execute(
        "SELECT * FROM artifacts WHERE hosted_name = ? ORDER BY version DESC LIMIT 1", (name,)
    ).fetchone()
    return None if row is None else _row(row)


def hosted_latest_in(connection: sqlite3.Connection, scope: Scope, name: str) -> ArtifactRow | None:
    """The same, if it belongs to the scope's tenant and project."""
    row = connection.execute(
        "SELECT artifacts.* FROM artifacts "
        "JOIN conversations ON conversations.id = artifacts.conversation "
        "JOIN principals ON principals.id = conversations.principal "
        "WHERE hosted_name = ? AND tenant = ? AND project = ? ORDER BY version DESC LIMIT 1",
        (name, scope.principal.tenant, scope.principal.project),
    ).fetchone()
    return None if row is None else _row(row)


def _row(row: sqlite3.Row) -> ArtifactRow:
    return ArtifactRow(
        path=FilePath(row["turn"], Namespace(row["namespace"]), row["rel"]),
        version=row["version"],
        sha256=row["sha256"],
        size_bytes=row["size_bytes"],
        mime=row["mime"],
        visibility=row["visibility"],
        description=row["description"],
        created=row["created"],
        hosted_name=row["hosted_name"],
    )
