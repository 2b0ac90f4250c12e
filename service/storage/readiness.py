"""Readiness of the stores: the database accepts a write, the data folder has free space, the bytes can be had."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.database import Database

FREE_BYTES_MIN = 16 * 1024 * 1024
"""Below this the data folder counts as full: the database needs space to store the error, too."""
FREE_FILES_MIN = 64
"""Below this it counts as full too, on a file system with a limit of files."""
_BYTES_FRESH_S = 5.0
"""How long the last answer of an object store counts: many probes are one question."""


class StoreReadiness:
    """Checks the stores for ``/readyz``.

    Args:
        database: the database of the service.
        data_dir: the folder of local files.
        free_bytes_min: below this the folder counts as full.
        check_bytes: asks where the bytes of artifacts are; blocking; None where that is the data folder.
    """

    def __init__(
        self,
        database: Database,
        data_dir: Path,
        free_bytes_min: int = FREE_BYTES_MIN,
        check_bytes: Callable[[], None] | None = None,
    ) -> None:
        self._check_bytes = check_bytes
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self._database = database
        self._data_dir = data_dir
        self._free_bytes_min = free_bytes_min

    async def check(self) -> None:
        """Check the free space, run an empty transaction, and ask the object store.

        Raises:
            StoreFailedError: the data folder is missing or read-only, the database cannot be written to, or the
                object store cannot be used.
            StoreFullError: the data folder has less than ``free_bytes_min`` or `FREE_FILES_MIN` free.
        """
        await asyncio.to_thread(self._check_folder)
        await self._database.write(lambda _connection: None)
        if self._check_bytes is not None:
            await self._ask_bytes(self._check_bytes)

    async def _ask_bytes(self, check: Callable[[], None]) -> None:
        """Ask the object store, or take its last answer; a probe that gives up leaves the question open."""
        if self._asking is None or (self._asking.done() and time.monotonic() - self._asked_at > _BYTES_FRESH_S):
            self._asked_at = time.monotonic()
            self._asking = asyncio.create_task(asyncio.to_thread(check))
            self._asking.add_done_callback(lambda task: task.cancelled() or task.exception())
        await asyncio.shield(self._asking)

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
