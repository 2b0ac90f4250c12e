"""What a program did beside the folder that is collected: files of the turn removed, results written elsewhere."""

from __future__ import annotations

import os
import stat
from itertools import islice

import cgroup
from aliases import copy_file
from frames import write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from out_dir import OutDir

# What is sent fits one frame, of a mebibyte; the rest is put back by the next call.
_REMOVED_MAX = 2_000
_REMOVED_BYTES_MAX = 512 * 1024
_SHOWN_MAX = 20
_LEFT_MAX = 5
_SHOWN_CHARS_MAX = 300
_VISITED_MAX = 2_000  # files and folders of other turns
_SMALL_BYTES = 1024 * 1024  # are copied whatever the kernel counts
_COPY_BYTES_LEFT = 64 * 1024 * 1024  # of memory that a larger copy leaves to the inspector
_TMP = "/tmp"  # noqa: S108 - the container's own
_SETTINGS = "home"  # there, with caches
# Where programs write that were trained on other sandboxes; an absolute one is another file system.
_PLACES = ("outputs", "output", _TMP)


def removed(out: OutDir) -> list[str]:
    """The files that were put into the working directory and that the program removed or moved away."""
    found: list[str] = []
    room = _REMOVED_BYTES_MAX
    for path in out.own():
        if not _is_gone(out, path):
            continue
        room -= len(write_json(path)) + 1
        if room < 0 or len(found) == _REMOVED_MAX:
            break
        found.append(path)
    return found


def in_other_turns(out: OutDir) -> list[str]:
    """What the program wrote or removed in folders of turns that are not collected: some names of it."""
    found = [path for path in out.others() if _is_gone(out, path)]
    stack = [path for path, is_dir in _entries(out.root, "") if is_dir and path.startswith("turn_")]
    visited = 0
    while stack and visited < _VISITED_MAX and len(found) < _SHOWN_MAX:
        folder = stack.pop()
        for path, is_dir in _entries(out.root, folder):
            visited += 1
            if path in (f"{out.turn_id}/files", f"{out.turn_id}/attachments"):
                continue
            if is_dir:
                stack.append(path)
            elif out.is_new(path):
                found.append(path)
    return [_shown(path) for path in sorted(set(found))[:_SHOWN_MAX]]


def left_in_tmp() -> list[str]:
    """Some files in ``/tmp`` and its folders whose names the program chose: they are lost with the container."""
    paths = []
    for name, is_dir in sorted(_entries(_TMP, "")):
        if name == _SETTINGS or name.startswith((".", "tmp")):
            continue
        below = sorted(_entries(_TMP, name)) if is_dir else [(name, False)]
        paths += [path for path, is_folder in below if not is_folder]
    named = (path for path in paths if "." in path.rpartition("/")[2].lstrip("."))
    return [_shown(path) for path in islice(filter(_has_content, named), _LEFT_MAX)]


def _has_content(name: str) -> bool:
    try:
        found = os.lstat(f"{_TMP}/{name}")
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size > 0


def _shown(path: str) -> str:
    """A name for display: one printable line, whatever the program called its file."""
    text = path if path.isprintable() else path.encode("unicode_escape").decode("ascii")
    return text[:_SHOWN_CHARS_MAX]


def take_in(out: OutDir, rel: str, promised: set[str], bytes_max: int) -> str | None:
    """Moves a promised file to its place, if exactly one other place has it; which place.

    No process of the program may run any more.
    """
    found = [place for place in _PLACES if _has(out, place, rel, promised, bytes_max)]
    if len(found) != 1:
        return None
    source = os.path.join(out.root, out.turn_id, "files", found[0], rel)
    return found[0] if _move(out, source, rel) else None


def take_in_from(out: OutDir, folder: str, own: set[str]) -> None:
    """Moves the files that the program wrote beside itself to ``files/``, where nothing lies; ``own`` are no such.

    No process of the program may run any more.
    """
    stack, visited = [""], 0
    while stack and visited < _VISITED_MAX:
        below = stack.pop()
        for name, is_dir in _entries(folder, below):
            visited += 1
            path = os.path.join(folder, name)
            if path in own or os.path.islink(path):
                continue
            if is_dir:
                stack.append(name)
            elif _is_small_file(path, out.bytes_left()):
                _move(out, path, name)


def _move(out: OutDir, source: str, rel: str) -> bool:
    """Moves a file to a path below ``files/``; False if something lies there or it does not fit."""
    target = os.path.join(out.root, out.turn_id, "files", rel)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if source.startswith(out.root + "/"):
            os.rename(source, target)
            os.rmdir(os.path.dirname(source))  # if that was all
        else:
            copy_file(source, target, 0o644)
            os.unlink(source)
    except OSError:
        return os.path.lexists(target) and not os.path.lexists(source)
    return True


def _is_small_file(path: str, bytes_max: int) -> bool:
    """Whether a regular file of at most ``bytes_max`` can be copied: memory is left for it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    room = max(_SMALL_BYTES, cgroup.memory_left_bytes() - _COPY_BYTES_LEFT)
    return stat.S_ISREG(found.st_mode) and found.st_size <= min(bytes_max, room)


def _has(out: OutDir, place: str, rel: str, promised: set[str], bytes_max: int) -> bool:
    if not place.startswith("/"):
        below = f"{place}/{rel}"
        path = f"{out.turn_id}/files/{below}"
        return below not in promised and out.is_new(path) and out.look(path, bytes_max)[0] == "file"
    folder = place
    for part in rel.split("/"):
        try:
            found = os.lstat(folder)
        except OSError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        folder = os.path.join(folder, part)
    return _is_small_file(folder, bytes_max)


def _is_gone(out: OutDir, path: str) -> bool:
    try:
        os.lstat(os.path.join(out.root, path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # it may be there
    return False


def _entries(root: str, folder: str) -> list[tuple[str, bool]]:
    try:
        with os.scandir(os.path.join(root, folder)) as entries:
            return [
                (f"{folder}/{entry.name}" if folder else entry.name, entry.is_dir(follow_symlinks=False))
                for entry in entries
            ]
    except OSError:
        return []
