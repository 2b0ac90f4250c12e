"""Unpacks wheels, which anybody may have written, into a folder; no code of them runs.

Names, kinds, numbers and sizes of all members are checked before the first one is written. A member cannot be
longer than the table of members states, because the library stops there.
"""

import os
import stat
import struct
import threading
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import HeaderParser
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from proofbox.service.packages.lock import LockedWheel
from proofbox.service.packages.refusal import PackageRefusedError, broken_wheel, too_large

BLOCK_BYTES = 4096
"""What a file or folder takes on a disk at least, also an empty one."""
_END = struct.Struct("<4s4H2LH")
_END_SIGNATURE, _MEMBER_SIGNATURE = b"PK\x05\x06", b"PK\x01\x02"
_ZIP64_LOCATOR, _ZIP64_LOCATOR_BYTES = b"PK\x06\x07", 20
_TABLE_BYTES_MAX = 16 * 1024 * 1024
_METADATA_BYTES_MAX = 2 * 1024 * 1024
_NAME_BYTES_MAX, _PATH_BYTES_MAX, _DEPTH_MAX = 255, 1024, 32
_PIECE_BYTES = 1024 * 1024
_FIRST_PRINTED = 32
_DELETE = 127
_KINDS = frozenset({0, stat.S_IFREG, stat.S_IFDIR})
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED = 0x1
_PLACED = frozenset({"purelib", "platlib"})


@dataclass(slots=True)
class Room:
    """What wheels may still take together.

    Attributes:
        bytes_left: of unpacked files.
        files_left: files and folders.
        is_stopped: set by another thread if nobody needs the files any more.
    """

    bytes_left: int
    files_left: int
    is_stopped: threading.Event = field(default_factory=threading.Event)
    _whole: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._whole = self.bytes_left, self.files_left

    def build_refusal(self) -> PackageRefusedError:
        """The refusal of wheels that take more than the whole room."""
        return too_large(*self._whole)


@dataclass(frozen=True, slots=True)
class UnpackedSize:
    """What wheels take, unpacked.

    Attributes:
        bytes_total: of their files.
        disk_bytes: of their files and folders on a disk, in whole blocks.
        modules: how many Python modules are among them.
        modules_bytes: of these modules.
    """

    bytes_total: int = 0
    disk_bytes: int = 0
    modules: int = 0
    modules_bytes: int = 0

    def __add__(self, other: "UnpackedSize") -> "UnpackedSize":
        return UnpackedSize(
            self.bytes_total + other.bytes_total,
            self.disk_bytes + other.disk_bytes,
            self.modules + other.modules,
            self.modules_bytes + other.modules_bytes,
        )

    @property
    def bytecode_bytes_max(self) -> int:
        """What the bytecode of the modules may have: usual code needs less."""
        return 2 * self.modules_bytes + BLOCK_BYTES * self.modules

    @property
    def bytecode_disk_bytes(self) -> int:
        """What that takes on a disk at most, with the folders of each."""
        return self.bytecode_bytes_max + 2 * BLOCK_BYTES * self.modules


class StoppedError(Exception):
    """Nobody needs the files any more; those that were written stay."""


