"""Where processes of many can end or lose a call, or a caller cancel: a call has files and answer, or neither.

The same as `tests/container/test_kill_points.py` for a service of one process.
"""

import asyncio
import itertools
import json
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select, update

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.artifacts.port import StoreAwayError
from proofbox.service.calls.port import CallKey
from proofbox.service.errors import CallAbandonedError
from proofbox.service.storage.dispatch.tables import dispatches, members
from proofbox.service.storage.schema import calls, conversations
from tests.container.calling import Caller
from tests.container.struck import CALLS, assert_whole, submit
from tests.support.engines import quickest_engine
from tests.support.kill_points import LEFT, Strike, install, install_in_workers
from tests.support.store_check import assert_service_fits
from tests.support.waiting import until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

REPOSITORY = Path(__file__).parents[2]
POINTS_MAX = 60
TOGETHER = 4
"""So many calls are struck at a time: most of them wait."""


class Many:
    """An API process and workers, in this process or in ones of their own.

    Args:
        place: what they share.
        bucket: the bytes.
    """

    def __init__(self, place, bucket):
        self._place = place
        self._bucket = bucket
        self.api = None
        self.workers = []
        self.strikes = {}
        """What strikes the calls of a conversation in a worker."""
        self.left = set()
        """Conversations whose calls the workers of this process leave to another one."""
        self.more = {}
        """More settings."""
        self.late = set()
        """Strikes that did not come to an end, and requests that others made meanwhile."""

    def settings(self, role, name, **more):
        """The settings of a process, as JSON."""
        bucket, place = self._bucket, self._place
        return {
            "dispatch": "nats",
            "role": role,
            "engine": quickest_engine(),
            "service_name": f"{place.nats['nats_prefix'].replace('_', '-')}-{name}",
            "data_dir": str(place.folder / name),
            "keys_dir": str(place.folder),
            "database_url": place.url.get_secret_value(),
            "s3_bucket": bucket.name,
            "s3_prefix": bucket.prefix,
            "s3_endpoint": bucket.endpoint,
            "s3_access_key": bucket.access_key,
            "s3_secret_key": bucket.secret_key,
            "pool_size": 0,
            "import_once": "off",
            "audit_head_s": 0,
            "running_max": TOGETHER,
            "shutdown_grace_s": 0,
            "dispatch_lease_s": 6,
            **place.nats,
            **self.more,
            **more,
        }

    @asynccontextmanager
    async def opened(self, role, name):
        """A process that is one with the test."""
        service = build(Settings(**self.settings(role, name)))
        async with running(service):
            yield service

    async def find(self, number):
        """What strikes a call."""
        found = select(conversations.c.name).join_from(calls, conversations).where(calls.c.id == number)
        found = found.where(calls.c.tool_call_id == "struck")
        name = await self.api.database.read(lambda connection: connection.scalar(found))
        return LEFT if name in self.left else self.strikes.get(name)

    async def row(self, call):
        """The claim of a struck call; None if it has ended."""
        found = select(dispatches).join_from(dispatches, calls, dispatches.c.call == calls.c.id).join(conversations)
        found = found.where(calls.c.tool_call_id == "struck", conversations.c.name == call.conversation)
        return await self.api.database.read(lambda connection: connection.execute(found).first())

    async def expire(self, call):
        """Ends the leases of the claim and its message, and of processes that are no more, as time does."""
        alive = [self.api.dispatching.boot_id, *(worker.dispatching.boot_id for worker in self.workers)]
        left = await self.row(call)

        def work(connection):
            connection.execute(update(members).where(members.c.boot_id.not_in(alive)).values(until=0))
            if left is not None:
                connection.execute(update(dispatches).where(dispatches.c.call == left.call).values(due=0))

        await self.api.database.write(work)
        link = self.api.dispatching.link
        if left is not None:
            message = json.dumps({"filter": link.subject("calls", left.call)}).encode()
            await link.client.request(f"$JS.API.STREAM.PURGE.{link.stream}", message, timeout=30)
        for service in [self.api, *self.workers]:
            service.dispatching._sweeping.wake()
        return left

    async def has_ended(self, call):
        """Whether a struck call needs no process any more."""
        return await self.row(call) is None

    async def is_stopped(self, call):
        """Whether a worker knows that its call is to be ended, or will know when it gets it; or it has ended."""
        row = await self.row(call)
        if row is None:
            return True
        keepers = [worker.dispatching.worker.keeper for worker in self.workers]
        held = next((keeper.held[row.call] for keeper in keepers if row.call in keeper.held), None)
        if held is None:
            return row.stop is not None
        running = held.running
        return held.claim.is_lost or running.is_finishing or running.cancel_reason or running.answer.done()

    async def at_rest(self):
        """Waits until no worker has anything to do, an attempt that has lost its call included."""
        await until(lambda: not any(worker.dispatching.worker._handling for worker in self.workers))


async def when(holds):
    async with asyncio.timeout(60):
        while not await holds():  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)


async def cancel(many, call):
    asking = many.api.calls.cancel(call.scope.principal, "struck", call.conversation)
    many.late.add(asyncio.create_task(asking))
    await when(lambda: many.is_stopped(call))


