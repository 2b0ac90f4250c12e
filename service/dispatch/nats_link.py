"""The link to the NATS servers: the queue of calls on JetStream, and messages between processes."""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.messages import queued_fields
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.streams import NatsRefusedError, QueueStreams
from proofbox.service.errors import OurError, ServiceError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("proofbox.dispatch")

_CONNECT_S = 10.0
_PUBLISH_S = 5.0
_MENDED_EVERY_S = 1.0
_STORE_FAILED = 10077
"""The answer of a stream that has a message of that subject already."""

OnMessage = Callable[["Msg"], Awaitable[None]]


class DispatchUnavailableError(OurError):
    """The NATS servers do not answer, or refuse."""

    where = "dispatch"


class NatsLink:
    """A connection that is made again when it was lost.

    Args:
        settings: how the servers are reached.
        counts: counts how often it was lost.
    """

    def __init__(self, settings: NatsSettings, counts: QueueCounts | None = None) -> None:
        self._settings = settings
        self._counts = counts or QueueCounts()
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._later: set[asyncio.Task[None]] = set()
        self._streams = QueueStreams(settings.prefix, settings.lease_s, lambda: self.client)
        self._doubted = asyncio.Event()
        self._mending: asyncio.Task[None] | None = None
        self.on_reconnected: Callable[[], None] | None = None
        """Called when the link was lost and is back."""
        self.stream = self._streams.calls
        self.name = settings.name
        self._failures = 0
        self._refusals = 0
        self._all_failed = asyncio.Event()
        self._was_up = False
        self._is_prepared = False
        self._trouble: str | None = None
        self.why_down: str | None = None
        """The reason why the servers refused the last attempt to connect, with the remedy; None if they did not."""

    @property
    def is_up(self) -> bool:
        """Whether a server is connected."""
        return self._client is not None and self._client.is_connected

    def why_away(self) -> str | None:
        """Why calls do not reach the queue, as far as it is known; None if they do."""
        if self.is_up:
            return self._trouble
        return self.why_down or "the NATS servers do not answer"

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
        """Connect, and create the streams and the consumer if they do not exist; if no server answers, later.

        Raises:
            NatsRefusedError: each server refuses the link, or the account or its JetStream does not allow it.
        """
        from nats.errors import Error, NoRespondersError  # noqa: PLC0415 - a service of one process lacks it

        from proofbox.service.dispatch.nats_client import LastingClient, connection_options  # noqa: PLC0415

        settings, options = self._settings, connection_options(self._settings)
        self._client = client = LastingClient(requires_tls=settings.requires_tls)
        try:
            connecting = client.connect(
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
            if await self._is_connected(connecting):
                await self._streams.prepare()
                self._is_prepared = True
            else:
                client.connect_later()
                log.warning("no NATS server of %s answers; calls wait for one", ", ".join(settings.urls))
        except NoRespondersError as exc:
            await self.close()
            raise NatsRefusedError(
                f"nats_urls: no NATS server of {', '.join(settings.urls)} has JetStream for the user; start one "
                "with it, or correct PROOFBOX_NATS_URLS and the settings of its user"
            ) from exc
        except (Error, OSError, TimeoutError) as exc:
            self._note_trouble(f"JetStream does not answer: {type(exc).__name__}")
        except BaseException:
            await self.close()
            raise
        if not self._is_prepared:
            self.doubt()
        self._mending = asyncio.create_task(self._mend_for_ever())

    async def _is_connected(self, connecting: Coroutine[Any, Any, None]) -> bool:
        """Wait for a link; not any longer once each server has failed.

        Raises:
            NatsRefusedError: each server refuses it, or the client can try none.
        """
        tasks = [asyncio.create_task(connecting), asyncio.create_task(self._all_failed.wait())]
        try:
            done, _ = await asyncio.wait(tasks, timeout=_CONNECT_S, return_when=asyncio.FIRST_COMPLETED)
            if tasks[0] in done:
                await tasks[0]
                self._note_up()
        except Exception as exc:
            raise NatsRefusedError(
                f"nats_urls: {', '.join(self._settings.urls)} cannot be used ({type(exc).__name__}: {exc}); "
                "correct PROOFBOX_NATS_URLS"
            ) from exc
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if tasks[0] in done:
            return True
        if self.why_down is not None and self._refusals >= len(self._settings.urls):
            raise NatsRefusedError(self.why_down)
        return False

    def _note_up(self) -> None:
        self._was_up = True
        self._refusals, self.why_down, self._trouble = 0, None, None

    def _note_trouble(self, why: str | None) -> None:
        if why is not None and why != self._trouble:
            log.warning("the queue of calls cannot be used: %s", why)
        self._trouble = why

    def later(self, seconds: float, work: Coroutine[None, None, None]) -> None:
        """Do something in a moment, or when the link is closed."""

        async def wait_and_work() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._closing.wait()
            await work

        task = asyncio.create_task(wait_and_work())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def close(self) -> None:
        """Send what waits, and disconnect."""
        self._closing.set()
        if self._mending is not None:
            self._mending.cancel()
            await asyncio.gather(self._mending, return_exceptions=True)
        await asyncio.gather(*self._later, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            try:
                await client.close()
            except Exception:
                log.info("the link to the NATS servers was lost before it was closed", exc_info=True)

    def doubt(self) -> None:
        """Have the streams and the consumer searched, and created if they were lost; at most once a second."""
        self._doubted.set()

    async def check(self) -> None:
        """Find out whether workers get the calls of the queue; what was lost is created again.

        Raises:
            DispatchUnavailableError: they do not now.
        """
        from nats.errors import Error  # noqa: PLC0415

        try:
            if await self._streams.has_consumer():
                self._trouble = None
                return
        except (Error, OSError, TimeoutError, DispatchUnavailableError) as exc:
            self.doubt()
            self._trouble = f"JetStream does not answer: {type(exc).__name__}"
            raise DispatchUnavailableError(self._trouble) from exc
        self.doubt()
        self._trouble = f"the stream {self.stream} or its consumer was lost; it is created again"
        raise DispatchUnavailableError(self._trouble)

    async def _mend_for_ever(self) -> None:
        from nats.errors import Error  # noqa: PLC0415

        while True:
            await self._doubted.wait()
            self._doubted.clear()
            try:
                if self.is_up:
                    await self._mend()
                    self._trouble = None
            except (Error, OSError, TimeoutError, ServiceError) as exc:
                self._note_trouble(
                    str(exc) if isinstance(exc, NatsRefusedError) else f"JetStream fails: {type(exc).__name__}"
                )
                self._doubted.set()
            await asyncio.sleep(_MENDED_EVERY_S * random.uniform(0.8, 1.2))  # noqa: S311 - not all processes at once

    async def _mend(self) -> None:
        if not self._is_prepared:  # no server was there at the start
            await self._streams.prepare()
            self._is_prepared = True
        elif await self._streams.mend():
            log.warning("the stream %s or its consumer was lost; it was created again", self.stream)

    async def raise_replicas(self) -> None:
        """Give the streams that a smaller cluster made the replicas of a whole one, if it is whole now."""
        from nats.errors import Error  # noqa: PLC0415

        try:
            await self._streams.raise_replicas()
        except (Error, OSError, TimeoutError, DispatchUnavailableError) as exc:
            log.info("the replicas of the streams cannot be looked at: %s: %s", type(exc).__name__, exc)

    async def queue(self, number: int) -> None:
        """Put a call into the queue, unless it is there.

        Raises:
            DispatchUnavailableError: that is not certain.
        """
        answer = await self._ask(self.subject("calls", number), queued_fields(number))
        error = answer.get("error")
        if error and not (error.get("err_code") == _STORE_FAILED and "per subject" in error.get("description", "")):
            raise DispatchUnavailableError(f"the queue of calls refused a call: {error.get('description')}")

    async def set_aside(self, number: int | str, facts: Mapping[str, Any]) -> None:
        """Record a call, or a message that names none, in the stream of dead letters, for alerts.

        Raises:
            DispatchUnavailableError: that is not certain.
        """
        await self._ask(self.subject("dead", number), facts)

    async def _ask(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        from nats.errors import Error  # noqa: PLC0415

        try:
            answer = await self.client.request(subject, json.dumps(body).encode(), timeout=_PUBLISH_S)
        except (Error, OSError, TimeoutError) as exc:
            self.doubt()
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
        """Have a function called for each message, within a block."""
        subscription = await self.subscribe(subject, on_message)
        try:
            yield
        finally:
            await end_subscription(subscription)

    async def _on_error(self, exc: Exception) -> None:
        from proofbox.service.dispatch.nats_client import find_refusal  # noqa: PLC0415

        log.info("NATS: %s: %s", type(exc).__name__, exc)
        why = find_refusal(exc, self._settings)
        self._refusals += why is not None
        self._failures += 1
        if self._failures >= len(self._settings.urls):
            self._all_failed.set()
        if why is None or self._client is None:
            return
        if why != self.why_down and self._client.is_reconnecting:
            log.error("the link to the NATS servers is refused: %s", why)
        self.why_down = why

    async def _on_disconnected(self) -> None:
        if self._client is not None and self._was_up:
            self._counts.links_lost += 1
            log.warning("the link to the NATS servers was lost; it is made again")

    async def _on_reconnected(self) -> None:
        log.warning("the link to the NATS servers is back")
        self._note_up()
        self.doubt()
        if self.on_reconnected is not None:
            self.on_reconnected()


async def end_subscription(subscription: "Subscription") -> None:
    """End a subscription; one of a lost link is gone anyway."""
    from nats.errors import Error  # noqa: PLC0415

    try:
        await subscription.unsubscribe()
    except (Error, OSError):
        log.debug("a subscription was gone before it ended")
