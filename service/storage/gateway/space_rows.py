"""Rows of spaces, members and entities inside a transaction, and the events of a space.

Lock order: conversation, run, agent, wait, space, audit chain. `lock_space` makes other writers of the space wait,
so numbers of messages and events have no gaps and follow the order of commits. Rows of projects, agents and spaces
are locked with ``key_share``: an insert of a row that refers to them does not wait, and so cannot close a circle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, insert, select, update

from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.spaces.records import Json, Sender
from proofbox.service.gateway.spaces.tool_inputs import space_topic
from proofbox.service.storage.conversation_rows import time_text, utc_now
from proofbox.service.storage.database import announce
from proofbox.service.storage.gateway.schema import agents, entities, members, runs, space_events, spaces
from proofbox.service.storage.text_columns import storable

EVENTS_MAX = 10_000
"""Events of a space that are stored; older ones are deleted."""
EVENTS_STORED = timedelta(days=7)
"""How long an event of a space is stored."""
_PRUNED_EVERY = 64

_SPACE = select(spaces.c.id, spaces.c.space_id, spaces.c.archived).where(spaces.c.id == bindparam("of_space"))
_LOCKED = _SPACE.with_for_update(key_share=True)
_SEQ = (
    update(spaces)
    .where(spaces.c.id == bindparam("of_space"))
    .values(next_seq=spaces.c.next_seq + 1)
    .returning(spaces.c.next_seq)
)
_EVENTS = (
    update(spaces)
    .where(spaces.c.id == bindparam("of_space"))
    .values(next_event=spaces.c.next_event + bindparam("count"))
    .returning(spaces.c.next_event)
)
_PRUNED = delete(space_events).where(
    space_events.c.space == bindparam("of_space"),
    (space_events.c.id <= bindparam("up_to")) | (space_events.c.ts < bindparam("before")),
)
_MEMBER = select(members.c.entity).where(
    members.c.space == bindparam("of_space"), members.c.entity == bindparam("of_entity")
)
_ENTITY_OF_RUN: Select[Any] = (
    select(entities.c.id, entities.c.entity_id, entities.c.type, entities.c.handle, entities.c.display_name)
    .join_from(runs, agents, runs.c.agent == agents.c.id)
    .join(entities, entities.c.agent == agents.c.id)
    .where(runs.c.id == bindparam("of_run"))
)


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A space that a transaction has locked.

    Attributes:
        id: its row.
        space_id: its id.
        is_archived: whether it can be read only.
    """

    id: int
    space_id: str
    is_archived: bool


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity inside a transaction.

    Attributes:
        id: its row.
        sender: how its messages name it.
    """

    id: int
    sender: Sender


def json_of(value: Json) -> str:
    """Return JSON text that both databases take: NUL is an escape, half of a surrogate pair becomes ``?``."""
    return storable(compact_json(value))


def lock_space(connection: Connection, row: int) -> SpaceRow:
    """Return a space; its other writers wait until the transaction is over."""
    found = connection.execute(_LOCKED, {"of_space": row}).one()
    return SpaceRow(found.id, found.space_id, found.archived is not None)


def take_seq(connection: Connection, space: SpaceRow) -> int:
    """Return the number of the next message of a space."""
    return int(connection.execute(_SEQ, {"of_space": space.id}).scalar_one()) - 1


def add_event(connection: Connection, space: SpaceRow, event: str, data: Json) -> int:
    """Store an event of a space and wake its followers after the commit; its id."""
    return add_events(connection, space, event, [data])


def add_events(connection: Connection, space: SpaceRow, event: str, data: Sequence[Json]) -> int:
    """Store events of one kind in as many statements as one takes, and wake followers; the id of the last one."""
    last = int(connection.execute(_EVENTS, {"of_space": space.id, "count": len(data)}).scalar_one()) - 1
    first, now = last - len(data) + 1, utc_now()
    shown = {"space": space.id, "event": event, "ts": now}
    rows = [{**shown, "id": number, "data": json_of(each)} for number, each in enumerate(data, first)]
    connection.execute(insert(space_events), rows)
    if last // _PRUNED_EVERY > (first - 1) // _PRUNED_EVERY:
        before = time_text(datetime.now(UTC) - EVENTS_STORED)
        connection.execute(_PRUNED, {"of_space": space.id, "up_to": last - EVENTS_MAX, "before": before})
    announce(connection, space_topic(space.id))
    return last


def is_member(connection: Connection, space: int, entity: int) -> bool:
    """Whether an entity is a member of a space."""
    return connection.execute(_MEMBER, {"of_space": space, "of_entity": entity}).first() is not None


def agent_of_run(connection: Connection, run: int) -> EntityRow | None:
    """Return the agent of a run as an entity; None for an agent that was deleted."""
    found = connection.execute(_ENTITY_OF_RUN, {"of_run": run}).first()
    return None if found is None else entity_row(found)


def entity_row(row: Row[Any]) -> EntityRow:
    """Return an entity of its row with the columns ``id, entity_id, type, handle, display_name``."""
    return EntityRow(row.id, Sender(row.entity_id, row.type, row.handle, row.display_name))
