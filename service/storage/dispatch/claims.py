"""Claims of workers in the database: each is one statement that compares and sets."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Delete, Select, Update, bindparam, delete, exists, func, select, tuple_, update
from typing_extensions import override

from proofbox.service.calls.port import CallKey, CallState, StoredCall
from proofbox.service.dispatch.port import (
    ClaimedCall,
    DeadCall,
    DispatchState,
    DispatchStore,
    GivenBack,
    QueuedCall,
    QueueFigures,
    Refusal,
    Refused,
    StopAnswer,
    StopReason,
)
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.calls import NAMED_CALLS, build_stored_call
from proofbox.service.storage.database import LAST, UNREAD, Database, count_changed
from proofbox.service.storage.dispatch.clock import epoch_now
from proofbox.service.storage.dispatch.tables import dispatches, members
from proofbox.service.storage.dispatch.turns import (
    DEFERRED,
    HAS_MORE,
    lock_free_calls,
    release_turns,
    waiting_callers,
)
from proofbox.service.storage.schema import calls, conversations, principals

_c = dispatches.c
_NO_CLAIM = (0, 0)
_QUEUED, _CLAIMED = DispatchState.QUEUED.value, DispatchState.CLAIMED.value
_STARTED = DispatchState.STARTED.value
_DEAD, _SUSPENDED = DispatchState.DEAD.value, DispatchState.SUSPENDED.value
_CALL, _CLAIM = _c.call == bindparam("of_call"), _c.claim == bindparam("of_claim")
_BY = _c.worker == bindparam("by_worker")
_IS_HELD = _c.state.in_([_CLAIMED, _STARTED])
_IS_FREE = ((_c.state == _QUEUED) & ~DEFERRED) | ((_c.state == _CLAIMED) & (_c.due < epoch_now()))
_UNTIL = epoch_now() + bindparam("lease_s")
_IS_OPEN = exists().where(calls.c.id == _c.call, calls.c.state == CallState.OPEN.value)
"""A service of one process may have ended the call, or let it wait, since it was queued."""
_TAKEN = (
    update(dispatches)
    .where(_CALL, _IS_FREE, _IS_OPEN, _c.attempts < bindparam("attempts_max"))
    .values(state=_CLAIMED, claim=_c.claim + 1, attempts=_c.attempts + 1, worker=bindparam("by_worker"), due=_UNTIL)
    .values(workspace=None)
    .returning(*_c, HAS_MORE.label("more"))
)
_SET_ASIDE = (
    update(dispatches)
    .where(_CALL, _IS_FREE, _IS_OPEN, _c.attempts >= bindparam("attempts_max"))
    .values(state=_DEAD, worker=None, reason=bindparam("why"))
    .returning(_c.claim)
)
_FOUND = select(*_c, (_c.due - epoch_now()).label("left_s")).where(_CALL, _IS_OPEN)
_CALL_OF = NAMED_CALLS.where(calls.c.id == bindparam("of_call"))
_BEGUN = (
    update(dispatches)
    .where(_CALL, _CLAIM, _BY, _c.state == _CLAIMED, _c.due > epoch_now())
    .values(state=_STARTED, due=_UNTIL)
)
_RENEWED = (
    update(dispatches)
    .where(
        _BY,
        _IS_HELD,
        _c.due > epoch_now(),
        tuple_(_c.call, _c.claim).in_(bindparam("claims", expanding=True)),
    )
    .values(due=_UNTIL)
    .returning(_c.call, _c.claim, _c.stop)
)
_RELEASED = (
    update(dispatches)
    .where(_CALL, _CLAIM, _BY, _IS_HELD)
    .values(
        state=_QUEUED,
        worker=None,
        due=epoch_now() + bindparam("again_s"),
        attempts=_c.attempts - bindparam("given_back"),
    )
)
_oldest = (
    select(calls.c.created)
    .join_from(dispatches, calls, _c.call == calls.c.id)
    .where(_c.state == _QUEUED, _c.deadline.is_not(None))
    .order_by(_c.call)
    .limit(1)
    .scalar_subquery()
)
_workers = (
    select(func.count())
    .where(members.c.until > epoch_now(), members.c.role.in_(["worker", "all"]))
    .scalar_subquery()
)
_FIGURES = select(
    epoch_now().label("now"),
    func.count().filter(_c.state == _QUEUED).label("waiting"),
    func.count().filter(_IS_HELD).label("held"),
    func.count().filter(_c.state == _DEAD).label("set_aside"),
    func.count().filter(_IS_HELD, _c.due < epoch_now()).label("expired"),
    func.count().filter(_c.state == _QUEUED, _c.due <= epoch_now(), ~DEFERRED).label("due"),
    func.count().filter(_c.state == _QUEUED, _c.deadline < epoch_now()).label("overdue"),
    _oldest.label("oldest"),
    _workers.label("workers"),
).select_from(dispatches)
_LOST = select(_c.call, _c.claim).where(_IS_HELD, _c.due < epoch_now()).order_by(_c.due).limit(bindparam("most"))
_some_due = lock_free_calls(_c.state == _QUEUED, _c.due <= epoch_now(), ~DEFERRED, order=_c.due, most="most")
_DUE = (
    update(dispatches)
    .where(_c.call.in_(_some_due))
    .values(due=epoch_now() + bindparam("again_s"))
    .returning(_c.call, _c.claim)
)
_STOPPED = (
    update(dispatches)
    .where(_CALL, (_c.detached == 0) | (bindparam("reason_") == StopReason.CANCELLED.value))
    .values(stop=bindparam("reason_"))
    .returning(_c.state, _c.worker)
)
_DETACHED = update(dispatches).where(_CALL).values(detached=1)
_WITHDRAWN = delete(calls).where(
    calls.c.id == bindparam("of_call"),
    calls.c.state == CallState.OPEN.value,
    exists().where(_c.call == calls.c.id, _c.state == _QUEUED),
)
_OPEN = (
    select(calls.c.id, calls.c.state.label("call_state"), _c.state)
    .join_from(calls, dispatches, _c.call == calls.c.id, isouter=True)
    .where(calls.c.id.in_(bindparam("numbers", expanding=True)), calls.c.answer.is_(None))
)
_REQUEUED = (
    update(dispatches)
    .where(_CALL, _CLAIM, _c.state == _CLAIMED, _c.due < epoch_now())
    .values(state=_QUEUED, worker=None, due=epoch_now())
)
_EXPIRED = select(*_c).where(_CALL, _CLAIM, _c.state == _STARTED, _c.due < epoch_now())
_DEAD_ONES = (
    select(
        _c.call,
        _c.attempts,
        _c.reason,
        calls.c.tool_call_id,
        calls.c.created,
        calls.c.request,
        conversations.c.name,
        principals.c.tenant,
        principals.c.project,
        principals.c.user_type,
        principals.c.user,
    )
    .join_from(dispatches, calls, _c.call == calls.c.id)
    .join(conversations, calls.c.conversation == conversations.c.id)
    .join(principals, conversations.c.principal == principals.c.id)
    .where(_c.state == _DEAD)
    .order_by(_c.call)
    .limit(bindparam("most"))
)
_REVIVED = (
    update(dispatches)
    .where(_CALL, _c.state == _DEAD)
    .values(state=_QUEUED, attempts=0, reason=None, due=epoch_now(), deadline=None)
)


_LEFT = (
    NAMED_CALLS.join(dispatches, _c.call == calls.c.id, isouter=True)
    .where(calls.c.state == CallState.OPEN.value, _c.call.is_(None) | (_c.state == _SUSPENDED))
    .order_by(calls.c.id)
    .limit(bindparam("most"))
)
_OVERDUE = (
    NAMED_CALLS.join(dispatches, _c.call == calls.c.id)
    .where(calls.c.state == CallState.OPEN.value, _c.state == _QUEUED, _c.deadline < epoch_now())
    .order_by(calls.c.id)
    .limit(bindparam("most"))
)
_UNPUBLISHED = (
    update(dispatches)
    .where(_c.call.in_(bindparam("numbers", expanding=True)), _c.state == _QUEUED)
    .values(due=epoch_now())
)


class SqlDispatchStore(DispatchStore):
    """The DispatchStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def claim(self, number: int, worker: str, lease_s: float, attempts_max: int) -> ClaimedCall | Refused:
        values = {"of_call": number, "by_worker": worker, "lease_s": lease_s, "attempts_max": attempts_max}
        why = f"{attempts_max} workers were lost before its program began, or could not begin it"
        aside = {"of_call": number, "attempts_max": attempts_max, "why": why}

        def work(connection: Connection) -> ClaimedCall | Refused:
            if connection.dialect.name == "postgresql":
                # A claim that a crash of the server forgets is refused when its call is to begin.
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off", execution_options=UNREAD)
            taken = connection.execute(_TAKEN, values).first()
            if taken is not None:
                stop = None if taken.stop is None else StopReason(taken.stop)
                stored = _stored(connection, taken, LAST)
                makes_room = bool(taken.caller_max or taken.more)
                found = ClaimedCall(stored, taken.claim, taken.request_id, stop, taken.events, taken.outcome)
                return replace(found, caller=taken.caller, makes_room=makes_room)
            if (dead := connection.execute(_SET_ASIDE, aside).first()) is not None:
                return Refused(Refusal.DEAD, dead.claim)
            return _refusal(connection, number)

        return await self._database.write(work)

    @override
    async def start(self, number: int, claim: int, worker: str, lease_s: float) -> bool:
        values = {"of_call": number, "of_claim": claim, "by_worker": worker, "lease_s": lease_s}
        return await self._changes_one(_BEGUN, values)

    @override
    async def renew(
        self, worker: str, lease_s: float, claims: Collection[tuple[int, int]]
    ) -> Mapping[int, tuple[int, StopReason | None]]:
        values = {"by_worker": worker, "lease_s": lease_s, "claims": list(claims) or [_NO_CLAIM]}

        def work(connection: Connection) -> dict[int, tuple[int, StopReason | None]]:
            rows = connection.execute(_RENEWED, values)
            return {row.call: (row.claim, None if row.stop is None else StopReason(row.stop)) for row in rows}

        return await self._database.write(work)

    @override
    async def release(self, number: int, claim: int, worker: str, given: GivenBack) -> bool:
        values = {"of_call": number, "of_claim": claim, "by_worker": worker}
        values |= {"again_s": given.again_s, "given_back": int(not given.counts)}
        return await self._changes_one(_RELEASED, values)

    @override
    async def read_figures(self) -> QueueFigures:
        def work(connection: Connection) -> QueueFigures:
            row = connection.execute(_FIGURES).one()
            waited_s = 0.0 if row.oldest is None else row.now - datetime.fromisoformat(row.oldest).timestamp()
            return QueueFigures(
                row.waiting,
                max(0.0, waited_s),
                row.held,
                row.set_aside,
                row.expired,
                row.due,
                row.overdue,
                row.workers,
            )

        return await self._database.read(work)

    @override
    async def lost(self, limit: int) -> Sequence[QueuedCall]:
        return await self._database.read(lambda connection: _queued(connection.execute(_LOST, {"most": limit})))

    @override
    async def due(self, again_s: float, limit: int) -> Sequence[QueuedCall]:
        values = {"again_s": again_s, "most": limit}
        return await self._database.write(lambda connection: _queued(connection.execute(_DUE, values)))

    @override
    async def unpublish(self, numbers: Sequence[int]) -> None:
        values = {"numbers": list(numbers)}
        await self._database.write(lambda connection: connection.execute(_UNPUBLISHED, values))

    @override
    async def release_turns(self, caller: str, published_max: int) -> Sequence[int]:
        return await self._database.write(lambda connection: release_turns(connection, caller, published_max))

    @override
    async def waiting_callers(self, limit: int) -> Sequence[str]:
        return await self._database.read(lambda connection: waiting_callers(connection, limit))

    @override
    async def left(self, limit: int) -> Sequence[StoredCall]:
        return await self._database.read(lambda connection: _calls(connection, _LEFT, limit))

    @override
    async def overdue(self, limit: int) -> Sequence[StoredCall]:
        return await self._database.read(lambda connection: _calls(connection, _OVERDUE, limit))

    @override
    async def request_stop(self, number: int, reason: StopReason) -> StopAnswer | None:
        def work(connection: Connection) -> StopAnswer | None:
            row = connection.execute(_STOPPED, {"of_call": number, "reason_": reason.value}).first()
            return None if row is None else StopAnswer(DispatchState(row.state), row.worker)

        return await self._database.write(work)

    @override
    async def keep(self, number: int) -> None:
        await self._database.write(lambda connection: connection.execute(_DETACHED, {"of_call": number}))

    @override
    async def withdraw(self, number: int) -> bool:
        values = {"of_call": number}
        return await self._changes_one(_WITHDRAWN, values)

    @override
    async def expire(self, number: int, claim: int) -> StoredCall | None:
        values = {"of_call": number, "of_claim": claim}

        def work(connection: Connection) -> StoredCall | None:
            if count_changed(connection, _REQUEUED, values) == 1:
                return None
            row = connection.execute(_EXPIRED, values).first()
            return None if row is None else _stored(connection, row)

        return await self._database.write(work)

    @override
    async def states(self, numbers: Sequence[int]) -> Mapping[int, tuple[CallState, DispatchState | None]]:
        def work(connection: Connection) -> dict[int, tuple[CallState, DispatchState | None]]:
            rows = connection.execute(_OPEN, {"numbers": list(numbers)})
            return {
                row.id: (CallState(row.call_state), None if row.state is None else DispatchState(row.state))
                for row in rows
            }

        return await self._database.read(work)

    @override
    async def dead(self, limit: int) -> Sequence[DeadCall]:
        def work(connection: Connection) -> list[DeadCall]:
            return [_dead(row) for row in connection.execute(_DEAD_ONES, {"most": limit})]

        return await self._database.read(work)

    @override
    async def release_dead(self, number: int) -> bool:
        values = {"of_call": number}
        return await self._changes_one(_REVIVED, values)

    async def _changes_one(self, change: Update | Delete, values: Mapping[str, object]) -> bool:
        """Whether a statement, as a transaction of its own, has changed a row."""
        return await self._database.write(lambda connection: count_changed(connection, change, values, LAST) == 1)


