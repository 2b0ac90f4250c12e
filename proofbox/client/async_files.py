"""Files of a service, read with the connections of an event loop."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

from proofbox.client.api import Api
from proofbox.client.async_driver import AsyncDriver
from proofbox.client.files import download_file
from proofbox.client.results import FileFacts, FileReference, replacing


@dataclass(frozen=True, kw_only=True)
class AsyncDownload(FileReference):
    """A file that can be read; nothing is requested before."""

    api: Api = field(repr=False, compare=False)
    driver: AsyncDriver = field(repr=False, compare=False)

    def stream(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes piece by piece.

        Raises:
            DamagedDownloadError: the bytes are not those of the file.
            ProofboxError: the service does not answer, or refuses.
        """
        return self.driver.iterate(download_file(self.api, self.place))

    async def read(self) -> bytes:
        """Return all bytes; errors as `stream`."""
        return b"".join([piece async for piece in self.stream()])

    async def save(self, target: str | os.PathLike[str]) -> Path:
        """Write the bytes to a file, or into an existing folder; after an error the target is unchanged.

        Raises:
            ProofboxError: see `stream`.
            OSError: the file cannot be written.
        """
        with replacing(target, self.name) as (path, file):
            async with aclosing(self.stream()) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(file.write, piece)
        return path


@dataclass(frozen=True, kw_only=True)
class AsyncOutputFile(FileFacts, AsyncDownload):
    """A stored file of a conversation."""
