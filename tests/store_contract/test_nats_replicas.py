"""The replicas of streams that were made while a server of the cluster was away: raised when it is back."""

import asyncio
import json
import secrets
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from proofbox.service.dispatch.nats_link import DispatchUnavailableError, NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from tests.services.free_ports import choose_ports
from tests.services.nats_config import USER, Broker, build_config
from tests.services.nats_ready import wait_until_ready

PROGRAM = Path(sys.executable).with_name("nats-server")


class Cluster:
    """Three brokers with data of their own, which a test starts."""

    def __init__(self, folder):
        self.password = secrets.token_hex(16)
        self.stack = ExitStack()
        ports = list(choose_ports(map(str, range(9)), {}).values())
        self.brokers = [
            Broker(f"n{number}", "127.0.0.1", *ports[number * 3 : number * 3 + 3], folder / f"n{number}")
            for number in range(3)
        ]
        self._folder = folder

    def start(self, *numbers):
        """Start brokers; the cluster is ready when this returns."""
        for number in numbers:
            broker = self.brokers[number]
            config = self._folder / f"{broker.name}.conf"
            config.write_text(build_config(broker, self.brokers, self.password))
            process = subprocess.Popen([PROGRAM, "-c", config], stderr=subprocess.DEVNULL)
            self.stack.callback(process.wait)
            self.stack.callback(process.kill)
        running = [broker for broker in self.brokers if broker.data_dir.exists()] or self.brokers[:2]
        wait_until_ready([broker.monitor_url for broker in running])


@pytest.fixture
def cluster(tmp_path):
    cluster = Cluster(tmp_path)
    with cluster.stack:
        yield cluster


async def replicas(link, stream):
    answer = await link.client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=10)
    return json.loads(answer.data)["config"]["num_replicas"]


async def takes_messages(link):
    try:
        await link.queue(7)
    except DispatchUnavailableError:
        return False
    return True


@pytest.mark.slow
async def test_streams_of_a_cluster_with_a_missing_server_get_their_replicas_later(cluster, caplog):
    await asyncio.to_thread(cluster.start, 0, 1)
    urls = tuple(broker.url for broker in cluster.brokers)
    link = NatsLink(NatsSettings(urls, "test", "test", 3.0, user=USER, password=cluster.password))
    await link.open()
    try:
        await link.queue(7)
        await link.raise_replicas()
        assert [await replicas(link, f"test_{name}") for name in ("calls", "dead")] == [1, 1]
        await asyncio.to_thread(cluster.start, 2)
        while await replicas(link, "test_calls") == 1 or await replicas(link, "test_dead") == 1:
            await link.raise_replicas()
        assert [await replicas(link, f"test_{name}") for name in ("calls", "dead")] == [3, 3]
        assert sorted(record.message for record in caplog.records if "replicas now" in record.message) == [
            f"stream test_{name} has 3 replicas now: the cluster has enough servers" for name in ("calls", "dead")
        ]
        while not await takes_messages(link):  # noqa: ASYNC110 - its brokers elect a leader of three
            await asyncio.sleep(0.05)
    finally:
        await link.close()
