"""Who acts in a space, inside a transaction: the entity of a request, and whether the space is open to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, select

from proofbox.service.access.api_keys import Permission
from proofbox.service.access_errors import MissingPermissionError
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway_errors import SpaceArchivedError, UnknownEntityError, UnknownSpaceError
from proofbox.service.identity import Principal
from proofbox.service.storage.gateway.project_rows import PROJECT, project_values
from proofbox.service.storage.gateway.schema import entities, spaces
from proofbox.service.storage.gateway.space_rows import EntityRow, SpaceRow, entity_row, is_member, lock_space

ENTITY = select(entities.c.id, entities.c.entity_id, entities.c.type, entities.c.handle, entities.c.display_name)
_BY_IDS: Select[Any] = ENTITY.where(
    entities.c.project == PROJECT, entities.c.entity_id.in_(bindparam("ids", expanding=True))
)
_BY_USER = ENTITY.where(entities.c.project == PROJECT, entities.c.user == bindparam("of_user"))
_SPACE = select(spaces.c.id, spaces.c.space_id, spaces.c.archived).where(
    and_(spaces.c.project == PROJECT, spaces.c.space_id == bindparam("of_space_id"))
)


@dataclass(frozen=True, slots=True)
class OpenedSpace:
    """A space that is open to an actor.

    Attributes:
        space: the space.
        entity: the member that acts; None: nobody, who may read all spaces of the project.
    """

    space: SpaceRow
    entity: EntityRow | None


def find_entity(connection: Connection, principal: Principal, entity_id: str) -> EntityRow:
    """Return an entity of a project.

    Raises:
        UnknownEntityError: there is none of that id.
    """
    return find_entities(connection, principal, [entity_id])[0]


def find_entities(
    connection: Connection, principal: Principal, entity_ids: Sequence[str], *, field: str = "entity_id"
) -> list[EntityRow]:
    """Return entities of a project, in the order of their ids as given. Raises as `find_entity`.

    Args:
        connection: the transaction.
        principal: the caller.
        entity_ids: their ids, each once.
        field: the field of the request that has them, for the error.
    """
    values = {**project_values(principal), "ids": list(entity_ids)}
    found = {row.entity_id: entity_row(row) for row in connection.execute(_BY_IDS, values)}
    for entity_id in entity_ids:
        if entity_id not in found:
            raise UnknownEntityError(
                f"{field}: the project has no entity '{entity_id[:100]}'; PUT it, or its agent"
            )
    return [found[entity_id] for entity_id in entity_ids]


def acting_entity(connection: Connection, actor: Actor) -> EntityRow | None:
    """Return the entity that acts; None if the request names none and its user is none.

    Raises:
        UnknownEntityError: it names one that does not exist.
        MissingPermissionError: it names another than its own, without the scope ``spaces:act_as``.
    """
    own = None
    if actor.token_space_id is None:
        own_row = _entity(connection, _BY_USER, actor.principal, of_user=actor.principal.user)
        own = None if own_row is None else entity_row(own_row)
    if actor.entity_id is None:
        return own
    is_own = own is not None and own.sender.entity_id == actor.entity_id
    if not (is_own or actor.may_act_as or actor.token_space_id is not None):
        raise MissingPermissionError(
            "entity_id: the key's user is another entity; leave entity_id out, or use a key with the scope "
            f"{Permission.SPACES_ACT_AS}",
            Permission.SPACES_ACT_AS,
        )
    return find_entity(connection, actor.principal, actor.entity_id)


def open_space(connection: Connection, actor: Actor, space_id: str, *, lock: bool = False) -> OpenedSpace:
    """Return a space that is open to an actor: to its members, and to read to those who may act as anybody.

    Args:
        connection: the transaction.
        actor: who acts.
        space_id: the space.
        lock: whether other writers of the space wait until the transaction is over.

    Raises:
        UnknownSpaceError: there is no such space, or it is not open; the answer is the same.
        UnknownEntityError, MissingPermissionError: as `acting_entity`.
    """
    entity = acting_entity(connection, actor)
    values = {**project_values(actor.principal), "of_space_id": space_id}
    found = connection.execute(_SPACE, values).first()
    if found is None or actor.token_space_id not in (None, space_id):
        raise unknown_space(space_id)
    space = SpaceRow(found.id, found.space_id, found.archived is not None)
    if lock:
        space = lock_space(connection, found.id)
    if entity is not None and is_member(connection, space.id, entity.id):
        return OpenedSpace(space, entity)
    if actor.may_act_as and actor.entity_id is None:
        return OpenedSpace(space, None)
    raise unknown_space(space_id)


def require_writable(space: SpaceRow) -> None:
    """Require that a space is not archived. Raises SpaceArchivedError."""
    if space.is_archived:
        raise SpaceArchivedError(f"space_id: '{space.space_id}' is archived and can be read only; use another")


def unknown_space(space_id: str) -> UnknownSpaceError:
    """Return the error of a space that does not exist or is not open to the caller."""
    return UnknownSpaceError(f"space_id: there is no space '{space_id[:100]}' here, or you are not a member of it")


def _entity(connection: Connection, query: Any, principal: Principal, **values: str) -> Row[Any] | None:
    found: Row[Any] | None = connection.execute(query, {**project_values(principal), **values}).first()
    return found
