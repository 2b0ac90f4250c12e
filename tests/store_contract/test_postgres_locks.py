"""Transactions on a PostgreSQL server that meet: none waits for a row that is only referred to, none deadlocks."""

import asyncio
import json
import threading
from functools import partial

import pytest
from sqlalchemy import select

from proofbox.contracts.gateway.spaces import SpaceCreation
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.runs_port import NewRun, RunLimits
from proofbox.service.storage.database import Database, announce
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import spaces
from proofbox.service.storage.gateway.space_rows import add_event, lock_space
from tests.support.gateway_world import ANN, build_world

LONG_S = 20


@pytest.fixture
async def database(postgres_url, tmp_path):
    opened = Database(tmp_path / "data", postgres_url, timeout_s=5)
    await opened.open()
    yield opened
    await opened.close()


class HeldDatabase:
    """The database, whose writes stay in their transaction after their work until they are let go."""

    def __init__(self, database):
        self._database = database
        self.has_worked, self.let_go = threading.Event(), threading.Event()

    async def write(self, work):
        def held(connection):
            result = work(connection)
            self.has_worked.set()
            self.let_go.wait(LONG_S)
            return result

        return await self._database.write(held)


def version(number):
    return NewVersion("other", '{"agent": {"name": "other"}}', f"sha-{number}")


async def test_a_run_is_made_while_an_agent_of_its_project_is_written(database):
    await build_world(database)
    held = HeldDatabase(database)
    writing = asyncio.create_task(SqlAgentStore(held).write(ANN, "other", version(1), None))
    assert await asyncio.to_thread(held.has_worked.wait, LONG_S)
    try:
        new = NewRun("run_2", "helper", "run:run_2", {"type": "manual"})
        run, _ = await SqlRunStore(database, RunLimits()).create(ANN, new)
    finally:
        held.let_go.set()
    assert run.run_id == "run_2"
    assert (await writing)[1]


async def test_a_run_enters_a_space_while_it_is_locked(database):
    world = await build_world(database)
    await world.set_active_space(None)
    held = HeldDatabase(database)

    def lock(connection):
        lock_space(connection, connection.execute(select(spaces.c.id)).scalar_one())

    locking = asyncio.create_task(held.write(lock))
    assert await asyncio.to_thread(held.has_worked.wait, LONG_S)
    try:
        await world.set_active_space(world.space_id)
    finally:
        held.let_go.set()
    await locking


async def test_of_two_writers_that_wait_for_each_other_both_come_through(database):
    world = await build_world(database)
    first = world.space_id
    made, _ = await world.spaces.create(world.actor, SpaceCreation(name="Hall", members=["ann"]), None)
    second = json.loads(made)["space_id"]
    both_have_one = threading.Barrier(2)
    attempts = []

    def lock_both(connection, order):
        attempts.append(order)
        for step, space_id in enumerate(order):
            row = connection.execute(select(spaces.c.id).where(spaces.c.space_id == space_id)).scalar_one()
            space = lock_space(connection, row)
            if step == 0 and len(attempts) <= 2:
                both_have_one.wait(LONG_S)
            add_event(connection, space, "message.created", {})
        announce(connection, "both")

    orders = [(first, second), (second, first)]
    with database.changes.listen("both") as listener:
        await asyncio.gather(*(database.write(partial(lock_both, order=order)) for order in orders))
        await asyncio.wait_for(listener.wait(LONG_S), LONG_S)
    assert len(attempts) > 2  # the one that is run again may overtake the one that waits, and meet it once more
    for space_id in (first, second):
        assert [name for _, name, _ in await world.events(space_id)].count("message.created") == 2
