"""Turns in the queue of calls: how many one caller has in it, in hand and waiting, counted in the database."""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    text,
    update,
)

from proofbox.contracts.problems import FieldError
from proofbox.service.dispatch.effects import QueuePlace
from proofbox.service.dispatch.port import DispatchState
from proofbox.service.errors import QueueFullError
from proofbox.service.storage.database import UNREAD
from proofbox.service.storage.dispatch.clock import epoch_now
from proofbox.service.storage.dispatch.tables import dispatches

PUBLISHED_WITHIN_S = 5.0
"""The process that queues a call publishes it; after this time the process that leads does."""
_RETRY_AFTER_S = 5.0  # where no call that this process accepted has begun yet
_OUR_LOCK = 0x50_42_4F_54  # "PBOT": turns of callers, among all advisory locks of a database
_LOCK = text("SELECT pg_advisory_xact_lock(:ours, hashtext(current_schema() || :caller))")
_FEW = 256
"""Below its limits by so many, a caller needs no lock: so many transactions do not run at a time."""

_c = dispatches.c
_QUEUED = _c.state == DispatchState.QUEUED.value
_WAITS = _c.state.in_([DispatchState.QUEUED.value, DispatchState.CLAIMED.value])
_IS_OUT = _c.state.in_([DispatchState.QUEUED.value, DispatchState.CLAIMED.value, DispatchState.STARTED.value])
_OWN = _c.caller == bindparam("by_caller")
DEFERRED = _c.is_deferred == literal_column("1")
"""Whether a call waits in the database for its turn."""
_SENT = _c.is_deferred == literal_column("0")


def _up_to(most: str, *where: ColumnElement[bool]) -> ScalarSelect[int]:
    """How many rows there are, counted up to a parameter."""
    found = select(_c.call).where(*where).limit(bindparam(most, type_=Integer())).subquery()
    return select(func.count()).select_from(found).scalar_subquery()


_COUNTS = select(
    _up_to("queue_max", _WAITS).label("waiting"),
    _up_to("queued_max", _OWN, _WAITS).label("own_waiting"),
    _up_to("published_max", _OWN, _QUEUED, _SENT).label("published"),
    _up_to("running_max", _OWN, _IS_OUT, _SENT).label("out"),
    _up_to("one", _OWN, DEFERRED).label("deferred"),
)
_ROOM = select(
    _up_to("published_max", _OWN, _QUEUED, _SENT).label("published"),
    select(_c.caller_max).where(_OWN, DEFERRED).order_by(_c.call).limit(1).scalar_subquery().label("caller_max"),
)
_OUT = select(func.count()).where(_OWN, _IS_OUT, _SENT)


def lock_free_calls(*where: ColumnElement[bool], order: ColumnElement[Any], most: str) -> Select[tuple[int]]:
    """Selects and locks the first calls that no other transaction has locked, for an update of these.

    They are a common table expression, which is read once. PostgreSQL may read a subquery again, and lock other
    rows each time.

    Args:
        where: what holds for each of them.
        order: which calls are the first.
        most: the parameter for the number of calls.
    """
    found = select(_c.call).where(*where).order_by(order).limit(bindparam(most))
    return select(found.with_for_update(skip_locked=True).cte("free_calls").c.call)


_RELEASED = (
    update(dispatches)
    .where(_c.call.in_(lock_free_calls(_OWN, DEFERRED, _QUEUED, order=_c.call, most="room")))
    .values(is_deferred=0, due=epoch_now() + PUBLISHED_WITHIN_S)
    .returning(_c.call)
)
_CALLERS = select(_c.caller).where(DEFERRED).distinct().limit(bindparam("most"))
_another = dispatches.alias("another")
HAS_MORE = exists(
    select(_another.c.call)
    .where(_another.c.caller == _c.caller, _another.c.is_deferred == literal_column("1"))
    .correlate(dispatches)
)
"""Of a changed row: whether calls of its caller wait in the database for their turn."""


def take_place(connection: Connection, place: QueuePlace) -> bool:
    """Find out whether a new call may be queued, and whether it has to wait in the database for its turn.

    Raises:
        QueueFullError: as many calls wait as the operator allows, or as the caller may have.
    """
    counted = connection.execute(_COUNTS, _parameters(place)).one()
    if _is_near(place, counted.own_waiting, counted.out):
        lock_caller(connection, place.caller)
        counted = connection.execute(_COUNTS, _parameters(place)).one()
    if place.queued_max and counted.own_waiting >= place.queued_max:
        message = f"queued_calls: {counted.own_waiting} calls of yours wait, {place.queued_max} may"
        raise QueueFullError(
            f"{message}; come again later",
            retry_after_s=place.next_s[0] or _RETRY_AFTER_S,
            errors=[FieldError(field="queued_calls", code="queue_full", message=message)],
        )
    if place.queue_max is not None and counted.waiting >= place.queue_max:
        raise QueueFullError(
            f"{counted.waiting} calls wait for a worker, {place.queue_max} may; come again later",
            retry_after_s=place.next_s[1] or _RETRY_AFTER_S,
        )
    is_full = place.published_max and counted.published >= place.published_max
    return bool(is_full or counted.deferred or (place.running_max and counted.out >= place.running_max))


def _is_near(place: QueuePlace, waiting: int, out: int) -> bool:
    is_near_waiting = place.queued_max and waiting + _FEW >= place.queued_max
    return bool(is_near_waiting or (place.running_max and out + _FEW >= place.running_max))


def _parameters(place: QueuePlace) -> dict[str, object]:
    return {
        "by_caller": place.caller,
        "queue_max": place.queue_max or 0,
        "queued_max": place.queued_max,
        "published_max": place.published_max,
        "running_max": place.running_max,
        "one": 1,
    }


def lock_caller(connection: Connection, caller: str) -> None:
    """Let no other transaction count the calls of a caller until this one ends."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(_LOCK, {"ours": _OUR_LOCK, "caller": caller}, execution_options=UNREAD)


def release_turns(connection: Connection, caller: str, published_max: int) -> list[int]:
    """Give the oldest calls of a caller that wait for their turn a place in the queue, as far as there is room.

    Returns:
        Their numbers: they have to be published.
    """
    lock_caller(connection, caller)
    found = connection.execute(_ROOM, {"by_caller": caller, "published_max": published_max}).one()
    room = published_max - found.published
    if found.caller_max is None:
        return []  # none waits
    if found.caller_max:
        room = min(room, found.caller_max - connection.scalars(_OUT, {"by_caller": caller}).one())
    if room <= 0:
        return []
    return sorted(connection.scalars(_RELEASED, {"by_caller": caller, "room": room}))


def waiting_callers(connection: Connection, limit: int) -> list[str]:
    """Callers of whom calls wait in the database for their turn."""
    return list(connection.scalars(_CALLERS, {"most": limit}))
