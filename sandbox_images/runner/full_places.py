"""Which folders in memory of this container have no room left, and how much each holds."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLACES = (("OUT_DIR", "/out"), ("/tmp", "/tmp"), ("/dev/shm", "/dev/shm"))  # noqa: S108 - the container's own
_EVERY_S = 0.002


class FullPlaces:
    """What was seen to be full, at any time that it was checked."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._look_at = 0.0

    def look_again(self) -> None:
        """Looks while a program runs, not too often: what it deletes, or holds open deleted, is not seen later."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _EVERY_S
            self.look()

    def look(self) -> None:
        """Looks for places that have no byte or no inode left."""
        for name, folder in _PLACES:
            try:
                space = os.statvfs(folder)
            except OSError:
                continue
            if space.f_bavail == 0 or (space.f_files and space.f_favail == 0):
                self._seen.add(name)

    def rooms(self) -> list[Any]:
        """``[name, bytes it holds, whether it was full]`` of each place."""
        return [[name, _size(folder), name in self._seen] for name, folder in _PLACES]


def _size(folder: str) -> int:
    try:
        space = os.statvfs(folder)
    except OSError:
        return 0
    return space.f_blocks * space.f_frsize
