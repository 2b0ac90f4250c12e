"""200 calls while a worker, a broker and an API process are killed: each has exactly one end, and ran once."""

import asyncio

import pytest

from tests.support.scale.cluster import LEASE_S, Cluster
from tests.support.scale.storm import GRACE_S, Plan, run_storm

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]


async def test_each_call_has_one_end_and_runs_once_while_processes_are_killed(repeat, record_property):
    with Cluster() as cluster:
        cluster.start()
        result = await run_storm(cluster, Plan(), f"storm{repeat}")
        await asyncio.to_thread(cluster.assert_fits)
    assert result.faults == []
    assert {kill.host.rstrip("0123456789") for kill in result.kills} == {"worker", "nats", "api"}
    assert result.run_by_killed > 0, "the killed worker ran no call: the kill proves nothing"
    assert result.slowest_after_kill_s <= LEASE_S + GRACE_S
    record_property("outcomes", dict(result.outcomes))
