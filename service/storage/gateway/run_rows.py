"""Rows of runs: how one is found, locked and moved from one status to the next, within somebody's transaction."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, select, update

from proofbox.service.gateway.runs_port import QUEUE_TOPIC, RunEnd, RunStatus, StoredRun, run_json, run_topic
from proofbox.service.gateway_errors import LeaseLostError, RunEndedError, RunNotRunningError, UnknownRunError
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import time_text, utc_now
from proofbox.service.storage.database import announce
from proofbox.service.storage.gateway.call_records import announce_run, end_streams
from proofbox.service.storage.gateway.schema import (
    agents,
    entities,
    messages,
    projects,
    run_events,
    runs,
    spaces,
    waits,
)
from proofbox.service.storage.schema import calls, principals

_ALL: Select[Any] = (
    select(
        # The tools may be large, and few need them.
        *(column for column in runs.c if column is not runs.c.tools),
        runs.c.tools.is_not(None).label("has_tools"),
        projects.c.tenant,
        projects.c.project.label("project_name"),
        agents.c.agent_id,
        entities.c.handle,
        spaces.c.space_id,
        principals.c.user_type,
        principals.c.user,
    )
    .join_from(runs, projects, runs.c.project == projects.c.id)
    .join(agents, runs.c.agent == agents.c.id)
    .outerjoin(entities, entities.c.agent == agents.c.id)
    .outerjoin(spaces, runs.c.space == spaces.c.id)
    .outerjoin(principals, runs.c.principal == principals.c.id)
)
_EVENT_OF = {
    RunStatus.QUEUED: "run.queued",
    RunStatus.RUNNING: "run.started",
    RunStatus.WAITING_TOOL: "run.waiting_tool",
    RunStatus.WAITING_REPLY: "run.waiting_reply",
    RunStatus.COMPLETED: "run.completed",
    RunStatus.FAILED: "run.failed",
    RunStatus.CANCELLED: "run.cancelled",
}


@dataclass(frozen=True, slots=True)
class HeldRun:
    """The row of a run whose lease was checked, locked until the transaction ends.

    Attributes:
        row: its number in the table.
        run: what it is now.
    """

    row: int
    run: StoredRun


def of_project(principal: Principal) -> ColumnElement[bool]:
    """Whether a run is one of the principal's project."""
    return and_(projects.c.tenant == principal.tenant, projects.c.project == principal.project)


def find_run(connection: Connection, principal: Principal, run_id: str, *, lock: bool = False) -> HeldRun:
    """Finds a run of a project, and locks it if that is asked for: conversation first, then run, then space.

    Raises:
        UnknownRunError: there is no such run.
    """
    query = _ALL.where(of_project(principal), runs.c.run_id == run_id)
    found = connection.execute(query.with_for_update(key_share=True, of=runs) if lock else query).first()
    if found is None:
        raise _unknown(run_id)
    return HeldRun(found.id, build_run(connection, found))


def find_own_run(connection: Connection, principal: Principal, run_id: str, *, lock: bool = False) -> HeldRun:
    """Finds a run that nobody has claimed, or the principal itself. Raises as `find_run` does."""
    held = find_run(connection, principal, run_id, lock=lock)
    if held.run.principal not in (None, principal):
        raise _unknown(run_id)
    return held


def _unknown(run_id: str) -> UnknownRunError:
    return UnknownRunError(f"run_id: there is no run '{run_id[:100]}' here; POST /v1/runs makes one")


def run_of_row(connection: Connection, row: int, *, lock: bool = False) -> HeldRun:
    """The run of a row, which exists."""
    query = _ALL.where(runs.c.id == row)
    found = connection.execute(query.with_for_update(key_share=True, of=runs) if lock else query).one()
    return HeldRun(found.id, build_run(connection, found))


def select_runs() -> Any:
    """Selects what `build_run` reads."""
    return _ALL


def hold_run(connection: Connection, principal: Principal, run_id: str, lease: int) -> HeldRun:
    """Locks a run and requires that a lease is its newest one and has not passed.

    Raises:
        UnknownRunError: there is no such run.
        LeaseLostError: another holder has it, or the lease has passed.
        RunNotRunningError: it is queued.
        RunEndedError: it has ended.
    """
    held = find_own_run(connection, principal, run_id, lock=True)
    require_lease(connection, held, lease)
    return held


