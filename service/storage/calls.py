"""Accepted calls and their one answer in the database.

Requests and answers are stored as plain text: storing 28 MiB takes 0.1 s; compression would add 0.2 s (text)
to 0.6 s (base64, which shrinks by a quarter only).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update
from typing_extensions import override

from proofbox.contracts.blocks import Block
from proofbox.service.calls.port import (
    AuditDraft,
    CallKey,
    CallNotStoredError,
    CallState,
    CallStore,
    NewCall,
    StoredCall,
)
from proofbox.service.errors import IdReusedError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.audit import add_line, line_of
from proofbox.service.storage.conversation_rows import (
    CONVERSATION,
    PRINCIPAL,
    ensure_conversation,
    lock_conversation,
    lock_principal,
    principal_values,
    scope_values,
    utc_now,
)
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import calls, conversations, idempotency_keys, principals
from proofbox.service.storage.timelines import append_rows, block_rows

_IS_OPEN = calls.c.state == CallState.OPEN.value
_OWN = (calls.c.conversation == bindparam("in_conversation"), calls.c.tool_call_id == bindparam("call_id"))
_NAMED = (
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
_BY_KEY = _NAMED.where(*_OWN)
_BY_NAME = _NAMED.join(idempotency_keys, idempotency_keys.c.call == calls.c.id).where(
    idempotency_keys.c.principal == bindparam("principal"), idempotency_keys.c.name == bindparam("name")
)
_BY_ID = _NAMED.where(conversations.c.principal == PRINCIPAL, calls.c.tool_call_id == bindparam("call_id"))
_LEFT_OPEN = _NAMED.where(_IS_OPEN, calls.c.boot_id != bindparam("boot_id"))
_NEW = insert(calls).returning(calls.c.id)
_NEW_NAME = insert(idempotency_keys)
_FINISHED = (
    update(calls)
    .where(*_OWN, _IS_OPEN)
    .values(state=bindparam("new_state"), answer=bindparam("new_answer"), partial_response=bindparam("new_partial"))
    .returning(calls.c.id, calls.c.payload_sha256, calls.c.boot_id, calls.c.created, calls.c.request)
)
_FORGOTTEN = delete(calls).where(
    calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("call_id"), _IS_OPEN
)


class SqlCallStore(CallStore):
    """The CallStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def claim(self, call: NewCall) -> tuple[StoredCall, bool]:
        def work(connection: Connection) -> tuple[StoredCall, bool]:
            conversation, principal = ensure_conversation(connection, call.key.scope)
            values: dict[str, object] = {"in_conversation": conversation, "call_id": call.key.tool_call_id}
            own = _same_payload(connection.execute(_BY_KEY, values).first(), call, _id_taken(call))
            named = None
            if call.idempotency_key is not None:
                lock_principal(connection, principal)
                values = {"principal": principal, "name": call.idempotency_key}
                named = _same_payload(connection.execute(_BY_NAME, values).first(), call, _name_taken(call))
            found = own or named
            if found is None:
                number, stored = _insert(connection, conversation, call)
            else:
                number, stored = found.id, _build_stored_call(found)
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
        *,
        partial_response: str | None = None,
    ) -> StoredCall:
        rows = await asyncio.to_thread(block_rows, blocks)

        def work(connection: Connection) -> StoredCall:
            conversation, _ = lock_conversation(connection, key.scope) or (None, None)
            values = {"in_conversation": conversation, "call_id": key.tool_call_id}
            new = {"new_state": state.value, "new_answer": answer, "new_partial": partial_response}
            changed = connection.execute(_FINISHED, {**values, **new}).first()
            if changed is not None and conversation is not None:
                append_rows(connection, conversation, rows)
                # Last: a project's calls wait here for each other until the transaction is over.
                audited = None if audit is None else add_line(connection, key.scope.principal, audit, changed.id)
                return StoredCall(
                    key=key,
                    payload_sha256=changed.payload_sha256,
                    state=state,
                    boot_id=changed.boot_id,
                    created=changed.created,
                    request=changed.request,
                    answer=answer,
                    partial_response=partial_response,
                    audited=audited,
                )
            known = connection.execute(_BY_KEY, values).first()
            if known is None:
                raise CallNotStoredError(f"the call '{key.tool_call_id}' is not stored, so its answer cannot be")
            return replace(_build_stored_call(known), audited=line_of(connection, known.id))

        return await self._database.write(work)

    @override
    async def forget(self, key: CallKey) -> None:
        values = {**scope_values(key.scope), "call_id": key.tool_call_id}
        await self._database.write(lambda connection: connection.execute(_FORGOTTEN, values))

    @override
    async def find(self, principal: Principal, tool_call_id: str) -> list[StoredCall]:
        values = {**principal_values(principal), "call_id": tool_call_id}

        def work(connection: Connection) -> list[StoredCall]:
            return [_build_stored_call(row) for row in connection.execute(_BY_ID.order_by(calls.c.id), values)]

        return await self._database.read(work)

    @override
    async def left_open(self, boot_id: str) -> list[StoredCall]:
        def work(connection: Connection) -> list[StoredCall]:
            found = connection.execute(_LEFT_OPEN.order_by(calls.c.id), {"boot_id": boot_id})
            return [_build_stored_call(row) for row in found]

        return await self._database.read(work)


def _insert(connection: Connection, conversation: int, call: NewCall) -> tuple[int, StoredCall]:
    stored = StoredCall(
        key=call.key,
        payload_sha256=call.payload_sha256,
        state=CallState.OPEN,
        boot_id=call.boot_id,
        created=utc_now(),
        request=call.request,
        answer=None,
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
        },
    ).one()
    return inserted.id, stored


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


def _build_stored_call(row: Row[Any]) -> StoredCall:
    scope = ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.conversation_name)
    return StoredCall(
        key=CallKey(scope, row.tool_call_id),
        payload_sha256=row.payload_sha256,
        state=CallState(row.state),
        boot_id=row.boot_id,
        created=row.created,
        request=row.request,
        answer=row.answer,
        partial_response=row.partial_response,
    )
