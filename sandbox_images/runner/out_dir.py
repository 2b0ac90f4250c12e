"""OUT_DIR from the inside: puts files in before the run, judges what lies there after it.

Judging begins when no process of the program runs any more, so no file can change meanwhile; still no link is
ever followed.
"""

from __future__ import annotations

import os
import stat

from aliases import Aliases

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

FILE = "file"
MISSING = "missing"
STALE = "stale"
SYMLINK = "symlink"
FOLDER = "folder"
NOT_REGULAR = "not_regular"
ESCAPE = "escape"
TOO_LARGE = "too_large"

ATTACHMENTS = "../attachments/"  # in front of what was changed there: it is not below files/

# A file that begins so can be run by its name, as it could when it was written.
PROGRAM_MARKS = (b"#!", b"\x7fELF")

USUAL_MODE = 0o644
_EPOCH_NS = 946_684_800 * 10**9  # 2000-01-01: when a file was made of which that is not known


class OutDir:
    """The folder that the program works in."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.turn_id = ""
        self.aliases = Aliases(root)
        self.restored: list[dict[str, Any]] = []  # the entries of the archive that was restored
        self.not_restored = 0  # those that have no place here
        self._put: dict[str, tuple[int, int, int, int]] = {}
        self._own: dict[str, None] = {}
        self._others: dict[str, None] = {}
        self._modes: dict[str, int] = {}  # of files that are yet to be put in

    def begin_turn(self, turn_id: str) -> None:
        """Makes the current turn's folders."""
        self.turn_id = turn_id
        os.makedirs(os.path.join(self.root, turn_id, "files"), exist_ok=True)

    def create(self, path: str) -> int:
        """Opens a new file below OUT_DIR for writing, its folders made."""
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return os.open(full, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)

    def seal(
        self,
        path: str,
        *,
        writable: bool,
        executable: bool = False,
        made_ns: int | None = None,
        links: Iterable[str] = (),
        copies: Iterable[str] = (),
    ) -> None:
        """Finishes a file that was put in, and remembers it to know later whether the program changed it.

        Args:
            path: where it is.
            writable: whether the program may write to it.
            executable: whether it can be run by its name.
            made_ns: when it was made, in nanoseconds since 1970.
            links: further names of it, made where nothing lies.
            copies: names of a copy.
        """
        full = os.path.join(self.root, path)
        mode = self._modes.pop(path, 0o755 if executable else 0o644)
        os.chmod(full, mode if writable else mode & 0o555)
        made = [path, *self.aliases.make(path, links, copies, self.turn_id)]
        when = _EPOCH_NS if made_ns is None else made_ns
        for name in made:
            os.utime(os.path.join(self.root, name), ns=(when, when))
        for name in made:  # the kernel notes a new name as a change of the file
            self._put[name] = _identity(os.lstat(os.path.join(self.root, name)))
        (self._own if writable else self._others)[path] = None

    def remember(self, path: str) -> None:
        """Remembers a file that was restored, to know later whether the program changed it."""
        self._put[path] = _identity(os.lstat(os.path.join(self.root, path)))

    def expect_mode(self, path: str, mode: int) -> None:
        """Gives a file the mode that a program gave it before, as soon as it is put in."""
        self._modes[path] = mode

    def modes_left(self) -> Iterable[tuple[str, int]]:
        """The modes of files that were not put in."""
        return self._modes.items()

    def is_put(self, path: str) -> bool:
        """Whether a file was put in by itself, and not with an archive."""
        return path in self._own

    def bytes_left(self) -> int:
        """What still fits into OUT_DIR."""
        space = os.statvfs(self.root)
        return space.f_bavail * space.f_frsize

    def own(self) -> Iterable[str]:
        """The files that were put into the working directory, and into the attachments of the current turn."""
        return self._own

    def others(self) -> Iterable[str]:
        """The files that were put in to be read only."""
        return self._others

    def unchanged(self, path: str) -> bool:
        """Whether a file that was put in is still what was put in."""
        put = self._put.get(path)
        if put is None:
            return False
        try:
            now = _identity(os.lstat(os.path.join(self.root, path)))
        except OSError:
            return False
        if now == put:
            return True
        # The kernel notes the loss of a name in the time of the inode, as it notes a change.
        return now[:2] == put[:2] and now[3] == put[3] and self.aliases.has_lost_a_name(path)

    def places(self, rel: str) -> Iterator[str]:
        """Where a path below ``files/`` may have been written: there, or in a folder that stands for it."""
        for top in self.file_tops():
            yield f"{top}/{rel}" if top else rel

    def judge(self, rel: str, bytes_max: int) -> tuple[str, str | None, int]:
        """What lies at a promised path: ``(state, path, size)``; ``path`` is relative to OUT_DIR."""
        verdict: tuple[str, str | None, int] = (MISSING, None, 0)
        for path in self.places(rel):
            state, size = self._state(path)
            if state == MISSING:
                continue
            if state == FILE and self.unchanged(path):
                verdict = (STALE, path, size)
                continue
            return self.look(path, bytes_max)[0], path, size
        return verdict

    def look(self, path: str, bytes_max: int) -> tuple[str, int]:
        """What lies at a path that nobody promised: ``(state, size)``."""
        state, size = self._state(path)
        return (TOO_LARGE if state == FILE and size > bytes_max else state), size

    def _state(self, path: str) -> tuple[str, int]:
        blocked = self.open_way(path.split("/")[:-1])
        if blocked is not None:
            return blocked, 0
        try:
            found = os.lstat(os.path.join(self.root, path))
        except OSError:
            return MISSING, 0
        if stat.S_ISLNK(found.st_mode):
            return SYMLINK, 0
        if stat.S_ISDIR(found.st_mode):
            return FOLDER, 0
        if not stat.S_ISREG(found.st_mode):
            return NOT_REGULAR, 0
        _make_readable(os.path.join(self.root, path), found.st_mode, 0o400)
        return FILE, found.st_size

    def open_way(self, parts: list[str]) -> str | None:
        """Makes the folders on a way readable; what blocks it (no folder, or a link in place of one), or None."""
        for depth in range(len(parts) + 1):
            folder = os.path.join(self.root, *parts[:depth])
            try:
                mode = os.lstat(folder).st_mode
            except OSError:
                return MISSING
            if stat.S_ISLNK(mode):
                inside = os.path.realpath(folder).startswith(os.path.join(self.root, self.turn_id, "files") + "/")
                return SYMLINK if inside else ESCAPE
            if not stat.S_ISDIR(mode):
                return MISSING
            _make_readable(folder, mode, 0o700)
        return None

    def walk(self, files_max: int, depth_max: int) -> Walk:
        """All that the program left in the current turn."""
        walk = Walk(files_max, depth_max)
        for top, prefix in self._tops():
            self._walk_below(top, prefix, walk)
        return walk

    def file_tops(self) -> Iterator[str]:
        """The folders in which files of the turn may lie."""
        return (top for top, prefix in self._tops() if not prefix)

    def has_rest(self, files_max: int) -> bool:
        """Whether there may be more than files that are stored by themselves."""
        try:
            return bool(self.restored) or self._has_more_than_files(files_max)
        except OSError:  # the program changed the folders themselves
            return True

    def _has_more_than_files(self, files_max: int) -> bool:
        files, count = f"{self.turn_id}/files", 0
        with os.scandir(os.path.join(self.root, files)) as entries:
            for entry in entries:
                path = f"{files}/{entry.name}"
                mode = entry.stat(follow_symlinks=False).st_mode
                count += not self.unchanged(path)
                if not stat.S_ISREG(mode) or stat.S_IMODE(mode) != USUAL_MODE or count > files_max:
                    return True
        return not all(name.startswith("turn_") for name in os.listdir(self.root))

    def _tops(self) -> Iterator[tuple[str, str]]:
        """The folders in which the turn's files may lie, and what comes before the names of those in them.

        A program may make a folder ``files`` in its working directory, which is ``files`` already.
        """
        files = f"{self.turn_id}/files"
        yield files, ""
        yield f"{self.turn_id}/attachments", ATTACHMENTS
        for top in (f"{files}/files", f"{files}/{files}"):
            if not os.path.islink(os.path.join(self.root, top.removesuffix("/files"))) and not os.path.islink(
                os.path.join(self.root, top)
            ):
                yield top, ""
        yield "", ""

    def is_top(self, folder: str, name: str, *, is_dir: bool) -> bool:
        """Whether an entry of OUT_DIR or of the working directory is no file or folder of its own there."""
        if folder == "":
            return is_dir and name.startswith("turn_")
        return folder == f"{self.turn_id}/files" and is_dir and name in ("files", self.turn_id)

    def _walk_below(self, top: str, prefix: str, walk: Walk) -> None:
        if self.open_way(top.split("/") if top else []) is not None:
            return  # a link in its place leads to what is not the program's
        stack = [(top, prefix, 1)]
        while stack and not walk.files_exceeded:
            folder, rel_prefix, depth = stack.pop()
            for name, is_dir, full in _entries(os.path.join(self.root, folder)):
                if self.is_top(folder, name, is_dir=is_dir):
                    continue
                path = f"{folder}/{name}" if folder else name
                if is_dir:
                    if walk.may_enter(depth, full):
                        stack.append((path, f"{rel_prefix}{name}/", depth + 1))
                elif self.is_new(path):
                    walk.add(rel_prefix + name, path)
                    if walk.files_exceeded:
                        break

    def is_new(self, path: str) -> bool:
        """Whether what lies at a path was made or changed by the program."""
        return not (self.unchanged(path) or self.aliases.is_second_name(path))


