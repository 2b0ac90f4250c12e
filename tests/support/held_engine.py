"""An engine whose programs print two lines and go on until the test lets them end."""
# ruff: noqa: ARG002, FBT003 - a port has arguments that this side of it does not need, and flags without a name

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contracts.paths import FilePath, Namespace
from contracts.tool_call_response import SandboxInfo
from service.file_content import FileContent
from service.sandbox.port import (
    Collected,
    CollectedFile,
    FileState,
    Inspection,
    OutputPiece,
    ProcessOutcome,
    SandboxSpec,
)

CONTENT = b"made\n"
PRINTED = (("stdout", b"step 1\n"), ("stderr", b"careful\n"), ("stdout", b"step 2\n"))


class HeldSandbox:
    """The port ``Sandbox``; each promised file is there in the end."""

    def __init__(self, engine: "HeldEngine") -> None:
        self.info = SandboxInfo(engine="none", runtime="none", image_digest="none", acquired="cold")
        self._engine = engine

    async def put(self, turn_id, files) -> None:
        return

    async def run(self, job, *, on_output, wanted=None) -> ProcessOutcome:
        for stream, piece in PRINTED:
            on_output(stream, piece, False)
        await self._engine.begin()
        return ProcessOutcome(exit_code=0, output=tuple(OutputPiece(stream, piece) for stream, piece in PRINTED))

    async def collect(self, wanted, into) -> Collected:
        found = [
            CollectedFile(
                FilePath(wanted.turn_id, Namespace.FILES, file.rel),
                index,
                FileState.FILE,
                len(CONTENT),
                inspection=Inspection(ok=True, mime="text/plain"),
                source=FileContent(CONTENT),
                sha256=hashlib.sha256(CONTENT).hexdigest(),
            )
            for index, file in enumerate(wanted.files)
        ]
        return Collected(tuple(found))


class HeldEngine:
    """The port ``SandboxEngine``, as far as calls need it.

    Attributes:
        runs: how many programs were begun.
        open_sandboxes: how many sandboxes there are.
        let_end: set by the test: programs end.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.open_sandboxes = 0
        self.let_end = asyncio.Event()
        self._changes = asyncio.Condition()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[HeldSandbox]:
        self.open_sandboxes += 1
        try:
            yield HeldSandbox(self)
        finally:
            self.open_sandboxes -= 1
            await self._changed()

    async def begin(self) -> None:
        """A program runs."""
        self.runs += 1
        await self._changed()
        await self.let_end.wait()

    async def until_running(self, count: int) -> None:
        """Waits until so many programs were begun."""
        async with self._changes:
            await self._changes.wait_for(lambda: self.runs >= count)

    async def until_empty(self) -> None:
        """Waits until there is no sandbox any more."""
        async with self._changes:
            await self._changes.wait_for(lambda: self.open_sandboxes == 0)

    async def ping(self) -> None:
        return

    async def _changed(self) -> None:
        async with self._changes:
            self._changes.notify_all()
