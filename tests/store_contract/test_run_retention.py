"""Ended runs, their events and old answers of idempotency keys are deleted; what refers to them stays."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from proofbox.service.calls.port import Alongside, CallKey, CallState, NewCall
from proofbox.service.gateway.call_effects import AcceptRunCall, EndRunCall
from proofbox.service.gateway.runs_port import NewRun, RunEnd, RunLimits, RunStatus
from proofbox.service.gateway.spaces.outbox import OutgoingText
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.gateway_errors import UnknownRunError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.gateway.outbox import SqlOutbox
from proofbox.service.storage.gateway.run_retention import SqlRunRetention
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import created_records, run_events, runs
from proofbox.service.storage.schema import calls as call_rows
from tests.support.gateway_world import ANN, build_world

KEY = RequestKey("key-1", "a" * 64)
OLD = "2020-01-01T00:00:00.000Z"
SINCE = "2021-01-01T00:00:00.000Z"


@pytest.fixture(autouse=True)
async def world(database):
    return await build_world(database)


@pytest.fixture
def store(database):
    return SqlRunStore(database, RunLimits(running_max=100))


@pytest.fixture
def retention(database):
    return SqlRunRetention(database)


async def make(store, number, *, key=None, ended=True):
    new = NewRun(f"run_{number}", "helper", f"run:run_{number}", {"type": "manual"})
    run, _ = await store.create(ANN, new, key)
    if ended:
        await store.finish(ANN, run.run_id, 1, RunEnd(RunStatus.COMPLETED), cancel_waits=True)
    return run


async def age(database, *run_ids):
    """Lets runs have ended long ago."""
    old = update(runs).where(runs.c.run_id.in_(run_ids)).values(ended=OLD)
    await database.write(lambda connection: connection.execute(old))


async def count(database, table):
    return await database.read(lambda connection: connection.scalar(select(func.count()).select_from(table)))


async def delete_all(retention, limit=100):
    deleted = []
    while number := await retention.delete_ended(SINCE, limit):
        deleted.append(number)
    return deleted


async def test_runs_that_ended_long_ago_are_deleted_with_their_events(database, store, retention):
    for number in range(2, 8):
        await make(store, number, ended=number != 7)
    await age(database, *(f"run_{number}" for number in range(2, 6)))
    before = await count(database, run_events)
    assert await delete_all(retention, 3) == [3, 1]
    assert await count(database, runs) == 3  # one that ended now, one that has not ended, and that of the world
    assert await count(database, run_events) < before
    for number in (6, 7):
        await store.find(ANN, f"run_{number}")
    with pytest.raises(UnknownRunError):
        await store.find(ANN, "run_2")


async def test_a_run_stays_while_its_calls_are_stored(database, store, retention):
    run = await make(store, 2, ended=False)
    key = CallKey(ConversationKey(ANN, run.conversation_id), "call-1")
    calls = SqlCallStore(database, call_effects())
    await calls.claim(NewCall(key, "hash", "{}", "boot-1", None, [AcceptRunCall(ANN, "run_2", 1, 60)]))
    await calls.finish(key, CallState.DONE, "{}", also=Alongside(effects=[EndRunCall(60)]))
    await store.finish(ANN, "run_2", 1, RunEnd(RunStatus.COMPLETED), cancel_waits=True)
    await age(database, "run_2")
    assert await delete_all(retention) == []
    await database.write(lambda connection: connection.execute(call_rows.delete()))  # its conversation was deleted
    assert await delete_all(retention) == [1]


async def test_the_messages_of_a_deleted_run_stay(database, world, store, retention):
    await SqlOutbox(database).send(ANN, OutgoingText(world.run_id, "call-1", world.space_id, "hello"))
    await store.cancel(ANN, world.run_id)
    await age(database, world.run_id)
    assert await delete_all(retention) == [1]
    [message] = await world.records()
    assert (message["text"], message["run_id"]) == ("hello", world.run_id)
    assert "message.created" in await world.names()


async def test_the_answer_of_a_key_is_deleted_before_the_run_that_it_names(database, store, retention):
    await make(store, 2, key=KEY)
    await age(database, "run_2")
    await database.write(lambda connection: connection.execute(update(created_records).values(created=OLD)))
    assert await retention.delete_ended(SINCE, 1) == 1
    await store.find(ANN, "run_2")
    assert await delete_all(retention) == [1]
    again, was_known = await store.create(ANN, NewRun("run_3", "helper", "run:run_3", {"type": "manual"}), KEY)
    assert (again.run_id, was_known) == ("run_3", False)


async def test_new_answers_of_keys_stay(database, store, retention):
    await make(store, 2, key=KEY)
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert await retention.delete_ended(past, 100) == 0
    assert await count(database, created_records) == 1
