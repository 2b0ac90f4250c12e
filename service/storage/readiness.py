"""Readiness of the stores: the database accepts a write, and the data folder has free space."""

import asyncio
import os
from pathlib import Path

from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.database import Database

FREE_BYTES_MIN = 16 * 1024 * 1024
"""Below this the data folder counts as full: the database needs space to store the error, too."""
FREE_FILES_MIN = 64
"""Below this it counts as full too, on a file system with a limit of files."""


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
        """Check the free space, and run an empty transaction.

        Raises:
            StoreFailedError: the data folder is missing or read-only, or the database cannot be written to.
            StoreFullError: the data folder has less than ``free_bytes_min`` or `FREE_FILES_MIN` free.
        """
        await asyncio.to_thread(self._check_folder)
        await self._database.write(lambda _connection: None)

    def _check_folder(self) -> None:
        try:
            found = os.statvfs(self._data_dir)
        except OSError as exc:
            raise StoreFailedError(
                f"data_dir: the folder cannot be read ({os.strerror(exc.errno or 0)}); mount or create it and "
                "restart the service"
            ) from exc
        if found.f_flag & os.ST_RDONLY:
            raise StoreFailedError("data_dir: the file system is read-only; mount it for writing")
        free_bytes = found.f_bavail * found.f_frsize
        if free_bytes < self._free_bytes_min:
            raise StoreFullError(
                f"data_dir: {free_bytes} bytes are free, {self._free_bytes_min} are needed; free space or add some"
            )
        if found.f_files and found.f_favail < FREE_FILES_MIN:
            raise StoreFullError(
                f"data_dir: {found.f_favail} more files can be created, {FREE_FILES_MIN} are needed; remove some"
            )