def _refusal(connection: Connection, number: int) -> Refused:
    row = connection.execute(_FOUND, {"of_call": number}).first()
    if row is None or row.is_deferred or row.state == DispatchState.SUSPENDED:
        return Refused(Refusal.GONE)
    if row.state == DispatchState.DEAD:
        return Refused(Refusal.DEAD, row.claim)
    if row.state == DispatchState.STARTED and row.left_s < 0:
        return Refused(Refusal.LOST, row.claim, stored=_stored(connection, row))
    return Refused(Refusal.TAKEN, row.claim, again_in_s=max(0.0, row.left_s))


def _calls(connection: Connection, asked: Select[Any], limit: int) -> list[StoredCall]:
    return [build_stored_call(connection, row) for row in connection.execute(asked, {"most": limit}).all()]


def _stored(connection: Connection, row: Any, options: Mapping[str, Any] | None = None) -> StoredCall:
    found = connection.execute(_CALL_OF, {"of_call": row.call}, execution_options=options).one()
    stored = build_stored_call(connection, found)
    scope = stored.key.scope
    principal = replace(scope.principal, key_id=row.key_id)
    return replace(stored, key=replace(stored.key, scope=replace(scope, principal=principal)))


def _queued(rows: Any) -> list[QueuedCall]:
    return [QueuedCall(row.call, row.claim) for row in rows]


def _dead(row: Any) -> DeadCall:
    scope = ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.name)
    tool_id = str(json.loads(row.request).get("tool_id", ""))
    key = CallKey(scope, row.tool_call_id)
    return DeadCall(row.call, key, tool_id, row.attempts, row.reason or "", row.created)
