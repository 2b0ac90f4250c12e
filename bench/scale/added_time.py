"""What dispatch over NATS adds to a call: the same call in one process, and through an API process and a worker."""

import asyncio
import json
import time
from dataclasses import dataclass

from bench.lean_http import LeanClient
from tests.support.scale.clients import build_body
from tests.support.scale.cluster import Cluster
from tests.support.scale.processes import PORT, Member

BAR_MS = 8.0
_PROGRAM = 'open("result.txt", "w").write("1")'
_PAUSE_S = 0.5
_WARM_UP = 10
_OK = 200


@dataclass(frozen=True, slots=True)
class AddedTime:
    """Milliseconds of calls, one pair after the other.

    Attributes:
        local_ms: of a service that is one process.
        nats_ms: of an API process and a worker.
    """

    local_ms: list[float]
    nats_ms: list[float]


async def measure_added_time(pairs: int) -> AddedTime:
    """Send the same call to both in turn, with a pause in which the pools fill.

    Both use the same PostgreSQL and S3 servers, over the same network.

    Raises:
        RuntimeError: a call failed.
    """
    settings = {"pool_size": 4, "pool_max": 8}
    with Cluster(apis=1, workers=1, settings=settings) as cluster:
        local = cluster.add_local("local")
        await asyncio.to_thread(cluster.start)
        await asyncio.to_thread(local.launch)
        await asyncio.to_thread(local.wait_until_ready)
        api = cluster.apis["api1"]
        async with _connect(cluster, local) as one, _connect(cluster, api) as many:
            figures = AddedTime([], [])
            for number in range(-_WARM_UP, pairs):
                order = [(one, figures.local_ms, "local"), (many, figures.nats_ms, "nats")]
                for client, took, name in order if number % 2 else reversed(order):
                    await asyncio.sleep(_PAUSE_S)
                    ms = await _time_call(client, f"{name}-{number + _WARM_UP}")
                    if number >= 0:
                        took.append(ms)
            return figures


def _connect(cluster: Cluster, member: Member) -> LeanClient:
    return LeanClient(PORT, cluster.network.address_of(member.host))


async def _time_call(client: LeanClient, name: str) -> float:
    body = json.dumps(build_body(name, _PROGRAM)).encode()
    began = time.perf_counter()
    answer = await client.send("POST", "/v1/tool-calls", body)
    took = (time.perf_counter() - began) * 1000
    if answer.status != _OK or not answer.json()["ok"]:
        raise RuntimeError(f"{answer.status}: {answer.text[:500]}")
    return took
