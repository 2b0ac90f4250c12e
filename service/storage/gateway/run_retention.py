"""Old runs and answers of idempotency keys are read, and removed a bounded number in each transaction."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, exists, select, tuple_, update
from typing_extensions import override

from proofbox.service.conversations.port import EndedRun, EndedRuns, RunPosition, RunRetention
from proofbox.service.storage.database import Database, count_changed
from proofbox.service.storage.gateway.schema import (
    agents,
    created_records,
    messages,
    projects,
    run_events,
    runs,
    waits,
)
from proofbox.service.storage.schema import calls, conversations

_RECORD = (created_records.c.principal, created_records.c.name)
_HAS_CALL: ColumnElement[bool] = exists().where(calls.c.run == runs.c.id)
_HAS_USED_CALL: ColumnElement[bool] = exists().where(
    calls.c.run == runs.c.id,
    calls.c.conversation == conversations.c.id,
    conversations.c.used >= bindparam("since"),
)
_HAS_WAIT: ColumnElement[bool] = exists().where(waits.c.run == runs.c.id)
_HAS_USED_WAIT: ColumnElement[bool] = exists().where(
    waits.c.run == runs.c.id,
    waits.c.call == calls.c.id,
    calls.c.conversation == conversations.c.id,
    conversations.c.used >= bindparam("since"),
)


def _page(is_used: ColumnElement[bool]) -> Select[Any]:
    """Selects ended runs after a position, and whether something refers to them."""
    return (
        select(
            runs.c.id,
            projects.c.tenant,
            projects.c.project,
            agents.c.agent_id,
            runs.c.run_id,
            runs.c.ended,
            is_used.label("is_used"),
        )
        .join_from(runs, agents, runs.c.agent == agents.c.id)
        .join(projects, runs.c.project == projects.c.id)
        .where(
            runs.c.ended < bindparam("since"),
            tuple_(runs.c.ended, runs.c.id) > tuple_(bindparam("after_ended"), bindparam("after_id")),
        )
        .order_by(runs.c.ended, runs.c.id)
        .limit(bindparam("rows_max"))
    )


_ENDED = _page(_HAS_CALL | _HAS_WAIT)
_ENDED_WITHOUT_UNUSED = _page(_HAS_USED_CALL | _HAS_USED_WAIT)
_STILL_DUE = (
    select(runs.c.id)
    .where(
        runs.c.id.in_(bindparam("numbers", expanding=True)),
        runs.c.ended < bindparam("since"),
        ~(_HAS_CALL | _HAS_WAIT),
    )
    .with_for_update(of=runs)
)


class SqlRunRetention(RunRetention):
    """The RunRetention in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def delete_answers(self, since: str, limit: int) -> int:
        old = select(*_RECORD).where(created_records.c.created < since)
        due = old.order_by(created_records.c.created).limit(limit)
        query = delete(created_records).where(tuple_(*_RECORD).in_(due))
        return await self._database.write(lambda connection: count_changed(connection, query))

    @override
    async def ended(
        self, since: str, after: RunPosition | None, limit: int, *, without_unused: bool = False
    ) -> EndedRuns:
        query = _ENDED_WITHOUT_UNUSED if without_unused else _ENDED
        ended, number = after or ("", 0)
        values = {"since": since, "after_ended": ended, "after_id": number, "rows_max": limit}

        def work(connection: Connection) -> EndedRuns:
            found = connection.execute(query, values).all()
            due = [
                EndedRun(row.id, row.tenant, row.project, row.agent_id, row.run_id, row.ended)
                for row in found
                if not row.is_used
            ]
            return EndedRuns(due, (found[-1].ended, found[-1].id) if len(found) == limit else None)

        return await self._database.read(work)

    @override
    async def delete(self, since: str, numbers: Sequence[int]) -> int:
        def work(connection: Connection) -> int:
            rows = list(connection.scalars(_STILL_DUE, {"numbers": list(numbers), "since": since}))
            if rows:
                # The messages stay, and name the run by its id in their text.
                connection.execute(update(messages).where(messages.c.run.in_(rows)).values(run=None))
                connection.execute(delete(run_events).where(run_events.c.run.in_(rows)))
                connection.execute(delete(runs).where(runs.c.id.in_(rows)))
            return len(rows)

        return await self._database.write(work)
