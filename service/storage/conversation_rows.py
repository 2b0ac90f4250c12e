"""Rows of principals and conversations, and the lock of a conversation's writers."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite

from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.database import UNREAD
from proofbox.service.storage.schema import conversations, principals

_NAMED = (
    principals.c.tenant == bindparam("scope_tenant"),
    principals.c.project == bindparam("scope_project"),
    principals.c.user_type == bindparam("scope_user_type"),
    principals.c.user == bindparam("scope_user"),
)
DELETED = "\x7fdeleted"
"""The tenant of conversations that are being deleted: no caller has it, so nobody finds them any more."""
USE_KNOWN_S = 60
"""How exactly the last use of a conversation is recorded."""
_FOUND = (
    select(conversations.c.id, conversations.c.principal, conversations.c.used)
    .join_from(conversations, principals)
    .where(*_NAMED, conversations.c.name == bindparam("scope_conversation"))
)
_LOCKED = _FOUND.with_for_update(key_share=True, of=conversations)
_LOCKED_FOR_REMOVAL = _FOUND.with_for_update(of=conversations)
_LOCKED_PRINCIPAL = (
    select(principals.c.id).where(principals.c.id == bindparam("principal")).with_for_update(key_share=True)
)
_USED = update(conversations).where(conversations.c.id == bindparam("of_id")).values(used=bindparam("at"))

PRINCIPAL = select(principals.c.id).where(*_NAMED).scalar_subquery()
"""The row of the principal of `principal_values`, inside another query."""
CONVERSATION = _FOUND.with_only_columns(conversations.c.id).scalar_subquery()
"""The row of the conversation of `scope_values`, inside another query."""


def principal_values(principal: Principal) -> dict[str, str]:
    """Return the parameters of `PRINCIPAL`."""
    return {
        "scope_tenant": principal.tenant,
        "scope_project": principal.project,
        "scope_user_type": principal.user_type,
        "scope_user": principal.user,
    }


def scope_values(scope: ConversationKey) -> dict[str, str]:
    """Return the parameters of `CONVERSATION`."""
    return {**principal_values(scope.principal), "scope_conversation": scope.conversation_id}


def lock_for_removal(connection: Connection, scope: ConversationKey) -> Any:
    """Return the row of a conversation, if it exists, and its last use; all others that write to it wait."""
    return connection.execute(_LOCKED_FOR_REMOVAL, scope_values(scope)).first()


def ensure_conversation(connection: Connection, scope: ConversationKey) -> tuple[int, int]:
    """Do the same as `lock_used_conversation`; insert the rows if they are new."""
    while (known := lock_used_conversation(connection, scope)) is None:  # again if it was deleted in between
        _insert(connection, scope)
    return known


def lock_used_conversation(connection: Connection, scope: ConversationKey) -> tuple[int, int] | None:
    """Return the rows of a conversation and of its principal, if it exists, and record that it is used.

    Its other writers wait, so positions and versions in it are assigned by one writer at a time. SQLite has one
    writer anyway.
    """
    known = _locked(connection, scope)
    if known is None:
        return None
    now = datetime.now(UTC)
    if known.used < time_text(now - timedelta(seconds=USE_KNOWN_S)):
        connection.execute(_USED, {"of_id": known.id, "at": time_text(now)})
    return known.id, known.principal


def _locked(connection: Connection, scope: ConversationKey) -> Any:
    return connection.execute(_LOCKED, scope_values(scope)).first()


def _insert(connection: Connection, scope: ConversationKey) -> None:
    who, now = scope.principal, utc_now()
    connection.execute(
        new_or_known(principals, connection.dialect.name),
        {"tenant": who.tenant, "project": who.project, "user_type": who.user_type, "user": who.user},
    )
    connection.execute(
        new_or_known(conversations, connection.dialect.name).values(principal=PRINCIPAL),
        {**principal_values(who), "name": scope.conversation_id, "created": now, "used": now},
    )


def lock_principal(connection: Connection, principal: int) -> None:
    """Make others that lock the principal wait; taken after the conversation's lock, never before it."""
    if connection.dialect.name != "sqlite":  # whose one writer has locked all there is
        connection.execute(_LOCKED_PRINCIPAL, {"principal": principal}, execution_options=UNREAD)


@cache
def new_or_known(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    """Add a row unless one is there that is unique as it would be."""
    return _inserting(table, dialect).on_conflict_do_nothing()


@cache
def new_or_changed(table: Table, dialect: str, *changed: str) -> postgresql.Insert | sqlite.Insert:
    """Add a row, or change those columns of the row that has its primary key."""
    insert = _inserting(table, dialect)
    new = {name: insert.excluded[name] for name in changed}
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=new)


def _inserting(table: Table, dialect: str) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table).inline() if dialect == "postgresql" else sqlite.insert(table)


def utc_now() -> str:
    """The time as the stores write it: UTC, RFC 3339, milliseconds, ``Z``."""
    return time_text(datetime.now(UTC))


def time_text(moment: datetime) -> str:
    """A time as the stores write it."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
