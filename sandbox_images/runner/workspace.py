"""The workspace of a conversation: ``files/`` as an archive, packed after a program, restored before the next.

An archive is a sequence of entries in the order of their paths: a line of JSON, then the bytes of a file. The
service stores it unread. While this module works, no process of the program runs; no link is followed.
"""

from __future__ import annotations

import errno
import os
import stat

from frames import StreamEndedError, read_json, write_json
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
        self._left_out = out.not_restored  # and sockets, pipes, what has too long a path, or no folder above it
        self._walk(f"{out.turn_id}/files", is_beside=False)
        if not os.path.islink(os.path.join(out.root, "files")):
            self._walk("files", is_beside=False)
        self._walk("", is_beside=True)

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
            folder = os.path.join(self._out.root, top, rel)
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in entries)
            except OSError:
                self._left_out += 1
                continue
            if is_beside and rel and not names:
                self._add_beside(rel, os.lstat(folder))
            for name in names:
                path = f"{rel}/{name}" if rel else name
                if self._is_full() or (is_beside and path == "files"):
                    continue
                self._visit(path, os.path.join(folder, name), stack, is_beside=is_beside)

    def _visit(self, rel: str, full: str, stack: list[str], *, is_beside: bool) -> None:
        try:
            status = os.lstat(full)
        except OSError:
            self._left_out += 1
            return
        if stat.S_ISDIR(status.st_mode):
            if is_beside and "/" not in rel and rel.startswith("turn_"):
                return
            if not is_beside:
                self._add(rel, full, status)
            try:
                os.chmod(full, stat.S_IMODE(status.st_mode) | 0o700)
            except OSError:
                self._left_out += 1
            else:
                stack.append(rel)
        elif not is_beside:
            self._add(rel, full, status)
        elif not self._out.unchanged(rel) and not self._out.aliases.is_second_name(rel):
            self._add_beside(rel, status)

    def _add_beside(self, rel: str, status: os.stat_result) -> None:
        for end in (at for at, letter in enumerate(rel) if letter == "/"):
            folder = os.path.join(self._out.root, rel[:end])
            if rel[:end] not in self._found and not self._add(rel[:end], folder, os.lstat(folder)):
                return
        self._add(rel, os.path.join(self._out.root, rel), status)

    def _add(self, rel: str, full: str, status: os.stat_result) -> bool:
        """Adds what is the first in its place; False if an archive cannot hold it there."""
        kinds = (stat.S_ISREG, stat.S_ISDIR, stat.S_ISLNK)
        is_held = any(is_kind(status.st_mode) for is_kind in kinds) and self._has_folder(rel)
        if is_held:
            self._found.setdefault(rel, (full, status))
        else:
            self._left_out += 1
        return is_held

    def _has_folder(self, rel: str) -> bool:
        """Whether what is packed above a path is a folder: of another file or link nothing can lie below."""
        above = rel.rpartition("/")[0]
        return not above or (above in self._found and stat.S_ISDIR(self._found[above][1].st_mode))

    def _is_full(self) -> bool:
        return len(self._found) > self._entries_max

    def send(self, channel: Channel) -> None:
        """Sends a WORKSPACE frame and, unless it is too large, the archive."""
        entries = list(self._entries())
        size = sum(len(header) + size for header, _, size in entries)
        is_too_large = self._is_full() or size > self._bytes_max
        facts = {"entries": len(entries), "size": size, "is_too_large": is_too_large, "left_out": self._left_out}
        channel.send_json(frame_format.WORKSPACE, facts)
        if is_too_large:
            return
        pending = bytearray()
        for header, full, left in entries:
            pending += header
            for piece in _content(full, left):
                pending += piece
                if len(pending) >= _PIECE_BYTES:
                    _send(channel, pending)
                    pending.clear()
        _send(channel, pending)

    def _entries(self) -> Iterator[tuple[bytes, str, int]]:
        """The line, the file and its size for each entry; a size of 0 has no bytes to send."""
        first_names: dict[int, str] = {}
        for rel, (full, status) in sorted(self._found.items()):
            size, entry = 0, {"path": rel, "mode": stat.S_IMODE(status.st_mode), "mtime_ns": status.st_mtime_ns}
            if stat.S_ISDIR(status.st_mode):
                entry["kind"] = _FOLDER
            elif stat.S_ISLNK(status.st_mode):
                entry |= {"kind": _SYMLINK, "target": os.readlink(full)}
            elif status.st_nlink > 1 and first_names.setdefault(status.st_ino, rel) != rel:
                entry |= {"kind": _LINK, "target": first_names[status.st_ino]}
            else:
                size = status.st_size
                entry |= {"kind": _FILE, "size": size}
            yield write_json(entry) + b"\n", full, size


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
    numbers = {name: int(entry[name]) for name in ("mode", "mtime_ns")}
    checked = {"kind": kind, "path": _safe(entry["path"]), **numbers}
    if kind == _FILE:
        checked["size"] = int(entry["size"])
    elif kind == _LINK:
        checked["target"] = _safe(entry["target"])
    elif kind == _SYMLINK:
        checked["target"] = entry["target"]
    elif kind != _FOLDER:
        raise ValueError(kind)
    return checked


def _safe(path: str) -> str:
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError(path)
    return path


def restore(out: OutDir, archive: Archive) -> None:
    """Creates in the current turn's ``files/`` what an archive holds; what has no place there is counted.

    Raises:
        OSError: OUT_DIR cannot hold it.
        DamagedArchiveError: it is no archive of `Packing`.
    """
    restoring = _Restoring(out)
    names = []
    while (entry := archive.entry()) is not None:
        if entry["kind"] in (_LINK, _SYMLINK):
            names.append(entry)
        else:
            restoring.add(entry, archive.content(entry.get("size", 0)))
    # When all files are there: nothing is written through a link.
    for entry in sorted(names, key=lambda name: name["kind"] == _SYMLINK):
        restoring.add(entry, iter(()))
    restoring.finish()


class _Restoring:
    """The current turn's ``files/`` while entries of an archive are created in it."""

    def __init__(self, out: OutDir) -> None:
        self._out = out
        self._top = f"{out.turn_id}/files"
        self._folders: dict[str, dict[str, Any]] = {}
        self._files: list[str] = []

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
        if above and above not in self._folders:
            raise NotADirectoryError(errno.ENOTDIR, "no folder")
        full = self._full(entry["path"])
        if entry["kind"] == _FOLDER:
            os.mkdir(full, 0o700)
            self._folders[entry["path"]] = entry
            return
        if entry["kind"] == _FILE:
            _write(full, entry, content)
        elif entry["kind"] == _LINK:
            os.link(self._full(entry["target"]), full, follow_symlinks=False)
        else:
            os.symlink(entry["target"], full)
            os.utime(full, ns=(entry["mtime_ns"], entry["mtime_ns"]), follow_symlinks=False)
        self._files.append(f"{self._top}/{entry['path']}")

    def _full(self, path: str) -> str:
        return os.path.join(self._out.root, self._top, path)

    def finish(self) -> None:
        """Remembers the files, and gives the folders their times and modes."""
        self._out.remember(self._files)
        for path, entry in reversed(self._folders.items()):
            os.utime(self._full(path), ns=(entry["mtime_ns"], entry["mtime_ns"]))
            os.chmod(self._full(path), entry["mode"])


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
