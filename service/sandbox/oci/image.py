"""The sandbox image as a folder: unpacked once for each image and boot, then the root of all containers."""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from proofbox.service.errors import EngineUnavailableError

_PACKAGE_ROOT = Path(__file__).parents[4]
_UNPACK_S_MAX = 600.0
_DESCRIPTION = "image.json"


class ImageSource(Protocol):
    """Where the image comes from; raises EngineUnavailableError."""

    async def key(self) -> str:
        """A name that changes with the image: hexadecimal digits."""

    async def archive(self, into: Path) -> Path:
        """The archive, as ``docker save`` writes it; below ``into`` if it has to be made."""


@dataclass(frozen=True, slots=True)
class UnpackedImage:
    """An image that containers can run in.

    Attributes:
        rootfs: the folder that is their root.
        digest: its id.
        args: the command.
        env: the environment, each ``NAME=value``.
        cwd: the folder that the command starts in.
    """

    rootfs: Path
    digest: str
    args: tuple[str, ...]
    env: tuple[str, ...]
    cwd: str


class ArchiveFile:
    """An archive that the operator has put there: no container engine is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def key(self) -> str:
        """See `ImageSource.key`: of the file's place, size and time, so that it need not be read at each start."""
        try:
            status = self._path.stat()
        except OSError as exc:
            raise EngineUnavailableError(
                f"the image archive {self._path} cannot be read: {exc.strerror}; make it with 'docker save'"
            ) from exc
        return f"{status.st_dev:x}{status.st_ino:x}{status.st_size:x}{status.st_mtime_ns:x}"

    async def archive(self, into: Path) -> Path:
        """See `ImageSource.archive`."""
        del into
        return self._path


class ImageCache:
    """Unpacked images below one folder, which services on this machine share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock_fd = -1

    async def image(self, source: ImageSource) -> UnpackedImage:
        """The image of a source, unpacked if it is not there yet and kept until `release`.

        Services that start at one time unpack it once. The folder appears whole or not at all.

        Raises:
            EngineUnavailableError: the archive is not to be had or damaged, or the folder cannot be written.
        """
        try:
            # Of this boot: after a crash of the machine a folder may look whole and have lost what it held.
            folder = self._folder / f"{await source.key()}-{_boot()}"
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock_fd = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            await asyncio.to_thread(fcntl.flock, self._lock_fd, fcntl.LOCK_SH)
            if not folder.is_dir():
                with (self._folder / "unpacking").open("ab") as lock:
                    await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
                    if not folder.is_dir():
                        await self._remove_unused()
                        await _unpack(source, folder)
            return _read_description(folder)
        except (OSError, ValueError, KeyError) as exc:
            raise EngineUnavailableError(f"the image cannot be unpacked below {self._folder}: {exc}") from exc

    def release(self) -> None:
        """From here on the image may be removed, when another one is unpacked."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    async def _remove_unused(self) -> None:
        """Removes images that no service has in use: an image that is built anew takes its older self's place.

        The files of locks stay for ever: of one that is removed and made again there could be two holders.
        """
        for lock in self._folder.glob("*.lock"):
            folder = lock.with_suffix("")
            with contextlib.suppress(BlockingIOError), lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Out of the way first: a removal that is cut short must not leave what looks whole.
                with contextlib.suppress(FileNotFoundError):
                    folder.rename(folder.with_name(f".{folder.name}-{uuid.uuid4().hex}"))
        for left in self._folder.glob(".*"):  # also of processes that were killed: nobody else unpacks now
            await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


async def _unpack(source: ImageSource, folder: Path) -> None:
    staging = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        archive = await source.archive(staging)
        whole = staging / "whole"
        rootfs = whole / "rootfs"
        rootfs.mkdir(mode=0o755, parents=True)
        description = await asyncio.to_thread(_unpack_process, archive, rootfs)
        (whole / _DESCRIPTION).write_text(description, encoding="utf-8")
        whole.rename(folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)


def _unpack_process(archive: Path, rootfs: Path) -> str:
    command = [sys.executable, "-m", "proofbox.service.sandbox.oci.unpack_image", str(archive), str(rootfs)]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, capture_output=True, text=True, check=True, cwd=_PACKAGE_ROOT, timeout=_UNPACK_S_MAX
        )
    except subprocess.CalledProcessError as exc:
        lines = exc.stderr.strip().splitlines()
        raise EngineUnavailableError(
            f"the sandbox image cannot be unpacked: {lines[-1] if lines else exc}"
        ) from exc
    except subprocess.TimeoutExpired as exc:
        raise EngineUnavailableError(f"the sandbox image was not unpacked within {_UNPACK_S_MAX:.0f} s") from exc
    return done.stdout


def _read_description(folder: Path) -> UnpackedImage:
    description: dict[str, Any] = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
    config = description["config"]
    return UnpackedImage(
        rootfs=folder / "rootfs",
        digest=description["digest"],
        args=(*(config.get("Entrypoint") or ()), *(config.get("Cmd") or ())),
        env=tuple(config.get("Env") or ()),
        cwd=config.get("WorkingDir") or "/",
    )
