"""The active space of a run, and the history of a space as an agent sees it."""

import json
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, update
from typing_extensions import override

from proofbox.service.gateway.spaces.port import EnteredSpace, SpaceEntry
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.identity import Principal
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.call_records import announce_run
from proofbox.service.storage.gateway.message_rows import read_newest
from proofbox.service.storage.gateway.project_rows import PROJECT, project_values
from proofbox.service.storage.gateway.schema import members, runs, spaces
from proofbox.service.storage.gateway.space_rows import agent_of_run, is_member
from proofbox.service.storage.gateway.spaces import space_members

_RUN: Select[Any] = (
    select(runs.c.id, runs.c.space)
    .where(runs.c.project == PROJECT, runs.c.run_id == bindparam("of_run_id"))
    .with_for_update(key_share=True, of=runs)
)
_SPACE: Select[Any] = select(spaces.c.id, spaces.c.space_id, spaces.c.name, spaces.c.archived).where(
    spaces.c.project == PROJECT, spaces.c.space_id == bindparam("of_space_id")
)
_SEEN = select(members.c.seen_seq).where(
    members.c.space == bindparam("of_space"), members.c.entity == bindparam("of_entity")
)


class SqlSpaceEntry(SpaceEntry):
    """The SpaceEntry in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def enter(self, principal: Principal, run_id: str, space_id: str, limit: int) -> EnteredSpace | None:
        def work(connection: Connection) -> EnteredSpace | None:
            project = project_values(principal)
            run = connection.execute(_RUN, {**project, "of_run_id": run_id}).one()
            agent = agent_of_run(connection, run.id)
            space = connection.execute(_SPACE, {**project, "of_space_id": space_id}).first()
            if agent is None or space is None or space.archived is not None:
                return None
            if not is_member(connection, space.id, agent.id):
                return None
            if run.space != space.id:
                connection.execute(update(runs).where(runs.c.id == run.id).values(space=space.id))
                announce_run(connection, run.id)
            history, has_more = read_history(connection, space.id, agent.id, limit)
            found = [member.model_dump(mode="json") for member in space_members(connection, [space.id])[space.id]]
            return EnteredSpace(space.space_id, space.name, found, history, has_more)

        return await self._database.write(work)


def read_history(connection: Connection, space: int, entity: int, limit: int) -> tuple[list[Json], bool]:
    """Return the newest messages of a space, oldest first, each with ``seen``, and whether there are older ones.

    Args:
        connection: the transaction.
        space: the row of the space.
        entity: the row of the member; ``seen`` is what a completed run of it has seen.
        limit: how many messages at most.
    """
    seen = connection.execute(_SEEN, {"of_space": space, "of_entity": entity}).scalar_one_or_none() or 0
    rows = read_newest(connection, space, None, limit + 1)
    history = [{**json.loads(row.body), "seen": row.seq <= seen} for row in rows[:limit]]
    return history[::-1], len(rows) > limit
