"""The processes of a service in the database: a lease for each, and one for the one that leads."""

from sqlalchemy import Connection, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from typing_extensions import override

from proofbox.service.dispatch.port import MemberStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.clock import epoch_now
from proofbox.service.storage.dispatch.schema import leaders, members

_LEADER = "jobs"
_MAY_LIVE_S = 60.0
_FORGOTTEN_AFTER_S = 3600.0
_UNTIL = epoch_now() + bindparam("lease_s")
_LIVING = select(members.c.boot_id).where(members.c.until > epoch_now() - _MAY_LIVE_S)
_LEFT = delete(members).where(members.c.boot_id == bindparam("own"))
_RESIGNED = delete(leaders).where(leaders.c.boot_id == bindparam("own"))
_OLD = delete(members).where(members.c.until < epoch_now() - _FORGOTTEN_AFTER_S)


class SqlMemberStore(MemberStore):
    """The MemberStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def beat(self, boot_id: str, role: str, lease_s: float) -> bool:
        values = {"own": boot_id, "own_role": role, "lease_s": lease_s}

        def work(connection: Connection) -> bool:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            new = insert(members).values(boot_id=bindparam("own"), role=bindparam("own_role"), until=_UNTIL)
            connection.execute(
                new.on_conflict_do_update(index_elements=["boot_id"], set_={"until": _UNTIL}), values
            )
            lead = insert(leaders).values(name=_LEADER, boot_id=bindparam("own"), until=_UNTIL)
            lead = lead.on_conflict_do_update(
                index_elements=["name"],
                set_={"boot_id": bindparam("own"), "until": _UNTIL},
                where=(leaders.c.boot_id == bindparam("own")) | (leaders.c.until < epoch_now()),
            )
            leads = connection.execute(lead.returning(leaders.c.boot_id), values).first() is not None
            if leads:
                connection.execute(_OLD)
            return leads

        return await self._database.write(work)

    @override
    async def leave(self, boot_id: str) -> None:
        def work(connection: Connection) -> None:
            connection.execute(_LEFT, {"own": boot_id})
            connection.execute(_RESIGNED, {"own": boot_id})

        await self._database.write(work)

    @override
    async def living(self) -> frozenset[str]:
        return await self._database.read(lambda connection: frozenset(connection.scalars(_LIVING)))
