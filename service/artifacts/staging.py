"""The folder of one call for files on their way: made when something is put there, which most calls never do."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

from service.artifacts.port import ArtifactStore


class Staging(Protocol):
    """Where files of a call are put until they have their place."""

    async def folder(self) -> Path:
        """The folder; the same one each time.

        Raises:
            StoreFailedError, StoreFullError: it cannot be made.
        """


class _Staging:
    def __init__(self, artifacts: ArtifactStore, stack: AsyncExitStack) -> None:
        self._artifacts = artifacts
        self._stack = stack
        self._folder: Path | None = None

    async def folder(self) -> Path:
        if self._folder is None:
            self._folder = await self._stack.enter_async_context(self._artifacts.staging())
        return self._folder


@asynccontextmanager
async def staging(artifacts: ArtifactStore) -> AsyncIterator[Staging]:
    """A folder on the store's own file system, made when it is first asked for and removed on exit."""
    async with AsyncExitStack() as stack:
        yield _Staging(artifacts, stack)
