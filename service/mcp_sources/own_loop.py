"""Operations run on event loops of their own: reading what a server sends never holds up the service's loop."""

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from proofbox.service.mcp_sources.limits import GOODBYE_S

T = TypeVar("T")


class NotStartedError(Exception):
    """There was no thread or event loop for an operation: the process has too many threads or open files."""


async def run_apart(build: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a coroutine in one task of a new thread with a new event loop, and returns its result.

    One that is cancelled is cancelled there too; its end is awaited for as long as a server gets to end a session.

    Args:
        build: makes the coroutine, in that thread; what it blocks there blocks nothing else.

    Raises:
        NotStartedError: nothing was done.
    """
    operation = _Operation(build)
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(operation.work,), name="mcp", daemon=True)
    try:
        thread.start()
    except RuntimeError as exc:
        raise NotStartedError(str(exc)) from exc
    ended: asyncio.Future[T] = asyncio.wrap_future(operation.done)
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        operation.cancel()
        await asyncio.wait([ended], timeout=2 * GOODBYE_S)
        if ended.done() and not ended.cancelled():
            ended.exception()  # seen
        raise


class _Operation:
    def __init__(self, build: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.done: Future[Any] = Future()
        self._build = build
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def work(self) -> None:
        """The thread: it may outlive the result, since names that are being resolved cannot be given up."""
        runner = asyncio.Runner()
        try:
            runner.get_loop()
        except BaseException as exc:  # noqa: BLE001 - else the result would be awaited for ever
            self.done.set_exception(NotStartedError(str(exc)))
            return
        with runner:
            runner.run(self._main())

    def cancel(self) -> None:
        """Cancels the task, from another thread."""
        with self._lock:
            self._is_cancelled = True
            if self._running is not None:
                loop, task = self._running
                loop.call_soon_threadsafe(task.cancel)

    async def _main(self) -> None:
        try:
            task = asyncio.ensure_future(self._build())
            with self._lock:
                self._running = asyncio.get_running_loop(), task
                if self._is_cancelled:
                    task.cancel()
            result = await task
        except BaseException as exc:  # noqa: BLE001 - it is raised where the result is awaited
            self._end()
            self.done.set_exception(exc)
        else:
            self._end()
            self.done.set_result(result)

    def _end(self) -> None:
        with self._lock:
            self._running = None