def measure(path: Path, wheel: LockedWheel, room: Room) -> UnpackedSize:
    """What one wheel will take; nothing is written.

    Args:
        path: the wheel.
        wheel: what it has to be.
        room: what may be taken; it becomes less.

    Raises:
        PackageRefusedError: as `unpack`.
        OSError: the wheel cannot be read.
    """
    with _opened(path, wheel, room) as (_, members):
        files = {name: member.file_size for name, member in members.items() if not member.is_dir()}
        folders = {name for name in members if name not in files}.union(*map(_folders_above, members))
        blocks = sum(max(1, -(-size // BLOCK_BYTES)) for size in files.values()) + len(folders)
        modules = [size for name, size in files.items() if name.endswith(".py")]
        return UnpackedSize(sum(files.values()), blocks * BLOCK_BYTES, len(modules), sum(modules))


def unpack(path: Path, wheel: LockedWheel, into: Path, room: Room) -> None:
    """Unpacks one wheel; a file that another wheel has placed stays.

    Args:
        path: the wheel.
        wheel: what it has to be.
        into: a folder that only this process writes to.
        room: what may be taken; it becomes less.

    Raises:
        PackageRefusedError: it is no sound wheel, another one than it claims to be, or larger than the room.
        OSError: a file cannot be written.
        StoppedError: nobody needs them any more.
    """
    with _opened(path, wheel, room) as (archive, members):
        for name, member in members.items():
            if (place := _place(name)) is not None and not member.is_dir():
                _write(archive, member, into / place, room)


@contextmanager
def _opened(
    path: Path, wheel: LockedWheel, room: Room
) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """A wheel and its members, which were checked; what is wrong in the block is refused."""
    try:
        _check_end(path, wheel.filename, room)
        with zipfile.ZipFile(path) as archive:
            members = _checked(archive, wheel, room)
            _check_identity(archive, members, wheel)
            yield archive, members
    except (FileExistsError, NotADirectoryError) as exc:
        raise broken_wheel(wheel.filename, "has a folder where another package has a file") from exc
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as exc:
        if isinstance(exc, PackageRefusedError):
            raise
        raise broken_wheel(wheel.filename, f"cannot be unpacked ({type(exc).__name__})") from exc


def _check_end(path: Path, filename: str, room: Room) -> None:
    """Bounds the table of members before the library reads it as a whole."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - _END.size - _ZIP64_LOCATOR_BYTES))
        tail = file.read()
    end = tail[-_END.size :]
    if len(end) != _END.size or not end.startswith(_END_SIGNATURE):
        raise broken_wheel(filename, "does not end as an archive does")
    if tail.startswith(_ZIP64_LOCATOR):
        raise broken_wheel(filename, "has a table of members of the 64-bit form, which no wheel needs")
    _, _, _, _, count, table_bytes, _, _ = _END.unpack(end)
    if table_bytes > _TABLE_BYTES_MAX:
        raise broken_wheel(filename, f"has a table of members of {table_bytes} bytes ({_TABLE_BYTES_MAX} may)")
    if count > room.files_left:
        raise room.build_refusal()
    # The library reads as many members as the table has, whatever it states.
    with path.open("rb") as file:
        file.seek(max(0, size - _END.size - table_bytes))
        if file.read(table_bytes).count(_MEMBER_SIGNATURE) > room.files_left:
            raise room.build_refusal()


def _checked(archive: zipfile.ZipFile, wheel: LockedWheel, room: Room) -> dict[str, zipfile.ZipInfo]:
    """All members by their names, if every one is sound and they fit."""
    members: dict[str, zipfile.ZipInfo] = {}
    folders: set[str] = set()
    for member in archive.infolist():
        # As it stands in the archive: the library cuts names at a NUL, and knows other separators on other systems.
        name = member.orig_filename
        kind = stat.S_IFMT(member.external_attr >> 16)
        if not _is_safe(name):
            raise broken_wheel(wheel.filename, f"has a member with the unsafe name {name[:80]!a}")
        if kind not in _KINDS or (kind == stat.S_IFDIR) > member.is_dir():
            raise broken_wheel(wheel.filename, f"has a link or special file, {name[:80]!a}")
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _METHODS:
            raise broken_wheel(wheel.filename, f"has a member in a form that no wheel needs, {name[:80]!a}")
        name = name.removesuffix("/")
        if name in members:
            raise broken_wheel(wheel.filename, f"has the member {name[:80]!a} twice")
        members[name] = member
        folders.update(_folders_above(name))
        room.bytes_left -= member.file_size
        room.files_left -= 1
        if room.bytes_left < 0 or room.files_left - len(folders) < 0:
            raise room.build_refusal()
    room.files_left -= len(folders)
    if clash := next((name for name in folders if name in members and not members[name].is_dir()), None):
        raise broken_wheel(wheel.filename, f"has {clash[:80]!a} as a file and as a folder")
    return members


def _is_safe(name: str) -> bool:
    parts = name.removesuffix("/").split("/")
    return (
        len(name.encode(errors="surrogatepass")) <= _PATH_BYTES_MAX
        and len(parts) <= _DEPTH_MAX
        and "\\" not in name
        and not any(ord(letter) < _FIRST_PRINTED or ord(letter) == _DELETE for letter in name)
        and all(part not in {"", ".", ".."} and len(part.encode()) <= _NAME_BYTES_MAX for part in parts)
    )


def _folders_above(name: str) -> set[str]:
    parts = name.split("/")[:-1]
    return {"/".join(parts[: count + 1]) for count in range(len(parts))}


def _check_identity(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], wheel: LockedWheel) -> None:
    """Makes sure that the wheel is the package and version that it was resolved as."""
    facts = [name for name in members if name.endswith(".dist-info/METADATA") and name.count("/") == 1]
    if len(facts) != 1 or f"{facts[0].partition('/')[0]}/WHEEL" not in members:
        raise broken_wheel(wheel.filename, "does not have exactly one folder .dist-info with METADATA and WHEEL")
    member = members[facts[0]]
    if member.file_size > _METADATA_BYTES_MAX:
        raise broken_wheel(wheel.filename, f"has METADATA of {member.file_size} bytes ({_METADATA_BYTES_MAX} may)")
    with archive.open(member) as file:
        head = HeaderParser().parsestr(file.read().decode(errors="replace").partition("\n\n")[0])
    try:
        is_same = Version(str(head["Version"])) == Version(wheel.version)
    except InvalidVersion:
        is_same = False
    if not is_same or canonicalize_name(str(head["Name"])) != wheel.name:
        raise broken_wheel(wheel.filename, f"is another package inside: {str(head['Name'])[:80]} {head['Version']}")


def _place(name: str) -> Path | None:
    """Where a member goes, below the overlay; None if it is not placed: scripts, headers and data files."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data") or not rest:
        return Path(name)
    scheme, _, below = rest.partition("/")
    return Path(below) if scheme in _PLACED and below else None


def _write(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, room: Room) -> None:
    if room.is_stopped.is_set():
        raise StoppedError
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o755 if member.external_attr >> 16 & stat.S_IXUSR else 0o644
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except FileExistsError:
        return
    with os.fdopen(fd, "wb") as target, archive.open(member) as source:
        while piece := source.read(_PIECE_BYTES):
            if room.is_stopped.is_set():
                raise StoppedError
            target.write(piece)
    path.chmod(mode)  # whatever the mask of this process is
