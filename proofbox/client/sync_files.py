"""Files of a service, read with blocking connections."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from proofbox.client.api import Api
from proofbox.client.files import download_file
from proofbox.client.results import FileFacts, FileReference, replacing
from proofbox.client.sync_driver import SyncDriver


@dataclass(frozen=True, kw_only=True)
class Download(FileReference):
    """A file that can be read; nothing is requested before."""

    api: Api = field(repr=False, compare=False)
    driver: SyncDriver = field(repr=False, compare=False)

    def stream(self) -> Iterator[bytes]:
        """Yield the bytes piece by piece.

        Raises:
            DamagedDownloadError: the bytes are not those of the file.
            ProofboxError: the service does not answer, or refuses.
        """
        yield from self.driver.iterate(download_file(self.api, self.place))

    def read(self) -> bytes:
        """Return all bytes; errors as `stream`."""
        return b"".join(self.stream())

    def save(self, target: str | os.PathLike[str]) -> Path:
        """Write the bytes to a file, or into an existing folder; after an error the target is unchanged.

        Raises:
            ProofboxError: see `stream`.
            OSError: the file cannot be written.
        """
        with replacing(target, self.name) as (path, file):
            for piece in self.stream():
                file.write(piece)
        return path


@dataclass(frozen=True, kw_only=True)
class OutputFile(FileFacts, Download):
    """A stored file of a conversation."""
