"""Prepared statements: every database gives the same for them as for the statements that they were made of."""

import sqlite3

import pytest
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.exc import SQLAlchemyError

from service.errors import StoreFailedError
from service.storage.conversation_rows import ensure_conversation
from service.storage.prepared import Prepared, _compile
from service.storage.schema import artifacts, blocks, turns

COLUMNS = ("conversation", "position", "path", "block", "content", "turn", "describes")
ADDED = Prepared(insert(blocks), *COLUMNS)
FOUND = select(blocks).where(blocks.c.conversation == bindparam("of"), blocks.c.path == bindparam("named"))
GROWN = (
    update(turns)
    .where(turns.c.conversation == bindparam("of"), turns.c.turn == bindparam("named"))
    .values(last=bindparam("new_last"))
    .returning(turns.c.first, turns.c.last)
)
ODD = "a\0b\ud800c"  # what no database takes; kept as "a?b?c"


@pytest.fixture
async def database(opened_database, database_url, tmp_path):
    async with opened_database(tmp_path / "data", database_url) as opened:
        yield opened


def block(conversation, position, path, **more):
    row = dict.fromkeys(COLUMNS) | {"conversation": conversation, "position": position, "path": path}
    return {**row, "block": "{}", "turn": "turn_1", **more}


async def test_rows_are_those_of_the_statement_and_have_the_names_of_its_columns(database, scope):
    def work(connection):
        conversation, _ = ensure_conversation(connection, scope)
        ADDED.run(connection, block(conversation, 1, ODD, content=b"\0\xff", describes="fi:x"))
        ADDED.run_all(connection, [block(conversation, n, f"path-{n}") for n in (2, 3)])
        rows = {}
        for named in (ODD, "path-3", "path-4"):
            values = {"of": conversation, "named": named}
            rows[named] = Prepared(FOUND).rows(connection, values)
            assert list(map(tuple, rows[named])) == list(map(tuple, connection.execute(FOUND, values)))
        (odd,), (third,) = rows[ODD], rows["path-3"]
        assert (odd.path, odd.content, odd.describes, odd.call_id) == ("a?b?c", b"\0\xff", "fi:x", None)
        assert (third.position, third.content, rows["path-4"]) == (3, None, [])

    await database.write(work)


async def test_what_is_returned_says_whether_there_was_a_row(database, scope):
    grown, begun = Prepared(GROWN), Prepared(insert(turns), "conversation", "turn", "first", "last")
    gone = Prepared(delete(turns).where(turns.c.turn == bindparam("named")))

    def work(connection):
        conversation, _ = ensure_conversation(connection, scope)
        values = {"of": conversation, "named": ODD, "new_last": 7}
        assert grown.first(connection, values) is None
        begun.run(connection, {"conversation": conversation, "turn": ODD, "first": 1, "last": 2})
        assert tuple(grown.first(connection, values)) == (1, 7)
        gone.run(connection, {"named": ODD})
        assert grown.first(connection, values) is None

    await database.write(work)


async def test_what_it_wrote_is_undone_with_its_transaction(database, scope):
    def work(connection):
        conversation, _ = ensure_conversation(connection, scope)
        ADDED.run(connection, block(conversation, 1, "path-1"))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(work)
    count = await database.read(lambda connection: len(connection.execute(select(blocks)).all()))
    assert count == 0
    # And the connection is as good as before.
    await database.write(lambda connection: ensure_conversation(connection, scope))


async def test_an_error_of_the_database_is_one_of_the_store(database, scope):
    def work(connection):
        conversation, _ = ensure_conversation(connection, scope)
        for _ in range(2):
            ADDED.run(connection, block(conversation, 1, "path-1"))

    with pytest.raises(StoreFailedError) as told:
        await database.write(work)
    assert isinstance(told.value.__cause__, sqlite3.Error | SQLAlchemyError)


async def test_a_reader_cannot_write(database, scope):
    conversation, _ = await database.write(lambda connection: ensure_conversation(connection, scope))
    with pytest.raises(StoreFailedError):
        await database.read(lambda connection: ADDED.run(connection, block(conversation, 1, "path-1")))


def test_a_list_of_values_is_refused_as_each_makes_another_statement():
    listed = select(artifacts).where(artifacts.c.rel.in_(bindparam("rels", expanding=True)))
    with pytest.raises(AssertionError, match="rels is a list"):
        _compile(listed, None)
