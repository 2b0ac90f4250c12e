"""Entities, spaces and members in the database."""

import json
import secrets
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from typing_extensions import override

from proofbox.contracts.gateway.messages import Member, Sender
from proofbox.contracts.gateway.names import AGENT_ENTITY_PREFIX
from proofbox.contracts.gateway.spaces import (
    MEMBERS_MAX,
    Entity,
    EntityDefinition,
    EntityPage,
    Space,
    SpaceChange,
    SpaceCreation,
    SpacePage,
)
from proofbox.service.access.api_keys import Permission
from proofbox.service.access_errors import MissingPermissionError
from proofbox.service.calls.validation import invalid_value
from proofbox.service.gateway.spaces.port import Actor, RequestKey, SpaceStore
from proofbox.service.gateway_errors import NameTakenError, UnknownEntityError
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import new_or_known, utc_now
from proofbox.service.storage.database import Database, count_changed
from proofbox.service.storage.gateway.project_rows import (
    PROJECT,
    StoredCreation,
    ensure_project,
    find_creation,
    project_values,
    store_creation,
)
from proofbox.service.storage.gateway.reply_waits import end_unanswerable, lock_awaiting
from proofbox.service.storage.gateway.schema import entities, members, spaces
from proofbox.service.storage.gateway.space_access import (
    acting_entity,
    find_entities,
    find_entity,
    open_space,
    require_writable,
)
from proofbox.service.storage.gateway.space_rows import (
    EntityRow,
    SpaceRow,
    add_event,
    add_events,
    is_member,
    json_of,
    lock_space,
)

_CREATED = 201
_ID_BYTES = 12
_ENTITIES = select(entities).where(entities.c.project == PROJECT)
_ENTITY = _ENTITIES.where(entities.c.entity_id == bindparam("of_entity_id"))
_SPACES = select(spaces).where(spaces.c.project == PROJECT)
_MEMBERS = (
    select(
        members.c.space,
        members.c.joined,
        entities.c.entity_id,
        entities.c.type,
        entities.c.handle,
        entities.c.display_name,
    )
    .join_from(members, entities)
    .order_by(members.c.joined, entities.c.id)
)


