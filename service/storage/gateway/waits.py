"""The waits of calls in the database; they open and end in the transaction of their call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select, update
from typing_extensions import override

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.port import CallKey, CallState, EffectRefusedError
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.port import (
    RUN_WAITS_MAX,
    SHOWS_INPUT,
    WAITS_TOPIC,
    AskedWait,
    CancelWaits,
    CloseWait,
    OpenWait,
    StoredWait,
    WaitMovedError,
    WaitState,
    WaitStore,
    wait_topic,
)
from proofbox.service.gateway.waits.replies import TakenReplies
from proofbox.service.gateway_errors import WaitCancelledError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.call_row import CallRow
from proofbox.service.storage.conversation_rows import CONVERSATION, scope_values, utc_now
from proofbox.service.storage.database import Database, announce
from proofbox.service.storage.gateway.call_records import suspend_record
from proofbox.service.storage.gateway.message_rows import find_message
from proofbox.service.storage.gateway.reply_waits import count_replies, read_replies
from proofbox.service.storage.gateway.run_rows import HeldRun, open_waits, read_spec, run_of_row, update_waiting
from proofbox.service.storage.gateway.schema import messages, runs, spaces, waits
from proofbox.service.storage.gateway.space_access import open_space
from proofbox.service.storage.schema import calls, conversations, principals

_PENDING = WaitState.PENDING.value
_IS_PENDING = waits.c.state == _PENDING
_ALL = (
    select(
        waits,
        calls.c.tool_call_id,
        conversations.c.name.label("conversation_name"),
        principals.c.tenant,
        principals.c.project,
        principals.c.user_type,
        principals.c.user,
        runs.c.run_id,
        spaces.c.space_id,
        messages.c.message_id,
    )
    .join_from(waits, calls, waits.c.call == calls.c.id)
    .join(conversations, calls.c.conversation == conversations.c.id)
    .join(principals, conversations.c.principal == principals.c.id)
    .outerjoin(runs, waits.c.run == runs.c.id)
    .outerjoin(spaces, waits.c.space == spaces.c.id)
    .outerjoin(messages, waits.c.message == messages.c.id)
)
_NEWEST = _ALL.order_by(waits.c.id.desc()).limit(1)
_BY_ID = _ALL.where(waits.c.wait_id == bindparam("of_wait"))
_BY_CALL = _NEWEST.where(calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("of_call"))
_BY_MESSAGE = _NEWEST.where(
    spaces.c.space_id == bindparam("of_space"), messages.c.message_id == bindparam("of_message")
)
_PENDING_OF_CALL = _ALL.where(waits.c.call == bindparam("of_row"), _IS_PENDING)
_SPEC = select(waits.c.spec).where(waits.c.call == bindparam("of_row")).order_by(waits.c.id.desc()).limit(1)
_LEFT = _ALL.add_columns(calls.c.conversation).where(
    waits.c.wait_id == bindparam("of_wait"), _IS_PENDING, calls.c.state != CallState.WAITING.value
)
_OVERDUE = _ALL.where(_IS_PENDING, waits.c.expires <= bindparam("now")).order_by(waits.c.expires, waits.c.id)
_NEXT = select(func.min(waits.c.expires)).where(_IS_PENDING)
_RUN = select(runs.c.id).where(runs.c.run_id == bindparam("of_run"))
_PLACE = (
    select(messages.c.id, messages.c.space)
    .join_from(messages, spaces, messages.c.space == spaces.c.id)
    .where(messages.c.message_id == bindparam("of_message"))
)
_CLOSED = (
    update(waits)
    .where(waits.c.wait_id == bindparam("of_wait"), _IS_PENDING)
    .values(
        state=bindparam("new_state"),
        answer=bindparam("new_answer"),
        answer_sha256=bindparam("new_sha256"),
        answered_by=bindparam("new_by"),
        answered=bindparam("at"),
    )
    .returning(waits.c.run)
)
_IN_TIME = _CLOSED.where(waits.c.expires > bindparam("at"))
_LATE = _CLOSED.where(waits.c.expires <= bindparam("at"))
_CANCELLED = (
    update(waits)
    .where(waits.c.call == bindparam("of_row"), _IS_PENDING)
    .values(state=WaitState.CANCELLED.value, answered=bindparam("at"))
    .returning(waits.c.run)
)
_RUN_OF_WAIT = select(waits.c.run).where(waits.c.wait_id == bindparam("of_wait"))


@dataclass(frozen=True, slots=True)
class NewWait:
    """A wait that is to be stored.

    Attributes:
        wait_id: its id.
        kind: what it is for.
        run: the row of its run.
        expires: until when an answer is taken.
        space: the row of the space that shows it.
        message: the row of the message there.
        spec: what its end needs to know.
    """

    wait_id: str
    kind: str
    run: int
    expires: str
    space: int | None
    message: int | None
    spec: dict[str, Any]


class SqlWaitStore(WaitStore):
    """The WaitStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def of_call(self, key: CallKey) -> StoredWait | None:
        return await self._first(_BY_CALL, {**scope_values(key.scope), "of_call": key.tool_call_id})

    @override
    async def of_message(self, actor: Actor, space_id: str, message_id: str) -> AskedWait:
        def work(connection: Connection) -> AskedWait:
            opened = open_space(connection, actor, space_id)
            find_message(connection, opened.space, message_id)
            found = connection.execute(_BY_MESSAGE, {"of_space": space_id, "of_message": message_id}).first()
            wait = None if found is None else _build_wait(found)
            if opened.entity is None:
                return AskedWait(None, None, wait)
            sender = opened.entity.sender
            return AskedWait(sender.entity_id, sender.type, wait)

        return await self._database.read(work)

    @override
    async def get(self, wait_id: str) -> StoredWait | None:
        return await self._first(_BY_ID, {"of_wait": wait_id})

    @override
    async def replies(self, wait_id: str) -> TakenReplies:
        return await self._database.read(lambda connection: read_replies(connection, wait_id))

    @override
    async def overdue(self, now: str, limit: int) -> Sequence[StoredWait]:
        def work(connection: Connection) -> list[StoredWait]:
            return [_build_wait(row) for row in connection.execute(_OVERDUE.limit(limit), {"now": now})]

        return await self._database.read(work)

    @override
    async def drop(self, wait_id: str) -> bool:
        def work(connection: Connection) -> bool:
            row = connection.execute(_LEFT, {"of_wait": wait_id}).first()
            if row is not None:
                call = CallRow(row.call, row.conversation, _build_wait(row).call)
                cancel_waits(connection, call, CancelWaits())
            return row is not None

        return await self._database.write(work)

    @override
    async def next_expiry(self) -> str | None:
        return await self._database.read(lambda connection: connection.scalar(_NEXT))

    async def _first(self, query: Select[Any], values: dict[str, str]) -> StoredWait | None:
        def work(connection: Connection) -> StoredWait | None:
            row = connection.execute(query, values).first()
            return None if row is None else _build_wait(row)

        return await self._database.read(work)


