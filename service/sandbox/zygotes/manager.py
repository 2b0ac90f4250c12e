"""The zygotes of one service: one for each kind of process, started when it is wanted, replaced when it is old.

What forks of one zygote share beside memory is the layout of addresses and the seed of Python's hashes; so none
serves for ever.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Literal, TypeVar

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.zygotes.fork_target import Target
from proofbox.service.sandbox.zygotes.zygote import Zygote

log = logging.getLogger("proofbox.engine")

T = TypeVar("T")
_FORKS_MAX = 2_000
_AGE_MAX_S = 1_800.0
_FIRST_WITHIN_S = 2.0  # who waits holds up other starts, and can come again
_START_AGAIN_S = 1.0
_START_AGAIN_S_MAX = 60.0


class Kind(StrEnum):
    """What the forks of a zygote are."""

    BARE = "bare"
    DOCUMENTS = "documents"
    DATA = "data"
    SCIENCE = "science"
    INSPECTOR = "inspector"
    PLAIN_INSPECTOR = "plain_inspector"
    """For files that take no large library: a smaller process is forked in a third of the time."""

    @property
    def runs_programs(self) -> bool:
        """Whether they become a call's program."""
        return self not in {Kind.INSPECTOR, Kind.PLAIN_INSPECTOR}


KIND_OF = {flavour: Kind(flavour.value) for flavour in PreloadSet}
Start = Callable[[Kind], Zygote]
"""Starts a zygote and waits until it is ready; blocks; raises NotForkedError."""
ImportOnce = Literal["auto", "on", "off"]
"""Whether there are zygotes: where it can be, or else no service, or none."""


async def start_zygotes(wanted: ImportOnce, starter: Callable[[], Start], threads: Executor) -> "Zygotes | None":
    """The zygotes of a service whose most needed ones are ready; None if it does without.

    Args:
        wanted: the operator's decision.
        starter: makes what starts one; blocks; raises NotForkedError.
        threads: where what blocks is run.

    Raises:
        EngineUnavailableError: they are demanded and cannot be had.
    """
    if wanted == "off":
        return None
    try:
        zygotes = Zygotes(await asyncio.get_running_loop().run_in_executor(threads, starter), threads)
        await zygotes.prepare(Kind.BARE, Kind.INSPECTOR, Kind.PLAIN_INSPECTOR)
    except (NotForkedError, EngineUnavailableError, OSError) as exc:  # else no sandbox could start
        if wanted == "on":
            raise EngineUnavailableError(f"PROOFBOX_IMPORT_ONCE is on, and that cannot be: {exc}") from exc
        log.warning("each sandbox imports its libraries anew, which is slower: %s", exc)
        return None
    log.info("libraries are imported once, and forked into sandboxes")
    return zygotes


class ComingZygotes:
    """The zygotes of a service that takes calls already while the most needed ones are being started.

    Args:
        wanted: the operator's decision.
        threads: where what blocks is run.
    """

    def __init__(self, wanted: ImportOnce, threads: Executor) -> None:
        self._wanted = wanted
        self._threads = threads
        self._starting: asyncio.Task[Zygotes | None] | None = None

    async def begin(self, starter: Callable[[], Start]) -> None:
        """Begins to start them; where they are demanded, waits for them. See `start_zygotes`.

        Raises:
            EngineUnavailableError: they are demanded and cannot be had.
        """
        self._starting = asyncio.create_task(start_zygotes(self._wanted, starter, self._threads))
        if self._wanted == "on":
            await self._starting

    async def get(self) -> "Zygotes | None":
        """Waits for them; None if the service does without."""
        return None if self._starting is None else await asyncio.shield(self._starting)

    async def stop(self) -> None:
        """Ends all of them; never raises."""
        if self._starting is None:
            return
        [zygotes] = await asyncio.gather(self._starting, return_exceptions=True)
        if isinstance(zygotes, Zygotes):
            await zygotes.stop()


