"""What claims pin to queued runs: made beside the claim, so that a slow server holds up its own runs only."""

import asyncio
import logging
import time
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Self

from proofbox.service.concurrency import Listener
from proofbox.service.gateway.mcp.pinned_tool import PinnedTools
from proofbox.service.gateway.mcp.run_pins import RunPins
from proofbox.service.gateway_errors import McpUnavailableError
from proofbox.service.identity import Principal

PIN_S = 2.0
"""How long a claim waits for servers at least, also one that waits for no run."""
_TOGETHER_S = 0.1  # what is made at once is claimed in the order of the runs
Kind = tuple[str, int]
"""An agent and its version."""
_log = logging.getLogger("proofbox.runs")


class ClaimPins:
    """The pins of one claim, in its block; at its end it asks no further, and lists that are read are still stored.

    Args:
        pins: makes them.
        principal: who claims.
    """

    def __init__(self, pins: RunPins, principal: Principal) -> None:
        self._pins = pins
        self._principal = principal
        self._made: dict[Kind, asyncio.Task[PinnedTools | None]] = {}
        self._began = time.monotonic()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._made.values():
            task.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)

    def left_s(self, ends: float) -> float:
        """How long a claim that ends at ``ends`` (monotonic clock) goes on; servers get a moment in any case."""
        if any(not task.done() for task in self._made.values()):
            ends = max(ends, self._began + PIN_S)
        return ends - time.monotonic()

    def forget_failed(self) -> None:
        """Lets the next `begin` ask again for what failed."""
        for kind in [kind for kind, task in self._made.items() if _has_failed(task)]:
            del self._made[kind]

    async def begin(self, kinds: Collection[Kind]) -> Mapping[Kind, PinnedTools | None]:
        """Begins to make the pins of some kinds of runs, and returns those that are made."""
        for kind in kinds:
            if kind not in self._made:
                making = self._pins.pin_queued(self._principal, *kind)
                self._made[kind] = asyncio.ensure_future(making)
        wanted = [self._made[kind] for kind in kinds]
        if any(not task.done() for task in wanted):
            await asyncio.wait(wanted, timeout=_TOGETHER_S)
        ready: dict[Kind, PinnedTools | None] = {}
        for kind in kinds:
            task = self._made[kind]
            if not task.done():
                continue
            try:
                ready[kind] = task.result()
            except McpUnavailableError as exc:
                _log.warning("runs of agent %s stay queued: %s", kind[0], exc)
        return ready

    async def wait(self, listener: Listener, timeout_s: float) -> None:
        """Waits until something is announced, or further pins are made."""
        making = [task for task in self._made.values() if not task.done()]
        changed = asyncio.ensure_future(listener.wait(timeout_s))
        try:
            await asyncio.wait([changed, *making], return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()


def _has_failed(task: asyncio.Task[PinnedTools | None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
