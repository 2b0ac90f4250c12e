"""What a call costs its servers: messages, statements, requests, and the connections of each process."""

import asyncio
import time
from dataclasses import dataclass

from tests.support.scale.clients import Clients
from tests.support.scale.cluster import LEASE_S, Cluster

_STATISTICS_S = 2.0
"""PostgreSQL shows counts of a connection a second after its last statement."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations, in all or for each call, second or running second.

    Attributes:
        nats_sent, nats_received: messages that clients sent to the brokers, and received, with acknowledgements.
        statements, transactions: of PostgreSQL.
        s3_requests: of the S3 server.
    """

    nats_sent: float
    nats_received: float
    statements: float
    transactions: float
    s3_requests: float

    def minus(self, other: "Operations") -> "Operations":
        """The difference."""
        return Operations(*(mine - its for mine, its in zip(self.values(), other.values(), strict=True)))

    def times(self, factor: float) -> "Operations":
        """All multiplied."""
        return Operations(*(value * factor for value in self.values()))

    def values(self) -> tuple[float, ...]:
        """The counts, in the order of the attributes."""
        return self.nats_sent, self.nats_received, self.statements, self.transactions, self.s3_requests


@dataclass(frozen=True, slots=True)
class OperationFigures:
    """What was counted.

    Attributes:
        calls: calls that were counted, one after the other.
        per_call: operations of a call, without those of an idle cluster.
        per_idle_s: operations a second of the whole cluster without calls.
        per_running_s: operations a second of a call that runs, beyond those of the idle cluster.
        apis, workers: processes of the cluster.
        lease_s: the lease of calls.
        connections: of each process: to PostgreSQL, NATS and S3, the most that were seen.
    """

    calls: int
    per_call: Operations
    per_idle_s: Operations
    per_running_s: Operations
    apis: int
    workers: int
    lease_s: float
    connections: dict[str, dict[str, int]]


async def count_operations(calls: int, idle_s: float, running_s: float) -> OperationFigures:
    """Count operations of an idle cluster, of calls one after the other, and of calls that run for long.

    Raises:
        RuntimeError: a call failed.
    """
    settings = {"pool_size": 2, "running_max": 8}
    with Cluster(settings=settings) as cluster:
        await asyncio.to_thread(cluster.start)
        async with Clients(cluster) as clients:
            await _send(clients, "warm-up", len(cluster.workers) * 2)
            idle = await _count_for(cluster, idle_s)
            before, began = await _read(cluster), time.monotonic()
            await _send(clients, "counted", calls)
            after, took_s = await _read(cluster), time.monotonic() - began
            per_call = after.minus(before).minus(idle.times(took_s)).times(1 / calls)
            running = 4 * len(cluster.workers)
            long = [clients.build_call(f"long-{number}", running_s + 20) for number in range(running)]
            sending = asyncio.create_task(clients.send_all(long))
            begun = sum(report.step == "began" for report in cluster.counter.read()) + running
            await asyncio.to_thread(cluster.counter.wait_for, "began", begun, 60)
            busy = await _count_for(cluster, running_s)
            connections = await asyncio.to_thread(_count_connections, cluster)
            await sending
        return OperationFigures(
            calls,
            per_call,
            idle,
            busy.minus(idle).times(1 / running),
            len(cluster.apis),
            len(cluster.workers),
            LEASE_S,
            connections,
        )


async def _send(clients: Clients, name: str, count: int) -> None:
    for number in range(count):
        sent = await clients.send(clients.build_call(f"{name}-{number}", 0.0), number)
        if not sent.is_ok:
            raise RuntimeError(f"{sent.call}: {sent.outcome} {sent.message}")


async def _count_for(cluster: Cluster, seconds: float) -> Operations:
    """Operations a second, over some seconds."""
    before, began = await _read(cluster), time.monotonic()
    await asyncio.sleep(seconds)
    after, took_s = await _read(cluster), time.monotonic() - began
    return after.minus(before).times(1 / took_s)


async def _read(cluster: Cluster) -> Operations:
    """The counts since the servers started, once PostgreSQL shows them."""
    await asyncio.sleep(_STATISTICS_S)

    def read() -> Operations:
        statements, transactions = cluster.postgres.count_statements(cluster.database)
        return Operations(*cluster.nats.count_messages(), statements, transactions, cluster.s3.count_requests())

    return await asyncio.to_thread(read)


def _count_connections(cluster: Cluster) -> dict[str, dict[str, int]]:
    postgres = cluster.postgres.count_connections(cluster.database)
    nats = cluster.nats.count_connections()
    s3 = cluster.network.connections(cluster.s3.host, cluster.s3.port)
    return {
        host: {"postgres": postgres.get(host, 0), "nats": nats.get(host, 0), "s3": s3.get(host, 0)}
        for host in cluster.members
    }