def require_lease(connection: Connection, held: HeldRun, lease: int) -> None:
    """Requires that a lease is the newest one of a locked run and has not passed. Raises as `hold_run` does."""
    run = held.run
    if run.status.is_ended:
        raise RunEndedError(f"run '{run.run_id}' has ended ({run.status}); make a new one")
    if lease != run.lease:
        raise LeaseLostError(
            f"Run-Lease: run '{run.run_id}' has lease {run.lease}, not {lease}; another holder has claimed it"
        )
    if run.status is RunStatus.QUEUED or not run.is_held:
        raise RunNotRunningError(f"run '{run.run_id}' is {run.status} and nobody holds it; claim it first")
    if has_lapsed(connection, held):
        raise LeaseLostError(f"Run-Lease: lease {lease} of run '{run.run_id}' has passed; claim the run again")


def has_lapsed(connection: Connection, held: HeldRun) -> bool:
    """Whether the lease of a run has passed; while a call of it runs, it stands still."""
    until = held.run.lease_until
    if until is None or until > utc_now():
        return False
    is_open = select(calls.c.id).where(calls.c.run == held.row, calls.c.state == "open").limit(1)
    return connection.execute(is_open).first() is None


def renew_lease(connection: Connection, held: HeldRun, lease_s: float) -> None:
    """Extends the lease of a run that works, and never shortens it; while it waits, the lease stands still."""
    if held.run.status is RunStatus.RUNNING:
        until = max(in_seconds(lease_s), held.run.lease_until or "")
        connection.execute(update(runs).where(runs.c.id == held.row).values(lease_until=until))


def move_run(
    connection: Connection, held: HeldRun, status: RunStatus, *, event: str | None = None, **values: Any
) -> HeldRun:
    """Moves a locked run to a status, counts its working time, and writes its event.

    Args:
        connection: the transaction.
        held: the run as it was.
        status: where it goes.
        event: the name of the event, if it is not the one of the status.
        values: more columns.
    """
    found = connection.execute(select(runs.c.worked_s, runs.c.counted_from).where(runs.c.id == held.row)).one()
    now = datetime.now(UTC)
    worked_s = found.worked_s
    if found.counted_from is not None:
        worked_s += (now - datetime.fromisoformat(found.counted_from)).total_seconds()
    counted_from = time_text(now) if status is RunStatus.RUNNING else None
    columns = {"status": status.value, "worked_s": worked_s, "counted_from": counted_from, **values}
    connection.execute(update(runs).where(runs.c.id == held.row).values(columns))
    moved = run_of_row(connection, held.row)
    add_run_event(connection, moved, event or _EVENT_OF[status], {"run": run_json(moved.run)})
    announce_run(connection, held.row)
    if status is RunStatus.QUEUED:
        announce(connection, QUEUE_TOPIC)
    return moved


def end_run(connection: Connection, held: HeldRun, end: RunEnd) -> HeldRun:
    """Ends a locked run; its open calls are cancelled afterwards."""
    end_streams(connection, held.row, "abandoned", "the run ended before the call was made")
    return move_run(
        connection,
        held,
        end.status,
        ended=utc_now(),
        lease_until=None,
        holder=None,
        summary=end.summary,
        error=None if end.error is None else json.dumps(end.error),
    )


def update_waiting(connection: Connection, run_row: int, lease_s: float) -> None:
    """Moves a run to the status that its open waits ask for; called after a wait of it began or ended.

    With an open wait it is ``waiting_tool`` or, if all are for replies, ``waiting_reply``; also a queued run, whose
    holder released it before its call began to wait. After the last wait it runs again, or is queued if nobody
    holds it.

    Args:
        connection: the transaction.
        run_row: the run.
        lease_s: how long its holder has to go on after the last wait.
    """
    held = run_of_row(connection, run_row, lock=True)
    run = held.run
    if run.status.is_ended:
        return
    if (wanted := _waiting_status(run)) is not None:
        if run.status is not wanted:
            move_run(connection, held, wanted, lease_until=None)
    elif run.status.is_waiting and run.is_held:
        move_run(connection, held, RunStatus.RUNNING, event="run.resumed", lease_until=in_seconds(lease_s))
    elif run.status.is_waiting:
        move_run(connection, held, RunStatus.QUEUED, lease_until=None)


