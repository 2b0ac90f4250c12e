"""Accepted calls and their one answer in the database.

Requests and answers are stored as plain text: storing 28 MiB takes 0.1 s; compression would add 0.2 s (text)
to 0.6 s (base64, which shrinks by a quarter only).
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update
from typing_extensions import override

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import notice_path
from proofbox.service.artifacts.port import PreparedSave, SaveLostError, StoredArtifact
from proofbox.service.calls.port import (
    ALONE,
    Alongside,
    AuditDraft,
    CallKey,
    CallNotStoredError,
    CallState,
    CallStore,
    Effect,
    NewCall,
    StoredCall,
    StoredEnd,
)
from proofbox.service.errors import IdReusedError, StoreFailedError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.prepared_save import SqlPreparedSave
from proofbox.service.storage.audit import add_line, line_of
from proofbox.service.storage.call_row import ApplyEffect, CallRow
from proofbox.service.storage.conversation_rows import (
    CONVERSATION,
    PRINCIPAL,
    ensure_conversation,
    lock_principal,
    lock_used_conversation,
    principal_values,
    scope_values,
    utc_now,
)
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.tables import dispatches
from proofbox.service.storage.gateway.waits import newest_spec, pending_wait
from proofbox.service.storage.schema import calls, conversations, idempotency_keys, principals
from proofbox.service.storage.timelines import LAST_POSITION, BlockRow, append_rows, block_rows, remove_group

_IS_OPEN = calls.c.state == CallState.OPEN.value
_OWN = (calls.c.conversation == bindparam("in_conversation"), calls.c.tool_call_id == bindparam("call_id"))
NAMED_CALLS = (
    select(
        calls,
        conversations.c.name.label("conversation_name"),
        principals.c.tenant,
        principals.c.project,
        principals.c.user_type,
        principals.c.user,
    )
    .join_from(calls, conversations)
    .join(principals)
)
_BY_KEY = NAMED_CALLS.where(*_OWN)
_OF_KEY = NAMED_CALLS.where(calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("call_id"))
_BY_NAME = NAMED_CALLS.join(idempotency_keys, idempotency_keys.c.call == calls.c.id).where(
    idempotency_keys.c.principal == bindparam("principal"), idempotency_keys.c.name == bindparam("name")
)
_BY_ID = NAMED_CALLS.where(conversations.c.principal == PRINCIPAL, calls.c.tool_call_id == bindparam("call_id"))
_LEFT_OPEN = NAMED_CALLS.where(_IS_OPEN, calls.c.boot_id != bindparam("boot_id"))
_NEWEST = (
    select(calls.c.tool_call_id, calls.c.request)
    .where(
        calls.c.conversation == CONVERSATION,
        calls.c.state == CallState.DONE.value,
        func.length(calls.c.request) <= bindparam("chars_max"),
    )
    .order_by(calls.c.id.desc())
    .limit(bindparam("limit"))
)
_NEW = insert(calls).returning(calls.c.id)
_NEW_NAME = insert(idempotency_keys)
_FINISHED = (
    update(calls)
    .where(*_OWN, calls.c.state == bindparam("was"))
    .values(state=bindparam("new_state"), answer=bindparam("new_answer"), partial_response=bindparam("new_partial"))
    .returning(calls.c.id, calls.c.payload_sha256, calls.c.boot_id, calls.c.created, calls.c.request, LAST_POSITION)
)
_DISPATCHED = delete(dispatches).where(dispatches.c.call == bindparam("of_call"))
_MOVED = (
    update(calls)
    .where(*_OWN, calls.c.state == bindparam("was"))
    .values(state=bindparam("new_state"), boot_id=func.coalesce(bindparam("new_boot_id"), calls.c.boot_id))
    .returning(calls.c.id)
)
_REFUSED = update(calls).where(calls.c.id == bindparam("of_call")).values(refused=bindparam("newest"))
_REPLACED = delete(calls).where(calls.c.id == bindparam("of_call"))
_NAME_FREED = delete(idempotency_keys).where(idempotency_keys.c.call == bindparam("of_call"))
_QUEUED = (
    update(calls)
    .where(calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("call_id"), _IS_OPEN)
    .values(queued=bindparam("is_queued"), boot_id=bindparam("new_boot_id"))
)
_FORGOTTEN = delete(calls).where(
    calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("call_id"), _IS_OPEN
)


class _EndedError(StoreFailedError):
    """A call has another state already, so that the files of its transaction are not stored."""


class SqlCallStore(CallStore):
    """The CallStore in the database.

    Args:
        database: the open database.
        effects: stores the effects of each kind, in the transaction of a call.
    """

    def __init__(self, database: Database, effects: Mapping[type[Effect], ApplyEffect] | None = None) -> None:
        self._database = database
        self._effects = effects or {}

    @override
    async def claim(self, call: NewCall) -> tuple[StoredCall, bool]:
        def work(connection: Connection) -> tuple[StoredCall, bool]:
            conversation, principal = ensure_conversation(connection, call.key.scope)
            values: dict[str, object] = {"in_conversation": conversation, "call_id": call.key.tool_call_id}
            known = connection.execute(_BY_KEY, values).first()
            if known is not None and _gives_its_id(known):
                _remove_refused(connection, conversation, known)
                known = None
            own = _same_payload(known, call, _id_taken(call))
            named = None
            if call.idempotency_key is not None:
                lock_principal(connection, principal)
                values = {"principal": principal, "name": call.idempotency_key}
                known = connection.execute(_BY_NAME, values).first()
                if known is not None and _gives_its_id(known):
                    connection.execute(_NAME_FREED, {"of_call": known.id})
                    known = None
                named = _same_payload(known, call, _name_taken(call))
            found = own or named
            if found is None:
                number, stored = _insert(connection, conversation, call)
                self._apply(connection, CallRow(number, conversation, stored.key), call.effects)
            else:
                number, stored = found.id, build_stored_call(connection, found)
            if named is None and call.idempotency_key is not None:
                connection.execute(
                    _NEW_NAME, {"principal": principal, "name": call.idempotency_key, "call": number}
                )
            return stored, found is None

        return await self._database.write(work)

    @override
    async def finish(
        self,
        key: CallKey,
        state: CallState,
        answer: str,
        blocks: Sequence[Block] = (),
        audit: AuditDraft | None = None,
        also: Alongside = ALONE,
    ) -> StoredCall:
        end = StoredEnd(state, answer, blocks, audit, also)
        rows = await asyncio.to_thread(block_rows, blocks)

        def work(connection: Connection) -> StoredCall:
            conversation, _ = lock_used_conversation(connection, key.scope) or (None, None)
            return self._finish(connection, key, conversation, end, rows)

        return await self._database.write(work)

    @override
    async def finish_with_files(
        self,
        key: CallKey,
        save: PreparedSave,
        build: Callable[[Sequence[StoredArtifact]], StoredEnd],
        was: CallState = CallState.OPEN,
    ) -> StoredCall:
        if not isinstance(save, SqlPreparedSave):
            raise TypeError("files of another store")

        def work(connection: Connection) -> StoredCall:
            conversation, _ = lock_used_conversation(connection, key.scope) or (None, None)
            if conversation is None:
                return _known(connection, key, None)
            end = build(save.insert_rows(connection, conversation))
            return self._finish(connection, key, conversation, end, block_rows(end.blocks), has_files=True)

        try:
            return await self._database.write(work)
        except (_EndedError, SaveLostError):
            known = await self._database.read(partial(_find_known, key=key))
            if known.state is was:
                raise
            return known

    def _finish(
        self,
        connection: Connection,
        key: CallKey,
        conversation: int | None,
        end: StoredEnd,
        rows: Sequence[BlockRow],
        *,
        has_files: bool = False,
    ) -> StoredCall:
        also = end.also
        values = {"in_conversation": conversation, "call_id": key.tool_call_id}
        new = {"new_state": end.state.value, "new_answer": end.answer, "new_partial": also.partial_response}
        new["was"] = also.was.value
        changed = connection.execute(_FINISHED, {**values, **new}).first()
        if changed is None or conversation is None:
            if has_files:  # that this transaction has stored
                raise _EndedError("the call has another state already")
            return _known(connection, key, connection.execute(_BY_KEY, values).first())
        append_rows(connection, conversation, rows, changed.last)
        if also.is_refusal:
            newest = changed.last + len(rows) if rows else 0
            connection.execute(_REFUSED, {"of_call": changed.id, "newest": newest})
        self._apply(connection, CallRow(changed.id, conversation, key), also.effects)
        connection.execute(_DISPATCHED, {"of_call": changed.id})  # of a service that had many processes
        # Last: a project's calls wait here for each other until the transaction is over.
        audited = None if end.audit is None else add_line(connection, key.scope.principal, end.audit, changed.id)
        return StoredCall(
            key=key,
            payload_sha256=changed.payload_sha256,
            state=end.state,
            boot_id=changed.boot_id,
            created=changed.created,
            request=changed.request,
            answer=end.answer,
            partial_response=also.partial_response,
            audited=audited,
            number=changed.id,
        )

    @override
    async def suspend(self, key: CallKey, effects: Sequence[Effect]) -> StoredCall | None:
        return await self._move(key, (CallState.OPEN, CallState.WAITING), effects)

    @override
    async def resume(self, key: CallKey, boot_id: str, effects: Sequence[Effect]) -> StoredCall | None:
        return await self._move(key, (CallState.WAITING, CallState.OPEN), effects, boot_id)

    async def _move(
        self, key: CallKey, step: tuple[CallState, CallState], effects: Sequence[Effect], boot_id: str | None = None
    ) -> StoredCall | None:
        was, new = step

        def work(connection: Connection) -> StoredCall | None:
            conversation, _ = lock_used_conversation(connection, key.scope) or (None, None)
            own = {"in_conversation": conversation, "call_id": key.tool_call_id}
            values = {**own, "was": was.value, "new_state": new.value, "new_boot_id": boot_id}
            changed = connection.execute(_MOVED, values).first()
            if changed is not None and conversation is not None:
                self._apply(connection, CallRow(changed.id, conversation, key), effects)
            known = connection.execute(_BY_KEY, own).first()
            if known is None:
                raise CallNotStoredError(f"the call '{key.tool_call_id}' is not stored, so it cannot be changed")
            return None if changed is None else build_stored_call(connection, known)

        return await self._database.write(work)

    def _apply(self, connection: Connection, call: CallRow, effects: Sequence[Effect]) -> None:
        for effect in effects:
            self._effects[type(effect)](connection, call, effect)

    @override
    async def mark_queued(self, key: CallKey, boot_id: str, *, is_queued: bool) -> None:
        own = {**scope_values(key.scope), "call_id": key.tool_call_id}
        values = {**own, "is_queued": int(is_queued), "new_boot_id": boot_id}
        await self._database.write(lambda connection: connection.execute(_QUEUED, values))

    @override
    async def forget(self, key: CallKey) -> None:
        values = {**scope_values(key.scope), "call_id": key.tool_call_id}
        await self._database.write(lambda connection: connection.execute(_FORGOTTEN, values))

    @override
    async def find(self, principal: Principal, tool_call_id: str) -> list[StoredCall]:
        values = {**principal_values(principal), "call_id": tool_call_id}

        def work(connection: Connection) -> list[StoredCall]:
            return [
                build_stored_call(connection, row)
                for row in connection.execute(_BY_ID.order_by(calls.c.id), values)
            ]

        return await self._database.read(work)

    @override
    async def left_open(self, boot_id: str) -> list[StoredCall]:
        def work(connection: Connection) -> list[StoredCall]:
            found = connection.execute(_LEFT_OPEN.order_by(calls.c.id), {"boot_id": boot_id})
            return [build_stored_call(connection, row) for row in found]

        return await self._database.read(work)

    @override
    async def newest_requests(self, scope: ConversationKey, limit: int, chars_max: int) -> list[tuple[str, str]]:
        values = {**scope_values(scope), "limit": limit, "chars_max": chars_max}

        def work(connection: Connection) -> list[tuple[str, str]]:
            return [(row.tool_call_id, row.request) for row in connection.execute(_NEWEST, values)]

        return await self._database.read(work)


def _find_known(connection: Connection, key: CallKey) -> StoredCall:
    """A call as it is stored.

    Raises:
        CallNotStoredError: no such call is.
    """
    row = connection.execute(_OF_KEY, {**scope_values(key.scope), "call_id": key.tool_call_id}).first()
    return _known(connection, key, row)


def _known(connection: Connection, key: CallKey, row: Row[Any] | None) -> StoredCall:
    """A call that was answered before.

    Raises:
        CallNotStoredError: no such call is stored.
    """
    if row is None:
        raise CallNotStoredError(f"the call '{key.tool_call_id}' is not stored, so its answer cannot be")
    return replace(build_stored_call(connection, row), audited=line_of(connection, row.id))


def _insert(connection: Connection, conversation: int, call: NewCall) -> tuple[int, StoredCall]:
    stored = StoredCall(
        key=call.key,
        payload_sha256=call.payload_sha256,
        state=CallState.OPEN,
        boot_id=call.boot_id,
        created=utc_now(),
        request=call.request,
        answer=None,
        is_queued=call.is_queued,
    )
    inserted = connection.execute(
        _NEW,
        {
            "conversation": conversation,
            "tool_call_id": call.key.tool_call_id,
            "payload_sha256": stored.payload_sha256,
            "state": stored.state.value,
            "boot_id": stored.boot_id,
            "created": stored.created,
            "request": stored.request,
            "queued": int(stored.is_queued),
        },
    ).one()
    return inserted.id, replace(stored, number=inserted.id)


def _gives_its_id(row: Row[Any]) -> bool:
    """Whether no part of a call was run. That of a run keeps its id, which the records of spaces name."""
    return row.refused is not None and row.run is None


def _remove_refused(connection: Connection, conversation: int, row: Row[Any]) -> None:
    """Make room for another call under the id of one that was refused; its audit line stays, of no call."""
    blocks = json.loads(row.answer)["blocks"]
    if blocks:
        stored_path = notice_path(blocks[0]["turn_id"], row.tool_call_id)
        remove_group(connection, conversation, row.refused, len(blocks), stored_path)
    connection.execute(_REPLACED, {"of_call": row.id})


def _same_payload(row: Row[Any] | None, call: NewCall, taken: str) -> Row[Any] | None:
    if row is not None and row.payload_sha256 != call.payload_sha256:
        raise IdReusedError(taken)
    return row


def _id_taken(call: NewCall) -> str:
    return (
        f"tool_call_id '{call.key.tool_call_id}' has been used in conversation '{call.key.scope.conversation_id}' "
        "with another payload; repeat that payload unchanged, or send this one with a new tool_call_id"
    )


def _name_taken(call: NewCall) -> str:
    return (
        f"the Idempotency-Key '{call.idempotency_key}' has been used with another payload; repeat that payload "
        "unchanged, or send this one with a new Idempotency-Key"
    )


def build_stored_call(connection: Connection, row: Row[Any]) -> StoredCall:
    """The call of a row of `NAMED_CALLS`."""
    scope = ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.conversation_name)
    is_open_of_run = row.run is not None and row.answer is None
    return StoredCall(
        key=CallKey(scope, row.tool_call_id),
        payload_sha256=row.payload_sha256,
        state=CallState(row.state),
        boot_id=row.boot_id,
        created=row.created,
        request=row.request,
        answer=row.answer,
        partial_response=row.partial_response,
        wait=pending_wait(connection, row.id) if row.state == CallState.WAITING else None,
        wait_spec=(newest_spec(connection, row.id) or row.place) if is_open_of_run else None,
        number=row.id,
        is_queued=bool(row.queued),
    )