async def abandon(many, call):
    followed = many.api.calls.runner.running.get(CallKey(call.scope, "struck"))
    if followed is not None:
        followed.cancel(CallAbandonedError("struck"))
        await when(lambda: many.is_stopped(call))


async def lose(many, call):
    """Another worker claims the call, or it is ended, while the one that is struck still has it."""
    was = await many.expire(call)

    async def is_taken():
        return was is None or (row := await many.row(call)) is None or row.claim != was.claim

    await when(is_taken)


def fail(_many, _call):
    raise StoreAwayError("struck")


STRIKES = {"cancelled": cancel, "client lost": abandon, "claim lost": lose, "store error": fail}


@pytest.fixture
def many(place, bucket, monkeypatch):
    many = Many(place, bucket)
    install(monkeypatch)
    install_in_workers(monkeypatch, many.find)
    return many


async def struck_at(many, name, how, at, side):
    """The strike of a call, which has ended, and its conversation."""
    call = Caller(many.api)
    strike = many.strikes[call.conversation] = Strike(at, side, partial(STRIKES[how], many, call))
    await (await submit(many.api, call, CALLS[name])).answer()
    await when(partial(many.has_ended, call))
    return strike, call


DRAWN = [("write", "cancelled", 5), ("write", "claim lost", 5)]
"""What a run of all tests has time for: a call, what strikes it, and how many points from one to the next."""


async def all_of(works):
    """The results of work, of which little is done at a time."""
    gate = asyncio.Semaphore(TOGETHER)

    async def one_of_few(work):
        async with gate:
            return await work

    return await asyncio.gather(*map(one_of_few, works))


@pytest.mark.parametrize(
    ("name", "how", "step"),
    [
        *DRAWN,
        *(pytest.param(name, how, 1, marks=pytest.mark.slow) for name in CALLS for how in STRIKES),
    ],
)
async def test_a_call_of_a_worker_that_is_struck_at_any_point_has_files_and_answer_or_neither(
    many, name, how, step
):
    async with AsyncExitStack() as stack:
        many.api = await stack.enter_async_context(many.opened("api", "api"))
        for worker in ("one", "two"):
            many.workers.append(await stack.enter_async_context(many.opened("worker", worker)))
        whole, _ = await struck_at(many, name, how, 0, "before")
        points = range(1, len(whole.passed) + 1, step)
        struck = await all_of(struck_at(many, name, how, at, side) for at in points for side in ("before", "after"))
        await asyncio.gather(*many.late)
        await many.at_rest()
        many.strikes.clear()
        states = await all_of(assert_whole(many.api, call, CALLS[name], is_alone=False) for _, call in struck)
        await many.at_rest()
        await assert_service_fits(many.api)
    assert all(strike.was_reached for strike, _ in struck)
    assert "done" in states


@pytest.fixture
async def killed():
    """Has processes end at points of their calls; whether all of them were killed there."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.store_contract.killed_processes"),
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )

    async def kill(told):
        process.stdin.write(f"{json.dumps(told)}\n".encode())
        statuses = json.loads(await process.stdout.readline())
        assert {*statuses} <= {0, -signal.SIGKILL}
        return 0 not in statuses

    yield kill
    process.stdin.close()
    await process.wait()


@pytest.mark.parametrize(
    ("role", "name", "points"),
    [
        ("worker", "write", [6]),  # its answer
        *(pytest.param("worker", name, range(1, POINTS_MAX), marks=pytest.mark.slow) for name in CALLS),
        pytest.param("api", "write", range(1, POINTS_MAX), marks=pytest.mark.slow),
    ],
    ids=["drawn", *CALLS, "api"],
)
async def test_a_process_that_is_killed_at_any_point_of_a_call_left_files_and_answer_or_neither(
    many, killed, role, name, points
):
    states, strikes, were_reached = set(), itertools.product(points, ("before", "after")), True
    many.more |= {"dispatch_lease_s": 60}  # what one leaves comes to no other one that is to be killed
    async with many.opened("api", "api") as many.api, many.opened("worker", "other") as worker:
        many.workers = [worker]
        while were_reached and (some := list(itertools.islice(strikes, TOGETHER))):
            made = [Caller(many.api) for _ in some]
            told = [
                {"settings": many.settings(role, f"killed-{number}", running_max=1), "at": at, "side": side}
                for number, (at, side) in enumerate(some)
            ]
            if role == "worker":
                many.left |= {call.conversation for call in made}
                await asyncio.gather(*(submit(many.api, call, CALLS[name]) for call in made))
            else:
                made_by = zip(told, made, strict=True)
                told = [{**each, "call": name, "conversation": call.conversation} for each, call in made_by]
            were_reached = await killed(told)
            many.left.clear()
            for call in made:
                await many.expire(call)
                await when(partial(many.has_ended, call))
            await many.api.dispatching.undo_lost(many.api.artifacts)
            states |= {*await all_of(assert_whole(many.api, call, CALLS[name], is_alone=False) for call in made)}
            await assert_service_fits(many.api)
    assert were_reached == (len(points) == 1)
    assert "done" in states
