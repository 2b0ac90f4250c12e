"""Hides from a Python program the links that its working directory has to itself: a listing has each file once."""

import os
from collections.abc import Callable, Iterator
from typing import Any, Self


def hide(links: dict[str, str]) -> None:
    """Leaves links out of what `os.listdir` and `os.scandir` give, and thus `os.walk`, pathlib, glob and shutil.

    Args:
        links: the links, by their names, and where they lead.
    """
    list_folder, scan_folder = os.listdir, os.scandir

    def is_hidden(folder: Any, name: Any) -> bool:
        target = links.get(os.fsdecode(name))
        if target is None:
            return False
        try:
            return isinstance(folder, int) or os.fsdecode(os.readlink(os.path.join(folder, name))) == target
        except OSError:
            return False

    def listdir(path: Any = None) -> list[Any]:
        at = "." if path is None else path
        return [name for name in list_folder(path) if not is_hidden(at, name)]

    def scandir(path: Any = None) -> "_Entries":
        at = "." if path is None else path
        return _Entries(scan_folder(path), lambda name: is_hidden(at, name))

    os.listdir, os.scandir = listdir, scandir  # type: ignore[assignment]  # which is the purpose


class _Entries:
    """What `os.scandir` returns, without some entries."""

    def __init__(self, entries: Any, is_hidden: Callable[[Any], bool]) -> None:
        self._entries = entries
        self._is_hidden = is_hidden

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while self._is_hidden((entry := next(self._entries)).name):
            pass
        return entry

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """See `os.scandir`."""
        self._entries.close()
