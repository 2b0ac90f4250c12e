"""Agents and the versions of their configurations in the database."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, exists, func, insert, or_, select, update
from typing_extensions import override

from proofbox.contracts.gateway.names import agent_entity_id
from proofbox.service.gateway.agents.port import AgentStore, NewVersion, StoredAgent
from proofbox.service.gateway_errors import (
    AgentInUseError,
    NameTakenError,
    UnknownAgentError,
    VersionMovedError,
)
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import Database, count_changed
from proofbox.service.storage.gateway.project_rows import PROJECT, ensure_project, project_values
from proofbox.service.storage.gateway.reply_waits import end_unanswerable, lock_awaiting
from proofbox.service.storage.gateway.schema import (
    agent_versions,
    agents,
    entities,
    goals,
    members,
    memories,
    plans,
    projects,
    runs,
)
from proofbox.service.storage.gateway.space_rows import add_event, entity_row, lock_space
from proofbox.service.storage.schema import calls

_ENDED = ("completed", "failed", "cancelled")
_OPEN_CALLS = ("open", "waiting")
_AGENT = select(agents).where(agents.c.project == PROJECT, agents.c.agent_id == bindparam("of_agent"))
_VERSION = (
    select(
        agents.c.id,
        agents.c.agent_id,
        agents.c.current,
        agents.c.created,
        entities.c.handle,
        agent_versions.c.version,
        agent_versions.c.sha256,
        agent_versions.c.config,
        agent_versions.c.created.label("updated"),
    )
    .join_from(agents, agent_versions, agent_versions.c.agent == agents.c.id)
    .join(entities, entities.c.agent == agents.c.id)
    .where(agents.c.project == PROJECT, agents.c.deleted.is_(None))
)
_CURRENT = _VERSION.where(agent_versions.c.version == agents.c.current)
_NOT_ENDED = (
    select(runs.c.run_id)
    .join_from(runs, agents, runs.c.agent == agents.c.id)
    .where(
        agents.c.project == PROJECT,
        agents.c.agent_id == bindparam("of_agent"),
        runs.c.status.not_in(_ENDED),
    )
    .order_by(runs.c.id)
)


class SqlAgentStore(AgentStore):
    """The AgentStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def write(
        self, principal: Principal, agent_id: str, new: NewVersion, if_version: int | None
    ) -> tuple[StoredAgent, bool]:
        return await self._database.write(
            lambda connection: _write(connection, principal, (agent_id, new), if_version)
        )

    @override
    async def find(self, principal: Principal, agent_id: str, version: int | None = None) -> StoredAgent:
        query = _CURRENT if version is None else _VERSION.where(agent_versions.c.version == version)

        def work(connection: Connection) -> StoredAgent:
            values = {**project_values(principal), "of_agent": agent_id}
            found = connection.execute(query.where(agents.c.agent_id == bindparam("of_agent")), values).first()
            if found is None and version is not None:
                require_agent(connection, principal, agent_id)
                raise UnknownAgentError(
                    f"version: agent '{agent_id[:100]}' has no version {version}; leave it out for the newest"
                )
            if found is None:
                raise _unknown(agent_id)
            return _build(found)

        return await self._database.read(work)

    @override
    async def page(self, principal: Principal, before: str | None, limit: int) -> list[StoredAgent]:
        def work(connection: Connection) -> list[StoredAgent]:
            query = _CURRENT.order_by(agents.c.id.desc()).limit(limit)
            if before is not None:
                query = query.where(agents.c.id < require_agent(connection, principal, before).id)
            return [_build(row) for row in connection.execute(query, project_values(principal))]

        return await self._database.read(work)

    @override
    async def runs_not_ended(self, principal: Principal, agent_id: str) -> Sequence[str]:
        values = {**project_values(principal), "of_agent": agent_id}
        return await self._database.read(lambda connection: connection.scalars(_NOT_ENDED, values).all())

    @override
    async def delete(self, principal: Principal, agent_id: str) -> None:
        def work(connection: Connection) -> None:
            _lock_project(connection, principal)
            found = require_agent(connection, principal, agent_id, lock=True)
            count = select(func.count()).where(runs.c.agent == found.id, runs.c.status.not_in(_ENDED))
            if open_runs := connection.scalar(count):
                raise AgentInUseError(
                    f"agent_id: {open_runs} runs of '{agent_id[:100]}' have not ended; wait for them, or give "
                    "cancel_runs=true"
                )
            _leave_spaces(connection, found.id)
            for records in (goals, memories, plans):
                connection.execute(delete(records).where(records.c.agent == found.id))
            connection.execute(
                update(entities).where(entities.c.agent == found.id).values(handle=None, handle_folded=None)
            )
            connection.execute(update(agents).where(agents.c.id == found.id).values(deleted=utc_now()))

        await self._database.write(work)


