"""File operations that survive a crash: hashing, syncing, and putting a file in place by one rename."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Hard links are refused across file systems, by some file systems at all, and beyond a count for each file.
_NO_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
)
_PIECE_BYTES = 64 * 1024  # a larger one costs a small file the pages of a buffer
READ_ONLY = 0o444  # links share the bytes of a blob: no process writes through one


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with file.open("rb", buffering=0) as stream:
        digest = hashlib.sha256()
        while piece := stream.read(_PIECE_BYTES):
            digest.update(piece)
        return digest.hexdigest()


def seal(files: Iterable[tuple[Path, int]]) -> tuple[Path, int] | None:
    """Make regular files of those sizes read-only and durable; the first that is another thing, if there is one.

    Then it is untouched, and of the others no more than their modes have changed.
    """
    with ExitStack() as stack:
        handles = []
        for file, size_bytes in files:
            handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, handle)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode) or status.st_size != size_bytes:
                return file, size_bytes
            os.fchmod(handle, READ_ONLY)
            begin_to_write(handle)
            handles.append(handle)
        for handle in handles:
            os.fsync(handle)
    return None


def write_durably(files: Mapping[Path, bytes]) -> None:
    """Make new read-only files with those bytes, durable but for their names."""
    with ExitStack() as stack:
        handles = []
        for file, content in files.items():
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, READ_ONLY)
            stack.callback(os.close, handle)
            left = memoryview(content)
            while left:
                left = left[os.write(handle, left) :]
            os.fchmod(handle, READ_ONLY)
            begin_to_write(handle)
            handles.append(handle)
        for handle in handles:
            os.fsync(handle)


@contextmanager
def gone_if_it_fails(files: Iterable[Path]) -> Iterator[None]:
    """Remove files that are there if the block raises."""
    try:
        yield
    except BaseException:
        for file in files:
            file.unlink(missing_ok=True)
        raise


def begin_to_write(handle: int) -> None:
    """Start the write-back of a file that is synced soon; otherwise the syncs of several files run one by one."""
    # What is not on the disk yet cannot be dropped from memory, so the kernel begins to bring it there.
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)


def make_folders(folder: Path) -> set[Path]:
    """Make a folder and its parents; the folders whose entries changed, for `sync_folders`."""
    changed = set()
    missing = folder
    while not missing.is_dir():
        missing = missing.parent
        changed.add(missing)
    folder.mkdir(parents=True, exist_ok=True)
    return changed


def sync_folders(folders: Iterable[Path]) -> None:
    """Make the entries of folders durable."""
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def link(source: Path, target: Path) -> None:
    """Make ``target`` a second name of ``source``, or a read-only copy where links are refused.

    Raises:
        OSError: also if ``target`` exists.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in _NO_LINK:
            raise
        _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as reader, target.open("xb") as writer:
        shutil.copyfileobj(reader, writer, 1024 * 1024)
        writer.flush()
        os.fchmod(writer.fileno(), READ_ONLY)
        os.fsync(writer.fileno())


def link_over(source: Path, target: Path, passing: Callable[[], Path]) -> None:
    """Put a link or copy of ``source`` in the place of ``target``; a reader sees the old or the new file.

    Args:
        source: the file.
        target: the name to take; its folder is there.
        passing: gives a free name on the same file system.
    """
    try:
        os.link(source, target, follow_symlinks=False)  # most names are new
    except OSError as exc:
        if exc.errno != errno.EEXIST and exc.errno not in _NO_LINK:
            raise
        _link_by_rename(source, target, passing())


def _link_by_rename(source: Path, target: Path, passing: Path) -> None:
    try:
        link(source, passing)
        passing.replace(target)
    finally:
        # rename() of two names of one file succeeds and leaves both.
        passing.unlink(missing_ok=True)
