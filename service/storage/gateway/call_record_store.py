"""Records of calls in spaces in transactions of their own; `effects` has those within the transaction of a call."""

from collections.abc import Collection, Mapping
from functools import partial

from sqlalchemy import Connection, bindparam, select

from proofbox.service.gateway.posting import Posting, RecordedCall, RecordError, ShownTool
from proofbox.service.gateway.spaces.input_stream import StartedStream
from proofbox.service.gateway.spaces.tool_inputs import StreamStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway import call_records
from proofbox.service.storage.gateway.schema import messages, runs
from proofbox.service.storage.schema import calls

_MADE = (
    select(calls.c.tool_call_id, calls.c.answer.is_not(None).label("has_ended"))
    .join_from(calls, runs, calls.c.run == runs.c.id)
    .where(runs.c.run_id == bindparam("of_run_id"), calls.c.tool_call_id.in_(bindparam("ids", expanding=True)))
)
ABANDONED_AT_ONCE = 50
"""Records that one transaction ends after a start of the service."""
_STREAMING = (
    select(messages.c.id, runs.c.run_id, messages.c.stream_id)
    .join_from(messages, runs, messages.c.run == runs.c.id)
    .where(messages.c.state == "streaming", messages.c.id > bindparam("after"))
    .order_by(messages.c.id)
    .limit(ABANDONED_AT_ONCE)
)
_ABANDONED = RecordError("abandoned", "the service stopped while the arguments of the call were being written")


class SqlCallRecords(StreamStore):
    """Records of calls that are written in transactions of their own.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bind(self, run_id: str, tool_call_id: str, tool: ShownTool) -> Posting:
        """See `call_records.bind`."""
        return await self._database.read(
            lambda connection: call_records.bind(connection, run_id, tool, tool_call_id)
        )

    async def start(self, call: RecordedCall, posting: Posting | None = None) -> Posting:
        """See `call_records.start_record`."""
        return await self._database.write(lambda connection: call_records.start_record(connection, call, posting))

    async def start_stream(self, call: RecordedCall) -> StartedStream | None:
        """See `StreamStore.start_stream`."""
        return await self._database.write(lambda connection: call_records.start_stream(connection, call))

    async def find_text_space(self, run_id: str) -> int | None:
        """See `StreamStore.find_text_space`."""
        return await self._database.read(lambda connection: call_records.text_space(connection, run_id))

    async def find_made(self, run_id: str, tool_call_ids: Collection[str]) -> Mapping[str, bool]:
        """See `StreamStore.find_made`."""
        values = {"of_run_id": run_id, "ids": list(tool_call_ids)}

        def work(connection: Connection) -> dict[str, bool]:
            return {row.tool_call_id: bool(row.has_ended) for row in connection.execute(_MADE, values)}

        return await self._database.read(work)

    async def end_stream(self, run_id: str, tool_call_id: str, error: RecordError) -> None:
        """See `StreamStore.end_stream`."""
        await self._database.write(
            lambda connection: call_records.end_stream(connection, run_id, tool_call_id, error)
        )

    async def abandon_streams(self) -> int:
        """End the records whose arguments an earlier process of the service received; how many.

        A transaction ends `ABANDONED_AT_ONCE` of them, so that its events and locks are bounded.
        """
        count, after = 0, 0
        while found := await self._database.write(partial(_abandon_some, after=after)):
            count, after = count + len(found), found[-1]
        return count


def _abandon_some(connection: Connection, after: int) -> list[int]:
    """End the oldest records after one (its row) that are still streaming; their rows."""
    found = connection.execute(_STREAMING, {"after": after}).all()
    for row in found:
        call_records.end_stream(connection, row.run_id, row.stream_id, _ABANDONED)
    return [row.id for row in found]
