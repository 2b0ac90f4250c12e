"""Runs whose lease or time is over: taken back, or ended."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from sqlalchemy import Connection, select

from proofbox.service.gateway.runs_port import RUN_AGE_DAYS_MAX, RUN_ATTEMPTS_MAX, RunEnd, RunLimits, RunStatus
from proofbox.service.storage.conversation_rows import time_text
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.run_rows import end_run, give_back, has_lapsed, run_of_row
from proofbox.service.storage.gateway.schema import runs

_WORKS = runs.c.status == RunStatus.RUNNING.value
_OPEN = [status.value for status in RunStatus if not status.is_ended]
_AT_ONCE = 100  # more are taken by the next pass


async def sweep_runs(database: Database, limits: RunLimits) -> None:
    """Takes back the runs whose lease has passed, and ends those whose time is over."""
    for row in await database.read(lambda connection: _due(connection, limits)):
        await database.write(partial(_settle, row=row, limits=limits))


def _due(connection: Connection, limits: RunLimits) -> Sequence[int]:
    """Rows that may be due; each is read again under its lock."""
    now = datetime.now(UTC)
    lapsed = select(runs.c.id).where(_WORKS, runs.c.lease_until <= time_text(now)).limit(_AT_ONCE)
    found = list(connection.execute(lapsed).scalars())
    working = select(runs.c.id, runs.c.worked_s, runs.c.counted_from).where(_WORKS)
    found += [
        row.id for row in connection.execute(working) if _worked_s(row.worked_s, row.counted_from) > limits.work_s
    ]
    born = time_text(now - timedelta(days=RUN_AGE_DAYS_MAX))
    old = select(runs.c.id).where(runs.c.status.in_(_OPEN), runs.c.created <= born).limit(_AT_ONCE)
    found += connection.execute(old).scalars()
    return list(dict.fromkeys(found))


def _settle(connection: Connection, row: int, limits: RunLimits) -> None:
    held = run_of_row(connection, row, lock=True)
    run = held.run
    if run.status.is_ended:
        return
    times = connection.execute(select(runs.c.worked_s, runs.c.counted_from).where(runs.c.id == row)).one()
    born = datetime.fromisoformat(run.created)
    if datetime.now(UTC) - born >= timedelta(days=RUN_AGE_DAYS_MAX):
        _fail(connection, row, "run_timeout", f"the run has not ended within {RUN_AGE_DAYS_MAX} days")
    elif run.status is not RunStatus.RUNNING:
        return
    elif _worked_s(times.worked_s, times.counted_from) > limits.work_s:
        _fail(connection, row, "run_timeout", f"the run worked for longer than {limits.work_s:g} s")
    elif not has_lapsed(connection, held):
        return
    elif run.attempt >= RUN_ATTEMPTS_MAX:
        _fail(connection, row, "lease_lost", f"the lease of the run has passed {RUN_ATTEMPTS_MAX} times")
    else:
        give_back(connection, held, attempt=run.attempt + 1)


def _fail(connection: Connection, row: int, code: str, message: str) -> None:
    held = run_of_row(connection, row, lock=True)
    end_run(connection, held, RunEnd(RunStatus.FAILED, error={"code": code, "message": message}))


def _worked_s(worked_s: float, counted_from: str | None) -> float:
    if counted_from is None:
        return worked_s
    return worked_s + (datetime.now(UTC) - datetime.fromisoformat(counted_from)).total_seconds()