def give_back(connection: Connection, held: HeldRun, **values: Any) -> HeldRun:
    """Takes a run that works from its holder: it is queued, or waits for what its calls wait for.

    Args:
        connection: the transaction.
        held: the run, locked.
        values: more columns.
    """
    status = _waiting_status(held.run) or RunStatus.QUEUED
    return move_run(connection, held, status, holder=None, lease_until=None, **values)


def _waiting_status(run: StoredRun) -> RunStatus | None:
    """The status that the open waits of a run ask for; None without any."""
    kinds = {wait["kind"] for wait in run.waiting_for}
    if not kinds:
        return None
    return RunStatus.WAITING_REPLY if kinds == {"reply"} else RunStatus.WAITING_TOOL


def open_waits(connection: Connection, run_row: int) -> int:
    """How many waits of a run are open."""
    query = select(func.count()).select_from(waits).where(waits.c.run == run_row, waits.c.state == "pending")
    return int(connection.execute(query).scalar_one())


def add_run_event(connection: Connection, held: HeldRun, name: str, data: Mapping[str, Any]) -> None:
    """Writes an event of a locked run; ids have no gaps."""
    taken = update(runs).where(runs.c.id == held.row).values(next_event=runs.c.next_event + 1)
    number = connection.execute(taken.returning(runs.c.next_event)).scalar_one() - 1
    text = json.dumps(data, ensure_ascii=False)
    connection.execute(insert(run_events).values(run=held.row, id=number, event=name, data=text, ts=utc_now()))
    announce(connection, run_topic(held.run.run_id))


def build_run(connection: Connection, row: Row[Any]) -> StoredRun:
    """The record of a selected row."""
    principal = None
    if row.principal is not None:
        principal = Principal(row.tenant, row.project_name, row.user_type, row.user)
    status = RunStatus(row.status)
    return StoredRun(
        run_id=row.run_id,
        agent_id=row.agent_id,
        agent_handle=row.handle or row.agent_id,
        agent_version=row.version,
        principal=principal,
        conversation_id=row.conversation,
        status=status,
        trigger=json.loads(row.trigger),
        chain_depth=row.chain_depth,
        active_space_id=row.space_id,
        lease=row.lease,
        lease_until=row.lease_until,
        is_held=row.holder is not None,
        attempt=row.attempt,
        waiting_for=() if status.is_ended else _waits_of(connection, row.id),
        warnings=json.loads(row.warnings),
        metadata=json.loads(row.metadata),
        created=row.created,
        started=row.started,
        ended=row.ended,
        summary=row.summary,
        error=None if row.error is None else json.loads(row.error),
        number=row.id,
    )


def _waits_of(connection: Connection, run_row: int) -> list[dict[str, Any]]:
    query = (
        select(
            waits.c.wait_id,
            waits.c.kind,
            waits.c.expires,
            waits.c.spec,
            calls.c.tool_call_id,
            spaces.c.space_id,
            messages.c.message_id,
        )
        .join_from(waits, calls, waits.c.call == calls.c.id)
        .outerjoin(spaces, waits.c.space == spaces.c.id)
        .outerjoin(messages, waits.c.message == messages.c.id)
        .where(waits.c.run == run_row, waits.c.state == "pending")
        .order_by(waits.c.id)
    )
    return [
        {
            "wait_id": row.wait_id,
            "kind": row.kind,
            "expires": row.expires,
            "space_id": row.space_id,
            "message_id": row.message_id,
            "waiting_for": spec.get("waiting_for", []),
            "tool_call_id": row.tool_call_id,
            "name": spec.get("name", ""),
        }
        for row in connection.execute(query)
        if (spec := read_spec(row.spec)) is not None
    ]


def read_spec(text: str) -> dict[str, Any]:
    """Return what a wait stored; nothing if this release cannot read it, so that the wait can be ended."""
    try:
        spec = json.loads(text)
    except ValueError:
        return {}
    return spec if isinstance(spec, dict) else {}


def in_seconds(seconds: float) -> str:
    """The time that many seconds from now, as the stores write it."""
    return time_text(datetime.now(UTC) + timedelta(seconds=seconds))
