"""Blocking work beside the event loop, waiting for changes, and jobs that are repeated."""

import asyncio
import concurrent.futures
import contextvars
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from proofbox.service.errors import OurError

log = logging.getLogger("proofbox.jobs")

T = TypeVar("T")


async def run_in_thread(executor: concurrent.futures.Executor | None, work: Callable[[], T]) -> T:
    """Run blocking ``work`` in a thread of ``executor``, or of the loop's own one, to its end.

    Log lines of the thread have the context of the task. A cancellation waits: see `wait_to_end`.

    Raises:
        Exception: whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    return await wait_to_end(loop.run_in_executor(executor, contextvars.copy_context().run, work))


async def wait_to_end(future: asyncio.Future[T]) -> T:
    """Wait for a future that must not be stopped.

    A thread cannot be stopped. When the waiting task is cancelled, the cancellation is raised after the work has
    ended, so that its resources (a staging folder, a connection) are not released while it uses them.

    Raises:
        Exception: whatever the future raises.
    """
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            future.exception()  # seen: the loop would report it as never retrieved
        raise


class Listener:
    """Waits for changes of some topics; one that comes between two waits is not missed."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """A topic has changed."""
        self._changed.set()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the next change; False if none came in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True


class Changes:
    """Wakes those who listen to a topic, such as the events of a run, when its records have changed."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._stamps: dict[str, int] = {}
        self._numbers = itertools.count()
        self.on_own: Callable[[Collection[str]], None] | None = None
        """Gets the topics that this process has changed, for the other processes of a service."""

    @contextmanager
    def listen(self, *topics: str) -> Iterator[Listener]:
        """Listen to topics within the block. Read the records after this, before the first wait."""
        listener = Listener()
        for topic in topics:
            self._listeners.setdefault(topic, set()).add(listener)
            self._stamps.setdefault(topic, next(self._numbers))
        try:
            yield listener
        finally:
            for topic in topics:
                self._listeners[topic].discard(listener)
                if not self._listeners[topic]:
                    del self._listeners[topic]
                    del self._stamps[topic]

    def stamp(self, topic: str) -> int:
        """Return a number of a topic that somebody listens to; after each change it is another one."""
        return self._stamps[topic]

    def announce(self, topics: Collection[str]) -> None:
        """Wake the listeners of topics that this process has changed, here and elsewhere; on the event loop."""
        self.notify(topics)
        if topics and self.on_own is not None:
            self.on_own(topics)

    def notify(self, topics: Iterable[str]) -> None:
        """Wake the listeners of changed topics in this process; on the event loop."""
        for topic in topics:
            if topic not in self._listeners:
                continue
            self._stamps[topic] = next(self._numbers)
            for listener in self._listeners[topic]:
                listener.wake()

    def notify_all(self) -> None:
        """Wake all listeners, so that they notice that the service stops."""
        self.notify(list(self._listeners))


class RepeatedJob:
    """Does something again and again in a task of its own; a round that fails is logged, and the next one follows.

    Args:
        work: one round.
        pause_s: the time between two rounds, in seconds, or what gives it after each round.
        failed: what the log has of a round that fails, such as ``calls cannot be published again``.
        spread: by which part of it a pause varies, so that many processes do not work at the same moment.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        pause_s: float | Callable[[], float],
        failed: str,
        *,
        spread: float = 0.0,
    ) -> None:
        self._work = work
        self._pause_s = pause_s
        self._failed = failed
        self._spread = spread
        self._wakes = Listener()
        self._task: asyncio.Task[None] | None = None

    def start(self, *, at_once: bool = False) -> None:
        """Begin: with a round, or with a pause."""
        if at_once:
            self.wake()
        self._task = asyncio.create_task(self._repeat())

    def wake(self) -> None:
        """End the pause: the next round begins now."""
        self._wakes.wake()

    async def stop(self) -> None:
        """End it, in the middle of a round too; a second call does nothing."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _repeat(self) -> None:
        while True:
            pause_s = self._pause_s if isinstance(self._pause_s, int | float) else self._pause_s()
            await self._wakes.wait(pause_s * random.uniform(1 - self._spread, 1 + self._spread))  # noqa: S311 - no secret
            try:
                await self._work()
            except OurError as exc:
                log.warning("%s: %s", self._failed, exc)
            except Exception:
                log.exception(self._failed)
