"""The effects on records of calls in spaces, for `SqlCallStore`, and transactions of their own."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from proofbox.service.calls.port import Effect
from proofbox.service.gateway.posting import (
    EndRecord,
    Posting,
    RecordedCall,
    RecordError,
    ResumeRecord,
    ShownTool,
    StartRecord,
    SuspendRecord,
)
from proofbox.service.gateway.tool_inputs import StartedStream, StreamStore
from proofbox.service.storage.calls import ApplyEffect, CallRow
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway import call_records
from proofbox.service.storage.gateway.schema import messages, runs

_ABANDONED = RecordError("abandoned", "the service stopped while the arguments of the call were being written")


def _start(connection: Connection, _call: CallRow, effect: StartRecord) -> None:
    call_records.start_record(connection, effect.call, effect.posting)


def _suspend(connection: Connection, _call: CallRow, effect: SuspendRecord) -> None:
    call_records.suspend_record(connection, effect.call, effect.posting, effect.card)


def _resume(connection: Connection, _call: CallRow, effect: ResumeRecord) -> None:
    call_records.resume_record(connection, effect.run_id, effect.tool_call_id, effect.answered_by)


def _end(connection: Connection, _call: CallRow, effect: EndRecord) -> None:
    call_records.end_record(connection, effect)


RECORD_EFFECTS: Mapping[type[Effect], ApplyEffect] = {
    StartRecord: _start,
    SuspendRecord: _suspend,
    ResumeRecord: _resume,
    EndRecord: _end,
}
"""What `SqlCallStore` is given for the effects of `gateway.posting`."""


class SqlCallRecords(StreamStore):
    """Records of calls that are written in transactions of their own.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def bind(self, run_id: str, tool: ShownTool) -> Posting:
        """See `call_records.bind`."""
        return await self._database.read(lambda connection: call_records.bind(connection, run_id, tool))

    async def start(self, call: RecordedCall, posting: Posting | None = None) -> Posting:
        """See `call_records.start_record`."""
        return await self._database.write(lambda connection: call_records.start_record(connection, call, posting))

    async def start_stream(self, call: RecordedCall) -> StartedStream | None:
        """See `StreamStore.start_stream`."""
        return await self._database.write(lambda connection: call_records.start_stream(connection, call))

    async def end_stream(self, run_id: str, tool_call_id: str, error: RecordError) -> None:
        """See `StreamStore.end_stream`."""
        await self._database.write(
            lambda connection: call_records.end_stream(connection, run_id, tool_call_id, error)
        )

    async def abandon_streams(self) -> int:
        """End the records whose arguments an earlier process of the service received; how many."""

        def work(connection: Connection) -> int:
            query = (
                select(runs.c.run_id, messages.c.stream_id)
                .join_from(messages, runs, messages.c.run == runs.c.id)
                .where(messages.c.state == "streaming")
                .order_by(messages.c.id)
            )
            found = connection.execute(query).all()
            for row in found:
                call_records.end_stream(connection, row.run_id, row.stream_id, _ABANDONED)
            return len(found)

        return await self._database.write(work)
