"""Ended runs are deleted: read page by page, then removed in small transactions."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proofbox.service.conversations.port import RunPosition, RunRetention
from proofbox.service.observability.metrics_port import DeletedData, Meter

ROWS_AT_ONCE = 100
"""How many runs, or answers of idempotency keys, are deleted in one transaction."""
READ_AT_ONCE = 1_000
"""How many ended runs are read at once."""


@dataclass(frozen=True, slots=True)
class DeletedRuns:
    """What was deleted.

    Attributes:
        runs: how many runs.
        is_complete: whether no more were due, or the service stops.
    """

    runs: int
    is_complete: bool


async def delete_ended_runs(
    retention: RunRetention, since: str, meter: Meter, go_on: Callable[[], Awaitable[bool]], rows_max: int
) -> DeletedRuns:
    """Delete old answers of idempotency keys, then runs that ended before ``since`` and that no call refers to.

    Args:
        retention: the runs.
        since: UTC, RFC 3339, ``Z``.
        meter: counts the runs.
        go_on: waits before each transaction; False: the rest is left.
        rows_max: how many runs or answers are deleted, at most.
    """
    answers = runs = 0
    after: RunPosition | None = None
    while await go_on():
        count = await retention.delete_answers(since, ROWS_AT_ONCE)
        answers += count
        if answers >= rows_max:
            return DeletedRuns(0, is_complete=False)
        if not count:
            break
    while await go_on():
        page = await retention.ended(since, after, READ_AT_ONCE)
        for at in range(0, len(page.due), ROWS_AT_ONCE):
            count = await retention.delete(since, [run.number for run in page.due[at : at + ROWS_AT_ONCE]])
            meter.data_deleted(DeletedData("run", "retention", 0, 0, count))
            runs += count
            if answers + runs >= rows_max:
                return DeletedRuns(runs, is_complete=False)
            if not await go_on():
                return DeletedRuns(runs, is_complete=True)
        after = page.next
        if after is None:
            break
    return DeletedRuns(runs, is_complete=True)
