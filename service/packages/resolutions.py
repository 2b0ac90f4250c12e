"""What lists of requirements were resolved to, for a while: the same call again does not ask the index."""

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.service.packages.lock import Lock
from proofbox.service.packages.target import Target

_PACKAGES = TypeAdapter(list[InstalledPackage])
_REMEMBERED_MAX = 5_000


class Resolutions:
    """Remembered resolutions, in a folder of small files and in memory.

    Args:
        folder: where they are.
        index: the address of the index: those of another one do not count.
        time_s: how long they count; 0: never.
    """

    def __init__(self, folder: Path, index: str, time_s: float) -> None:
        self._folder = folder
        self._index = index
        self._time_s = time_s
        self._known: dict[str, tuple[float, Lock]] = {}

    def key(self, requirements: Sequence[str], target: Target) -> str:
        """What names a resolution: the requirements in any order, the index and the image."""
        facts = [self._index, target.image_digest, sorted(set(requirements))]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def get(self, key: str) -> Lock | None:
        """A resolution that still counts."""
        made, lock = self._known.get(key) or self._read(key)
        if lock is None or not 0 <= time.time() - made < self._time_s:
            return None
        self._known[key] = made, lock
        return lock

    async def put(self, key: str, lock: Lock) -> None:
        """Remembers a resolution of now. Raises OSError."""
        if not self._time_s:
            return
        if len(self._known) >= _REMEMBERED_MAX:
            self._known.clear()
        self._known[key] = time.time(), lock
        await asyncio.to_thread(self._write, key, lock)

    def _write(self, key: str, lock: Lock) -> None:
        self._remove_old()
        path = self._folder / key
        made = path.with_suffix(".new")
        made.write_text(json.dumps([package.model_dump() for package in lock.installed]), "utf-8")
        made.replace(path)

    def _read(self, key: str) -> tuple[float, Lock | None]:
        path = self._folder / key
        try:
            made, text = path.stat().st_mtime, path.read_bytes()
            return made, Lock.of_installed(_PACKAGES.validate_json(text))
        except (OSError, ValidationError):
            return 0.0, None

    def _remove_old(self) -> None:
        found = []
        for path in self._folder.iterdir():
            with contextlib.suppress(FileNotFoundError):  # another thread removed or renamed it
                found.append((path.stat().st_mtime, path))
        for _, path in sorted(found)[: max(0, len(found) - _REMEMBERED_MAX)]:
            path.unlink(missing_ok=True)
