"""What of a workspace is no stored file, as an archive: packed after a program, restored before the next.

It has links, empty folders, files beyond those that are stored one by one, and modes that differ from those of the
content. An archive is a sequence of entries in the order of their paths: a line of JSON, then a file's bytes.
While this module works, no process of the program runs; no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat

from frames import StreamEndedError, read_json, write_json
from out_dir import PROGRAM_MARKS, USUAL_MODE
from runner_protocol import frame_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from frames import Channel
    from out_dir import OutDir

_FILE = "file"
_FOLDER = "folder"
_LINK = "link"  # a second name of a file
_SYMLINK = "symlink"
_MODE = "mode"  # of a file that is stored by itself
_RUN_MODE = 0o755  # of folders, and of files that can be run by their names
_ENTRIES_SEEN_MAX = 100_000
_PIECE_BYTES = 256 * 1024
_LINE_BYTES_MAX = 128 * 1024  # a path and a target of 4,096 bytes each, every byte an escape
_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)


class DamagedArchiveError(Exception):
    """The archive is not one that this module packed."""


class Packing:
    """What lies in ``files/``, with the modes that the program gave it, on its way to the service.

    What was written beside ``files/`` in OUT_DIR counts as written there, as everywhere.
    """

    def __init__(self, out: OutDir, entries_max: int, bytes_max: int) -> None:
        self._out = out
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._found: dict[str, tuple[str, os.stat_result]] = {}
        self._full_folders: set[str] = set()
        self._stored: set[str] = set()
        self._left_out = out.not_restored  # and sockets, pipes, what has too long a path, or no folder above it
        for top in out.file_tops():
            self._walk(top, is_beside=top == "")

    def leave_out(self, path: str) -> None:
        """Leaves out the content of a file that is stored by itself; ``path`` is relative to OUT_DIR."""
        self._stored.add(path)

    def _opens(self, top: str) -> bool:
        """Whether a folder is the program's: a link in its place leads to what is not."""
        try:
            is_open = self._out.open_way(top.split("/") if top else []) is None
        except OSError:
            is_open = False
        if not is_open and os.path.lexists(os.path.join(self._out.root, top)):
            self._left_out += 1
        return is_open

    def _walk(self, top: str, *, is_beside: bool) -> None:
        stack = [""] if self._opens(top) else []
        while stack and not self._is_full():
            rel = stack.pop()
            folder = os.path.join(self._out.root, top, rel).rstrip("/")
            try:
                with os.scandir(folder) as entries:
                    found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
            except OSError:
                self._left_out += 1
                continue
            at = f"{top}/{rel}".strip("/")
            names = [name for name, is_dir in found if not self._out.is_top(at, name, is_dir=is_dir)]
            for name in names:
                if self._is_full():
                    break
                path = f"{rel}/{name}" if rel else name
                self._visit(path, f"{at}/{name}" if at else name, stack, is_beside=is_beside)

    def _visit(self, rel: str, path: str, stack: list[str], *, is_beside: bool) -> None:
        full = os.path.join(self._out.root, path)
        try:
            status = os.lstat(full)
        except OSError:
            self._left_out += 1
            return
        if stat.S_ISDIR(status.st_mode):
            self._add(rel, path, status)
            try:
                os.chmod(full, stat.S_IMODE(status.st_mode) | 0o700)
            except OSError:
                self._left_out += 1
            else:
                stack.append(rel)
        elif not is_beside or self._out.is_new(path):
            self._add(rel, path, status)

    def _add(self, rel: str, path: str, status: os.stat_result) -> None:
        """Adds what is the first in its place, if an archive can hold it there."""
        kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
        above = rel.rpartition("/")[0]
        # Of another file or link nothing can lie below.
        has_folder = not above or (above in self._found and stat.S_ISDIR(self._found[above][1].st_mode))
        if has_folder and any(is_kind(status.st_mode) for is_kind in kinds):
            self._found.setdefault(rel, (path, status))
            self._full_folders.add(above)
        else:
            self._left_out += 1

    def _is_full(self) -> bool:
        return len(self._found) > _ENTRIES_SEEN_MAX

    def send(self, channel: Channel) -> None:
        """Sends a WORKSPACE frame and, if anything changed and it is not too large, the archive."""
        entries = list(self._entries())
        restored = {entry["path"]: entry for entry in self._out.restored}
        headers, same = [], 0
        for entry, full, _ in entries:
            is_same = restored.get(entry["path"]) == entry and self._is_as_restored(entry, full)
            same += is_same
            headers.append(write_json({**entry, "is_same": True} if is_same else entry) + b"\n")
        size = sum(len(header) + size for header, (_, _, size) in zip(headers, entries, strict=True))
        is_too_large = self._is_full() or len(entries) > self._entries_max or size > self._bytes_max
        is_same = not is_too_large and same == len(entries) == len(restored)
        facts = {"entries": len(entries), "size": size, "is_too_large": is_too_large, "left_out": self._left_out}
        channel.send_json(frame_format.WORKSPACE, {**facts, "is_same": is_same})
        if is_too_large or is_same:
            return
        pending = bytearray()
        for header, (_, full, left) in zip(headers, entries, strict=True):
            pending += header
            for piece in _content(full, left):
                pending += piece
                if len(pending) >= _PIECE_BYTES:
                    _send(channel, pending)
                    pending.clear()
        _send(channel, pending)

    def _is_as_restored(self, entry: dict[str, Any], full: str) -> bool:
        return entry["kind"] != _FILE or self._out.unchanged(os.path.relpath(full, self._out.root))

    def _entries(self) -> Iterator[tuple[dict[str, Any], str, int]]:
        """Each entry, its file and its size; a size of 0 has no bytes to send."""
        wanted: dict[str, dict[str, Any]] = {}
        first_names: dict[int, str] = {}
        for rel, (path, status) in sorted(self._found.items()):
            entry = self._entry(rel, path, status, first_names)
            if entry is None:
                continue
            wanted[rel] = entry
            while rel := rel.rpartition("/")[0]:
                if entry["kind"] != _MODE:
                    wanted.setdefault(rel, _line(rel, self._found[rel][1], _FOLDER))
        top = f"{self._out.turn_id}/files/"
        for path, mode in self._out.modes_left():  # of files that are not here
            wanted.setdefault(path.removeprefix(top), {"path": path.removeprefix(top), "mode": mode, "kind": _MODE})
        for rel, entry in sorted(wanted.items()):
            path = self._found[rel][0] if rel in self._found else ""
            yield entry, os.path.join(self._out.root, path), entry.get("size", 0)

    def _entry(
        self, rel: str, path: str, status: os.stat_result, first_names: dict[int, str]
    ) -> dict[str, Any] | None:
        """The entry of what was found; None if the next call has it without one."""
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode):
            return _line(rel, status, _FOLDER) if rel not in self._full_folders or mode != _RUN_MODE else None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(os.path.join(self._out.root, path))
            return {**_line(rel, status, _SYMLINK), "target": target}
        if status.st_nlink > 1 and (first := first_names.setdefault(status.st_ino, rel)) != rel:
            return {**_line(rel, status, _LINK), "target": first}
        is_put = self._out.is_put(path) and self._out.unchanged(path)
        if path in self._stored or is_put:
            return (
                None
                if mode in (USUAL_MODE, _RUN_MODE) and not self._lost_bit(path, mode)
                else _line(rel, status, _MODE)
            )
        return {**_line(rel, status, _FILE), "size": status.st_size}

    def _lost_bit(self, path: str, mode: int) -> bool:
        """Whether a file can be run by its name and would not be so in the next call."""
        if mode != _RUN_MODE:
            return False
        try:
            with open(os.path.join(self._out.root, path), "rb", buffering=0) as file:
                return not file.read(4).startswith(PROGRAM_MARKS)
        except OSError:
            return False


