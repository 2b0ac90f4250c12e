"""An engine whose programs print three lines, then wait until the test lets them end with their promised files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proofbox.service.sandbox.port import SandboxSpec
from tests.support.fake_engine import FakeRun, FakeSandbox, FakeSandboxEngine


class HeldEngine(FakeSandboxEngine):
    """A fake engine with one program.

    Attributes:
        runs: how many programs were begun.
        let_end: programs end when this is set.
    """

    def __init__(self) -> None:
        super().__init__(self._hold)
        self.runs = 0
        self.let_end = asyncio.Event()
        self._changes = asyncio.Condition()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[FakeSandbox]:
        try:
            async with super().open(spec) as sandbox:
                yield sandbox
        finally:
            await self._notify()

    async def begin(self) -> None:
        """Begins a program and waits for its end."""
        self.runs += 1
        await self._notify()
        await self.let_end.wait()

    async def until_running(self, count: int) -> None:
        """Waits until so many programs were begun."""
        async with self._changes:
            await self._changes.wait_for(lambda: self.runs >= count)

    async def until_empty(self) -> None:
        """Waits until there is no sandbox any more."""
        async with self._changes:
            await self._changes.wait_for(lambda: self.open_sandboxes == 0)

    async def _hold(self, run: FakeRun) -> None:
        run.print("step 1\n")
        run.print("careful\n", "stderr")
        run.print("step 2\n")
        await self.begin()
        for file in run.wanted.files:
            run.write(file.rel, b"made\n")

    async def _notify(self) -> None:
        async with self._changes:
            self._changes.notify_all()