def open_wait(connection: Connection, call: CallRow, effect: OpenWait) -> None:
    """Store a wait, show it in the record of its call, and let its run wait.

    Raises:
        EffectRefusedError: the run has ended, has too many waits, or no space where somebody could answer.
    """
    run = connection.execute(_RUN, {"of_run": effect.call.run_id}).scalar_one()
    require_place(connection, run_of_row(connection, run, lock=True))  # before the space: see `space_rows`
    posting = effect.posting
    message = space = None
    if effect.card is not None:
        posting = suspend_record(connection, effect.call, posting, effect.card)
        place = connection.execute(_PLACE, {"of_message": posting.message_id}).one()
        message, space = place.id, place.space
    spec = {**effect.spec, "posting": posting.to_json(), SHOWS_INPUT: effect.call.tool.shows_input}
    new = NewWait(effect.wait_id, effect.kind, run, effect.expires, space, message, spec)
    insert_wait(connection, call, new, effect.lease_s)


def require_place(connection: Connection, held: HeldRun) -> None:
    """Require that a locked run takes one more wait.

    Raises:
        EffectRefusedError: it has ended, or has as many as it may.
    """
    if held.run.status.is_ended:
        raise EffectRefusedError(GatewayCode.RUN_ENDED, f"run '{held.run.run_id}' has ended; nobody waits")
    if open_waits(connection, held.row) >= RUN_WAITS_MAX:
        raise EffectRefusedError(
            GatewayCode.TOO_MANY_WAITS,
            f"{RUN_WAITS_MAX} calls of the run wait already, the most there may be; wait for answers first",
        )


