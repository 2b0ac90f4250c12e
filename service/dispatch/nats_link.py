"""The link to the NATS servers: the queue of calls on JetStream, and messages between processes."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.service.errors import OurError, ServiceError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("proofbox.dispatch")

WORKERS = "workers"
"""The durable consumer that all workers pull from."""
_CONNECT_S = 10.0
_API_S = 10.0
_PUBLISH_S = 5.0
_NS = 1_000_000_000
_DUPLICATES_S = 120
_DEAD_S = 30 * 24 * 3600
_REPLICAS = 3
_NOT_CLUSTERED = 10074
_NO_PEERS = frozenset({10005, _NOT_CLUSTERED})
_STORE_FAILED = 10077
"""The answer of a stream that has a message of that subject already."""

OnMessage = Callable[["Msg"], Awaitable[None]]


class DispatchUnavailableError(OurError):
    """The NATS servers do not answer, or refuse."""

    where = "dispatch"


class NatsRefusedError(ServiceError):
    """The service cannot start over these NATS servers; the message has the remedy."""


@dataclass(frozen=True, slots=True)
class NatsSettings:
    """How the NATS servers are reached.

    Attributes:
        urls: their URLs.
        prefix: the begin of the names of streams and subjects.
        name: this process, as the servers show it.
        lease_s: after which time a call that was delivered is delivered again.
        credentials_file: the credentials of the user.
        user: its name, with ``password``.
        password: see ``user``.
        ca_file: the certificate authorities of the servers.
        certificate: the client's certificate and its key.
    """

    urls: tuple[str, ...]
    prefix: str
    name: str
    lease_s: float
    credentials_file: Path | None = None
    user: str = ""
    password: str = ""
    ca_file: Path | None = None
    certificate: tuple[Path, Path] | None = None


class NatsLink:
    """A connection that is made again when it was lost.

    Args:
        settings: how the servers are reached.
    """

    def __init__(self, settings: NatsSettings) -> None:
        self._settings = settings
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._later: set[asyncio.Task[None]] = set()
        self.stream = f"{settings.prefix}_calls"
        self.dead_stream = f"{settings.prefix}_dead"
        self.name = settings.name

    @property
    def is_up(self) -> bool:
        """Whether a server is connected."""
        return self._client is not None and self._client.is_connected

    @property
    def client(self) -> "Client":
        """The connection.

        Raises:
            DispatchUnavailableError: the link is closed.
        """
        if self._client is None:
            raise DispatchUnavailableError("the link to the NATS servers is closed")
        return self._client

    def subject(self, *parts: object) -> str:
        """A subject of this service."""
        return ".".join((self._settings.prefix, *map(str, parts)))

    async def open(self) -> None:
        """Connect, and create the streams and the consumer if they do not exist.

        Raises:
            NatsRefusedError: no server answers, or the account or its JetStream does not allow it.
        """
        from nats.aio.client import Client  # noqa: PLC0415 - a service of one process does not have it
        from nats.errors import Error  # noqa: PLC0415

        settings, options = self._settings, self._options()
        try:
            self._client = Client()
            connecting = self._client.connect(
                list(settings.urls),
                name=settings.name,
                connect_timeout=2,
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                reconnect_time_wait=0.25,  # type: ignore[arg-type]  # it sleeps for as long, in seconds
                ping_interval=5,
                max_outstanding_pings=2,
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnected,
                reconnected_cb=self._on_reconnected,
                **options,
            )
            # The client itself never gives up, so that a lost link is made again.
            await asyncio.wait_for(connecting, _CONNECT_S)
            await self._prepare()
        except (Error, OSError, TimeoutError) as exc:
            await self.close()
            raise NatsRefusedError(
                f"nats_urls: no NATS server of {', '.join(settings.urls)} can be used "
                f"({type(exc).__name__}: {exc}); start one with JetStream, or correct PROOFBOX_NATS_URLS and the "
                "settings of its user"
            ) from exc

    def _options(self) -> dict[str, Any]:
        settings, options = self._settings, dict[str, Any]()
        if settings.credentials_file is not None:
            options["user_credentials"] = str(settings.credentials_file)
        if settings.user:
            options |= {"user": settings.user, "password": settings.password}
        if settings.ca_file is not None or settings.certificate is not None:
            context = ssl.create_default_context(cafile=settings.ca_file)
            if settings.certificate is not None:
                context.load_cert_chain(*settings.certificate)
            options["tls"] = context
        return options

    def later(self, seconds: float, work: Coroutine[None, None, None]) -> None:
        """Do something in a moment, or when the link is closed."""

        async def wait_and_work() -> None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), seconds)
            await work

        task = asyncio.create_task(wait_and_work())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        """Send what waits, and disconnect."""
        self._closing.set()
        await asyncio.gather(*self._later, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            try:
                await client.close()
            except Exception:
                log.info("the link to the NATS servers was lost before it was closed", exc_info=True)

    async def _prepare(self) -> None:
        calls = {
            "name": self.stream,
            "subjects": [self.subject("calls", "*")],
            "retention": "workqueue",
            "storage": "file",
            "discard": "new",
            "max_msgs_per_subject": 1,  # so a call that is published again is in the queue once
            "discard_new_per_subject": True,
            "duplicate_window": _DUPLICATES_S * _NS,
        }
        dead = {
            "name": self.dead_stream,
            "subjects": [self.subject("dead", "*")],
            "retention": "limits",
            "storage": "file",
            "discard": "old",
            "max_msgs_per_subject": 1,
            "max_age": _DEAD_S * _NS,
        }
        for stream in (calls, dead):
            await self._ensure_stream(stream)
        consumer = {
            "durable_name": WORKERS,
            "ack_policy": "explicit",
            "ack_wait": int(self._settings.lease_s * _NS),
            "max_deliver": -1,  # the database counts the attempts
            "max_ack_pending": -1,
            "deliver_policy": "all",
            "filter_subject": self.subject("calls", "*"),
        }
        made = await self._api(
            f"CONSUMER.DURABLE.CREATE.{self.stream}.{WORKERS}", {"stream_name": self.stream, "config": consumer}
        )
        _require(made)

    async def _ensure_stream(self, stream: dict[str, Any]) -> None:
        name = stream["name"]
        found = await self._api(f"STREAM.INFO.{name}", {})
        if "error" not in found:
            return
        made = await self._api(f"STREAM.CREATE.{name}", {**stream, "num_replicas": _REPLICAS})
        if made.get("error", {}).get("err_code") in _NO_PEERS:
            made = await self._api(f"STREAM.CREATE.{name}", {**stream, "num_replicas": 1})
            if "error" not in made:
                log.warning("stream %s has one replica, because fewer than three servers form a cluster", name)
        if made.get("error", {}).get("err_code") == _ALREADY_THERE:
            return  # another process made it in this moment
        _require(made)

    async def _api(self, what: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self.client.request(f"$JS.API.{what}", json.dumps(body).encode(), timeout=_API_S)
        parsed: dict[str, Any] = json.loads(answer.data)
        return parsed

    async def queue(self, number: int, attempt: str) -> None:
        """Put a call into the queue, unless it is there.

        Args:
            number: the call.
            attempt: the same for messages of which one is enough.

        Raises:
            DispatchUnavailableError: that is not certain.
        """
        headers = {"Nats-Msg-Id": f"{number}.{attempt}"}
        answer = await self._ask(self.subject("calls", number), {"call": number}, headers)
        error = answer.get("error")
        if error and not (error.get("err_code") == _STORE_FAILED and "per subject" in error.get("description", "")):
            raise DispatchUnavailableError(f"the queue of calls refused a call: {error.get('description')}")

    async def set_aside(self, number: int, facts: Mapping[str, Any]) -> None:
        """Record a call in the stream of dead letters, for alerts.

        Raises:
            DispatchUnavailableError: that is not certain.
        """
        await self._ask(self.subject("dead", number), facts, None)

    async def _ask(self, subject: str, body: Mapping[str, Any], headers: dict[str, str] | None) -> dict[str, Any]:
        from nats.errors import Error  # noqa: PLC0415

        try:
            answer = await self.client.request(
                subject, json.dumps(body).encode(), timeout=_PUBLISH_S, headers=headers
            )
        except (Error, OSError, TimeoutError) as exc:
            raise DispatchUnavailableError(f"NATS does not take messages: {type(exc).__name__}") from exc
        parsed: dict[str, Any] = json.loads(answer.data)
        return parsed

    async def publish(self, subject: str, body: bytes) -> None:
        """Send a message that may be lost: the database has what it is about."""
        from nats.errors import Error  # noqa: PLC0415

        try:
            await self.client.publish(subject, body)
        except (Error, OSError, DispatchUnavailableError) as exc:
            log.debug("a message to %s was not sent: %s", subject, exc)

    async def ask(self, subject: str, body: bytes, timeout_s: float) -> bytes | None:
        """The answer of another process; None if none comes."""
        from nats.errors import Error  # noqa: PLC0415

        try:
            return (await self.client.request(subject, body, timeout=timeout_s)).data
        except (Error, OSError, TimeoutError, DispatchUnavailableError):
            return None

    async def subscribe(self, subject: str, on_message: OnMessage) -> "Subscription":
        """Have a function called for each message.

        Raises:
            DispatchUnavailableError: the link is closed.
        """
        return await self.client.subscribe(subject, cb=on_message)

    @asynccontextmanager
    async def listening(self, subject: str, on_message: OnMessage) -> AsyncIterator[None]:
        """The same, within a block."""
        subscription = await self.subscribe(subject, on_message)
        try:
            yield
        finally:
            await end_subscription(subscription)

    async def _on_error(self, exc: Exception) -> None:
        log.info("NATS: %s", exc)

    async def _on_disconnected(self) -> None:
        if self._client is not None:
            log.warning("the link to the NATS servers was lost; it is made again")

    async def _on_reconnected(self) -> None:
        log.warning("the link to the NATS servers is back")


_ALREADY_THERE = 10058


async def end_subscription(subscription: "Subscription") -> None:
    """End a subscription; one of a lost link is gone anyway."""
    from nats.errors import Error  # noqa: PLC0415

    try:
        await subscription.unsubscribe()
    except (Error, OSError):
        log.debug("a subscription was gone before it ended")


def _require(answer: Mapping[str, Any]) -> None:
    if error := answer.get("error"):
        raise NatsRefusedError(
            f"nats_urls: JetStream refused ({error.get('description')}); enable JetStream for the account of the "
            "user, with streams and consumers"
        )
