"""Whether the processes of a service of many run one release with the same settings."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

from proofbox.cli.checks.finding import Finding
from proofbox.service.api.app import release
from proofbox.service.app.processes.equal_settings import facts_of
from proofbox.service.app.settings import Settings
from proofbox.service.dispatch.differences import Member, find_differences
from proofbox.service.errors import ServiceError
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.members import SqlMemberStore

_OWN = "doctor"


def check_processes(settings: Settings) -> Iterator[Finding]:
    """Compare the processes that live with each other, and with the settings of this command."""
    try:
        members = asyncio.run(_read(settings))
    except ServiceError as exc:
        yield Finding("processes", "fail", exc.message, "check PROOFBOX_DATABASE_URL and the server")
        return
    here = Member("(this command)", _OWN, facts_of(settings, release()))
    differences = find_differences([*members, here] if members else [])
    for difference in differences:
        place, _, rest = difference.partition(": ")
        problem, _, remedy = rest.rpartition("; ")
        yield Finding("processes", "warn", f"{place}: {problem}", remedy)
    if not differences:
        roles = Counter(member.role for member in members)
        counts = ", ".join(f"{count} {role}" for role, count in sorted(roles.items()))
        yield Finding("processes", "ok", f"{counts}; one release, and the same settings" if counts else "none runs")


async def _read(settings: Settings) -> Sequence[Member]:
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s, shared=True)
    await database.open_beside()
    try:
        return await SqlMemberStore(database).members()
    finally:
        await database.close()