class Walk:
    """What a walk through OUT_DIR has seen, within bounds."""

    def __init__(self, files_max: int, depth_max: int) -> None:
        self._files_max = files_max
        self._depth_max = depth_max
        self._seen: dict[str, str] = {}
        self.files_exceeded = False
        self.depth_exceeded = False

    def may_enter(self, depth: int, full: str) -> bool:
        """Whether a folder below one of ``depth`` is visited; it is made readable."""
        enters = depth < self._depth_max and _opened(full)
        self.depth_exceeded = self.depth_exceeded or not enters
        return enters

    def add(self, rel: str, path: str) -> None:
        """One file; of two with the same place below ``files/`` the first counts."""
        if len(self._seen) >= self._files_max:
            self.files_exceeded = True
        else:
            self._seen.setdefault(rel, path)

    def files(self) -> list[tuple[str, str]]:
        """``(rel, path)`` in the order of ``rel``, the path below ``files/`` or ``../attachments/<name>``."""
        return sorted(self._seen.items())


def matching(pattern: str, rels: Iterable[str]) -> list[str]:
    """The paths below ``files/`` that match a pattern, in order; ``**`` crosses folders, dot files count."""
    fits: Callable[[str, str], bool] = fits_wildcards
    if "[" in pattern:
        import fnmatch  # noqa: PLC0415 - with it come regular expressions, which take 5 ms

        fits = fnmatch.fnmatchcase

    named = pattern.split("/")
    # Several ** in a row are one.
    parts = [part for at, part in enumerate(named) if part != "**" or named[at + 1 : at + 2] != ["**"]]
    return [
        rel for rel in rels if not rel.startswith(ATTACHMENTS) and _matches(parts, composed(rel).split("/"), fits)
    ]