def _line(rel: str, status: os.stat_result, kind: str) -> dict[str, Any]:
    line = {"path": rel, "mode": stat.S_IMODE(status.st_mode), "kind": kind}
    return line if kind in (_MODE, _FOLDER) else {**line, "mtime_ns": status.st_mtime_ns}


def _content(full: str, size: int) -> Iterator[bytes]:
    if not size:
        return
    mode = stat.S_IMODE(os.lstat(full).st_mode)
    os.chmod(full, mode | 0o400)
    fd = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb", buffering=0) as file:
        while size:
            piece = file.read(min(size, _PIECE_BYTES))
            if not piece:
                raise StreamEndedError  # nothing can cut a file short now
            size -= len(piece)
            yield piece


def _send(channel: Channel, data: bytearray) -> None:
    for at in range(0, len(data), _PIECE_BYTES):
        channel.send(frame_format.DATA, bytes(data[at : at + _PIECE_BYTES]))


class Archive:
    """An archive that arrives in pieces.

    Args:
        receive: returns the next piece.
        size: how many bytes all pieces have.
    """

    def __init__(self, receive: Callable[[], bytes], size: int) -> None:
        self._receive = receive
        self._left = size
        self._buffer = bytearray()

    def entry(self) -> dict[str, Any] | None:
        """The next entry; None at the end. Raises DamagedArchiveError."""
        while (end := self._buffer.find(b"\n")) < 0:
            if not self._buffer and not self._left:
                return None
            if len(self._buffer) > _LINE_BYTES_MAX:
                raise DamagedArchiveError
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        try:
            return _checked(read_json(line))
        except (ValueError, TypeError, KeyError, AttributeError, StopIteration, RecursionError) as exc:
            raise DamagedArchiveError from exc

    def content(self, size: int) -> Iterator[bytes]:
        """The bytes of the entry that was read last. Raises DamagedArchiveError."""
        while size > 0:
            if not self._buffer:
                self._fill()
            piece = bytes(self._buffer[:size])
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece

    def _fill(self) -> None:
        if not self._left:
            raise DamagedArchiveError
        piece = self._receive()
        self._left -= len(piece)
        self._buffer += piece


