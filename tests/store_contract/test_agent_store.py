"""Agents on both databases: versions, handles, conditions, and what a deletion leaves."""

import asyncio

import pytest
from sqlalchemy import select, update

from proofbox.contracts.gateway.spaces import EntityDefinition, SpaceCreation
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.runs_port import NewRun, RunLimits
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway_errors import (
    AgentInUseError,
    NameTakenError,
    UnknownAgentError,
    VersionMovedError,
)
from proofbox.service.identity import Principal
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import agent_versions, entities, runs, space_events
from proofbox.service.storage.gateway.spaces import SqlSpaceStore
from proofbox.service.storage.schema import calls

ANN = Principal("acme", "books", "registered", "ann")
BEN = Principal("acme", "books", "registered", "ben")
ELSEWHERE = Principal("acme", "films", "registered", "ann")


def version(number, handle="helper"):
    return NewVersion(handle, f'{{"agent": {{"name": "{handle}"}}, "number": {number}}}', f"sha-{handle}-{number}")


@pytest.fixture
async def database(opened_database, tmp_path, database_url):
    async with opened_database(tmp_path, database_url) as opened:
        yield opened


@pytest.fixture
def agents(database):
    return SqlAgentStore(database)


@pytest.fixture
def run_store(database):
    return SqlRunStore(database, RunLimits())


async def begin_run(run_store, agent_id="a1", run_id="run_1"):
    made = NewRun(run_id, agent_id, f"run:{run_id}", {"type": "manual"})
    return await run_store.create(ANN, made)


async def stored_versions(database):
    return await database.read(
        lambda connection: connection.scalars(
            select(agent_versions.c.version).order_by(agent_versions.c.version)
        ).all()
    )


async def test_each_configuration_that_differs_is_a_version(agents):
    first, is_new = await agents.write(ANN, "a1", version(1), None)
    assert (first.version, first.handle, is_new) == (1, "helper", True)
    again, is_new = await agents.write(BEN, "a1", version(1), None)
    assert (again, is_new) == (first, False)
    second, is_new = await agents.write(ANN, "a1", version(2), None)
    assert (second.version, second.created, is_new) == (2, first.created, False)
    assert await agents.find(BEN, "a1") == second
    assert second.document == version(2).document


async def test_a_version_stays_while_a_run_uses_it(agents, run_store, database):
    await agents.write(ANN, "a1", version(1), None)
    await begin_run(run_store)
    await agents.write(ANN, "a1", version(2), None)
    await agents.write(ANN, "a1", version(3), None)
    assert await stored_versions(database) == [1, 3]
    assert (await agents.find(ANN, "a1", 1)).document == version(1).document
    await run_store.cancel(ANN, "run_1")
    await agents.write(ANN, "a1", version(4), None)
    assert await stored_versions(database) == [4]
    with pytest.raises(UnknownAgentError, match="no version 1"):
        await agents.find(ANN, "a1", 1)


@pytest.mark.parametrize("state", ["open", "waiting"])
async def test_a_version_stays_while_a_call_of_an_ended_run_uses_it(
    agents, run_store, database, call_store, scope, state
):
    await agents.write(ANN, "a1", version(1), None)
    await begin_run(run_store)
    await call_store.claim(NewCall(CallKey(scope, "call-1"), "sha", "{}", "boot", None))
    run = select(runs.c.id).where(runs.c.run_id == "run_1").scalar_subquery()
    await database.write(lambda connection: connection.execute(update(calls).values(run=run, state=state)))
    await run_store.cancel(ANN, "run_1")
    await database.write(lambda connection: connection.execute(update(calls).values(state=state, answer=None)))
    await agents.write(ANN, "a1", version(2), None)
    await agents.write(ANN, "a1", version(3), None)
    assert await stored_versions(database) == [1, 3]
    await database.write(lambda connection: connection.execute(update(calls).values(state="done", answer="{}")))
    await agents.write(ANN, "a1", version(4), None)
    assert await stored_versions(database) == [4]


async def test_a_condition_that_does_not_hold_writes_nothing(agents):
    with pytest.raises(VersionMovedError, match="does not exist"):
        await agents.write(ANN, "a1", version(1), 1)
    await agents.write(ANN, "a1", version(1), 0)
    for condition in (0, 2):
        with pytest.raises(VersionMovedError, match="has version 1"):
            await agents.write(ANN, "a1", version(2), condition)
    assert (await agents.write(ANN, "a1", version(2), 1))[0].version == 2


async def test_of_writers_at_once_with_one_condition_only_one_writes(agents):
    await agents.write(ANN, "a1", version(1), None)
    outcomes = await asyncio.gather(
        *(agents.write(ANN, "a1", version(number), 1) for number in range(2, 12)), return_exceptions=True
    )
    written = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    assert [stored.version for stored, _ in written] == [2]
    assert {type(outcome) for outcome in outcomes if isinstance(outcome, Exception)} == {VersionMovedError}