class SqlSpaceStore(SpaceStore):
    """The SpaceStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def put_entity(self, actor: Actor, entity_id: str, definition: EntityDefinition) -> tuple[Entity, bool]:
        if entity_id.startswith(AGENT_ENTITY_PREFIX):
            raise invalid_value("entity_id", "ids that begin with 'agent:' are those of agents; PUT the agent")
        return await self._database.write(lambda connection: _put_entity(connection, actor, entity_id, definition))

    @override
    async def find_entity(self, principal: Principal, entity_id: str) -> Entity:
        def work(connection: Connection) -> Entity:
            found = connection.execute(_ENTITY, {**project_values(principal), "of_entity_id": entity_id}).first()
            if found is None:
                raise UnknownEntityError(f"entity_id: the project has no entity '{entity_id[:100]}'; PUT it first")
            return _build_entity(found)

        return await self._database.read(work)

    @override
    async def list_entities(self, principal: Principal, before: str | None, limit: int) -> EntityPage:
        def work(connection: Connection) -> EntityPage:
            query = _ENTITIES.order_by(entities.c.id.desc()).limit(limit + 1)
            if before is not None:
                query = query.where(entities.c.id < find_entity(connection, principal, before).id)
            rows = connection.execute(query, project_values(principal)).all()
            items = [_build_entity(row) for row in rows[:limit]]
            return EntityPage(items=items, next=items[-1].entity_id if len(rows) > limit else None)

        return await self._database.read(work)

    @override
    async def create(self, actor: Actor, creation: SpaceCreation, key: RequestKey | None) -> tuple[str, bool]:
        def work(connection: Connection) -> tuple[str, bool]:
            stored = find_creation(connection, actor.principal, key)
            if stored is not None:
                return stored.answer, True
            answer = _create(connection, actor, creation).model_dump_json()
            store_creation(connection, actor.principal, key, StoredCreation(_CREATED, answer))
            return answer, False

        return await self._database.write(work)

    @override
    async def find(self, actor: Actor, space_id: str) -> Space:
        def work(connection: Connection) -> Space:
            return build_space(connection, open_space(connection, actor, space_id).space)

        return await self._database.read(work)

    @override
    async def list(self, actor: Actor, before: str | None, limit: int) -> SpacePage:
        def work(connection: Connection) -> SpacePage:
            query = _SPACES.order_by(spaces.c.id.desc()).limit(limit + 1)
            entity = acting_entity(connection, actor)
            if entity is not None:
                own = select(members.c.space).where(members.c.entity == entity.id)
                query = query.where(spaces.c.id.in_(own))
            elif not actor.may_act_as:
                return SpacePage(items=[], next=None)
            if before is not None:
                query = query.where(spaces.c.id < open_space(connection, actor, before).space.id)
            rows = connection.execute(query, project_values(actor.principal)).all()
            items = _build_spaces(connection, rows[:limit])
            return SpacePage(items=items, next=items[-1].space_id if len(rows) > limit else None)

        return await self._database.read(work)

    @override
    async def change(self, actor: Actor, space_id: str, change: SpaceChange) -> Space:
        def work(connection: Connection) -> Space:
            space = _open_writable(connection, actor, space_id)
            values: dict[str, Any] = {}
            if change.name is not None:
                values["name"] = change.name
            if change.metadata is not None:
                values["metadata"] = json_of(change.metadata)
            if values:
                connection.execute(update(spaces).where(spaces.c.id == space.id).values(values))
            return build_space(connection, space)

        return await self._database.write(work)

    @override
    async def archive(self, actor: Actor, space_id: str) -> None:
        def work(connection: Connection) -> None:
            awaiting = lock_awaiting(connection, space=open_space(connection, actor, space_id).space.id)
            space = open_space(connection, actor, space_id, lock=True).space
            if not space.is_archived:
                connection.execute(update(spaces).where(spaces.c.id == space.id).values(archived=utc_now()))
                end_unanswerable(connection, awaiting)

        await self._database.write(work)

    @override
    async def add_member(self, actor: Actor, space_id: str, entity_id: str) -> Space:
        def work(connection: Connection) -> Space:
            space = _open_writable(connection, actor, space_id)
            _join(connection, space, find_entity(connection, actor.principal, entity_id))
            return build_space(connection, space)

        return await self._database.write(work)

    @override
    async def remove_member(self, actor: Actor, space_id: str, entity_id: str) -> None:
        def work(connection: Connection) -> None:
            opened = open_space(connection, actor, space_id).space
            entity = find_entity(connection, actor.principal, entity_id)
            awaiting = lock_awaiting(connection, entity.id, opened.id)
            space = _open_writable(connection, actor, space_id)
            own = (members.c.space == space.id, members.c.entity == entity.id)
            if count_changed(connection, delete(members).where(*own)):
                add_event(connection, space, "member.left", {"entity": entity.sender.to_json()})
                end_unanswerable(connection, awaiting)

        await self._database.write(work)


def build_space(connection: Connection, space: SpaceRow) -> Space:
    """Return a space as it is now, with its members."""
    return _build_spaces(connection, connection.execute(select(spaces).where(spaces.c.id == space.id)).all())[0]


def space_members(connection: Connection, rows: Sequence[int]) -> dict[int, list[Member]]:
    """Return the members of some spaces by the rows of these, the first to join first."""
    found: dict[int, list[Member]] = defaultdict(list)
    for row in connection.execute(_MEMBERS.where(members.c.space.in_(rows))):
        found[row.space].append(
            Member(
                entity_id=row.entity_id,
                type=row.type,
                handle=row.handle,
                display_name=row.display_name,
                joined=row.joined,
            )
        )
    return found


def _put_entity(
    connection: Connection, actor: Actor, entity_id: str, definition: EntityDefinition
) -> tuple[Entity, bool]:
    principal = actor.principal
    own_user = principal.user if definition.user is None and not actor.may_act_as else definition.user
    _require_own_user(actor, own_user)
    project = ensure_project(connection, principal)
    own = {**project_values(principal), "of_entity_id": entity_id}
    known = connection.execute(_ENTITY, own).first()
    if known is not None:
        _require_own_user(actor, known.user)
    values = {
        "handle": definition.handle,
        "handle_folded": definition.handle.casefold(),
        "display_name": definition.display_name,
        "user": own_user,
    }
    _require_free(connection, project, entity_id, values)
    try:
        if known is None:
            fixed = {"project": project, "entity_id": entity_id, "type": "human", "created": utc_now()}
            count_changed(connection, insert(entities).values({**fixed, **values}))
        else:
            count_changed(connection, update(entities).where(entities.c.id == known.id).values(values))
    except IntegrityError as exc:  # another request took it at the same moment
        raise _taken(definition.handle) from exc
    return _build_entity(connection.execute(_ENTITY, own).one()), known is None


def _require_own_user(actor: Actor, user: str | None) -> None:
    if actor.may_act_as or user == actor.principal.user:
        return
    raise MissingPermissionError(
        f"user: the key acts for the user '{actor.principal.user}' only; use a key with the scope "
        f"{Permission.SPACES_ACT_AS}",
        Permission.SPACES_ACT_AS,
    )


def _require_free(connection: Connection, project: int, entity_id: str, values: dict[str, Any]) -> None:
    others = select(entities.c.id).where(entities.c.project == project, entities.c.entity_id != entity_id)
    if connection.execute(others.where(entities.c.handle_folded == values["handle_folded"])).first() is not None:
        raise _taken(values["handle"])
    user = values["user"]
    if user is not None and connection.execute(others.where(entities.c.user == user)).first() is not None:
        raise invalid_value("user", f"another entity of the project is the user '{user}'; a user is one entity")


def _taken(handle: str) -> NameTakenError:
    return NameTakenError(f"handle: another entity of the project has '{handle}' (case is ignored); choose another")


def _create(connection: Connection, actor: Actor, creation: SpaceCreation) -> Space:
    wanted = find_entities(connection, actor.principal, list(dict.fromkeys(creation.members)), field="members")
    joining = {entity.sender.entity_id: entity for entity in wanted}
    creator = acting_entity(connection, actor)
    if creator is not None:
        joining = {creator.sender.entity_id: creator, **joining}
    if len(joining) > MEMBERS_MAX:
        raise invalid_value(
            "members",
            f"too many with the one who makes the space (limit {MEMBERS_MAX}, got {len(joining)}); name fewer",
        )
    row = {
        "project": ensure_project(connection, actor.principal),
        "space_id": f"spc_{secrets.token_hex(_ID_BYTES)}",
        "name": creation.name,
        "metadata": json_of(creation.metadata),
        "created": utc_now(),
    }
    number = connection.execute(insert(spaces).returning(spaces.c.id), row).scalar_one()
    space = lock_space(connection, number)
    _join_first(connection, space, list(joining.values()))
    return build_space(connection, space)


def _open_writable(connection: Connection, actor: Actor, space_id: str) -> SpaceRow:
    space = open_space(connection, actor, space_id, lock=True).space
    require_writable(space)
    return space


def _join_first(connection: Connection, space: SpaceRow, joining: Sequence[EntityRow]) -> None:
    """Add the first members of a new space: a few statements, however many they are."""
    if not joining:
        return
    for entity in joining:
        _require_handle(entity)
    joined = utc_now()
    rows = [{"space": space.id, "entity": entity.id, "joined": joined} for entity in joining]
    connection.execute(insert(members), rows)
    shown = [{"entity": {**entity.sender.to_json(), "joined": joined}} for entity in joining]
    add_events(connection, space, "member.joined", shown)


def _require_handle(entity: EntityRow) -> None:
    if entity.sender.handle is None:
        raise UnknownEntityError(f"entity_id: the agent of '{entity.sender.entity_id}' was deleted")


def _join(connection: Connection, space: SpaceRow, entity: EntityRow) -> None:
    """Add a member to a locked space; one that is a member stays."""
    if is_member(connection, space.id, entity.id):
        return
    _require_handle(entity)
    query = select(func.count()).select_from(members).where(members.c.space == space.id)
    if connection.execute(query).scalar_one() >= MEMBERS_MAX:
        raise invalid_value("entity_id", f"the space has {MEMBERS_MAX} members, the most that it may have")
    joined = utc_now()
    row = {"space": space.id, "entity": entity.id, "joined": joined}
    connection.execute(new_or_known(members, connection.dialect.name), row)
    add_event(connection, space, "member.joined", {"entity": {**entity.sender.to_json(), "joined": joined}})


def _build_entity(row: Row[Any]) -> Entity:
    return Entity(
        entity_id=row.entity_id,
        type=row.type,
        handle=row.handle,
        display_name=row.display_name,
        user=row.user,
        created=row.created,
    )


def _build_spaces(connection: Connection, rows: Sequence[Row[Any]]) -> list[Space]:
    found = space_members(connection, [row.id for row in rows])
    return [
        Space(
            space_id=row.space_id,
            name=row.name,
            metadata=json.loads(row.metadata),
            members=found.get(row.id, []),
            created=row.created,
            archived=row.archived,
            last_seq=row.next_seq - 1,
        )
        for row in rows
    ]


__all__ = ["Sender", "SqlSpaceStore", "build_space", "space_members"]
