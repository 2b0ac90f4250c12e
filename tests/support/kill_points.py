"""Points of a call at which a test strikes: each write, request to the bytes, and step of a sandbox.

Containers start in tasks of the pool: of the engine, a call gets one and gives it back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pytest

from proofbox.service.dispatch.worker import Worker
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.sandbox.port import Sandbox, SandboxSpec
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database

if TYPE_CHECKING:
    from nats.aio.msg import Msg

Side = Literal["before", "after"]
_SEAMS: tuple[tuple[type[Any], str], ...] = (
    (Database, "write"),
    (SqlArtifactStore, "_off_loop"),
    *((RunnerSandbox, step) for step in ("put", "run", "collect")),
)


@dataclass
class Strike:
    """Strikes the call that this task makes, once.

    Attributes:
        at: the number of the point, from 1.
        side: before or after what is done there.
        strike: what happens there; a coroutine runs to its end first, in a context of its own.
        passed: what was done at each point so far.
    """

    at: int
    side: Side
    strike: Callable[[], Coroutine[Any, Any, None] | None]
    passed: list[str] = field(default_factory=list)

    def begin(self, name: str) -> int:
        """The number of a point that is reached now."""
        self.passed.append(name)
        return len(self.passed)

    async def reach(self, number: int, side: Side) -> None:
        """Strike, if this is the point."""
        if (number, side) == (self.at, self.side) and (work := self.strike()) is not None:
            await _run_to_end(work)

    @property
    def was_reached(self) -> bool:
        """Whether there was such a point."""
        return len(self.passed) >= self.at


LEFT = Strike(0, "before", lambda: None)
_LEFT_S = 0.02
STRIKE: ContextVar[Strike | None] = ContextVar("strike", default=None)
"""What strikes the calls of this task, and of the tasks that it begins."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Have the points of calls call their `STRIKE`."""
    for owner, name in _SEAMS:
        patch.setattr(owner, name, _struck(name, getattr(owner, name)))
    take = PooledEngine.open

    @asynccontextmanager
    async def taken(self: PooledEngine, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        strike = STRIKE.get() or Strike(0, "before", lambda: None)
        number = strike.begin("take")
        await strike.reach(number, "before")
        async with take(self, spec) as sandbox:
            await strike.reach(number, "after")
            yield sandbox
            number = strike.begin("give back")
            await strike.reach(number, "before")
        await strike.reach(number, "after")

    patch.setattr(PooledEngine, "open", taken)


def _struck(name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def struck(*given: Any, **named: Any) -> Any:
        strike = STRIKE.get()
        if strike is None:
            return await work(*given, **named)
        number = strike.begin(name)
        await strike.reach(number, "before")
        result = await work(*given, **named)
        await strike.reach(number, "after")
        return result

    return struck


def install_in_workers(patch: pytest.MonkeyPatch, find: Callable[[int], Awaitable[Strike | None]]) -> None:
    """Have workers set the `STRIKE` of each call that they get, which ``find`` gives for its number.

    Of `LEFT` they give the call back, for another worker.
    """
    handle = Worker._handle

    async def handled(self: Worker, number: int, message: "Msg") -> None:
        strike = await find(number)
        if strike is LEFT:
            await message.nak(delay=_LEFT_S)
            return
        STRIKE.set(strike)
        await handle(self, number, message)

    patch.setattr(Worker, "_handle", handled)


async def _run_to_end(work: Coroutine[Any, Any, None]) -> None:
    """Do work in a context of its own; who is cancelled meanwhile is cancelled where it waits next."""
    task, own, is_cancelled = asyncio.create_task(work, context=Context()), asyncio.current_task(), False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            is_cancelled = True
    if own is not None and is_cancelled:
        own.uncancel()
        own.cancel()
    task.result()