def _checked(entry: dict[str, Any]) -> dict[str, Any]:
    kind = entry["kind"]
    checked = {"path": _safe(entry["path"]), "mode": int(entry["mode"]), "kind": kind}
    if kind in (_MODE, _FOLDER):
        return checked
    checked["mtime_ns"] = int(entry["mtime_ns"])
    if kind == _FILE:
        checked["size"] = int(entry["size"])
    elif kind == _LINK:
        checked["target"] = _safe(entry["target"])
    elif kind == _SYMLINK:
        checked["target"] = entry["target"]
    else:
        raise ValueError(kind)
    return checked


def _safe(path: str) -> str:
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(path)
    return path


def restore(out: OutDir, archive: Archive) -> Restoration:
    """Creates in the current turn's ``files/`` what an archive holds; what has no place there is counted.

    Returns:
        What is to be done when the stored files were put in as well.

    Raises:
        OSError: OUT_DIR cannot hold it.
        DamagedArchiveError: it is no archive of `Packing`.
    """
    restoring, names = Restoration(out), []
    while (entry := archive.entry()) is not None:
        out.restored.append(entry)
        if entry["kind"] in (_LINK, _SYMLINK):
            names.append(entry)
        else:
            restoring.add(entry, archive.content(entry.get("size", 0)))
    # When all files are there: nothing is written through a link.
    for entry in names:
        restoring.add(entry, iter(()))
    return restoring


