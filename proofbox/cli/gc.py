"""``proofbox gc``: the conversations and runs that retention deletes, listed or deleted now."""

import argparse
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from proofbox.cli.options import output_options
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proofbox.service.app.settings import Settings
    from proofbox.service.conversations.port import EndedRun, RunRetention
    from proofbox.service.identity import ConversationKey, Principal

_LISTED_AT_ONCE = 1_000


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of the program."""
    gc = commands.add_parser(
        "gc",
        parents=[output_options()],
        help="delete conversations that were unused, and runs that ended, long ago; the service may not run",
    )
    gc.add_argument("--days", type=_days, help="for how many days; PROOFBOX_RETENTION_DAYS if not given")
    gc.add_argument("--dry-run", action="store_true", help="only list them; the service may run meanwhile")


def _days(text: str) -> float:
    try:
        days = float(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError("not a number of days") from exc
    if not 0 < days <= 36_500:  # noqa: PLR2004 - as the setting
        raise argparse.ArgumentTypeError("not a number of days above 0, at most 36500")
    return days


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        ServiceError: it could not be done; the message has the remedy.
    """
    import asyncio  # noqa: PLC0415 - each command imports only what it needs

    return asyncio.run(_run(arguments.days, Terminal.of(arguments), is_dry=arguments.dry_run))


async def _run(days: float | None, terminal: Terminal, *, is_dry: bool) -> int:
    from proofbox.service.app.settings import Settings  # noqa: PLC0415 - each command imports only what it needs
    from proofbox.service.errors import StoreFailedError  # noqa: PLC0415

    settings = Settings()
    days = days or settings.retention_days
    if not days:
        raise StoreFailedError("retention_days: no conversation is ever deleted (0); give --days or set it")
    moment = datetime.now(UTC) - timedelta(days=days)
    since = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return await (_list if is_dry else _delete)(settings, since, terminal)


async def _list(settings: "Settings", since: str, terminal: Terminal) -> int:
    from proofbox.service.app.blob_stores import build_blob_store  # noqa: PLC0415
    from proofbox.service.storage.artifacts.store import SqlArtifactStore  # noqa: PLC0415
    from proofbox.service.storage.conversations import SqlConversationStore  # noqa: PLC0415
    from proofbox.service.storage.database import Database  # noqa: PLC0415
    from proofbox.service.storage.gateway.run_retention import SqlRunRetention  # noqa: PLC0415

    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open_beside()
    try:
        store = SqlConversationStore(database, SqlArtifactStore(database, build_blob_store(settings)))
        found = await store.unused(since, _LISTED_AT_ONCE)
        runs = await _ended(SqlRunRetention(database), since)
    finally:
        await database.close()
    columns = ("tenant", "project", "user_type", "user", "conversation_id")
    rows = [(who.tenant, who.project, who.user_type, who.user, name) for who, name in map(_parts, found)]
    run_columns = ("tenant", "project", "agent_id", "run_id", "ended")
    run_rows = [(run.tenant, run.project, run.agent_id, run.run_id, run.ended) for run in runs]
    if terminal.is_json:
        terminal.print_json(
            {
                "since": since,
                "conversations": [dict(zip(columns, row, strict=True)) for row in rows],
                "runs": [dict(zip(run_columns, row, strict=True)) for row in run_rows],
            }
        )
    else:
        terminal.table(columns, rows)
    terminal.note(f"{_counted(found)} conversations were not used since {since}")
    if run_rows and not terminal.is_json:
        terminal.table(run_columns, run_rows)
    terminal.note(f"{_counted(runs)} runs ended before, and no other conversation has calls of them")
    return 0


def _counted(found: "Sequence[object]") -> str:
    return f"{len(found)} or more" if len(found) >= _LISTED_AT_ONCE else str(len(found))


async def _ended(retention: "RunRetention", since: str) -> "list[EndedRun]":
    """The first runs that are deleted, with those whose calls are in conversations that are deleted before."""
    found: list[EndedRun] = []
    page = await retention.ended(since, None, _LISTED_AT_ONCE, without_unused=True)
    found += page.due
    while page.next is not None and len(found) < _LISTED_AT_ONCE:
        page = await retention.ended(since, page.next, _LISTED_AT_ONCE, without_unused=True)
        found += page.due
    return found[:_LISTED_AT_ONCE]


def _parts(scope: "ConversationKey") -> "tuple[Principal, str]":
    return scope.principal, scope.conversation_id


async def _delete(settings: "Settings", since: str, terminal: Terminal) -> int:
    from proofbox.service.app.maintenance import opened_conversations  # noqa: PLC0415
    from proofbox.service.conversations.ended_runs import delete_ended_runs  # noqa: PLC0415
    from proofbox.service.observability.metrics_port import NoMeter  # noqa: PLC0415

    deleted = 0
    async with opened_conversations(settings) as (conversations, runs):
        await conversations.purge_interrupted()
        while count := await conversations.delete_unused(since, _LISTED_AT_ONCE, _go_on):
            deleted += count
        gone = await delete_ended_runs(runs, since, NoMeter(), _go_on, sys.maxsize)
    terminal.note(f"{deleted} conversations were deleted, which were not used since {since}")
    terminal.note(f"{gone.runs} runs were deleted, which ended before")
    if terminal.is_json:
        terminal.print_json({"since": since, "deleted": deleted, "deleted_runs": gone.runs})
    return 0


async def _go_on() -> bool:
    return True
