"""Writes that share a commit: each fails alone, none is told of before it is durable, a crash leaves whole ones."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

import service
from service.calls.port import CallKey, CallNotStoredError, CallState, NewCall
from service.errors import IdReusedError, StoreFailedError, StoreFullError
from service.storage.calls import SqlCallStore
from service.storage.database import Database
from service.storage.prepared import driver_of

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(service.__file__).parents[1])}
WRITER = Path(__file__).with_name("dying_group.py")


@pytest.fixture
async def local(opened_database, tmp_path):
    async with opened_database(tmp_path) as database:
        yield database


def new_call(scope, number, payload="a"):
    return NewCall(CallKey(scope, f"call-{number}"), payload * 64, "request", "boot-1", None)


class Held:
    """A write that holds the writer until it may end; what comes meanwhile waits for the next commit."""

    def __init__(self, database):
        self._begun, self._may_end = threading.Event(), threading.Event()
        self._task = asyncio.ensure_future(database.write(self._hold))

    def _hold(self, _connection):
        self._begun.set()
        self._may_end.wait()

    async def __aenter__(self):
        await asyncio.to_thread(self._begun.wait)
        return self

    async def __aexit__(self, *_):
        self._may_end.set()
        await self._task


async def together(database, *works):
    """The outcomes of writes that wait for the writer at one time."""
    async with Held(database):
        tasks = [asyncio.ensure_future(work) for work in works]
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


def counted_commits(database):
    """How many transactions have been committed since."""
    commits = []
    driver = driver_of(database._backend._writer)
    driver.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
    return commits


async def stored(database, scope):
    found = [await SqlCallStore(database).find(scope.principal, f"call-{number}") for number in range(20)]
    return [number for number, calls in enumerate(found) if calls]


async def test_writes_that_wait_share_one_commit(local, scope):
    calls = SqlCallStore(local)
    commits = counted_commits(local)
    outcomes = await together(local, *(calls.claim(new_call(scope, number)) for number in range(20)))
    assert [is_new for _, is_new in outcomes] == [True] * 20
    assert len(commits) == 2  # that of the write before, and theirs
    assert await stored(local, scope) == list(range(20))


async def test_a_write_that_waits_for_nobody_has_a_commit_of_its_own(local, scope):
    commits = counted_commits(local)
    for number in range(3):
        await SqlCallStore(local).claim(new_call(scope, number))
    assert len(commits) == 3


async def test_a_write_that_is_refused_does_not_fail_its_neighbours(local, scope):
    calls = SqlCallStore(local)
    await calls.claim(new_call(scope, 1, payload="b"))
    outcomes = await together(local, *(calls.claim(new_call(scope, number)) for number in range(4)))
    assert [type(outcome) for outcome in outcomes] == [tuple, IdReusedError, tuple, tuple]
    assert await stored(local, scope) == [0, 1, 2, 3]


async def test_what_a_write_that_fails_had_written_is_undone_and_its_neighbours_stay(local, scope):
    calls = SqlCallStore(local)

    def half(connection):
        connection.execute(text("UPDATE calls SET request = 'half'"))
        raise ZeroDivisionError

    claims = [calls.claim(new_call(scope, number)) for number in range(3)]
    outcomes = await together(local, claims[0], local.write(half), *claims[1:])
    assert [type(outcome) for outcome in outcomes] == [tuple, ZeroDivisionError, tuple, tuple]
    (found,) = await calls.find(scope.principal, "call-0")
    assert found.request == "request"


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR], ids=["full", "broken"])
async def test_a_write_that_takes_the_whole_transaction_down_fails_alone(local, scope, code):
    calls = SqlCallStore(local)

    def fatal(connection):
        # As SQLite does for some errors: everything is rolled back, not this statement alone.
        connection.connection.dbapi_connection.execute("ROLLBACK")
        cause = sqlite3.OperationalError("the disk says no")
        cause.sqlite_errorcode = code
        raise OperationalError("INSERT", {}, cause)

    claims = [calls.claim(new_call(scope, number)) for number in range(3)]
    outcomes = await together(local, *claims[:2], local.write(fatal), claims[2])
    error = StoreFullError if code == sqlite3.SQLITE_FULL else StoreFailedError
    assert [type(outcome) for outcome in outcomes] == [tuple, tuple, error, tuple]
    assert await stored(local, scope) == [0, 1, 2]


async def test_a_commit_that_fails_is_told_to_nobody_as_kept(local, scope):
    calls = SqlCallStore(local)
    commits = []

    def refuse(action, argument, *_):
        """SQLite's own authorizer: the commit of the group and that of its first write alone are refused."""
        if (action, argument) == (sqlite3.SQLITE_TRANSACTION, "COMMIT"):
            commits.append(argument)
            return sqlite3.SQLITE_OK if len(commits) not in {2, 3} else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    await local.write(lambda _connection: None)
    async with Held(local):
        claims = [asyncio.ensure_future(calls.claim(new_call(scope, number))) for number in range(3)]
        await asyncio.sleep(0)
        driver_of(local._backend._writer).set_authorizer(refuse)  # the first commit is that of the write before
    outcomes = await asyncio.gather(*claims, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreFailedError, tuple, tuple]
    assert await stored(local, scope) == [1, 2]


async def test_writes_are_run_in_the_order_in_which_they_came(local):
    order = []
    works = [local.write(lambda _connection, number=number: order.append(number)) for number in range(200)]
    await together(local, *works)
    assert order == list(range(200))


async def test_a_write_that_is_cancelled_is_kept_and_its_neighbours_too(local, scope):
    calls = SqlCallStore(local)
    async with Held(local):
        claims = [asyncio.ensure_future(calls.claim(new_call(scope, number))) for number in range(3)]
        await asyncio.sleep(0)
        claims[1].cancel()
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*claims, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [tuple, asyncio.CancelledError, tuple]
    assert await stored(local, scope) == [0, 1, 2]


async def test_an_answer_and_its_blocks_are_kept_together_beside_others(local, scope):
    calls = SqlCallStore(local)
    for number in range(4):
        await calls.claim(new_call(scope, number))
    finishing = [calls.finish(CallKey(scope, f"call-{number}"), CallState.DONE, "answer") for number in (0, 1, 9)]
    outcomes = await together(local, *finishing)
    assert [getattr(outcome, "answer", type(outcome)) for outcome in outcomes] == [
        "answer",
        "answer",
        CallNotStoredError,
    ]


async def test_a_process_killed_between_commits_leaves_whole_writes_and_all_that_it_told_of(tmp_path):
    for number in range(4):
        folder = tmp_path / str(number)
        told = await asyncio.to_thread(_told_until_killed, folder, 5 + 20 * number)
        database = Database(folder)
        await database.open()
        pairs = await database.read(
            lambda connection: connection.execute(text("SELECT turn, count(*) FROM blocks GROUP BY turn")).all()
        )
        await database.close()
        assert {count for _, count in pairs} == {3}  # blocks of one write
        assert told <= {turn for turn, _ in pairs}


def _told_until_killed(folder, lines):
    """Kills the writer after some lines; the writes that it told of."""
    with subprocess.Popen(
        [sys.executable, WRITER, folder], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as child:
        told = [child.stdout.readline() for _ in range(lines)]
        child.kill()
        told += child.stdout.readlines()
    return {line.strip() for line in told if line.endswith("\n")}
