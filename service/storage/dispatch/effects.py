"""Stores what changes of a dispatched call in the transaction that changes the call."""

from collections.abc import Mapping
from functools import partial

from sqlalchemy import Connection, Delete, Double, Update, bindparam, case, delete, update

from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.port import Effect
from proofbox.service.dispatch.effects import (
    EndClaimed,
    EndExpired,
    EndQueued,
    ForgetDispatch,
    QueueCall,
    ResumeDispatch,
    SuspendClaimed,
)
from proofbox.service.dispatch.port import DispatchState, StopReason
from proofbox.service.storage.call_row import ApplyEffect, CallRow
from proofbox.service.storage.database import count_changed, require_rows
from proofbox.service.storage.dispatch.clock import epoch_now
from proofbox.service.storage.dispatch.tables import dispatches
from proofbox.service.storage.dispatch.turns import PUBLISHED_WITHIN_S, take_place

_c = dispatches.c
_NEW = dispatches.insert().values(
    call=bindparam("of_call"),
    state=DispatchState.QUEUED.value,
    claim=0,
    attempts=0,
    due=epoch_now() + PUBLISHED_WITHIN_S,
    deadline=epoch_now() + bindparam("queue_s", type_=Double()),
    detached=bindparam("is_detached"),
    events=0,
    key_id=bindparam("of_key"),
    request_id=bindparam("of_request"),
    caller=bindparam("of_caller"),
    caller_max=bindparam("of_caller_max"),
    is_deferred=bindparam("deferred"),
)
_NOT_DEFERRED = {"of_caller": "", "of_caller_max": 0, "deferred": 0}
_IS_OURS = (_c.call == bindparam("of_call"), _c.claim == bindparam("of_claim"))
_IS_HELD = _c.state.in_([DispatchState.CLAIMED.value, DispatchState.STARTED.value])
_IS_BY = _c.worker == bindparam("by_worker")
_END_CLAIMED = delete(dispatches).where(*_IS_OURS, _IS_BY, _IS_HELD)
_END_EXPIRED = delete(dispatches).where(*_IS_OURS, _c.state == DispatchState.STARTED.value, _c.due < epoch_now())
_END_QUEUED = delete(dispatches).where(
    _c.call == bindparam("of_call"), _c.state.in_([DispatchState.QUEUED.value, DispatchState.DEAD.value])
)
_SUSPENDED = (
    update(dispatches)
    .where(*_IS_OURS, _IS_BY, _IS_HELD)
    .values(state=DispatchState.SUSPENDED.value, worker=None, outcome=None, events=bindparam("had_events"))
)
_RESUMED = (
    update(dispatches)
    .where(_c.call == bindparam("of_call"), _c.state == DispatchState.SUSPENDED.value)
    .values(
        state=DispatchState.QUEUED.value,
        attempts=0,
        stop=case((_c.stop == StopReason.CANCELLED.value, _c.stop)),  # of lost clients nothing is left to heed
        deadline=None,  # it has had effects, so that its end has to be its own
        due=epoch_now() + PUBLISHED_WITHIN_S,
        outcome=bindparam("new_outcome"),
    )
)
_OUTCOME = update(dispatches).where(_c.call == bindparam("of_call")).values(outcome=bindparam("new_outcome"))
_FORGOTTEN = delete(dispatches).where(_c.call == bindparam("of_call"))


def dispatch_effects() -> Mapping[type[Effect], ApplyEffect]:
    """The effects of `SqlCallStore` that concern dispatched calls."""
    return {
        QueueCall: _queue,
        EndClaimed: _end_claimed,
        EndExpired: _end_expired,
        EndQueued: _end_queued,
        SuspendClaimed: _suspend,
        ResumeDispatch: _resume,
        ForgetDispatch: _forget,
    }


def _queue(connection: Connection, call: CallRow, effect: QueueCall) -> None:
    place = effect.place
    is_deferred = take_place(connection, place)
    values = {"is_detached": int(effect.detached), "of_key": effect.key_id, "of_request": effect.request_id}
    turn = {"of_caller": place.caller, "of_caller_max": place.running_max, "deferred": int(is_deferred)}
    connection.execute(_NEW, {"of_call": call.number, "queue_s": effect.queue_s, **values, **turn})
    if is_deferred:
        place.on_deferred(call.number)


def _end_claimed(connection: Connection, call: CallRow, effect: EndClaimed) -> None:
    values = {"of_call": call.number, "of_claim": effect.claim, "by_worker": effect.worker}
    _require(connection, _END_CLAIMED, values)


def _end_expired(connection: Connection, call: CallRow, effect: EndExpired) -> None:
    _require(connection, _END_EXPIRED, {"of_call": call.number, "of_claim": effect.claim})


def _end_queued(connection: Connection, call: CallRow, _effect: EndQueued) -> None:
    _require(connection, _END_QUEUED, {"of_call": call.number})


def _suspend(connection: Connection, call: CallRow, effect: SuspendClaimed) -> None:
    values = {"of_call": call.number, "of_claim": effect.claim, "by_worker": effect.worker}
    values["had_events"] = effect.events
    _require(connection, _SUSPENDED, values)


def _resume(connection: Connection, call: CallRow, effect: ResumeDispatch) -> None:
    values = {"of_call": call.number, "new_outcome": effect.outcome}
    if count_changed(connection, _RESUMED, values) == 1:
        return
    # It began to wait in a service of one process.
    new = {"of_call": call.number, "queue_s": None, "is_detached": 1, "of_key": None, "of_request": ""}
    connection.execute(_NEW, {**new, **_NOT_DEFERRED})
    connection.execute(_OUTCOME, values)


def _forget(connection: Connection, call: CallRow, _effect: ForgetDispatch) -> None:
    connection.execute(_FORGOTTEN, {"of_call": call.number})


def _require(connection: Connection, change: Delete | Update, values: dict[str, object]) -> None:
    lost = partial(ClaimLostError, "another process has the call, or it has ended; this one writes no end of it")
    require_rows(connection, change, values, 1, lost)
