"""The configuration of a NATS cluster with JetStream, for the tests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

USER = "proofbox"
_ROUTE_USER = "route"
_MIB = 1024 * 1024
_MEMORY_BYTES, _FILE_BYTES = 64 * _MIB, 1024 * _MIB


@dataclass(frozen=True)
class Broker:
    """One server of a cluster.

    Attributes:
        name: its name in the cluster.
        host: the address that it listens on.
        client_port, route_port, monitor_port: for clients, for the other brokers, for its figures over HTTP.
        data_dir: folder of its streams.
    """

    name: str
    host: str
    client_port: int
    route_port: int
    monitor_port: int
    data_dir: Path

    @property
    def url(self) -> str:
        """The URL for clients."""
        return f"nats://{self.host}:{self.client_port}"

    @property
    def monitor_url(self) -> str:
        """The URL of its figures."""
        return f"http://{self.host}:{self.monitor_port}"


def build_settings(cluster: Sequence[Broker], password: str) -> dict[str, str]:
    """The settings of a service that uses a cluster, without ``PROOFBOX_``."""
    urls = ",".join(broker.url for broker in cluster)
    return {"nats_urls": urls, "nats_user": USER, "nats_password": password}


def build_config(broker: Broker, cluster: Sequence[Broker], password: str) -> str:
    """The configuration file of a broker; JSON is a subset of its syntax."""
    others = (each for each in cluster if each.name != broker.name)
    values = {
        "server_name": broker.name,
        "listen": f"{broker.host}:{broker.client_port}",
        "http": f"{broker.host}:{broker.monitor_port}",
        "authorization": {"user": USER, "password": password},
        "jetstream": {
            "store_dir": str(broker.data_dir),
            "max_memory_store": _MEMORY_BYTES,
            "max_file_store": _FILE_BYTES,
        },
        "cluster": {
            "name": "proofbox-tests",
            "listen": f"{broker.host}:{broker.route_port}",
            "authorization": {"user": _ROUTE_USER, "password": password},
            "no_advertise": True,
            "routes": [f"nats-route://{_ROUTE_USER}:{password}@{each.host}:{each.route_port}" for each in others],
        },
    }
    return json.dumps(values, indent=2)
