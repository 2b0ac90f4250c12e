"""Whether the stores could take a call now: the database answers, and the data folder has space left."""

import asyncio
from pathlib import Path

from service.errors import StoreFullError
from service.storage.artifacts.disk_usage import free_bytes
from service.storage.database import Database

FREE_BYTES_MIN = 16 * 1024 * 1024
"""Below this the data folder counts as full: the database needs space even for the answer that says so."""


class StoreReadiness:
    """Checks the stores for ``/readyz``.

    Args:
        database: the database of the service.
        data_dir: the folder of local files.
        free_bytes_min: below this the folder counts as full.
    """

    def __init__(self, database: Database, data_dir: Path, free_bytes_min: int = FREE_BYTES_MIN) -> None:
        self._database = database
        self._data_dir = data_dir
        self._free_bytes_min = free_bytes_min

    async def check(self) -> None:
        """Begins and ends an empty transaction, and asks the file system for its free space.

        Raises:
            StoreFailedError: the database cannot be written to.
            StoreFullError: the data folder has less than ``free_bytes_min`` free.
        """
        free = await asyncio.to_thread(free_bytes, self._data_dir)
        if free < self._free_bytes_min:
            raise StoreFullError(
                f"data_dir: {free:.0f} bytes are free, {self._free_bytes_min} are needed; free space or add some"
            )
        await self._database.write(lambda _connection: None)
