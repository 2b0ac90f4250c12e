"""An engine whose programs print what the test sets, whatever they are asked to run."""

import asyncio

from tests.support.fake_engine import FakeRun, FakeSandboxEngine


class PrintingEngine(FakeSandboxEngine):
    """A fake engine with one program.

    Attributes:
        printed: what it prints.
        has_started: it runs or has run.
        may_answer: it ends when this is set.
    """

    def __init__(self, printed: bytes) -> None:
        super().__init__(self._print)
        self.printed = printed
        self.has_started = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def _print(self, run: FakeRun) -> None:
        self.has_started.set()
        await self.may_answer.wait()
        half = len(self.printed) // 2
        for piece in (self.printed[:half], self.printed[half:]):
            run.print(piece)
            run.print("a warning", "stderr")