class Zygotes:
    """Keeps them, and forks from them; its methods belong to the event loop."""

    def __init__(self, start: Start, threads: Executor) -> None:
        self._start = start
        self._threads = threads
        self._ready: dict[Kind, Zygote] = {}
        self._starting: dict[Kind, asyncio.Task[None]] = {}
        self._endings: set[asyncio.Future[None]] = set()
        self._pauses_s: dict[Kind, float] = {}
        self._not_before: dict[Kind, float] = {}
        self._stopped = False

    async def prepare(self, *kinds: Kind) -> None:
        """Starts some, side by side, and waits until they are ready.

        Raises:
            NotForkedError: one cannot be started; none stays then.
        """
        starts = [self._in_thread(partial(self._start, kind)) for kind in kinds]
        outcomes = await asyncio.gather(*starts, return_exceptions=True)
        started = {kind: zygote for kind, zygote in zip(kinds, outcomes, strict=True) if isinstance(zygote, Zygote)}
        failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        if failures:
            await asyncio.gather(*(self._in_thread(zygote.end) for zygote in started.values()))
            raise failures[0]
        self._ready.update(started)

    def has(self, kind: Kind) -> bool:
        """Whether one of this kind is ready; where not, or where it is old, one is started for later."""
        zygote = self._ready.get(kind)
        if zygote is not None and not zygote.is_alive:
            log.warning("the zygote of %s processes has died, another one is started", kind.value)
            self._end_later(self._ready.pop(kind))
            zygote = None
        if zygote is None or zygote.forks >= _FORKS_MAX or time.monotonic() - zygote.born > _AGE_MAX_S:
            self._start_later(kind)
        return zygote is not None

    async def first_of(self, kind: Kind) -> bool:
        """Waits while the first one of a kind is being started, but not for ever; whether one is ready."""
        if not self.has(kind) and (starting := self._starting.get(kind)) is not None:
            await asyncio.wait({starting}, timeout=_FIRST_WITHIN_S)
        return kind in self._ready

    async def fork(self, kind: Kind, target: Callable[[], AbstractContextManager[Target]]) -> None:
        """Forks a process of a kind into a container.

        Raises:
            NotForkedError: it was not; no part of it is left.
        """
        zygote = self._ready_one(kind)

        def fork() -> None:
            with target() as descriptors:
                zygote.fork_into(descriptors)

        await self._in_thread(fork)

    def _ready_one(self, kind: Kind) -> Zygote:
        if not self.has(kind):
            raise NotForkedError(f"no zygote of {kind.value} processes is ready")
        return self._ready[kind]

    async def stop(self) -> None:
        """Ends all of them."""
        self._stopped = True
        await asyncio.gather(*self._starting.values())
        for kind in list(self._ready):
            self._end_later(self._ready.pop(kind))
        await asyncio.gather(*self._endings)

    def _start_later(self, kind: Kind) -> None:
        if self._stopped or kind in self._starting or time.monotonic() < self._not_before.get(kind, 0.0):
            return
        task = asyncio.create_task(self._replace(kind))
        self._starting[kind] = task
        task.add_done_callback(lambda _: self._starting.pop(kind))

    async def _replace(self, kind: Kind) -> None:
        try:
            zygote = await self._in_thread(partial(self._start, kind))
        except NotForkedError as exc:
            pause_s = self._pauses_s[kind] = min(2 * self._pauses_s.get(kind, _START_AGAIN_S), _START_AGAIN_S_MAX)
            self._not_before[kind] = time.monotonic() + pause_s
            log.warning("no zygote of %s processes could be started: %s", kind.value, exc)
            return
        self._pauses_s.pop(kind, None)
        old = self._ready.get(kind)
        self._ready[kind] = zygote
        if old is not None:
            self._end_later(old)

    def _end_later(self, zygote: Zygote) -> None:
        ending = asyncio.ensure_future(self._in_thread(zygote.end))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


@dataclass(frozen=True, slots=True)
class ContainerForks:
    """The port `Forks` for one container.

    Attributes:
        zygotes: what is forked from.
        target: opens the container.
    """

    zygotes: Zygotes
    target: Callable[[], AbstractContextManager[Target]]

    def has(self, flavour: PreloadSet) -> bool:
        """See `Forks.has`."""
        return self.zygotes.has(KIND_OF[flavour])

    async def interpreter(self, flavour: PreloadSet) -> None:
        """See `Forks.interpreter`."""
        await self.zygotes.fork(KIND_OF[flavour], self.target)

    async def inspector(self, *, of_plain_files: bool) -> None:
        """See `Forks.inspector`."""
        await self.zygotes.fork(self._kind(of_plain_files=of_plain_files), self.target)

    def _kind(self, *, of_plain_files: bool) -> Kind:
        is_plain = of_plain_files and self.zygotes.has(Kind.PLAIN_INSPECTOR)
        return Kind.PLAIN_INSPECTOR if is_plain else Kind.INSPECTOR
