"""Ended runs, their events and old answers of idempotency keys are deleted; what refers to them stays."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update

from proofbox.service.calls.port import Alongside, CallKey, CallState, NewCall
from proofbox.service.conversations.ended_runs import delete_ended_runs
from proofbox.service.gateway.call_effects import AcceptRunCall, EndRunCall
from proofbox.service.gateway.runs_port import NewRun, RunEnd, RunFilter, RunLimits, RunStatus
from proofbox.service.gateway.spaces.outbox import OutgoingText
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.gateway_errors import UnknownRunError
from proofbox.service.identity import ConversationKey
from proofbox.service.observability.metrics_port import NoMeter
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.gateway.outbox import SqlOutbox
from proofbox.service.storage.gateway.run_retention import SqlRunRetention
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import created_records, run_events, runs
from proofbox.service.storage.schema import calls as call_rows
from proofbox.service.storage.schema import conversations
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


async def delete_all(retention, meter=None, rows_max=1_000):
    """How many runs were deleted."""
    return (await delete_ended_runs(retention, SINCE, meter or NoMeter(), _go_on, rows_max)).runs


async def _go_on():
    return True


async def test_runs_that_ended_long_ago_are_deleted_with_their_events(database, store, retention):
    for number in range(2, 8):
        await make(store, number, ended=number != 7)
    await age(database, *(f"run_{number}" for number in range(2, 6)))
    before = await count(database, run_events)
    meter = PrometheusMeter({})
    assert await delete_all(retention, meter) == 4
    assert b'proofbox_deletions_total{kind="run",reason="retention"} 4.0' in meter.text()
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
    assert await delete_all(retention) == 0
    await database.write(lambda connection: connection.execute(call_rows.delete()))  # its conversation was deleted
    assert await delete_all(retention) == 1


async def test_the_messages_of_a_deleted_run_stay(database, world, store, retention):
    await SqlOutbox(database).send(ANN, OutgoingText(world.run_id, "call-1", world.space_id, "hello"))
    await store.cancel(ANN, world.run_id)
    await age(database, world.run_id)
    assert await delete_all(retention) == 1
    [message] = await world.records()
    assert (message["text"], message["run_id"]) == ("hello", world.run_id)
    assert "message.created" in await world.names()


async def test_the_answer_of_a_key_is_deleted_before_the_run_that_it_names(database, store, retention):
    await make(store, 2, key=KEY)
    await age(database, "run_2")
    await database.write(lambda connection: connection.execute(update(created_records).values(created=OLD)))
    assert await delete_all(retention, rows_max=1) == 0
    await store.find(ANN, "run_2")
    assert await delete_all(retention) == 1
    again, was_known = await store.create(ANN, NewRun("run_3", "helper", "run:run_3", {"type": "manual"}), KEY)
    assert (again.run_id, was_known) == ("run_3", False)


async def keep(database, run_id, number=1):
    """Lets a run have a call, so that it stays."""
    key = CallKey(ConversationKey(ANN, f"run:{run_id}"), f"call-{number}")
    calls = SqlCallStore(database, call_effects())
    await calls.claim(NewCall(key, "hash", "{}", "boot-1", None, [AcceptRunCall(ANN, run_id, 1, 60)]))
    await calls.finish(key, CallState.DONE, "{}", also=Alongside(effects=[EndRunCall(60)]))


async def end(database, store, *run_ids):
    for run_id in run_ids:
        await store.finish(ANN, run_id, 1, RunEnd(RunStatus.COMPLETED), cancel_waits=True)
    await age(database, *run_ids)


async def test_pages_go_on_after_runs_that_stay(database, store, retention):
    names = [f"run_{number}" for number in range(2, 9)]
    for number, name in enumerate(names, 2):
        await make(store, number, ended=False)
        if number < 6:
            await keep(database, name)
    await end(database, store, *names)
    found, after, pages = [], None, 0
    while pages == 0 or after is not None:
        page = await retention.ended(SINCE, after, 2)
        found += [run.run_id for run in page.due]
        after, pages = page.next, pages + 1
    assert (found, pages) == (["run_6", "run_7", "run_8"], 4)
    assert (page.due[-1].tenant, page.due[-1].agent_id, page.due[-1].ended) == (ANN.tenant, "helper", OLD)


async def test_what_has_changed_since_it_was_read_stays(database, store, retention):
    for number in (2, 3, 4):
        await make(store, number, ended=False)
    await keep(database, "run_2")
    await end(database, store, "run_2", "run_3")
    numbers = [run.number for run in await store.list(ANN, RunFilter(limit=100))]
    assert await retention.delete(SINCE, numbers) == 1
    assert {run.run_id for run in await store.list(ANN, RunFilter())} == {"run_1", "run_2", "run_4"}


async def test_a_list_of_what_is_due_counts_runs_of_conversations_that_are_deleted_first(
    database, store, retention
):
    for number in (2, 3):
        await make(store, number, ended=False)
        await keep(database, f"run_{number}")
    await end(database, store, "run_2", "run_3")
    old = update(conversations).where(conversations.c.name == "run:run_2").values(used=OLD)
    await database.write(lambda connection: connection.execute(old))
    assert (await retention.ended(SINCE, None, 100)).due == []
    [due] = (await retention.ended(SINCE, None, 100, without_unused=True)).due
    assert due.run_id == "run_2"


async def test_a_list_goes_on_after_a_run_that_was_deleted_meanwhile(database, store, retention):
    for number in range(2, 7):
        await make(store, number)
    first = await store.list(ANN, RunFilter(limit=2))
    assert [run.run_id for run in first] == ["run_6", "run_5"]
    await age(database, "run_5")
    assert await delete_all(retention) == 1
    rest = await store.list(ANN, RunFilter(limit=3, before=str(first[-1].number)))
    assert [run.run_id for run in rest] == ["run_4", "run_3", "run_2"]


async def test_new_answers_of_keys_stay(database, store, retention):
    await make(store, 2, key=KEY)
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert await retention.delete_answers(past, 100) == 0
    assert await count(database, created_records) == 1
