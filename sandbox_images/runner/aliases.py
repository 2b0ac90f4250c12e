"""Further names of the files that were put in.

The working directory holds each file once: a walk through it meets none twice. A *link* or a *copy* lies outside of
it, under the path of the turn that a file came from. What a name such as ``files/a.csv`` stands for, paths.c knows.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PIECE_BYTES = 256 * 1024
_SHARE_LEFT = 2  # names and copies leave half of OUT_DIR to the program


class Aliases:
    """The further names below one OUT_DIR."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._first: dict[str, str] = {}

    def make(self, path: str, links: Iterable[str], copies: Iterable[str], turn_id: str) -> Iterator[str]:
        """Makes names of a file that was put in, as far as there is room and nothing lies there; those it made.

        A copy in another turn cannot be written to; where there is no room for one, a link takes its place.
        """
        for name in copies:
            if (
                self._has_room(os.lstat(self._full(path)).st_size) and self._copy(path, name, turn_id)
            ) or self._add_link(path, name):
                yield name
        for name in links:
            if self._add_link(path, name):
                yield name

    def is_second_name(self, name: str) -> bool:
        """Whether a name still is a second one of a file that is listed under its first."""
        first = self._first.get(name)
        return first is not None and self._is_same(name, first)

    def has_lost_a_name(self, path: str) -> bool:
        """Whether one of a file's names is gone or another file's: the kernel notes that as a change of it."""
        return any(not self._is_same(path, name) for name in self._names(path))

    def _names(self, path: str) -> list[str]:
        first = self._first.get(path, path)
        return [first, *(name for name, other in self._first.items() if other == first)]

    def _is_same(self, one: str, other: str) -> bool:
        try:
            return os.lstat(self._full(one)).st_ino == os.lstat(self._full(other)).st_ino
        except OSError:
            return False

    def _add_link(self, path: str, name: str) -> bool:
        made = self._has_room(0) and self._link(path, name)
        if made:
            self._first[name] = path
        return made

    def _link(self, path: str, name: str) -> bool:
        full = self._full(name)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            os.link(self._full(path), full, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _copy(self, path: str, name: str, turn_id: str) -> bool:
        full = self._full(name)
        try:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            copy_file(self._full(path), full, 0o644 if name.startswith(f"{turn_id}/") else 0o444)
        except OSError:
            return False
        return True

    def _has_room(self, size: int) -> bool:
        space = os.statvfs(self._root)
        return (
            space.f_favail >= space.f_files // _SHARE_LEFT
            and space.f_bavail * space.f_frsize - size >= space.f_blocks * space.f_frsize // _SHARE_LEFT
        )

    def _full(self, path: str) -> str:
        return os.path.join(self._root, path)


def copy_file(source: str, target: str, mode: int) -> None:
    """Copies a regular file to a name that is free; nothing is left at it if that fails, with OSError."""
    read = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        written = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        try:
            while piece := os.read(read, _PIECE_BYTES):
                view = memoryview(piece)
                while view:
                    view = view[os.write(written, view) :]
        except OSError:
            os.unlink(target)
            raise
        finally:
            os.close(written)
    finally:
        os.close(read)
