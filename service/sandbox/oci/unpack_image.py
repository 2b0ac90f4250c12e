"""A process that unpacks an image archive into a folder, and prints the image's configuration as JSON.

    python -m proofbox.service.sandbox.oci.unpack_image ARCHIVE FOLDER

The archive is what ``docker save`` writes. Its configuration and every layer are compared with their digests before
anything is written, and the files are written from inside the folder (chroot): no name and no link in a layer leads
out of it. Set-user-id bits, devices and extended attributes stay behind. What the archive claims is bounded
(`Bounds`), whatever it unpacks to. Standard library only.
"""

import contextlib
import gzip
import hashlib
import json
import os
import resource
import shutil
import stat
import sys
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

_PIECE_BYTES = 1024 * 1024
_CONFIG_BYTES_MAX = 4 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_HIDDEN, _OPAQUE, _OF_THE_DRIVER = ".wh.", ".wh..wh..opq", ".wh..wh."
_LINKS_MAX = 8
_WORDS_MAX = 500
_DEPTH_MAX = 200
_READS_PAST_END_MAX = 100
# What tarfile and its friends raise for what they cannot read; an OSError has words of its own.
_UNREADABLE = (tarfile.TarError, ValueError, OverflowError, EOFError, zlib.error, RecursionError, MemoryError)
# What an engine mounts over the image's own, so that a name of this machine is found without a network.
_WRITTEN = {
    "etc/hosts": b"127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    "etc/hostname": b"sandbox\n",
    "etc/resolv.conf": b"",
}
_MOUNT_POINTS = ("proc", "sys", "dev", "out", "tmp", "job")


class ArchiveError(Exception):
    """The archive holds no image that can be trusted; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far an archive may make this process go: many times what our own image needs.

    Attributes:
        bytes_max: bytes of all layers together, unpacked.
        members_max: files, folders and links of all layers together.
        memory_bytes_max: memory of this process, beyond what it begins with.
    """

    bytes_max: int = 16 * 1024**3
    members_max: int = 500_000
    memory_bytes_max: int = 1024**3

    def confine(self) -> None:
        """Bounds the memory of this process: one header may claim, and unpack to, any number of bytes."""
        held = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (held + self.memory_bytes_max,) * 2)


class _Member(tarfile.TarInfo):
    """A member whose size is none that leads backwards in its file (CVE-2025-8194)."""

    def _block(self, count: int) -> int:
        if count < 0:
            raise tarfile.ReadError("a negative size")
        return super()._block(count)  # type: ignore[misc,no-any-return]  # as Python's own mend of it does


class _Counted:
    """The bytes of a layer, unpacked, up to a bound that all layers share."""

    def __init__(self, source: IO[bytes], bytes_left: list[int]) -> None:
        self._source = source
        self._left = bytes_left
        self._reads_past_end = 0

    def read(self, size: int) -> bytes:
        """Reads on; raises ArchiveError at the bound.

        Past the end too: to skip a member that claims a terabyte, tarfile reads on and on there.
        """
        piece = self._source.read(size)
        self._left[0] -= len(piece)
        if self._left[0] < 0:
            raise ArchiveError("its layers unpack to more bytes than are taken")
        self._reads_past_end += not piece
        if self._reads_past_end > _READS_PAST_END_MAX:
            raise ArchiveError("one of its layers is cut off")
        return piece


