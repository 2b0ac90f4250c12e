"""A process that unpacks an image archive into a folder, and prints what the image says of itself as JSON.

    python -m service.engines.oci.unpack ARCHIVE FOLDER

The archive is what ``docker save`` writes. Its configuration and every layer are compared with their digests before
anything is written, and the files are written from inside the folder (chroot): no name and no link in a layer leads
out of it. Set-user-id bits, devices and extended attributes stay behind. Standard library only.
"""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import stat
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

_PIECE_BYTES = 1024 * 1024
_CONFIG_BYTES_MAX = 4 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_HIDDEN, _OPAQUE = ".wh.", ".wh..wh..opq"
# What an engine mounts over the image's own, so that a name of this machine is found without a network.
_WRITTEN = {
    "etc/hosts": b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "etc/hostname": b"sandbox\n",
    "etc/resolv.conf": b"",
}
_MOUNT_POINTS = ("proc", "sys", "dev", "out", "tmp", "job")


class ArchiveError(Exception):
    """The archive holds no image that can be trusted; the message is one sentence."""


class Archive:
    """One image in a ``docker save`` archive."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            self._tar = tarfile.TarFile(fileobj=file)
            [image, *others] = json.loads(self._read("manifest.json"))
            config = self._read(image["Config"])
            self.layers: list[str] = image["Layers"]
            told: dict[str, Any] = json.loads(config)
            self.diff_ids: list[str] = told["rootfs"]["diff_ids"]
            self.config: dict[str, Any] = told["config"]
        except (tarfile.TarError, ValueError, KeyError, TypeError) as exc:
            raise ArchiveError("it is no archive of an image as 'docker save' writes it") from exc
        if others:
            raise ArchiveError("it holds several images: save the sandbox image alone")
        self.digest = hashlib.sha256(config).hexdigest()
        named = PurePosixPath(image["Config"]).name.removesuffix(".json")
        if named != self.digest or len(self.layers) != len(self.diff_ids):
            raise ArchiveError("its configuration is damaged")

    def check(self) -> None:
        """Compares every layer with its digest.

        Raises:
            ArchiveError: one differs.
        """
        for index, wanted in enumerate(self.diff_ids):
            digest = hashlib.sha256()
            with self.layer(index) as layer:
                while piece := layer.read(_PIECE_BYTES):
                    digest.update(piece)
            if f"sha256:{digest.hexdigest()}" != wanted:
                raise ArchiveError(f"its layer {index + 1} is damaged")

    @contextlib.contextmanager
    def layer(self, index: int) -> Iterator[IO[bytes]]:
        """The bytes of a layer's tar."""
        found = self._tar.extractfile(self.layers[index])
        if found is None:
            raise ArchiveError(f"its layer {index + 1} is not there")
        with found:
            compressed = found.read(2) == _GZIP
            found.seek(0)
            yield gzip.GzipFile(fileobj=found) if compressed else found  # type: ignore[misc]  # also IO[bytes]

    def _read(self, name: str) -> bytes:
        found = self._tar.extractfile(name)
        if found is None:
            raise KeyError(name)
        return found.read(_CONFIG_BYTES_MAX)


class Root:
    """The folder that becomes the root of sandboxes; its methods work after `enter`, with paths from its top."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder_times: dict[str, float] = {}

    def enter(self) -> None:
        """Makes the folder this process's root; there is no way back."""
        os.umask(0)
        os.chroot(self._folder)
        os.chdir("/")

    def apply(self, layer: IO[bytes]) -> None:
        """Writes one layer over what is there."""
        try:
            with tarfile.open(fileobj=layer, mode="r|") as tar:
                for member in tar:
                    self._put(tar, member)
        except tarfile.TarError as exc:
            raise ArchiveError("one of its layers cannot be read") from exc

    def finish(self) -> None:
        """Writes what engines add to an image, and sets the times of folders, which writing has changed."""
        for folder in _MOUNT_POINTS:
            Path(folder).mkdir(exist_ok=True)
        for name, content in _WRITTEN.items():
            _clear(name)
            Path(name).write_bytes(content)
            Path(name).chmod(0o644)
        if not os.path.lexists("etc/mtab"):
            os.symlink("/proc/mounts", "etc/mtab")
        for path, modified in self._folder_times.items():
            if os.path.isdir(path) and not os.path.islink(path):
                os.utime(path, (modified, modified))

    def _put(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = os.path.normpath("/" + member.name).lstrip("/")
        parent, name = os.path.split(path)
        if name == _OPAQUE:
            for entry in os.listdir(parent or "."):
                _clear(os.path.join(parent, entry))
            return
        if name.startswith(_HIDDEN):
            _clear(os.path.join(parent, name.removeprefix(_HIDDEN)))
            return
        if parent:
            os.makedirs(parent, exist_ok=True)
        if member.islnk():
            _clear(path)
            os.link(os.path.normpath("/" + member.linkname), path, follow_symlinks=False)
        elif self._made(tar, member, path or "."):
            os.chown(path or ".", member.uid, member.gid, follow_symlinks=False)
            if not member.issym():
                os.chmod(path or ".", stat.S_IMODE(member.mode) & ~(stat.S_ISUID | stat.S_ISGID))
                os.utime(path or ".", (member.mtime, member.mtime))

    def _made(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> bool:
        """Whether it is something that a root needs: devices and pipes are not, a sandbox has a /dev of its own."""
        if member.isdir():
            if os.path.islink(path) or not os.path.isdir(path):
                _clear(path)
                os.mkdir(path)
            self._folder_times[path] = member.mtime
        elif member.isreg():
            _clear(path)
            source = tar.extractfile(member)
            assert source is not None
            with source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                shutil.copyfileobj(source, file, _PIECE_BYTES)
        elif member.issym():
            _clear(path)
            os.symlink(member.linkname, path)
        return member.isdir() or member.isreg() or member.issym()


def _clear(path: str) -> None:
    """Removes whatever is at a path."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def main(archive_path: str, folder: str) -> int:
    """Unpacks; the exit status is 1, with one sentence on stderr, if the archive is not what it should be."""
    try:
        with open(archive_path, "rb") as file:
            archive = Archive(file)
            archive.check()
            root = Root(Path(folder))
            root.enter()
            for index in range(len(archive.layers)):
                with archive.layer(index) as layer:
                    root.apply(layer)
            root.finish()
    except (ArchiveError, OSError) as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    sys.stdout.write(json.dumps({"digest": f"sha256:{archive.digest}", "config": archive.config}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
