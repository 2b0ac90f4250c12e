"""Links that are cut and slow: a worker without its link, an S3 server that is away, a worker with a slow link."""

import asyncio
import time

import pytest

from tests.support.scale.clients import Clients
from tests.support.scale.cluster import LEASE_S, Cluster
from tests.support.scale.counter import find_processes
from tests.support.scale.servers import wait_for
from tests.support.scale.storm import find_faults

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]
S3_AWAY_S = 30.0
SLOW_BITS_PER_S = 512_000
_LONG_S = 120.0


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.start()
        yield made
        made.assert_fits()


async def test_the_containers_of_a_worker_without_link_are_gone_before_its_calls_are_given_away(cluster):
    async with Clients(cluster) as clients:
        sent = clients.build_call("cut", _LONG_S)
        running = asyncio.create_task(clients.send(sent))
        await asyncio.to_thread(cluster.counter.wait_for, "began", _begun(cluster) + 1, 60)
        worker = next(report.worker for report in cluster.counter.read() if report.call == sent.call)
        assert len(find_processes(sent.call)) == 1
        cluster.network.cut(worker)
        cut = time.monotonic()
        try:
            gone = asyncio.create_task(asyncio.to_thread(_wait_until_gone, sent.call))
            await running
            assert gone.done(), "the call was given away while its program was running"
            gone_at = await gone
        finally:
            cluster.network.mend(worker)
        assert gone_at < (sent.ended or 0.0)
        assert gone_at - cut <= LEASE_S
        assert await find_faults(clients, list(cluster.apis), sent) == []
        assert not sent.is_ok
        wait_for(lambda: cluster.workers[worker].is_running, "the worker still runs")
        await _works(clients, "after-cut", len(cluster.workers) * 4)


async def test_calls_wait_for_an_s3_server_that_is_away(cluster):
    async with Clients(cluster) as clients:
        calls = [clients.build_call(f"away-{number}", 1.0) for number in range(12)]
        begun = _begun(cluster)
        sending = asyncio.create_task(clients.send_all(calls))
        await asyncio.to_thread(cluster.counter.wait_for, "began", begun + 4, 60)
        cluster.network.cut(cluster.s3.host)
        await asyncio.sleep(S3_AWAY_S)
        waiting = [sent.call for sent in calls if sent.ended is None]
        cluster.network.mend(cluster.s3.host)
        await sending
        assert waiting != [], "all calls ended while the S3 server was away"
        assert [(sent.call, sent.outcome, sent.message) for sent in calls if not sent.is_ok] == []
        for sent in calls:
            assert await find_faults(clients, list(cluster.apis), sent) == []


async def test_a_slow_link_of_a_worker_costs_time_and_nothing_else(cluster):
    cluster.network.slow_down("worker2", SLOW_BITS_PER_S)
    try:
        async with Clients(cluster) as clients:
            calls = await _works(clients, "slow", 24)
    finally:
        cluster.network.mend("worker2")
    assert "worker2" in {report.worker for report in cluster.counter.read() if report.call in calls}


async def _works(clients, name, count):
    """Send calls that have to succeed; their ids."""
    calls = [clients.build_call(f"{name}-{number}", 0.5) for number in range(count)]
    await clients.send_all(calls)
    assert [(sent.call, sent.outcome, sent.message) for sent in calls if not sent.is_ok] == []
    for sent in calls:
        assert await find_faults(clients, list(clients.cluster.apis), sent) == []
    return {sent.call for sent in calls}


def _begun(cluster):
    return sum(report.step == "began" for report in cluster.counter.read())


def _wait_until_gone(call):
    """When the program of a call was gone, on the monotonic clock."""
    wait_for(lambda: not find_processes(call), f"the program of {call} is gone", LEASE_S * 3)
    return time.monotonic()
