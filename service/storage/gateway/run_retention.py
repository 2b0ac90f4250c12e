"""Old runs and answers of idempotency keys are removed from the database, a bounded number in each transaction."""

from sqlalchemy import Connection, delete, exists, select, tuple_, update
from typing_extensions import override

from proofbox.service.conversations.port import RunRetention
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.schema import created_records, messages, run_events, runs, waits
from proofbox.service.storage.schema import calls

_RECORD = (created_records.c.principal, created_records.c.name)


class SqlRunRetention(RunRetention):
    """The RunRetention in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def delete_ended(self, since: str, limit: int) -> int:
        def work(connection: Connection) -> int:
            # Those of a run's creation go before it: a repeated request would name a run that is not there.
            return _delete_answers(connection, since, limit) or _delete_runs(connection, since, limit)

        return await self._database.write(work)


def _delete_answers(connection: Connection, since: str, limit: int) -> int:
    old = select(*_RECORD).where(created_records.c.created < since).order_by(created_records.c.created).limit(limit)
    return connection.execute(delete(created_records).where(tuple_(*_RECORD).in_(old))).rowcount


def _delete_runs(connection: Connection, since: str, limit: int) -> int:
    """Delete ended runs that no call and no wait refers to: those go with their conversations."""
    is_used = exists().where(calls.c.run == runs.c.id) | exists().where(waits.c.run == runs.c.id)
    old = select(runs.c.id).where(runs.c.ended < since, ~is_used).order_by(runs.c.ended).limit(limit)
    rows = list(connection.scalars(old))
    if rows:
        # The messages stay, and name the run by its id in their text.
        connection.execute(update(messages).where(messages.c.run.in_(rows)).values(run=None))
        connection.execute(delete(run_events).where(run_events.c.run.in_(rows)))
        connection.execute(delete(runs).where(runs.c.id.in_(rows)))
    return len(rows)
