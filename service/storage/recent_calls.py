"""The calls of the last hours in the database.

The query starts from the conversations that were used in that time, and reads their calls of that time by an index:
a user has few of both, however many calls the database or a conversation holds.
"""

from datetime import datetime, timedelta

from sqlalchemy import BigInteger, Connection, and_, bindparam, case, func, literal_column, null, select
from typing_extensions import override

from proofbox.service.calls.port import CallState, RecentCall, RecentCalls
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import PRINCIPAL, USE_KNOWN_S, principal_values, time_text
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import audit, calls, conversations

_NOT_ENDED = (CallState.OPEN.value, CallState.WAITING.value)
_REQUEST_CHARS_MAX = 65_536  # a request may have tens of megabytes, and only its ids are shown
_NO_BOUND = 2**62
# Not the column itself: SQLite would walk the calls of all conversations in the order of their numbers.
_number = calls.c.id + literal_column("0")
_RECENT = (
    select(
        calls.c.id,
        calls.c.tool_call_id,
        calls.c.state,
        calls.c.created,
        conversations.c.name,
        audit.c.line,
        case(
            (
                and_(calls.c.state.in_(_NOT_ENDED), func.length(calls.c.request) <= _REQUEST_CHARS_MAX),
                calls.c.request,
            ),
            else_=null(),
        ).label("small_request"),
    )
    .join_from(conversations, calls, calls.c.conversation == conversations.c.id)
    .outerjoin(audit, audit.c.call == calls.c.id)
    .where(
        conversations.c.principal == PRINCIPAL,
        conversations.c.used >= bindparam("used_since"),
        calls.c.created >= bindparam("since"),
        _number < bindparam("before_id", type_=BigInteger),
    )
    .order_by(_number.desc())
    .limit(bindparam("rows_max"))
)


class SqlRecentCalls(RecentCalls):
    """The RecentCalls in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def recent(self, principal: Principal, since: str, before: int | None, limit: int) -> list[RecentCall]:
        # The last use of a conversation is recorded to the minute.
        used_since = datetime.fromisoformat(since) - timedelta(seconds=2 * USE_KNOWN_S)
        values = {
            **principal_values(principal),
            "since": since,
            "used_since": time_text(used_since),
            "before_id": _NO_BOUND if before is None else before,
            "rows_max": limit,
        }

        def work(connection: Connection) -> list[RecentCall]:
            return [
                RecentCall(
                    number=row.id,
                    conversation_id=row.name,
                    tool_call_id=row.tool_call_id,
                    state=CallState(row.state),
                    created=row.created,
                    audit_line=row.line,
                    request=row.small_request,
                )
                for row in connection.execute(_RECENT, values)
            ]

        return await self._database.read(work)
