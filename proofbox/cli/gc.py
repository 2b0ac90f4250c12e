"""``proofbox gc``: the conversations that retention deletes, listed or deleted now."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

_LISTED_AT_ONCE = 1_000


def add_parser(commands: Any) -> None:
    """Add the command to those of the program."""
    gc = commands.add_parser("gc", help="delete conversations that were unused for long; the service may not run")
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
    return asyncio.run(_run(arguments.days, is_dry=arguments.dry_run))


async def _run(days: float | None, *, is_dry: bool) -> int:
    from proofbox.service.app.settings import Settings  # noqa: PLC0415 - each command imports only what it needs
    from proofbox.service.errors import StoreFailedError  # noqa: PLC0415

    settings = Settings()
    days = days or settings.retention_days
    if not days:
        raise StoreFailedError("retention_days: no conversation is ever deleted (0); give --days or set it")
    moment = datetime.now(UTC) - timedelta(days=days)
    since = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return await (_list(settings, since) if is_dry else _delete(settings, since))


async def _list(settings: Any, since: str) -> int:
    from proofbox.service.app.blob_stores import build_blob_store  # noqa: PLC0415
    from proofbox.service.storage.artifacts.store import SqlArtifactStore  # noqa: PLC0415
    from proofbox.service.storage.conversations import SqlConversationStore  # noqa: PLC0415
    from proofbox.service.storage.database import Database  # noqa: PLC0415

    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open_beside()
    try:
        store = SqlConversationStore(database, SqlArtifactStore(database, build_blob_store(settings)))
        found = await store.unused(since, _LISTED_AT_ONCE)
    finally:
        await database.close()
    for scope in found:
        who = scope.principal
        sys.stdout.write(f"{who.tenant}\t{who.project}\t{who.user_type}\t{who.user}\t{scope.conversation_id}\n")
    more = " or more" if len(found) == _LISTED_AT_ONCE else ""
    sys.stderr.write(f"{len(found)}{more} conversations were not used since {since}\n")
    return 0


async def _delete(settings: Any, since: str) -> int:
    from proofbox.service.app.maintenance import opened_conversations  # noqa: PLC0415

    deleted = 0
    async with opened_conversations(settings) as conversations:
        await conversations.purge_interrupted()
        while count := await conversations.delete_unused(since, _LISTED_AT_ONCE, _go_on):
            deleted += count
    sys.stderr.write(f"{deleted} conversations were deleted, which were not used since {since}\n")
    return 0


async def _go_on() -> bool:
    return True
