"""The staging folder of one call: files wait in it until they are stored or put into a sandbox."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from proofbox.service.artifacts.port import ArtifactStore
from proofbox.service.errors import StoreFailedError, StoreFullError, build_store_error


def build_staging_error(exc: OSError) -> StoreFullError | StoreFailedError:
    """Return the error for a file of a staging folder that could not be written."""
    return build_store_error(
        exc,
        full="the artifact store has no space left for the files of the call",
        failed="the staging folder of the artifact store cannot be written",
    )


class Staging:
    """A folder that is created when it is first used, which most calls never do.

    Args:
        open_folder: creates the folder and removes it on exit.
        stack: keeps the folder open.
    """

    def __init__(self, open_folder: Callable[[], AbstractAsyncContextManager[Path]], stack: AsyncExitStack) -> None:
        self._open_folder = open_folder
        self._stack = stack
        self._folder: Path | None = None

    async def folder(self) -> Path:
        """Returns the folder, the same one each time.

        Raises:
            StoreFailedError, StoreFullError: it cannot be created.
        """
        if self._folder is None:
            self._folder = await self._stack.enter_async_context(self._open_folder())
        return self._folder

    async def write(self, name: str, content: bytes) -> Path:
        """Writes a file of the folder.

        Raises:
            StoreFullError: the disk is full.
            StoreFailedError: the folder cannot be created or written.
        """
        path = await self.folder() / name
        try:
            await asyncio.to_thread(path.write_bytes, content)
        except OSError as exc:
            raise build_staging_error(exc) from exc
        return path


@asynccontextmanager
async def staging(artifacts: ArtifactStore) -> AsyncIterator[Staging]:
    """Opens a staging folder on the file system of a store; it is removed on exit."""
    async with AsyncExitStack() as stack:
        yield Staging(artifacts.staging, stack)
