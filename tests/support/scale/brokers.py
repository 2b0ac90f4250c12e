"""A cluster of NATS brokers with JetStream, each on a host of a `Network`. A test may end them."""

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from tests.services.nats_config import Broker, build_config, build_settings
from tests.services.nats_ready import read_figures, wait_until_ready
from tests.support.scale.network import Network

PROGRAM = str(Path(sys.executable).with_name("nats-server"))
_PORTS = (4222, 6222, 8222)
_START_S = 60.0


class Nats:
    """A cluster of brokers, each on a host of its own."""

    def __init__(self, network: Network, hosts: Iterable[str] = ("nats1", "nats2", "nats3")) -> None:
        self._network = network
        self._password = secrets.token_hex(16)
        self._folder = Path(tempfile.mkdtemp(prefix="proofbox-scale-nats-"))
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.brokers = [Broker(host, network.add(host), *_PORTS, data_dir=self._folder / host) for host in hosts]

    def __enter__(self) -> Self:
        for broker in self.brokers:
            self.start(broker.name)
        self.wait_until_ready()
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._processes):
            self.kill(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a service that uses it."""
        return build_settings(self.brokers, self._password)

    def start(self, name: str) -> None:
        """Start a broker, which may have data of an earlier process."""
        broker = next(each for each in self.brokers if each.name == name)
        config = self._folder / f"{name}.conf"
        config.write_text(build_config(broker, self.brokers, self._password))
        command = [PROGRAM, "-c", str(config)]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self._network.command(name, *command), stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def wait_until_ready(self) -> None:
        """Wait until all brokers are healthy and have a leader."""
        wait_until_ready([broker.monitor_url for broker in self.brokers], _START_S)

    def kill(self, name: str) -> None:
        """End a broker with SIGKILL."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def find_leader(self, stream: str) -> str:
        """The broker that leads a stream.

        Raises:
            RuntimeError: none does.
        """
        for broker in self.brokers:
            figures = read_figures(broker.monitor_url, "/jsz?streams=true&consumers=false")
            for account in figures.get("account_details", []):
                for detail in account.get("stream_detail", []):
                    if detail["name"] == stream and detail.get("cluster", {}).get("leader"):
                        return str(detail["cluster"]["leader"])
        raise RuntimeError(f"stream {stream} has no leader")

    def count_messages(self) -> tuple[int, int]:
        """How many messages clients have sent to the brokers and received from them."""
        connections = [
            each
            for broker in self.brokers
            for each in read_figures(broker.monitor_url, "/connz?state=any&limit=10000").get("connections", [])
        ]
        return sum(each["in_msgs"] for each in connections), sum(each["out_msgs"] for each in connections)

    def count_connections(self) -> dict[str, int]:
        """How many connections each host has to the brokers."""
        counts: dict[str, int] = {}
        for broker in self.brokers:
            for each in read_figures(broker.monitor_url, "/connz?limit=10000").get("connections", []):
                host = self._network.host_of(each["ip"])
                counts[host] = counts.get(host, 0) + 1
        return counts

    def read_log(self, name: str) -> str:
        """The log of a broker."""
        return (self._folder / f"{name}.log").read_text(errors="replace")
