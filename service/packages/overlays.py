"""The folders with installed packages: made as a whole or not at all, read by sandboxes, removed when they are old.

The folder of all overlays is mounted read-only into every sandbox. Nobody there can list it, and the name of an
overlay is a secret of who uses it: it is derived from the lock with a key that never leaves the service.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.thread_work import finish_in_thread
from proofbox.service.packages.wheel_files import BLOCK_BYTES
from proofbox.service.sandbox.hardening import PACKAGES_AT

log = logging.getLogger("proofbox.packages")

_KEY_BYTES = 32
_TAG_CHARS = 40
_NAME = re.compile(r"(?P<tag>[0-9a-f]{40})-(?P<bytes>[0-9]+)-(?P<unpacked>[0-9]+)")
_LISTED_BY_NOBODY = 0o711
_C_LIBRARY = ctypes.CDLL(None, use_errno=True)


class PackageFolderInUseError(StoreFailedError):
    """Another process of the service has the folder of packages."""


@dataclass(slots=True)
class _Overlay:
    name: str
    size_bytes: int
    unpacked_bytes: int
    used: float


@dataclass(eq=False, slots=True)
class Reservation:
    """Bytes of the disk that one installation will write, or has written.

    Attributes:
        size_bytes: how many.
    """

    size_bytes: int = 0


class Overlays:
    """The overlays of one service, on its disk.

    Args:
        folder: of the service.
        mounted: the name of the folder in it that sandboxes see.
        bytes_max: what all together may take; those that are in use stay, and one more is refused then.
    """

    def __init__(self, folder: Path, mounted: str, bytes_max: int) -> None:
        self._folder = folder
        self.mounted = folder / mounted
        """The folder that every sandbox has at `PACKAGES_AT`."""
        self.bytes_max = bytes_max
        self._key = b""
        self._known: dict[str, _Overlay] = {}
        self._in_use: Counter[str] = Counter()
        self._reserved: set[Reservation] = set()
        self._lock: int | None = None

    def open(self) -> None:
        """Makes the folders, and removes what an earlier process of the service did not finish.

        Raises:
            PackageFolderInUseError: another process has the folder.
            OSError: the folders cannot be made.
        """
        try:
            self._folder.mkdir(parents=True)
            self._folder.chmod(_LISTED_BY_NOBODY)
        except FileExistsError:
            pass  # the mode of a folder that the operator made is the operator's
        self._take_lock()
        self.mounted.mkdir(exist_ok=True)
        self.mounted.chmod(_LISTED_BY_NOBODY)
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(mode=0o700)
        self.resolutions.mkdir(mode=0o700, exist_ok=True)
        self._key = self._read_key()
        self._known.clear()
        for entry in self.mounted.iterdir():
            if found := _NAME.fullmatch(entry.name):
                self._known[found["tag"]] = _Overlay(
                    entry.name, int(found["bytes"]), int(found["unpacked"]), entry.stat().st_mtime
                )
            else:
                shutil.rmtree(entry, ignore_errors=True)

    def close(self) -> None:
        """Lets another process have the folder; a second call does nothing."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take_lock(self) -> None:
        """Takes the folder for this process, until it ends or closes."""
        if self._lock is not None:
            return
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            os.close(lock)
            raise PackageFolderInUseError(
                f"package_dir: another process of the service has the folder {self._folder}; "
                "set PROOFBOX_PACKAGE_DIR to one of its own for each process"
            ) from exc
        except OSError:
            os.close(lock)
            raise
        self._lock = lock

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

    @contextlib.asynccontextmanager
    async def work_folder(self) -> AsyncIterator[Path]:
        """An empty folder on the same file system, removed at the end of the block. Raises OSError."""
        folder = self._work / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            await finish_in_thread(lambda: _remove([folder]))

    @contextlib.asynccontextmanager
    async def shown(self, made: Path) -> AsyncIterator[Path]:
        """Lets sandboxes see the folder of an overlay that is not taken in yet, for the block; yields where it is.

        Nobody knows its name there but who is given it. `open` removes it if the process ends meanwhile.

        Raises:
            OSError: it cannot be moved.
        """
        await finish_in_thread(lambda: _let_read(made))
        path = self.mounted / f"unfinished-{secrets.token_hex(_TAG_CHARS // 2)}"
        made.rename(path)  # noqa: ASYNC240
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

    def unpacked_bytes(self, digest: str) -> int:
        """What the wheels of an overlay took, unpacked; 0 if there is none."""
        overlay = self._known.get(self._tag(digest))
        return 0 if overlay is None else overlay.unpacked_bytes

    @contextlib.asynccontextmanager
    async def reserve(self, size_bytes: int) -> AsyncIterator[Reservation]:
        """Reserves bytes for an installation, before it writes them; gives them back at the end of the block.

        Raises:
            StoreFullError: they do not fit beside overlays in use and other installations, or on the disk.
        """
        reserved = Reservation()
        self._reserved.add(reserved)
        try:
            await self.resize(reserved, size_bytes)
            yield reserved
        finally:
            self._reserved.discard(reserved)

    async def resize(self, reserved: Reservation, size_bytes: int, written_bytes: int = 0) -> None:
        """Makes a reservation larger or smaller, and removes the oldest overlays where that needs it.

        Args:
            reserved: it stays as it was if it cannot be made larger.
            size_bytes: what it is to be as a whole.
            written_bytes: how many of them are on the disk already.

        Raises:
            StoreFullError: they do not fit.
        """
        others = sum(each.size_bytes for each in self._reserved if each is not reserved)
        if self._bytes_in_use("") + others + size_bytes > self.bytes_max:
            raise self._full(size_bytes, others)
        before, reserved.size_bytes = reserved.size_bytes, size_bytes
        if gone := self._evict():
            await finish_in_thread(lambda: _remove(gone))
        missing = size_bytes - written_bytes - self._free_bytes()
        if 0 < missing <= self._bytes_not_in_use() and (gone := self._evict(missing)):
            await finish_in_thread(lambda: _remove(gone))
            missing = size_bytes - written_bytes - self._free_bytes()
        if missing > 0:
            reserved.size_bytes = before
            raise StoreFullError(
                f"packages: the disk of PROOFBOX_PACKAGE_DIR lacks {missing} bytes for them; call again later, or "
                "free space there"
            )

    def require_room(self) -> None:
        """Refuses an installation early whose overlay `add` would refuse.

        Raises:
            StoreFullError: those in use take all bytes.
        """
        if self._bytes_in_use("") >= self.bytes_max:
            raise self._full(0, 0)

    async def add(
        self, digest: str, made: Path, unpacked_bytes: int = 0, reserved: Reservation | None = None
    ) -> None:
        """Takes in the folder of an overlay, and removes the oldest ones where that leaves too little room.

        Args:
            digest: of its lock.
            made: the folder.
            unpacked_bytes: what its wheels took, unpacked.
            reserved: what was reserved for it; it is given back.

        Raises:
            PackageRefusedError: it is larger than all overlays together may be.
            StoreFullError: it does not fit beside those in use.
            OSError: it cannot be written or moved.
        """
        tag = self._tag(digest)
        size = await finish_in_thread(lambda: _seal(made))
        if size > self.bytes_max:
            raise PackageRefusedError(
                ContractCode.PACKAGES_TOO_LARGE,
                f"they take {size} bytes of the disk and all packages of the service may take {self.bytes_max} "
                "(PROOFBOX_PACKAGE_CACHE_BYTES_MAX); ask for fewer or smaller ones",
            )
        others = sum(each.size_bytes for each in self._reserved if each is not reserved)
        if self._bytes_in_use(tag) + others + size > self.bytes_max:
            raise self._full(size, others)
        # Up to the removal nothing waits: two calls see the same overlays, and neither half of a change.
        if tag not in self._known:
            overlay = _Overlay(f"{tag}-{size}-{unpacked_bytes}", size, unpacked_bytes, time.time())
            made.rename(self.mounted / overlay.name)  # noqa: ASYNC240
            self._known[tag] = overlay
        if reserved is not None:
            reserved.size_bytes = 0
        if gone := self._evict(added=tag):
            await finish_in_thread(lambda: _remove(gone))

    def _bytes_in_use(self, added: str) -> int:
        return sum(
            overlay.size_bytes for tag, overlay in self._known.items() if self._in_use[tag] > 0 and tag != added
        )

    def _bytes_not_in_use(self) -> int:
        return sum(overlay.size_bytes for tag, overlay in self._known.items() if not self._in_use[tag])

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self._folder).free

    def _full(self, size: int, reserved: int) -> StoreFullError:
        return StoreFullError(
            f"packages: those of running calls take {self._bytes_in_use('')} bytes, those that are being installed "
            f"{reserved}, and these {size} (PROOFBOX_PACKAGE_CACHE_BYTES_MAX: {self.bytes_max}); call again later"
        )

    def _evict(self, missing: int = 0, added: str = "") -> list[Path]:
        """Takes the oldest overlays out of use until the others fit; returns the folders to remove.

        Args:
            missing: bytes that have to become free on the disk in any case.
            added: an overlay that stays.
        """
        gone: list[Path] = []
        total = sum(overlay.size_bytes for overlay in self._known.values())
        bytes_max = min(self.bytes_max - sum(each.size_bytes for each in self._reserved), total - missing)
        for tag, overlay in sorted(self._known.items(), key=lambda item: item[1].used):
            if total <= bytes_max:
                break
            if tag == added or self._in_use[tag]:
                continue
            away = self._work / secrets.token_hex(8)
            try:
                (self.mounted / overlay.name).rename(away)
            except FileNotFoundError:
                pass  # somebody removed it
            except OSError as exc:
                log.warning("packages that were not used for long cannot be removed: %s", exc)
                continue
            else:
                gone.append(away)
            del self._known[tag]
            total -= overlay.size_bytes
        return gone

    def _tag(self, digest: str) -> str:
        return hmac.new(self._key, digest.encode(), hashlib.sha256).hexdigest()[:_TAG_CHARS]


def _let_read(folder: Path) -> None:
    """Lets everybody read the folders, whatever the mask of this process is."""
    for root, _, _ in os.walk(folder):
        Path(root).chmod(0o755)


def _seal(folder: Path) -> int:
    """Lets everybody read the folders, whatever the mask of this process is; what all files take on disk.

    The bytes are on the disk afterwards: an overlay has its name only as a whole, also after a loss of power.
    """
    _let_read(folder)
    total = 0
    for root, _, names in os.walk(folder):
        total += BLOCK_BYTES
        for name in names:
            total += max(os.lstat(f"{root}/{name}").st_blocks * 512, BLOCK_BYTES)
    _sync(folder)
    return total


def _sync(folder: Path) -> None:
    """Writes the file system of a folder to its disk: once, as each of many files by itself takes seconds."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if _C_LIBRARY.syncfs(fd) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(fd)


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
