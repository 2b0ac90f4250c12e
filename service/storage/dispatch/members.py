"""The processes of a service in the database: a lease for each, and one for each lead."""

import json
import math
from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from typing_extensions import override

from proofbox.service.dispatch.differences import Member, ProcessFacts
from proofbox.service.dispatch.port import Lead, MemberStore, Reported
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.clock import epoch_now
from proofbox.service.storage.dispatch.tables import leaders, members

_MAY_LIVE_S = 60.0
_FORGOTTEN_AFTER_S = 3600.0
_UNTIL = epoch_now() + bindparam("lease_s")
_LIVING = select(members.c.boot_id).where(members.c.until > epoch_now() - _MAY_LIVE_S)
_DESCRIBED = (
    update(members)
    .where(members.c.boot_id == bindparam("own"))
    .values(release=bindparam("own_release"), settings=bindparam("own_settings"))
)
_MEMBERS = select(members).where(members.c.until > epoch_now()).order_by(members.c.boot_id)
_LEFT = delete(members).where(members.c.boot_id == bindparam("own"))
_RESIGNED = delete(leaders).where(leaders.c.boot_id == bindparam("own"))
_RESIGNED_FROM = _RESIGNED.where(leaders.c.name.in_(bindparam("unwanted", expanding=True)))
_FREE_IN = select(func.min(leaders.c.until) - epoch_now()).where(
    leaders.c.boot_id != bindparam("own"), leaders.c.name.in_(bindparam("wanted", expanding=True))
)
_OLD = delete(members).where(members.c.until < epoch_now() - _FORGOTTEN_AFTER_S)


class SqlMemberStore(MemberStore):
    """The MemberStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def beat(self, boot_id: str, role: str, lease_s: float, wants: Collection[Lead]) -> Reported:
        values = {"own": boot_id, "own_role": role, "lease_s": lease_s}

        def work(connection: Connection) -> Reported:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            new = insert(members).values(boot_id=bindparam("own"), role=bindparam("own_role"), until=_UNTIL)
            connection.execute(
                new.on_conflict_do_update(index_elements=["boot_id"], set_={"until": _UNTIL}), values
            )
            lead = insert(leaders).values(name=bindparam("lead"), boot_id=bindparam("own"), until=_UNTIL)
            lead = lead.on_conflict_do_update(
                index_elements=["name"],
                set_={"boot_id": bindparam("own"), "until": _UNTIL},
                where=(leaders.c.boot_id == bindparam("own")) | (leaders.c.until < epoch_now()),
            )
            taken = lead.returning(leaders.c.boot_id)
            leads = {
                each for each in sorted(wants) if connection.execute(taken, {**values, "lead": each.value}).first()
            }
            if unwanted := [each.value for each in Lead if each not in wants]:
                connection.execute(_RESIGNED_FROM, {**values, "unwanted": unwanted})
            if Lead.JOBS in leads:
                connection.execute(_OLD)
            wanted = {**values, "wanted": [each.value for each in wants]}
            free_in_s = None if len(leads) == len(wants) else connection.scalar(_FREE_IN, wanted)
            return Reported(frozenset(leads), math.inf if free_in_s is None else free_in_s)

        return await self._database.write(work)

    @override
    async def describe(self, boot_id: str, facts: ProcessFacts) -> None:
        values = {"own": boot_id, "own_release": facts.release, "own_settings": json.dumps(dict(facts.settings))}
        await self._database.write(lambda connection: connection.execute(_DESCRIBED, values))

    @override
    async def members(self) -> Sequence[Member]:
        def work(connection: Connection) -> list[Member]:
            rows = connection.execute(_MEMBERS)
            return [
                Member(row.boot_id, row.role, ProcessFacts(row.release, json.loads(row.settings))) for row in rows
            ]

        return await self._database.read(work)

    @override
    async def leave(self, boot_id: str) -> None:
        def work(connection: Connection) -> None:
            connection.execute(_LEFT, {"own": boot_id})
            connection.execute(_RESIGNED, {"own": boot_id})

        await self._database.write(work)

    @override
    async def living(self) -> frozenset[str]:
        return await self._database.read(lambda connection: frozenset(connection.scalars(_LIVING)))
