"""Transactions on a PostgreSQL server that meet: none waits for a row that is only referred to, none deadlocks."""

import asyncio
import json
import threading
from functools import partial

import pytest
from sqlalchemy import select

from proofbox.contracts.gateway.spaces import SpaceCreation
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.posting import Posting
from proofbox.service.gateway.runs_port import NewRun, RunLimits
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.gateway.waits.port import CloseWait, OpenWait, WaitMovedError, WaitState
from proofbox.service.gateway_errors import NameTakenError, VersionMovedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database, announce
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import spaces
from proofbox.service.storage.gateway.space_rows import add_event, lock_space
from proofbox.service.storage.gateway.waits import SqlWaitStore, close_wait
from tests.support.gateway_world import ANN, build_world, recorded_call
from tests.support.held_database import LONG_S, HeldDatabase, meet


@pytest.fixture
async def database(postgres_url, tmp_path):
    opened = Database(tmp_path / "data", postgres_url, timeout_s=5)
    await opened.open()
    yield opened
    await opened.close()


AT, EXPIRES, LATE = "2030-01-01T00:00:00.000Z", "2030-01-02T00:00:00.000Z", "2030-01-03T00:00:00.000Z"


async def open_wait(database):
    """A pending wait of a call of the world's run."""
    key = CallKey(ConversationKey(ANN, "run:run_1"), "call-1")
    store = SqlCallStore(database, call_effects())
    await store.claim(NewCall(key, "hash", "{}", "boot-1", None))
    await store.suspend(key, [OpenWait("wait_1", "external", recorded_call(), Posting(), EXPIRES)])


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
        async with asyncio.timeout(LONG_S):
            await listener.wait(LONG_S)
    assert len(attempts) > 2  # the one that is run again may overtake the one that waits, and meet it once more
    for space_id in (first, second):
        assert [name for _, name, _ in await world.events(space_id)].count("message.created") == 2


async def test_a_handle_that_another_agent_takes_meanwhile_is_taken(database):
    await build_world(database)
    held = HeldDatabase(database)
    first = SqlAgentStore(held).write(ANN, "first", version(1), None)
    with pytest.raises(NameTakenError):
        await meet(database, held, first, SqlAgentStore(database).write(ANN, "second", version(1), None))


async def test_a_version_that_somebody_writes_meanwhile_has_moved(database):
    await build_world(database)
    await SqlAgentStore(database).write(ANN, "other", version(1), None)
    held = HeldDatabase(database)
    first = SqlAgentStore(held).write(ANN, "other", version(2), 1)
    with pytest.raises(VersionMovedError, match="has version 2"):
        await meet(database, held, first, SqlAgentStore(database).write(ANN, "other", version(3), 1))


async def test_a_request_whose_key_another_one_uses_meanwhile_gets_its_answer(database):
    await build_world(database)
    held, key = HeldDatabase(database), RequestKey("key-1", "a" * 64)
    runs = [NewRun(f"run_{number}", "helper", f"run:run_{number}", {"type": "manual"}) for number in (2, 3)]
    first = SqlRunStore(held, RunLimits()).create(ANN, runs[0], key)
    second = SqlRunStore(database, RunLimits()).create(ANN, runs[1], key)
    (made, was_known), (again, is_known) = await meet(database, held, first, second)
    assert (made.run_id, was_known) == ("run_2", False)
    assert (again.run_id, is_known) == ("run_2", True)


@pytest.mark.parametrize("state", [WaitState.ANSWERED, WaitState.EXPIRED, WaitState.CANCELLED])
async def test_a_wait_that_is_answered_meanwhile_ends_once(database, state):
    await build_world(database)
    await open_wait(database)
    held = HeldDatabase(database)
    closing = CloseWait("wait_1", WaitState.ANSWERED, AT, '{"result": 1}', "a" * 64, "ann")
    other = CloseWait("wait_1", state, AT if state is WaitState.ANSWERED else LATE, "{}", "b" * 64, "bob")
    first = held.write(lambda connection: close_wait(connection, None, closing))
    with pytest.raises(WaitMovedError):
        await meet(database, held, first, database.write(lambda connection: close_wait(connection, None, other)))
    wait = await SqlWaitStore(database).get("wait_1")
    assert (wait.state, wait.answered_by) == (WaitState.ANSWERED, "ann")
