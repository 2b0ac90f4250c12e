"""The streams of JetStream: the queue of calls with the consumer of all workers, and the dead letters."""

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from proofbox.service.errors import ServiceError

if TYPE_CHECKING:
    from nats.aio.client import Client

log = logging.getLogger("proofbox.dispatch")

WORKERS = "workers"
"""The durable consumer that all workers pull from."""
_API_S = 10.0
_CHECK_S = 2.0
_NS = 1_000_000_000
_DEAD_S = 30 * 24 * 3600
_REPLICAS = 3
_NOT_CLUSTERED = 10074
_NO_PEERS = frozenset({10005, _NOT_CLUSTERED})
_ALREADY_THERE = 10058


class NatsRefusedError(ServiceError):
    """The service cannot start over these NATS servers; the message has the remedy."""


class QueueStreams:
    """Creates the streams and the consumer, and finds out whether they are there.

    Args:
        prefix: the begin of their names and of the subjects.
        lease_s: after which time a call that was delivered is delivered again.
        client: the connection.
    """

    def __init__(self, prefix: str, lease_s: float, client: Callable[[], "Client"]) -> None:
        self._prefix = prefix
        self._lease_s = lease_s
        self._client = client
        self.calls = f"{prefix}_calls"
        self.dead = f"{prefix}_dead"

    async def prepare(self) -> None:
        """Create what is not there, and give the consumer the settings of this process.

        Raises:
            NatsRefusedError: the servers refuse.
            nats.errors.Error: they do not answer.
        """
        await self._ensure_streams()
        await self._create_consumer()

    async def mend(self) -> bool:
        """Create what is not there any more; whether anything was missing. See `prepare` for its errors."""
        was_missing = await self._ensure_streams()
        if not was_missing and await self.has_consumer():
            return False
        await self._create_consumer()
        return True

    async def raise_replicas(self) -> None:
        """Give streams three replicas that were made with one; not before three servers form the cluster.

        Raises:
            nats.errors.Error: the servers do not answer.
        """
        for name in (self.calls, self.dead):
            found = await self._api(f"STREAM.INFO.{name}", {}, _CHECK_S)
            config = found.get("config", {})
            if config.get("num_replicas", _REPLICAS) >= _REPLICAS:
                continue
            raised = await self._api(f"STREAM.UPDATE.{name}", {**config, "num_replicas": _REPLICAS})
            if "error" not in raised:
                log.warning("stream %s has %d replicas now: the cluster has enough servers", name, _REPLICAS)
            elif raised["error"].get("err_code") not in _NO_PEERS:
                log.warning(
                    "stream %s keeps one replica: JetStream refused (%s)", name, raised["error"].get("description")
                )

    async def has_consumer(self) -> bool:
        """Whether workers get calls. See `prepare` for its errors."""
        return "error" not in await self._api(f"CONSUMER.INFO.{self.calls}.{WORKERS}", {}, _CHECK_S)

    async def _create_consumer(self) -> None:
        consumer = {
            "durable_name": WORKERS,
            "ack_policy": "explicit",
            "ack_wait": int(self._lease_s * _NS),
            "max_deliver": -1,  # the database counts the attempts
            "max_ack_pending": -1,
            "deliver_policy": "all",
            "filter_subject": f"{self._prefix}.calls.*",
        }
        made = await self._api(
            f"CONSUMER.DURABLE.CREATE.{self.calls}.{WORKERS}", {"stream_name": self.calls, "config": consumer}
        )
        _require(made)

    async def _ensure_streams(self) -> bool:
        calls = {
            "name": self.calls,
            "subjects": [f"{self._prefix}.calls.*"],
            "retention": "workqueue",
            "storage": "file",
            "discard": "new",
            "max_msgs_per_subject": 1,  # so a call that is published again is in the queue once
            "discard_new_per_subject": True,
        }
        dead = {
            "name": self.dead,
            "subjects": [f"{self._prefix}.dead.*"],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_msgs_per_subject": 1,
            "max_age": _DEAD_S * _NS,
        }
        return any([await self._ensure_stream(stream) for stream in (calls, dead)])

    async def _ensure_stream(self, stream: dict[str, Any]) -> bool:
        name = stream["name"]
        found = await self._api(f"STREAM.INFO.{name}", {})
        if "error" not in found:
            return False
        made = await self._api(f"STREAM.CREATE.{name}", {**stream, "num_replicas": _REPLICAS})
        if made.get("error", {}).get("err_code") in _NO_PEERS:
            made = await self._api(f"STREAM.CREATE.{name}", {**stream, "num_replicas": 1})
            if "error" not in made:
                log.warning("stream %s has one replica, because fewer than three servers form a cluster", name)
        if made.get("error", {}).get("err_code") != _ALREADY_THERE:  # another process made it in this moment
            _require(made)
        return True

    async def _api(self, what: str, body: Mapping[str, Any], timeout_s: float = _API_S) -> dict[str, Any]:
        answer = await self._client().request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=timeout_s)
        parsed: dict[str, Any] = json.loads(answer.data)
        return parsed


def _require(answer: Mapping[str, Any]) -> None:
    if error := answer.get("error"):
        raise NatsRefusedError(
            f"nats_urls: JetStream refused ({error.get('description')}); enable JetStream for the account of the "
            "user, with streams and consumers"
        )
