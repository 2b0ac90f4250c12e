"""Removal of the rows of artifacts: which bytes they had is recorded in the journal of saves.

Every function takes a connection in a transaction of its caller.
"""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select

from proofbox.contracts.paths import FilePath
from proofbox.service.storage.artifacts import rows, workspace_rows
from proofbox.service.storage.artifacts.shared_names import BLOBS, HOSTED
from proofbox.service.storage.schema import artifacts

_COLUMNS = select(
    artifacts.c.id, artifacts.c.sha256, artifacts.c.hosted_name, artifacts.c.size_bytes, artifacts.c.version
)
_SOME = (
    _COLUMNS.where(artifacts.c.conversation == bindparam("in_conversation"))
    .order_by(artifacts.c.id)
    .limit(bindparam("rows_max"))
)
_OF_PATH = _COLUMNS.where(
    artifacts.c.conversation == bindparam("in_conversation"),
    artifacts.c.turn == bindparam("of_turn"),
    artifacts.c.namespace == bindparam("of_namespace"),
    artifacts.c.rel == bindparam("of_rel"),
).order_by(artifacts.c.version)
_REMOVED = delete(artifacts).where(artifacts.c.id.in_(bindparam("of_ids", expanding=True)))
_IDS_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more


def remove_some(connection: Connection, conversation: int, save: str, rows_max: int) -> list[str]:
    """Remove the workspaces and at most ``rows_max`` versions of a conversation; the names whose bytes are left."""
    archives = sorted({BLOBS + sha256 for sha256 in workspace_rows.remove_all(connection, conversation)})
    if archives:
        rows.begin_save(connection, save, archives)
        return archives
    found = connection.execute(_SOME, {"in_conversation": conversation, "rows_max": rows_max}).all()
    return _remove(connection, found, save)


def remove_versions(
    connection: Connection, conversation: int, save: str, path: FilePath
) -> tuple[list[tuple[int, int]], list[str]]:
    """Remove all versions of a path; number and size of each, in order, and the names whose bytes are left."""
    where = {"of_turn": path.turn_id, "of_namespace": path.namespace.value, "of_rel": path.rel}
    found = connection.execute(_OF_PATH, {"in_conversation": conversation, **where}).all()
    names = _remove(connection, found, save)
    workspace_rows.uncover_removed(connection, conversation)
    return [(row.version, row.size_bytes) for row in found], names


def _remove(connection: Connection, found: Iterable[Any], save: str) -> list[str]:
    names: set[str] = set()
    ids = []
    for row in found:
        ids.append(row.id)
        names.add(BLOBS + row.sha256)
        if row.hosted_name is not None:
            names.add(HOSTED + row.hosted_name)
    if names:
        rows.begin_save(connection, save, sorted(names))
    for at in range(0, len(ids), _IDS_AT_ONCE):
        connection.execute(_REMOVED, {"of_ids": ids[at : at + _IDS_AT_ONCE]})
    return sorted(names)