def insert_wait(connection: Connection, call: CallRow, new: NewWait, lease_s: float) -> int:
    """Store a wait of a call whose run is locked, and let the run wait; its row."""
    values = {
        "wait_id": new.wait_id,
        "run": new.run,
        "call": call.number,
        "kind": new.kind,
        "space": new.space,
        "message": new.message,
        "state": _PENDING,
        "created": utc_now(),
        "expires": new.expires,
        "spec": json.dumps(new.spec),
    }
    row = connection.execute(insert(waits).returning(waits.c.id), values).scalar_one()
    announce(connection, WAITS_TOPIC)
    announce(connection, wait_topic(new.wait_id))
    update_waiting(connection, new.run, lease_s)
    return int(row)


def close_wait(connection: Connection, _call: CallRow, effect: CloseWait) -> None:
    """End a pending wait, and let its run go on if it was the last one.

    Raises:
        WaitMovedError: it is not pending, or it is the wrong time for this end.
        WaitCancelledError: it is answered, and its run has ended.
    """
    run = connection.execute(_RUN_OF_WAIT, {"of_wait": effect.wait_id}).scalar_one()
    if run is not None:
        held = run_of_row(connection, run, lock=True)
        if held.run.status.is_ended and effect.state is WaitState.ANSWERED:
            raise WaitCancelledError(f"wait '{effect.wait_id}': its run has ended ({held.run.status})")
    query = {WaitState.ANSWERED: _IN_TIME, WaitState.EXPIRED: _LATE}.get(effect.state, _CLOSED)
    if effect.replies is not None and effect.state is WaitState.ANSWERED:
        query = _CLOSED  # a reply came in time, and the wait was due at once
    values = {
        "of_wait": effect.wait_id,
        "new_state": effect.state.value,
        "new_answer": effect.answer,
        "new_sha256": effect.answer_sha256,
        "new_by": effect.answered_by,
        "at": effect.at,
    }
    if connection.execute(query, values).first() is None:
        raise WaitMovedError(f"wait '{effect.wait_id}' is not pending any more")
    # The wait is locked now, and so takes no reply.
    if effect.replies not in (None, count_replies(connection, effect.wait_id)):
        raise WaitMovedError(f"wait '{effect.wait_id}' has another reply")
    if run is not None:
        update_waiting(connection, run, effect.lease_s)


def cancel_waits(connection: Connection, call: CallRow, effect: CancelWaits) -> None:
    """End what a call waits for, if it waits."""
    # The run is locked before the wait, as by an answer.
    for row in connection.execute(_PENDING_OF_CALL, {"of_row": call.number}).all():
        if row.run is not None:
            run_of_row(connection, row.run, lock=True)
    for row in connection.execute(_CANCELLED, {"of_row": call.number, "at": utc_now()}).all():
        if row.run is not None:
            update_waiting(connection, row.run, effect.lease_s)


def pending_wait(connection: Connection, call: int) -> str | None:
    """What a call waits for, as the JSON text of a `Wait`; None if it does not wait."""
    row = connection.execute(_PENDING_OF_CALL, {"of_row": call}).first()
    if row is None:
        return None
    return json.dumps(
        {
            "wait_id": row.wait_id,
            "kind": row.kind,
            "expires": row.expires,
            "space_id": row.space_id,
            "message_id": row.message_id,
            "waiting_for": read_spec(row.spec).get("waiting_for", []),
        }
    )


def newest_spec(connection: Connection, call: int) -> str | None:
    """What the newest wait of a call stored, as JSON text; None if it never waited."""
    return connection.execute(_SPEC, {"of_row": call}).scalar()


def _build_wait(row: Row[Any]) -> StoredWait:
    scope = ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.conversation_name)
    return StoredWait(
        wait_id=row.wait_id,
        kind=row.kind,
        state=WaitState(row.state),
        expires=row.expires,
        spec=read_spec(row.spec),
        call=CallKey(scope, row.tool_call_id),
        run_id=row.run_id,
        space_id=row.space_id,
        message_id=row.message_id,
        answer=row.answer,
        answer_sha256=row.answer_sha256,
        answered_by=row.answered_by,
    )
