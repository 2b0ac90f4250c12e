"""Conversations in the database: their list, and their deletion.

A deletion is one short transaction, whatever the conversation holds: its row gets a tenant that no caller has, so
all that belongs to it is out of sight at once, and the audit line is added. Its rows and bytes are then removed in
small transactions, between which others can write. A process that ends in between leaves rows that nobody can see,
with which `purge_interrupted` goes on.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import BindParameter, Column, Connection, Delete, Table, bindparam, delete, func, select, update
from typing_extensions import override

from proofbox.contracts.paths import FilePath
from proofbox.service.conversations.port import (
    ConversationStore,
    ConversationSummary,
    DeletedCounts,
    Deletion,
    DraftOf,
)
from proofbox.service.errors import ConversationBusyError, UnknownArtifactError, UnknownConversationError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.artifacts.removal import remove_some
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.audit import add_line
from proofbox.service.storage.conversation_rows import (
    DELETED,
    PRINCIPAL,
    lock_for_removal,
    new_or_known,
    principal_values,
)
from proofbox.service.storage.database import Database, count_changed
from proofbox.service.storage.file_deletion import remove_file
from proofbox.service.storage.schema import (
    artifacts,
    blocks,
    calls,
    conversations,
    deleted_files,
    idempotency_keys,
    passages,
    passages_through,
    principals,
    sources,
    turns,
)

_FILES_AT_ONCE = 100
# By the columns that distinguish their rows. Calls and blocks may have megabytes each.
_ROWS_AT_ONCE: tuple[tuple[Table, Column[Any], int], ...] = (
    (calls, calls.c.id, 20),
    (blocks, blocks.c.position, 200),
    (passages, passages.c.id, 500),
    (sources, sources.c.sid, 500),
    (turns, turns.c.turn, 1_000),
    (deleted_files, deleted_files.c.rel, 1_000),
    (passages_through, passages_through.c.conversation, 1),
)
_PAGE = (
    select(conversations.c.id, conversations.c.name, conversations.c.created, conversations.c.used)
    .where(conversations.c.principal == PRINCIPAL)
    .order_by(conversations.c.id.desc())
)
_UNUSED = (
    select(
        conversations.c.name, principals.c.tenant, principals.c.project, principals.c.user_type, principals.c.user
    )
    .join_from(conversations, principals)
    .where(
        conversations.c.used < bindparam("since"),
        principals.c.tenant != DELETED,
        # LIKE of SQLite does not distinguish small and capital letters.
        func.substr(conversations.c.name, 1, bindparam("prefix_chars")) == bindparam("prefix"),
        # They are not deleted, and would fill all rows of a pass.
        ~select(calls.c.id)
        .where(calls.c.conversation == conversations.c.id, calls.c.state.in_(("open", "waiting")))
        .exists(),
    )
    .order_by(conversations.c.used)
    .limit(bindparam("rows_max"))
)
_DELETED = (
    select(conversations.c.id)
    .join_from(conversations, principals)
    .where(principals.c.tenant == DELETED)
    .order_by(conversations.c.id)
)
_IN: BindParameter[int] = bindparam("in_conversation")
# SQLite gives the number of a purged conversation to a new one, so each step of a purge checks whose it is.
_LOCKED_DELETED = (
    select(conversations.c.id)
    .join_from(conversations, principals)
    .where(conversations.c.id == _IN, principals.c.tenant == DELETED)
    .with_for_update(of=conversations)
)
_IS_BUSY = select(
    select(calls.c.id).where(calls.c.conversation == _IN, calls.c.state.in_(("open", "waiting"))).exists()
)
_PATHS = (
    select(artifacts.c.turn, artifacts.c.namespace, artifacts.c.rel)
    .where(artifacts.c.conversation == _IN)
    .distinct()
    .subquery()
)
_COUNTS = select(
    select(func.count()).select_from(_PATHS).scalar_subquery().label("files"),
    select(func.count()).where(artifacts.c.conversation == _IN).scalar_subquery().label("versions"),
    select(func.coalesce(func.sum(artifacts.c.size_bytes), 0))
    .where(artifacts.c.conversation == _IN)
    .scalar_subquery()
    .label("size_bytes"),
    select(func.count()).where(calls.c.conversation == _IN).scalar_subquery().label("calls"),
    # Positions have no gaps.
    select(func.coalesce(func.max(blocks.c.position), 0))
    .where(blocks.c.conversation == _IN)
    .scalar_subquery()
    .label("blocks"),
)
_NAMES_FREED = delete(idempotency_keys).where(
    idempotency_keys.c.call.in_(select(calls.c.id).where(calls.c.conversation == _IN))
)
_VANISHED = (
    update(conversations)
    .where(conversations.c.id == _IN)
    .values(principal=bindparam("nobody"), name=bindparam("new_name"))
)


class SqlConversationStore(ConversationStore):
    """The ConversationStore in the database.

    Args:
        database: the open database.
        files: the store of the artifacts.
    """

    def __init__(self, database: Database, files: SqlArtifactStore) -> None:
        self._database = database
        self._files = files
        self._purging = KeyLocks()
        self._is_stopping = False

    @override
    async def page(self, principal: Principal, before: int | None, limit: int) -> list[ConversationSummary]:
        query = _PAGE.limit(limit) if before is None else _PAGE.where(conversations.c.id < before).limit(limit)

        def work(connection: Connection) -> list[ConversationSummary]:
            found = connection.execute(query, principal_values(principal)).all()
            held = _held(connection, [row.id for row in found])
            return [
                ConversationSummary(row.id, row.name, row.created, row.used, *held.get(row.id, (0, 0, 0)))
                for row in found
            ]

        return await self._database.read(work)

    @override
    async def delete(self, scope: ConversationKey, draft_of: DraftOf, unused_since: str | None = None) -> Deletion:
        def work(connection: Connection) -> Deletion:
            found = lock_for_removal(connection, scope)
            if found is None or (unused_since is not None and found.used >= unused_since):
                raise UnknownConversationError(
                    f"conversation_id: there is no conversation '{scope.conversation_id[:128]}'; "
                    "GET /v1/conversations lists them"
                )
            _refuse_busy(connection, found.id, scope)
            here = {"in_conversation": found.id}
            counts = DeletedCounts(*map(int, connection.execute(_COUNTS, here).one()))  # sums may be decimals
            connection.execute(_NAMES_FREED, here)
            connection.execute(_VANISHED, {**here, "nobody": _nobody(connection), "new_name": str(found.id)})
            return Deletion(counts, add_line(connection, scope.principal, draft_of(counts), None), found.id)

        return await self._database.write(work)

    @override
    async def delete_file(self, scope: ConversationKey, path: FilePath, at: str, draft_of: DraftOf) -> Deletion:
        def work(connection: Connection, save: str) -> tuple[Deletion, list[str]]:
            found = lock_for_removal(connection, scope)
            removed = None
            if found is not None:
                _refuse_busy(connection, found.id, scope)
                removed = remove_file(connection, found.id, save, path, at)
            if removed is None:
                raise UnknownArtifactError(
                    f"artifact: the conversation has no file '{path.logical}'; list its files to see their paths"
                )
            counts, names = removed
            return Deletion(counts, add_line(connection, scope.principal, draft_of(counts), None)), names

        return await self._files.remove_after(work)

    @override
    async def purge(self, deletion: Deletion) -> None:
        if deletion.number is not None:
            await self._purge(deletion.number)

    @override
    async def purge_interrupted(self) -> None:
        for number in await self._database.read(lambda connection: list(connection.scalars(_DELETED))):
            await self._purge(number)
        if not self._is_stopping:
            await self._files.retry_removals()

    @override
    def stop_purging(self) -> None:
        self._is_stopping = True

    async def _purge(self, conversation: int) -> None:
        # One purge of a conversation at a time: the other one then finds that it is gone.
        async with self._purging.held([str(conversation)]):
            await self._purge_alone(conversation)

    async def _purge_alone(self, conversation: int) -> None:
        def remove_files(connection: Connection, save: str) -> tuple[bool, list[str]]:
            if not _lock_deleted(connection, conversation):
                return False, []
            names = remove_some(connection, conversation, save, _FILES_AT_ONCE)
            return bool(names), names

        while await self._files.remove_after(remove_files):
            if self._is_stopping:
                return
        for table, key, rows_max in _ROWS_AT_ONCE:
            own = table.c.conversation == conversation
            some = select(key).where(own).order_by(key).limit(rows_max)
            step = partial(_purge_step, conversation=conversation, query=delete(table).where(own, key.in_(some)))
            while await self._database.write(step):
                if self._is_stopping:
                    return
        gone = delete(conversations).where(conversations.c.id == conversation)
        await self._database.write(partial(_purge_step, conversation=conversation, query=gone))

    @override
    async def unused(self, since: str, limit: int, prefix: str = "") -> list[ConversationKey]:
        values = {"since": since, "rows_max": limit, "prefix": prefix, "prefix_chars": len(prefix)}

        def work(connection: Connection) -> list[ConversationKey]:
            return [
                ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.name)
                for row in connection.execute(_UNUSED, values)
            ]

        return await self._database.read(work)


def _held(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[int, int, int]]:
    """How many turns, files and bytes conversations hold."""
    if not numbers:
        return {}
    of_turns = select(turns.c.conversation, func.count()).where(turns.c.conversation.in_(numbers))
    paths = (
        select(artifacts.c.conversation, artifacts.c.turn, artifacts.c.namespace, artifacts.c.rel)
        .where(artifacts.c.conversation.in_(numbers))
        .distinct()
        .subquery()
    )
    of_files = select(paths.c.conversation, func.count()).group_by(paths.c.conversation)
    of_bytes = select(artifacts.c.conversation, func.sum(artifacts.c.size_bytes)).where(
        artifacts.c.conversation.in_(numbers)
    )
    queries = (of_turns.group_by(turns.c.conversation), of_files, of_bytes.group_by(artifacts.c.conversation))
    by_query = [{number: int(count) for number, count in connection.execute(query)} for query in queries]
    in_turns, in_files, in_bytes = by_query
    return {n: (in_turns.get(n, 0), in_files.get(n, 0), in_bytes.get(n, 0)) for n in numbers}


def _lock_deleted(connection: Connection, conversation: int) -> bool:
    """Whether the conversation of a number is being deleted; its other writers wait."""
    return connection.scalar(_LOCKED_DELETED, {"in_conversation": conversation}) is not None


def _purge_step(connection: Connection, conversation: int, query: Delete) -> int:
    """Remove some rows of a conversation that is being deleted; how many."""
    return count_changed(connection, query) if _lock_deleted(connection, conversation) else 0


def _refuse_busy(connection: Connection, conversation: int, scope: ConversationKey) -> None:
    if connection.execute(_IS_BUSY, {"in_conversation": conversation}).scalar_one():
        raise ConversationBusyError(
            f"conversation_id: calls of '{scope.conversation_id[:128]}' run, wait or are queued; "
            "cancel them or wait for their answers"
        )


def _nobody(connection: Connection) -> int:
    """The row of the tenant that no caller has."""
    query = select(principals.c.id).where(principals.c.tenant == DELETED)
    if (known := connection.scalar(query)) is not None:
        return int(known)
    values = {"tenant": DELETED, "project": "", "user_type": "", "user": ""}
    connection.execute(new_or_known(principals, connection.dialect.name), values)
    return int(connection.execute(query).scalar_one())