class Archive:
    """One image in a ``docker save`` archive."""

    def __init__(self, file: IO[bytes], bounds: Bounds) -> None:
        self._bounds = bounds
        try:
            self._tar = tarfile.TarFile(fileobj=file, tarinfo=_Member)
            self._members = self._of(self._tar)
            [image, *others] = json.loads(self._read("manifest.json"))
            config = self._read(image["Config"])
            self.layers = _texts(image["Layers"])
            parsed = json.loads(config)
            self.diff_ids = _texts(parsed["rootfs"]["diff_ids"])
            self.config = _config(parsed["config"])
        except (*_UNREADABLE, KeyError, TypeError, AttributeError) as exc:
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
        bytes_left = [self._bounds.bytes_max]
        for index, wanted in enumerate(self.diff_ids):
            digest = hashlib.sha256()
            try:
                with self.layer(index) as layer:
                    counted = _Counted(layer, bytes_left)
                    while piece := counted.read(_PIECE_BYTES):
                        digest.update(piece)
            except (*_UNREADABLE, KeyError) as exc:
                raise ArchiveError(f"its layer {index + 1} cannot be read") from exc
            if f"sha256:{digest.hexdigest()}" != wanted:
                raise ArchiveError(f"its layer {index + 1} is damaged")

    @contextlib.contextmanager
    def layer(self, index: int) -> Iterator[IO[bytes]]:
        """The bytes of a layer's tar."""
        with self._open(self.layers[index]) as found:
            compressed = found.read(2) == _GZIP
            found.seek(0)
            yield gzip.GzipFile(fileobj=found) if compressed else found  # type: ignore[misc]  # also IO[bytes]

    def _of(self, tar: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
        members = {}
        for count, member in enumerate(tar):
            if count >= self._bounds.members_max:
                raise ArchiveError("it holds more members than are taken")
            members[member.name] = member
        return members

    def _open(self, name: str) -> IO[bytes]:
        """A member's bytes; of two layers that are the same, docker save makes one a link to the other."""
        for _ in range(_LINKS_MAX):
            member = self._members[name]
            if member.issym():
                name = os.path.normpath(os.path.join(os.path.dirname(name), member.linkname))
            elif member.isreg() and not member.issparse() and (found := self._tar.extractfile(member)) is not None:
                return found
            else:
                break
        raise KeyError(name)

    def _read(self, name: str) -> bytes:
        with self._open(name) as found:
            return found.read(_CONFIG_BYTES_MAX)


class Root:
    """The folder that becomes the root of sandboxes; its methods work after `enter`, with paths from its top."""

    def __init__(self, folder: Path, bounds: Bounds) -> None:
        self._folder = folder
        self._folder_times: dict[str, float] = {}
        self._members_left = bounds.members_max

    def enter(self) -> None:
        """Makes the folder this process's root; there is no way back."""
        os.umask(0)
        os.chroot(self._folder)
        os.chdir("/")

    def apply(self, layer: _Counted) -> None:
        """Writes one layer over what is there."""
        try:
            with tarfile.open(fileobj=cast("IO[bytes]", layer), mode="r|", tarinfo=_Member) as tar:
                for member in tar:
                    self._members_left -= 1
                    if self._members_left < 0:
                        raise ArchiveError("its layers hold more members than are taken")
                    self._put(tar, member)
                    tar.members.clear()  # type: ignore[attr-defined]  # it would keep them all
        except _UNREADABLE as exc:
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
        if self._is_whiteout(parent, name):
            return
        if parent and not os.path.isdir(parent):
            _make_folder(parent)
        if member.islnk():
            _clear(path)
            os.link(os.path.normpath("/" + member.linkname), path, follow_symlinks=False)
        elif self._make_member(tar, member, path or "."):
            os.chown(path or ".", member.uid, member.gid, follow_symlinks=False)
            if not member.issym():
                os.chmod(path or ".", stat.S_IMODE(member.mode) & ~(stat.S_ISUID | stat.S_ISGID))
                os.utime(path or ".", (member.mtime, member.mtime))

    def _is_whiteout(self, parent: str, name: str) -> bool:
        """Whether a name only marks what a layer removes; that is removed."""
        if name == _OPAQUE:
            for entry in os.listdir(parent or "."):
                _clear(os.path.join(parent, entry))
        elif name.startswith(_HIDDEN) and not name.startswith(_OF_THE_DRIVER):
            hidden = name.removeprefix(_HIDDEN)
            if hidden in {"", ".", ".."}:
                raise ArchiveError("one of its layers holds a whiteout that names no file")
            _clear(os.path.join(parent, hidden))
        return name.startswith(_HIDDEN)

    def _make_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> bool:
        """Whether it is something that a root needs: devices and pipes are not, a sandbox has a /dev of its own."""
        if member.isdir():
            if os.path.islink(path) or not os.path.isdir(path):
                _clear(path)
                _make_folder(path)
            self._folder_times[path] = member.mtime
        elif member.issparse():
            raise ArchiveError("one of its layers holds a sparse file")
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


def _make_folder(path: str) -> None:
    """Makes a folder and those above it, unless they are too deep for what walks through them later."""
    os.makedirs(path, exist_ok=True)
    if os.path.realpath(path).count("/") > _DEPTH_MAX:
        raise ArchiveError("one of its layers holds folders that are too deep")


def _clear(path: str) -> None:
    """Removes whatever is at a path."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise TypeError("no list of texts")
    return value


def _config(value: Any) -> dict[str, Any]:
    """The parts of an image's configuration that are used.

    Raises:
        TypeError, AttributeError: it is none.
    """
    lists = {key: _texts(value.get(key) or []) for key in ("Entrypoint", "Cmd", "Env")}
    folder = value.get("WorkingDir") or ""
    if not isinstance(folder, str):
        raise TypeError("no folder")
    return {**value, **lists, "WorkingDir": folder}


def main(archive_path: str, folder: str, bounds: Bounds = Bounds()) -> int:
    """Unpacks; the exit status is 1, with one sentence on stderr, if the archive is not what it should be."""
    try:
        bounds.confine()
        with open(archive_path, "rb") as file:
            archive = Archive(file, bounds)
            archive.check()
            root = Root(Path(folder), bounds)
            root.enter()
            bytes_left = [bounds.bytes_max]
            for index in range(len(archive.layers)):
                with archive.layer(index) as layer:
                    root.apply(_Counted(layer, bytes_left))
            root.finish()
    except (ArchiveError, OSError) as exc:
        # On one line, whatever a name holds.
        sys.stderr.write(str(exc).encode("unicode_escape").decode("ascii")[:_WORDS_MAX] + "\n")
        return 1
    sys.stdout.write(json.dumps({"digest": f"sha256:{archive.digest}", "config": archive.config}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
