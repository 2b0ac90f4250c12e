"""A project with a person, an agent, a space and a run of the agent, in a database."""

import json
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from proofbox.contracts.gateway.spaces import EntityDefinition, SpaceCreation
from proofbox.service.gateway.posting import RecordedCall, ShownTool
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.gateway.project_rows import ensure_principal, ensure_project
from proofbox.service.storage.gateway.schema import agents, entities, messages, runs, space_events, spaces
from proofbox.service.storage.gateway.spaces import SqlSpaceStore

ANN = Principal("acme", "books", "registered", "ann")


@dataclass
class World:
    """What the tests of spaces need; `run_id` is a run of the agent ``helper`` whose active space is `space_id`."""

    database: object
    principal: Principal
    space_id: str
    run_id: str

    @property
    def actor(self):
        """The person ``ann``."""
        return Actor(self.principal)

    @property
    def spaces(self):
        return SqlSpaceStore(self.database)

    async def events(self, space_id=None):
        """The events of a space: id, name and data."""

        def work(connection):
            query = (
                select(space_events.c.id, space_events.c.event, space_events.c.data)
                .join_from(space_events, spaces)
                .where(spaces.c.space_id == (space_id or self.space_id))
                .order_by(space_events.c.id)
            )
            return [(row.id, row.event, json.loads(row.data)) for row in connection.execute(query)]

        return await self.database.read(work)

    async def names(self, space_id=None):
        """The names of the events of a space, without those of members and runs."""
        return [
            name for _, name, _ in await self.events(space_id) if name.startswith(("tool-call", "message", "reset"))
        ]

    async def records(self):
        """The messages of the world's database, as JSON objects."""
        return await self.database.read(
            lambda connection: [
                json.loads(row.body) for row in connection.execute(select(messages.c.body).order_by(messages.c.id))
            ]
        )

    async def set_active_space(self, space_id):
        """Set the active space of the run."""
        row = select(spaces.c.id).where(spaces.c.space_id == space_id).scalar_subquery()
        await self.database.write(
            lambda connection: connection.execute(
                update(runs).where(runs.c.run_id == self.run_id).values(space=row if space_id else None)
            )
        )

    async def run_row(self):
        """The row of the run."""
        query = select(runs.c.id).where(runs.c.run_id == self.run_id)
        return await self.database.read(lambda connection: connection.execute(query).scalar_one())


async def build_world(database, principal=ANN, run_id="run_1"):
    """Make the project; all of it is stored."""
    store = SqlSpaceStore(database)
    ann = Actor(principal, may_act_as=True)
    await store.put_entity(ann, "ann", EntityDefinition(type="human", handle="ann", display_name="Ann", user="ann"))
    await add_agent(database, principal, "helper")
    creation = SpaceCreation(name="Kitchen", members=["ann", "agent:helper"])
    made, _ = await store.create(Actor(principal), creation, None)
    space_id = json.loads(made)["space_id"]
    world = World(database, principal, space_id, run_id)
    await add_run(database, principal, run_id, "helper")
    await world.set_active_space(space_id)
    return world


async def add_agent(database, principal, agent_id):
    """Make an agent with its entity."""

    def work(connection):
        project, now = ensure_project(connection, principal), utc_now()
        row = {"project": project, "agent_id": agent_id, "current": 1, "created": now}
        agent = connection.execute(insert(agents).returning(agents.c.id), row).scalar_one()
        entity = {
            "project": project,
            "entity_id": f"agent:{agent_id}",
            "type": "agent",
            "handle": agent_id,
            "handle_folded": agent_id.casefold(),
            "display_name": agent_id.title(),
            "agent": agent,
            "created": now,
        }
        connection.execute(insert(entities), entity)

    await database.write(work)


def copy_run(connection, run_id, numbers):
    """Make runs ``run_<number>`` that differ from a run in their names only."""
    row = dict(connection.execute(select(runs).where(runs.c.run_id == run_id)).one()._mapping)
    del row["id"]
    copies = [row | {"run_id": f"run_{each}", "conversation": f"run:run_{each}"} for each in numbers]
    connection.execute(insert(runs), copies)


async def add_run(database, principal, run_id, agent_id):
    """Make a running run of an agent."""

    def work(connection):
        project = ensure_project(connection, principal)
        agent = connection.execute(
            select(agents.c.id).where(agents.c.project == project, agents.c.agent_id == agent_id)
        ).scalar_one()
        row = {
            "project": project,
            "run_id": run_id,
            "agent": agent,
            "version": 1,
            "principal": ensure_principal(connection, principal),
            "conversation": f"run:{run_id}",
            "status": "running",
            "trigger": json.dumps({"type": "manual"}),
            "lease": 1,
            "created": utc_now(),
        }
        connection.execute(insert(runs), row)

    await database.write(work)


def shown_tool(visibility="visible", **more):
    """A tool ``weather`` as a space sees it."""
    fields = {"execution_type": "gateway", "custom_ui": "weather"} | more
    return ShownTool("weather", "gateway_tools.weather", visibility=visibility, **fields)


def recorded_call(tool=None, call_id="call-1", run_id="run_1", **params):
    """A call of that tool."""
    return RecordedCall(run_id, call_id, tool or shown_tool(), params or {"city": "Oslo"})
