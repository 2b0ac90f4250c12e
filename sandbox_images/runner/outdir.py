"""OUT_DIR from the inside: puts files in before the run, judges what lies there after it.

Judging happens when no process of the program is left, so nothing can change under our hands; still no link is
ever followed.
"""

import glob
import os
import re
import stat
import unicodedata

FILE = "file"
MISSING = "missing"
STALE = "stale"
SYMLINK = "symlink"
NOT_REGULAR = "not_regular"
ESCAPE = "escape"
TOO_LARGE = "too_large"

_EPOCH_NS = 946_684_800 * 10**9  # 2000-01-01: what was put in is older than anything the program writes


class OutDir:
    """The folder that the program works in."""

    def __init__(self, root):
        self.root = root
        self.turn_id = ""
        self._put = {}

    def begin_turn(self, turn_id):
        """Makes the current turn's folders, and ``files`` as another name of the same place."""
        self.turn_id = turn_id
        os.makedirs(os.path.join(self.root, turn_id, "files"), exist_ok=True)
        alias = os.path.join(self.root, "files")
        if not os.path.lexists(alias):
            os.symlink(f"{turn_id}/files", alias)

    def create(self, path):
        """Opens a new file below OUT_DIR for writing, its folders made."""
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)

    def seal(self, path, *, writable):
        """Finishes a file that was put in, and remembers it to tell later whether the program changed it."""
        full = os.path.join(self.root, path)
        os.utime(full, ns=(_EPOCH_NS, _EPOCH_NS))
        if not writable:
            os.chmod(full, 0o444)
        self._put[path] = _identity(os.lstat(full))

    def is_full(self):
        """Whether OUT_DIR or /tmp has no byte or no inode left."""
        for folder in (self.root, "/tmp"):  # noqa: S108 - the container's own
            space = os.statvfs(folder)
            if space.f_bavail == 0 or (space.f_files and space.f_favail == 0):
                return True
        return False

    def unchanged(self, path):
        """Whether a file that was put in is still what was put in."""
        try:
            return self._put.get(path) == _identity(os.lstat(os.path.join(self.root, path)))
        except OSError:
            return False

    def places(self, rel):
        """Where a path below ``files/`` may have been written: in files/, or bare in the working directory."""
        yield f"{self.turn_id}/files/{rel}"
        if not os.path.islink(os.path.join(self.root, "files")):
            yield f"files/{rel}"  # the program replaced the alias by a folder of its own
        yield rel

    def judge(self, rel, bytes_max):
        """What lies at a promised path: ``(state, path, size)``; ``path`` is relative to OUT_DIR."""
        verdict = (MISSING, None, 0)
        for path in self.places(rel):
            state, size = self._state(path)
            if state == MISSING:
                continue
            if state == FILE and self.unchanged(path):
                verdict = (STALE, path, size)
                continue
            return self.look(path, bytes_max)[0], path, size
        return verdict

    def look(self, path, bytes_max):
        """What lies at a path that nobody promised: ``(state, size)``."""
        state, size = self._state(path)
        return (TOO_LARGE if state == FILE and size > bytes_max else state), size

    def _state(self, path):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = os.path.join(self.root, *parts[:depth])
            try:
                mode = os.lstat(folder).st_mode
            except OSError:
                return MISSING, 0
            if stat.S_ISLNK(mode):
                inside = os.path.realpath(folder).startswith(os.path.join(self.root, self.turn_id, "files") + "/")
                return (SYMLINK if inside else ESCAPE), 0
            if not stat.S_ISDIR(mode):
                return MISSING, 0
            _make_readable(folder, mode, 0o700)
        try:
            found = os.lstat(os.path.join(self.root, path))
        except OSError:
            return MISSING, 0
        if stat.S_ISLNK(found.st_mode):
            return SYMLINK, 0
        if not stat.S_ISREG(found.st_mode):
            return NOT_REGULAR, 0
        _make_readable(os.path.join(self.root, path), found.st_mode, 0o400)
        return FILE, found.st_size

    def walk(self, files_max, depth_max):
        """All that the program left in the current turn: a list of ``(rel, path)``, and whether bounds were hit.

        ``rel`` is the path below ``files/``, or ``../attachments/<name>`` for an attachment that is no longer
        what was put in.
        """
        seen, left = {}, [files_max]
        deep = False
        for top, prefix in self._tops():
            deep = self._walk_below(top, prefix, depth_max, left, seen) or deep
            if left[0] < 0:
                break
        return sorted(seen.items()), left[0] < 0, deep

    def _tops(self):
        yield f"{self.turn_id}/files", ""
        yield f"{self.turn_id}/attachments", "../attachments/"
        if not os.path.islink(os.path.join(self.root, "files")):
            yield "files", ""
        yield "", ""

    def _walk_below(self, top, prefix, depth_max, left, seen):
        deep = False
        stack = [(top, prefix, 1)]
        while stack and left[0] >= 0:
            folder, rel_prefix, depth = stack.pop()
            for name, is_dir, full in _entries(os.path.join(self.root, folder)):
                path = f"{folder}/{name}" if folder else name
                if not folder and (name == "files" or name.startswith("turn_")):
                    continue
                if is_dir:
                    if depth >= depth_max:
                        deep = True
                    else:
                        _make_readable(full, os.lstat(full).st_mode, 0o700)
                        stack.append((path, f"{rel_prefix}{name}/", depth + 1))
                elif not self.unchanged(path):
                    left[0] -= 1
                    if left[0] < 0:
                        break
                    seen.setdefault(rel_prefix + name, path)
        return deep


def matching(pattern, rels):
    """The paths below ``files/`` that match a pattern, in order; ``**`` crosses folders, names may start with a dot."""
    expression = re.compile(glob.translate(pattern, recursive=True, include_hidden=True))
    return [rel for rel in rels if not rel.startswith("../") and expression.match(composed(rel))]


def composed(rel):
    """A path in NFC, the spelling in which promises are written."""
    return unicodedata.normalize("NFC", rel)


def _identity(found):
    return found.st_ino, found.st_mtime_ns, found.st_size


def _make_readable(full, mode, bits):
    if stat.S_IMODE(mode) & bits != bits:
        os.chmod(full, stat.S_IMODE(mode) | bits)


def _entries(folder):
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False), entry.path
    except OSError:
        return
