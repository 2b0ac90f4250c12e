"""The folders with installed packages: made as a whole or not at all, read by sandboxes, removed when they are old.

The folder of all overlays is mounted read-only into every sandbox. Nobody there can list it, and the name of an
overlay is a secret of who uses it: it is derived from the lock with a key that never leaves the service.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.sandbox.hardening import PACKAGES_AT

log = logging.getLogger("proofbox.packages")

_KEY_BYTES = 32
_TAG_CHARS = 40
_NAME = re.compile(r"(?P<tag>[0-9a-f]{40})-(?P<bytes>[0-9]+)")
_LISTED_BY_NOBODY = 0o711


@dataclass(slots=True)
class _Overlay:
    name: str
    size_bytes: int
    used: float


class Overlays:
    """The overlays of one service, on its disk.

    Args:
        folder: of the service.
        mounted: the name of the folder in it that sandboxes see.
        bytes_max: what all together may take; those that are in use stay nevertheless.
    """

    def __init__(self, folder: Path, mounted: str, bytes_max: int) -> None:
        self._folder = folder
        self.mounted = folder / mounted
        """The folder that every sandbox has at `PACKAGES_AT`."""
        self._bytes_max = bytes_max
        self._key = b""
        self._known: dict[str, _Overlay] = {}
        self._in_use: Counter[str] = Counter()

    def open(self) -> None:
        """Makes the folders, and removes what an earlier process of the service did not finish. Raises OSError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(_LISTED_BY_NOBODY)
        self.mounted.mkdir(exist_ok=True)
        self.mounted.chmod(_LISTED_BY_NOBODY)
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(mode=0o700)
        self.resolutions.mkdir(mode=0o700, exist_ok=True)
        self._key = self._read_key()
        self._known.clear()
        for entry in self.mounted.iterdir():
            if found := _NAME.fullmatch(entry.name):
                self._known[found["tag"]] = _Overlay(entry.name, int(found["bytes"]), entry.stat().st_mtime)
            else:
                shutil.rmtree(entry, ignore_errors=True)

    @property
    def resolutions(self) -> Path:
        """The folder of remembered resolutions."""
        return self._folder / "resolutions"

    @property
    def _work(self) -> Path:
        return self._folder / "work"

    def _read_key(self) -> bytes:
        path = self._folder / "key"
        with contextlib.suppress(FileNotFoundError):
            key = path.read_bytes()
            if len(key) == _KEY_BYTES:
                return key
        made = self._work / "key"
        key = secrets.token_bytes(_KEY_BYTES)
        fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(key)
        made.replace(path)
        return key

    @contextlib.contextmanager
    def work_folder(self) -> Iterator[Path]:
        """An empty folder on the same file system, removed at the end of the block."""
        folder = self._work / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextlib.contextmanager
    def shown(self, made: Path) -> Iterator[Path]:
        """Lets sandboxes see the folder of an overlay that is not taken in yet, for the block; yields where it is.

        Nobody knows its name there but who is given it. `open` removes it if the process ends meanwhile.

        Raises:
            OSError: it cannot be moved.
        """
        _seal(made)
        path = self.mounted / f"unfinished-{secrets.token_hex(_TAG_CHARS // 2)}"
        made.rename(path)
        try:
            yield path
        finally:
            path.rename(made)

    @contextlib.contextmanager
    def hold(self, digest: str) -> Iterator[str | None]:
        """Keeps the overlay of a lock for the block; yields its path inside of sandboxes, None if there is none."""
        tag = self._tag(digest)
        overlay = self._known.get(tag)
        if overlay is None:
            yield None
            return
        overlay.used = time.time()
        self._in_use[tag] += 1
        try:
            yield f"{PACKAGES_AT}/{overlay.name}"
        finally:
            self._in_use[tag] -= 1

    def has(self, digest: str) -> bool:
        """Whether the overlay of a lock is there."""
        return self._tag(digest) in self._known

    async def add(self, digest: str, made: Path) -> None:
        """Takes in the folder of an overlay, and removes the oldest ones where the disk has no room for all.

        Raises:
            OSError: it cannot be moved.
        """
        tag = self._tag(digest)
        size = await asyncio.to_thread(_seal, made)
        overlay = _Overlay(f"{tag}-{size}", size, time.time())
        if tag not in self._known:
            made.rename(self.mounted / overlay.name)  # noqa: ASYNC240 - at once, before another call looks
            self._known[tag] = overlay
        await self._evict(tag)

    async def _evict(self, added: str) -> None:
        total = sum(overlay.size_bytes for overlay in self._known.values())
        for tag, overlay in sorted(self._known.items(), key=lambda item: item[1].used):
            if total <= self._bytes_max:
                return
            if tag == added or self._in_use[tag]:
                continue
            del self._known[tag]
            total -= overlay.size_bytes
            gone = self._work / secrets.token_hex(8)
            try:
                (self.mounted / overlay.name).rename(gone)
            except OSError as exc:
                log.warning("packages that were not used for long cannot be removed: %s", exc)
                continue
            await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)

    def _tag(self, digest: str) -> str:
        return hmac.new(self._key, digest.encode(), hashlib.sha256).hexdigest()[:_TAG_CHARS]


def _seal(folder: Path) -> int:
    """Lets everybody read the folders, whatever the mask of this process is; what all files take on disk."""
    total = 0
    for root, _, names in os.walk(folder):
        Path(root).chmod(0o755)
        for name in names:
            total += os.lstat(f"{root}/{name}").st_blocks * 512
    return total