def _write(
    connection: Connection, principal: Principal, agent: tuple[str, NewVersion], if_version: int | None
) -> tuple[StoredAgent, bool]:
    agent_id, new = agent
    project = ensure_project(connection, principal)
    _lock_project(connection, principal)
    values = {**project_values(principal), "of_agent": agent_id}
    known = connection.execute(_AGENT.with_for_update(key_share=True), values).first()
    current = 0 if known is None or known.deleted is not None else known.current
    stored = (
        _build(connection.execute(_CURRENT.where(agents.c.agent_id == agent_id), values).one()) if current else None
    )
    is_same = stored is not None and stored.sha256 == new.sha256
    # The same document over the version before: the same request again, whose first answer was lost.
    if if_version is not None and if_version != current and not (is_same and if_version == current - 1):
        has = f"has version {current}" if current else "does not exist"
        raise VersionMovedError(f"If-Match: agent '{agent_id[:100]}' {has}, not \"{if_version}\"; read it again")
    if stored is not None and is_same:
        return stored, False
    now = utc_now()
    if known is None:
        row = {"project": project, "agent_id": agent_id, "current": 1, "created": now}
        number, version = connection.execute(insert(agents).returning(agents.c.id), row).scalar_one(), 1
    else:
        number, version = known.id, known.current + 1
        revived = {"created": now, "deleted": None} if known.deleted is not None else {}
        connection.execute(update(agents).where(agents.c.id == number).values(current=version, **revived))
    version_row = {
        "agent": number,
        "version": version,
        "sha256": new.sha256,
        "config": new.document,
        "created": now,
    }
    connection.execute(insert(agent_versions), version_row)
    _write_entity(connection, project, (number, agent_id), new)
    _delete_unused(connection, number, version)
    written = connection.execute(_CURRENT.where(agents.c.agent_id == agent_id), values).one()
    return _build(written), current == 0


def _delete_unused(connection: Connection, agent: int, current: int) -> None:
    """Delete the earlier versions that no run and no call needs: a call that is open may outlive its run."""
    has_open_calls = exists().where(calls.c.run == runs.c.id, calls.c.state.in_(_OPEN_CALLS))
    used = select(runs.c.version).where(runs.c.agent == agent, or_(runs.c.status.not_in(_ENDED), has_open_calls))
    old = (agent_versions.c.version < current, agent_versions.c.version.not_in(used))
    connection.execute(delete(agent_versions).where(agent_versions.c.agent == agent, *old))


def _write_entity(connection: Connection, project: int, agent: tuple[int, str], new: NewVersion) -> None:
    """Insert or update the entity of an agent, whose project is locked.

    Raises:
        NameTakenError: another entity has the handle.
    """
    number, agent_id = agent
    folded = new.handle.casefold()
    own = entities.c.agent == number
    others = select(entities.c.entity_id).where(entities.c.project == project, entities.c.handle_folded == folded)
    if connection.execute(others.where(entities.c.entity_id != agent_entity_id(agent_id))).first() is not None:
        raise NameTakenError(
            f"agent.name: another entity has the handle '{new.handle}' (case is ignored); choose another"
        )
    shown = {"handle": new.handle, "handle_folded": folded, "display_name": new.handle}
    if count_changed(connection, update(entities).where(own).values(shown)) == 0:
        row = {
            **shown,
            "project": project,
            "entity_id": agent_entity_id(agent_id),
            "type": "agent",
            "agent": number,
            "created": utc_now(),
        }
        connection.execute(insert(entities), row)


def _leave_spaces(connection: Connection, agent: int) -> None:
    """Remove an agent from its spaces, whose readers see that it left."""
    entity = entity_row(connection.execute(select(entities).where(entities.c.agent == agent)).one())
    awaiting = lock_awaiting(connection, entity.id)
    for number in connection.scalars(select(members.c.space).where(members.c.entity == entity.id)).all():
        space = lock_space(connection, number)
        connection.execute(delete(members).where(members.c.space == space.id, members.c.entity == entity.id))
        add_event(connection, space, "member.left", {"entity": entity.sender.to_json()})
    end_unanswerable(connection, awaiting)


def _lock_project(connection: Connection, principal: Principal) -> None:
    """Make other writers of handles of the project wait, so that one handle has one entity."""
    query = select(projects.c.id).where(
        projects.c.tenant == principal.tenant, projects.c.project == principal.project
    )
    connection.execute(query.with_for_update(key_share=True))


def require_agent(
    connection: Connection, principal: Principal, agent_id: str, *, lock: bool = False
) -> Row[Any, Any, Any, Any, Any, Any, Any, Any]:
    """Return the row of an agent, locked if that is asked for. Raises UnknownAgentError."""
    query = _AGENT.where(agents.c.deleted.is_(None))
    values = {**project_values(principal), "of_agent": agent_id}
    found = connection.execute(query.with_for_update(key_share=True) if lock else query, values).first()
    if found is None:
        raise _unknown(agent_id)
    return found


def _unknown(agent_id: str) -> UnknownAgentError:
    return UnknownAgentError(f"agent_id: there is no agent '{agent_id[:100]}' here; PUT /v1/agents/<id> makes one")


def _build(row: Any) -> StoredAgent:
    return StoredAgent(
        agent_id=row.agent_id,
        handle=row.handle,
        current=row.current,
        version=row.version,
        sha256=row.sha256,
        document=row.config,
        created=row.created,
        updated=row.updated,
    )
