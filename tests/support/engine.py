"""An engine without sandboxes, which answers a ping as the test says."""

import asyncio
from contextlib import AbstractAsyncContextManager

from service.errors import EngineUnavailableError
from service.sandbox.port import Sandbox, SandboxSpec


class BareEngine:
    """The port ``SandboxEngine``; it has no sandbox to open.

    Attributes:
        down: it does not answer.
        hangs: it answers nothing at all.
    """

    def __init__(self) -> None:
        self.down = False
        self.hangs = False

    async def start(self) -> None:
        await self.ping()

    async def stop(self) -> None:
        self.down = True

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        raise EngineUnavailableError(f"there is no sandbox for {spec.call_name}")

    async def ping(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if self.down:
            raise EngineUnavailableError("the container engine does not answer")

    async def sweep(self) -> int:
        return 0
