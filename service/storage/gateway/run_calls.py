"""Calls of runs: taken under a lease, and ended, in the transaction of the call."""

from sqlalchemy import Connection, select, update

from proofbox.service.gateway.call_effects import AcceptRunCall, EndRunCall
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.storage.call_row import CallRow
from proofbox.service.storage.gateway.run_rows import add_run_event, hold_run, renew_lease, run_of_row
from proofbox.service.storage.gateway.schema import runs
from proofbox.service.storage.gateway.space_rows import json_of
from proofbox.service.storage.schema import calls


def accept_run_call(connection: Connection, call: CallRow, effect: AcceptRunCall) -> None:
    """Ties a new call to its run.

    Raises:
        UnknownRunError, LeaseLostError, RunNotRunningError, RunEndedError: the run does not take it.
    """
    held = hold_run(connection, effect.principal, effect.run_id, effect.lease)
    connection.execute(update(calls).where(calls.c.id == call.number).values(run=held.row))
    renew_lease(connection, held, effect.lease_s)


def store_place(connection: Connection, call: CallRow, place: Json) -> None:
    """Stores where the record of a new call belongs: for its worker, and for its end after a restart."""
    connection.execute(update(calls).where(calls.c.id == call.number).values(place=json_of(place)))


def run_id_of_call(connection: Connection, call: CallRow) -> str | None:
    """The run that took a call; None for another call."""
    query = select(runs.c.run_id).join_from(calls, runs, calls.c.run == runs.c.id)
    return connection.execute(query.where(calls.c.id == call.number)).scalar()


def end_run_call(connection: Connection, call: CallRow, effect: EndRunCall) -> None:
    """Writes that a call has its answer."""
    row = connection.execute(select(calls.c.run).where(calls.c.id == call.number)).scalar()
    if row is None:
        return
    held = run_of_row(connection, row, lock=True)
    renew_lease(connection, held, effect.lease_s)
    add_run_event(connection, held, "call.answered", {"tool_call_id": call.key.tool_call_id})
