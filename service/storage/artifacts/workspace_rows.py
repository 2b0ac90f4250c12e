"""The rows of the workspaces of conversations; each function runs in a transaction of its caller."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, select, update
from sqlalchemy import insert as inserting

from proofbox.service.artifacts.port import NewWorkspace, StoredWorkspace
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.conversation_rows import CONVERSATION, scope_values, utc_now
from proofbox.service.storage.schema import artifacts, workspaces

STORED_MAX = 3
"""Workspaces of a conversation that stay: the newest is in use, calls of the others can still be run again."""

_OF_CONVERSATION = select(workspaces).where(workspaces.c.conversation == CONVERSATION)
_NEWEST = _OF_CONVERSATION.order_by(workspaces.c.id.desc()).limit(1)
_NUMBERED = _OF_CONVERSATION.where(workspaces.c.id == bindparam("number"))
_OLD = (
    select(workspaces.c.id, workspaces.c.sha256)
    .where(workspaces.c.conversation == bindparam("of_conversation"))
    .order_by(workspaces.c.id.desc())
    .offset(STORED_MAX)
)
_ADDED = inserting(workspaces).inline()
_HASHES = select(workspaces.c.sha256).where(workspaces.c.conversation == bindparam("of_conversation"))
_REMOVED = delete(workspaces).where(workspaces.c.conversation == bindparam("of_conversation"))
_NEWEST_ARTIFACT = select(func.coalesce(func.max(artifacts.c.id), 0)).where(
    artifacts.c.conversation == CONVERSATION
)
_NEWEST_LEFT = (
    select(func.coalesce(func.max(artifacts.c.id), 0))
    .where(artifacts.c.conversation == bindparam("of_conversation"))
    .scalar_subquery()
)
_UNCOVERED = (
    update(workspaces)
    .where(workspaces.c.conversation == bindparam("of_conversation"), workspaces.c.covers > _NEWEST_LEFT)
    .values(covers=_NEWEST_LEFT)
)


def find(connection: Connection, scope: ConversationKey, number: int | None) -> StoredWorkspace | None:
    """Return the newest workspace of a conversation, or the one with a number."""
    query = _NEWEST if number is None else _NUMBERED
    row = connection.execute(query, {**scope_values(scope), "number": number}).first()
    return None if row is None else _stored(row)


def newest_artifact(connection: Connection, scope: ConversationKey) -> int:
    """Return the number of the newest artifact of a conversation; 0 if there is none."""
    return int(connection.execute(_NEWEST_ARTIFACT, scope_values(scope)).scalar_one())


def insert(connection: Connection, conversation: int, new: NewWorkspace) -> list[str]:
    """Add a workspace, remove those that are too old, and return the hashes of these."""
    values = {name: getattr(new, name) for name in ("sha256", "size_bytes", "entries", "covers", "tool_call_id")}
    where = {"conversation": conversation, "turn": new.turn_id, "created": utc_now()}
    connection.execute(_ADDED, {**values, **where})
    old = connection.execute(_OLD, {"of_conversation": conversation}).all()
    if old:
        connection.execute(delete(workspaces).where(workspaces.c.id.in_([row.id for row in old])))
    return [row.sha256 for row in old]


def uncover_removed(connection: Connection, conversation: int) -> None:
    """Let no workspace cover the numbers of removed artifacts: SQLite gives them to later artifacts."""
    connection.execute(_UNCOVERED, {"of_conversation": conversation})


def remove_all(connection: Connection, conversation: int) -> list[str]:
    """Remove the workspaces of a conversation, and return their hashes."""
    found = list(connection.scalars(_HASHES, {"of_conversation": conversation}))
    if found:
        connection.execute(_REMOVED, {"of_conversation": conversation})
    return found


def _stored(row: Row[Any]) -> StoredWorkspace:
    return StoredWorkspace(row.id, row.turn, row.size_bytes, row.sha256, row.entries, row.covers, row.tool_call_id)
