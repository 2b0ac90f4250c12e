"""The events of spaces in the database."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, bindparam, func, select
from typing_extensions import override

from proofbox.service.gateway.spaces.port import Actor, SpaceCursor, SpaceEventStore, StoredSpaceEvent
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.schema import messages, space_events, spaces
from proofbox.service.storage.gateway.space_access import open_space

_FIRST = select(func.min(space_events.c.id)).where(space_events.c.space == bindparam("of_space"))
_NEXT = select(spaces.c.next_event).where(spaces.c.id == bindparam("of_space"))
_AFTER = (
    select(space_events.c.id, space_events.c.event, space_events.c.data)
    .where(space_events.c.space == bindparam("of_space"), space_events.c.id > bindparam("position"))
    .order_by(space_events.c.id)
)
_STREAMING = select(messages.c.message_id).where(
    messages.c.space == bindparam("of_space"), messages.c.state == "streaming"
)

_SENT = select(messages.c.message_id).where(
    messages.c.space == bindparam("of_space"), messages.c.message_id.in_(bindparam("ids", expanding=True))
)


class SqlSpaceEventStore(SpaceEventStore):
    """The SpaceEventStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def open(self, actor: Actor, space_id: str) -> SpaceCursor:
        def work(connection: Connection) -> SpaceCursor:
            opened = open_space(connection, actor, space_id)
            own = {"of_space": opened.space.id}
            # The oldest one first: events that are added in between only make `last` greater.
            first = connection.execute(_FIRST, own).scalar_one_or_none()
            last = connection.execute(_NEXT, own).scalar_one() - 1
            entity = opened.entity
            return SpaceCursor(
                opened.space.id, None if entity is None else entity.sender.entity_id, first or last + 1, last
            )

        return await self._database.read(work)

    @override
    async def after(self, row: int, position: int, limit: int) -> Sequence[StoredSpaceEvent]:
        def work(connection: Connection) -> list[StoredSpaceEvent]:
            found = connection.execute(_AFTER.limit(limit), {"of_space": row, "position": position})
            return [StoredSpaceEvent(*event) for event in found]

        return await self._database.read(work)

    @override
    async def newest(self, row: int) -> int:
        return await self._database.read(
            lambda connection: int(connection.execute(_NEXT, {"of_space": row}).scalar_one()) - 1
        )

    @override
    async def streaming(self, row: int) -> set[str]:
        def work(connection: Connection) -> set[str]:
            return set(connection.execute(_STREAMING, {"of_space": row}).scalars())

        return await self._database.read(work)

    @override
    async def sent(self, row: int, message_ids: Collection[str]) -> set[str]:
        def work(connection: Connection) -> set[str]:
            return set(connection.execute(_SENT, {"of_space": row, "ids": list(message_ids)}).scalars())

        return await self._database.read(work)