async def test_a_handle_belongs_to_one_entity_of_a_project_whatever_its_case(agents):
    await agents.write(ANN, "a1", version(1, "Helper"), None)
    with pytest.raises(NameTakenError, match="hELPER"):
        await agents.write(ANN, "a2", version(1, "hELPER"), None)
    with pytest.raises(UnknownAgentError):
        await agents.find(ANN, "a2")
    await agents.write(ELSEWHERE, "a2", version(1, "helper"), None)
    await agents.write(ANN, "a1", version(2, "other"), None)
    assert (await agents.write(ANN, "a2", version(1, "helper"), None))[0].handle == "helper"


async def test_of_two_agents_that_take_one_handle_at_once_one_gets_it(agents):
    await agents.write(ANN, "first", version(1, "first"), None)  # a new project would make them wait by itself
    outcomes = await asyncio.gather(
        *(agents.write(ANN, f"a{number}", version(1), None) for number in range(6)), return_exceptions=True
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NameTakenError"] * 5 + ["tuple"]


async def test_agents_of_another_project_are_unknown(agents):
    await agents.write(ANN, "a1", version(1), None)
    with pytest.raises(UnknownAgentError):
        await agents.find(ELSEWHERE, "a1")
    with pytest.raises(UnknownAgentError):
        await agents.delete(ELSEWHERE, "a1")
    with pytest.raises(UnknownAgentError):
        await agents.page(ELSEWHERE, "a1", 10)
    assert await agents.page(ELSEWHERE, None, 10) == []
    assert list(await agents.runs_not_ended(ELSEWHERE, "a1")) == []


async def test_pages_list_the_newest_first(agents):
    for number in range(5):
        await agents.write(ANN, f"a{number}", version(1, f"h{number}"), None)
    await agents.write(ANN, "a0", version(2, "h0"), None)
    first = await agents.page(ANN, None, 3)
    assert [(agent.agent_id, agent.version) for agent in first] == [("a4", 1), ("a3", 1), ("a2", 1)]
    assert [(agent.agent_id, agent.version) for agent in await agents.page(ANN, "a2", 3)] == [("a1", 1), ("a0", 2)]


async def test_an_agent_with_open_runs_is_not_deleted(agents, run_store):
    await agents.write(ANN, "a1", version(1), None)
    await begin_run(run_store)
    assert list(await agents.runs_not_ended(BEN, "a1")) == ["run_1"]
    with pytest.raises(AgentInUseError, match="1 runs"):
        await agents.delete(ANN, "a1")
    assert (await agents.find(ANN, "a1")).version == 1


async def test_a_deletion_leaves_runs_and_frees_the_handle(agents, run_store, database):
    await agents.write(ANN, "a1", version(1), None)
    await begin_run(run_store)
    await run_store.cancel(ANN, "run_1")
    await agents.delete(ANN, "a1")
    for act in (
        agents.find(ANN, "a1"),
        agents.find(ANN, "a1", 1),
        agents.delete(ANN, "a1"),
        agents.page(ANN, "a1", 1),
    ):
        with pytest.raises(UnknownAgentError):
            await act
    assert await agents.page(ANN, None, 10) == []
    count = await database.read(lambda connection: len(connection.execute(select(runs.c.id)).all()))
    assert count == 1
    await agents.write(ANN, "a2", version(1), None)


async def test_an_agent_that_is_written_again_goes_on_with_its_numbers(agents):
    await agents.write(ANN, "a1", version(1), None)
    await agents.delete(ANN, "a1")
    with pytest.raises(VersionMovedError):
        await agents.write(ANN, "a1", version(1), 1)
    stored, is_new = await agents.write(ANN, "a1", version(1), 0)
    assert (stored.version, stored.handle, is_new) == (2, "helper", True)


async def test_an_agent_is_an_entity_with_its_handle(agents, database):
    await agents.write(ANN, "a1", version(1, "Helper"), None)
    await agents.write(ANN, "a1", version(2, "Renamed"), None)
    columns = (entities.c.entity_id, entities.c.type, entities.c.handle, entities.c.handle_folded)
    found = await database.read(lambda connection: connection.execute(select(*columns)).all())
    assert [tuple(row) for row in found] == [("agent:a1", "agent", "Renamed", "renamed")]


async def test_a_deletion_takes_the_agent_out_of_its_spaces(agents, database):
    await agents.write(ANN, "a1", version(1), None)
    spaces = SqlSpaceStore(database)
    actor = Actor(ANN, may_act_as=True)
    await spaces.put_entity(actor, "ann", EntityDefinition(type="human", handle="ann", display_name="Ann"))
    await spaces.create(actor, SpaceCreation(name="s", members=["ann", "agent:a1"]), None)
    await agents.delete(ANN, "a1")
    (space,) = (await spaces.list(actor, None, 10)).items
    assert [member.entity_id for member in space.members] == ["ann"]
    events = await database.read(
        lambda connection: connection.scalars(select(space_events.c.event).order_by(space_events.c.id)).all()
    )
    assert events[-1] == "member.left"
