"""Where the record of a call belongs, read when the call is accepted."""

from sqlalchemy import Connection, select

from proofbox.service.gateway.posting import Posting, ShownTool
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.call_records import bind
from proofbox.service.storage.gateway.schema import messages, runs, spaces


class SqlCallPlaces:
    """The `CallPlaces` in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bind(self, run_id: str, tool_call_id: str, tool: ShownTool) -> Posting:
        """See `CallPlaces.bind`."""

        def work(connection: Connection) -> Posting:
            streamed = connection.execute(
                select(messages.c.message_id, spaces.c.space_id)
                .join_from(messages, runs, messages.c.run == runs.c.id)
                .join(spaces, messages.c.space == spaces.c.id)
                .where(runs.c.run_id == run_id, messages.c.stream_id == tool_call_id)
            ).first()
            if streamed is not None:
                return Posting(streamed.space_id, streamed.message_id)
            return bind(connection, run_id, tool)

        return await self._database.read(work)
