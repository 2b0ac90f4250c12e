"""An engine whose sandboxes print what the test says, whatever they are asked to run."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.tool_call_response import SandboxInfo
from service.errors import EngineUnavailableError
from service.sandbox.port import Collected, ProcessOutcome, SandboxSpec


class PrintingSandbox:
    """The port ``Sandbox``."""

    def __init__(self, engine: "PrintingEngine") -> None:
        self.info = SandboxInfo(engine="none", runtime="none", image_digest="none", acquired="cold")
        self._engine = engine

    async def put(self, turn_id, files) -> None:
        pass

    async def run(self, job, *, on_output, wanted=None) -> ProcessOutcome:
        del wanted
        self._engine.jobs.append(job)
        self._engine.has_started.set()
        await self._engine.may_answer.wait()
        half = len(self._engine.printed) // 2
        for piece in (self._engine.printed[:half], self._engine.printed[half:]):
            on_output("stdout", piece, False)  # noqa: FBT003 - the port is called so
            on_output("stderr", b"a warning", False)  # noqa: FBT003
        return ProcessOutcome(exit_code=0, lost=self._engine.lost)

    async def collect(self, wanted, into) -> Collected:
        raise NotImplementedError


class PrintingEngine:
    """The port ``SandboxEngine``.

    Attributes:
        printed: what each program prints.
        down: there is no sandbox.
        lost: why the sandbox is gone at the end of a run, if it is.
        jobs: what was run.
        has_started: a program runs or has run.
        may_answer: programs end when it is set.
    """

    def __init__(self, printed: bytes) -> None:
        self.printed = printed
        self.down = False
        self.hangs = False
        self.lost: str | None = None
        self.jobs: list = []
        self.has_started = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[PrintingSandbox]:
        del spec
        if self.down:
            raise EngineUnavailableError("the container engine does not answer")
        yield PrintingSandbox(self)
