"""A space with as many members as it may have is made in a bounded transaction, on every database."""

import json

import pytest
from sqlalchemy import event, insert

from proofbox.contracts.gateway.spaces import MEMBERS_MAX, SpaceCreation
from proofbox.service.errors import InvalidRequestError
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.storage.gateway.project_rows import ensure_project
from proofbox.service.storage.gateway.schema import entities
from proofbox.service.storage.gateway.spaces import SqlSpaceStore
from tests.support.pipeline import ANN

ADMIN = Actor(ANN, may_act_as=True)
IDS = [f"person-{number:04}" for number in range(MEMBERS_MAX)]


@pytest.fixture
async def store(database):
    def work(connection):
        shown = {"project": ensure_project(connection, ANN), "type": "human", "created": "2026-01-01T00:00:00.000Z"}
        rows = [
            {**shown, "entity_id": name, "handle": name, "handle_folded": name, "display_name": name, "user": name}
            for name in (*IDS, ANN.user)
        ]
        connection.execute(insert(entities), rows)

    await database.write(work)
    return SqlSpaceStore(database)


async def statements_of(database, store, names):
    """How many statements the creation of a space takes, and the space."""
    counted = []

    def count(*_):
        counted.append(1)

    engines = []

    def listen(connection):
        engines.append(connection.engine)
        event.listen(connection.engine, "before_cursor_execute", count)

    await database.write(listen)
    try:
        made, _ = await store.create(ADMIN, SpaceCreation(name="all", members=names), None)
    finally:
        event.remove(engines[0], "before_cursor_execute", count)
    return len(counted), json.loads(made)


async def test_members_of_a_new_space_join_in_order_and_a_thousand_take_as_many_statements_as_two(database, store):
    few, _ = await statements_of(database, store, IDS[:1])
    many, made = await statements_of(database, store, IDS[:-1])
    assert [member["entity_id"] for member in made["members"]] == [*IDS[:-1], ANN.user]
    # Old events are looked for once more, as the space has had 64.
    assert many == few + 1
    assert made["last_seq"] == 0


async def test_more_members_than_a_space_may_have_are_refused_with_the_one_who_makes_it(store):
    with pytest.raises(InvalidRequestError, match=rf"^members: .*limit {MEMBERS_MAX}, got {MEMBERS_MAX + 1}"):
        await store.create(ADMIN, SpaceCreation(name="all", members=IDS), None)