class Restoration:
    """The current turn's ``files/`` while entries of an archive are created in it."""

    def __init__(self, out: OutDir) -> None:
        self._out = out
        self._top = f"{out.turn_id}/files"
        self._folders: dict[str, dict[str, Any]] = {}
        self._links: list[dict[str, Any]] = []

    def add(self, entry: dict[str, Any], content: Iterator[bytes]) -> None:
        """Creates an entry; counts it if its path is too long here, or what is above it is no folder."""
        try:
            self._create(entry, content)
        except OSError as exc:
            if exc.errno not in _NO_PLACE:
                raise
            self._out.not_restored += 1
            for _ in content:
                pass  # the next entry is behind it

    def _create(self, entry: dict[str, Any], content: Iterator[bytes]) -> None:
        above = entry["path"].rpartition("/")[0]
        if entry["kind"] == _MODE:
            self._out.expect_mode(f"{self._top}/{entry['path']}", entry["mode"])
            return
        if above and above not in self._folders:
            raise NotADirectoryError(errno.ENOTDIR, "no folder")
        full = self._full(entry["path"])
        if entry["kind"] == _LINK:
            self._links.append(entry)
            return
        if entry["kind"] == _FOLDER:
            os.mkdir(full, 0o700)
            self._folders[entry["path"]] = entry
            return
        if entry["kind"] == _FILE:
            _write(full, entry, content)
        else:
            os.symlink(entry["target"], full)
            os.utime(full, ns=(entry["mtime_ns"], entry["mtime_ns"]), follow_symlinks=False)
        self._out.remember(f"{self._top}/{entry['path']}")

    def _full(self, path: str) -> str:
        return os.path.join(self._out.root, self._top, path)

    def finish(self) -> None:
        """Makes the second names of files, and gives the folders their modes; all files are there."""
        for entry in self._links:
            try:
                self._link(entry["target"], entry["path"])
            except OSError:
                self._out.not_restored += 1
        for path, entry in reversed(self._folders.items()):
            os.chmod(self._full(path), entry["mode"])

    def _link(self, target: str, path: str) -> None:
        """Makes a second name of a file, unless one of the two has other content since."""
        first, second = self._full(target), self._full(path)
        if os.path.lexists(second):
            if not _are_equal(first, second):
                return
            os.unlink(second)
        os.link(first, second, follow_symlinks=False)
        self._out.remember(f"{self._top}/{target}")
        self._out.remember(f"{self._top}/{path}")


def _are_equal(one: str, other: str) -> bool:
    """Whether two regular files have the same content."""
    stats = [os.lstat(path) for path in (one, other)]
    if not all(stat.S_ISREG(status.st_mode) for status in stats) or stats[0].st_size != stats[1].st_size:
        return False
    with open(one, "rb") as first, open(other, "rb") as second:
        while piece := first.read(_PIECE_BYTES):
            if piece != second.read(_PIECE_BYTES):
                return False
    return True


def _write(full: str, entry: dict[str, Any], content: Iterator[bytes]) -> None:
    fd = os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb", buffering=0) as file:
        for piece in content:
            view = memoryview(piece)
            while view:
                view = view[file.write(view) :]
        os.fchmod(fd, entry["mode"])
        os.utime(fd, ns=(entry["mtime_ns"], entry["mtime_ns"]))


def make_way(out: OutDir, path: str, *, yields: bool) -> bool:
    """Makes room at the path of a file of the current turn, which is newer than the workspace.

    Args:
        out: where.
        path: the path of the file, relative to OUT_DIR.
        yields: whether the workspace's own file in this place stays.

    Returns:
        False if the place stays taken.
    """
    parts = path.split("/")
    if parts[:2] != [out.turn_id, "files"]:
        return True
    for depth in range(3, len(parts) + 1):
        full = os.path.join(out.root, *parts[:depth])
        try:
            mode = os.lstat(full).st_mode
        except OSError:
            return True
        if stat.S_ISDIR(mode) and depth < len(parts):
            os.chmod(full, stat.S_IMODE(mode) | 0o700)
        elif yields:
            return False
        elif stat.S_ISDIR(mode):
            _remove_tree(full)
        else:
            os.unlink(full)
    return True


def _remove_tree(top: str) -> None:
    folders = [top]
    for folder in folders:  # grows meanwhile; a folder is opened before what is in it is visited
        os.chmod(folder, stat.S_IMODE(os.lstat(folder).st_mode) | 0o700)
        for name in os.listdir(folder):
            full = os.path.join(folder, name)
            if stat.S_ISDIR(os.lstat(full).st_mode):
                folders.append(full)
            else:
                os.unlink(full)
    for folder in reversed(folders):
        os.rmdir(folder)