def fits_wildcards(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern of ``*``, ``?`` and letters, as in `fnmatch.fnmatchcase`, in bounded time."""
    at, read = 0, 0
    last_star: tuple[int, int] | None = None  # its place in the pattern, and up to where in the name it reaches
    while read < len(name):
        if at < len(pattern) and pattern[at] == "*":
            last_star = at, read
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[read]):
            at += 1
            read += 1
        elif last_star is not None:
            last_star = last_star[0], last_star[1] + 1
            at, read = last_star[0] + 1, last_star[1]
        else:
            return False
    return not pattern[at:].strip("*")


def _matches(parts: list[str], names: list[str], fits: Callable[[str, str], bool]) -> bool:
    """Whether a path matches; one regular expression of the whole pattern would backtrack without end."""
    reached = {0}
    for name in names:
        reached = {after for at in _with_skipped(parts, reached) for after in _after(parts, at, name, fits)}
    return len(parts) in reached


def _with_skipped(parts: list[str], reached: set[int]) -> set[int]:
    """Also the places behind each ``**`` that stands for no folder; the last one stands for one name at least."""
    places = set(reached)
    for at in range(len(parts) - 1):
        if at in places and parts[at] == "**":
            places.add(at + 1)
    return places


def _after(parts: list[str], at: int, name: str, fits: Callable[[str, str], bool]) -> Iterator[int]:
    if at == len(parts):
        return
    if parts[at] == "**":
        yield at
    if fits(name, parts[at]) and (parts[at] != "**" or at == len(parts) - 1):
        yield at + 1


def composed(rel: str) -> str:
    """A path in NFC, the spelling in which promises are written."""
    if rel.isascii():
        return rel
    import unicodedata  # noqa: PLC0415 - a large table, for those names alone

    return unicodedata.normalize("NFC", rel)


def _identity(found: os.stat_result) -> tuple[int, int, int, int]:
    # A program can restore the time of the content, as `cp -p` and tar do; not that of the inode.
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _make_readable(full: str, mode: int, bits: int) -> None:
    if stat.S_IMODE(mode) & bits != bits:
        os.chmod(full, stat.S_IMODE(mode) | bits)


def _opened(folder: str) -> bool:
    """Makes a folder readable; False if its path, made step by step, is longer than the kernel takes."""
    try:
        mode = os.lstat(folder).st_mode
    except OSError:
        return False
    _make_readable(folder, mode, 0o700)
    return True


def _entries(folder: str) -> Iterator[tuple[str, bool, str]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                yield entry.name, entry.is_dir(follow_symlinks=False), entry.path
    except OSError:
        return
