"""Files on their way to the service: read piece by piece, and again for a retry."""

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeAlias

from proofbox.client.errors import ArgumentError

FileSource: TypeAlias = os.PathLike[str] | bytes | bytearray | str | BinaryIO
Files: TypeAlias = Mapping[str, FileSource] | Iterable[str | os.PathLike[str]]
PIECE_BYTES = 256 * 1024


class UploadSource:
    """The content of one file; `open` starts from its beginning each time.

    Args:
        name: the file's name, for messages.
        source: a path, bytes, a text (sent as UTF-8), or an open binary file, which stays open.

    Raises:
        ArgumentError: the file cannot be read, or is not binary.
    """

    def __init__(self, name: str, source: FileSource) -> None:
        self._name = name
        if isinstance(source, str):
            source = source.encode()
        self._source = Path(source) if isinstance(source, os.PathLike) else source
        self._start = 0
        self.is_repeatable = True
        self.size_bytes = self._measure()

    def __repr__(self) -> str:
        """The name and the size, without the content."""
        return f"UploadSource({self._name!r}, size_bytes={self.size_bytes})"

    def _measure(self) -> int | None:
        source = self._source
        if isinstance(source, bytes | bytearray):
            return len(source)
        if isinstance(source, Path):
            try:
                if not source.is_file():
                    raise ArgumentError(self._name, f"'{source}' is not a file; give the path of one")
                return source.stat().st_size
            except OSError as exc:
                raise ArgumentError(self._name, f"'{source}' cannot be read: {exc.strerror}") from exc
        if not hasattr(source, "read") or isinstance(source, io.TextIOBase):
            kind = type(source).__name__
            raise ArgumentError(
                self._name, f"a {kind} cannot be uploaded; give a Path, bytes, str or a binary file"
            )
        if not (hasattr(source, "seekable") and source.seekable()):
            self.is_repeatable = False
            return None
        self._start = source.seek(0, os.SEEK_CUR)
        end = source.seek(0, os.SEEK_END)
        source.seek(self._start)
        return end - self._start

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the content at its beginning.

        Raises:
            ArgumentError: the file cannot be read any more.
        """
        source = self._source
        if isinstance(source, bytes | bytearray):
            yield io.BytesIO(source)
        elif isinstance(source, Path):
            try:
                file = source.open("rb")
            except OSError as exc:
                raise ArgumentError(self._name, f"'{source}' cannot be read: {exc.strerror}") from exc
            with file:
                yield file
        else:
            if self.is_repeatable:
                source.seek(self._start)
            yield source

    def check_size(self, sent_bytes: int, *, is_end: bool) -> None:
        """Compare what was read with the size that the request announced.

        Raises:
            ArgumentError: the file has changed since.
        """
        size = self.size_bytes
        if size is not None and (sent_bytes > size or (is_end and sent_bytes < size)):
            raise ArgumentError(
                self._name, f"the file had {size:,} bytes and changed while it was sent; send it again"
            )


def named_sources(files: Files | None, *, has_folders: bool = False) -> dict[str, UploadSource]:
    """The files of a call by their names in the sandbox.

    Args:
        files: by name, or as paths.
        has_folders: whether a name may have folders.

    Raises:
        ArgumentError: a name has a slash or occurs twice, or a file cannot be read.
    """
    if files is None:
        return {}
    if isinstance(files, str | bytes):
        raise ArgumentError("files", "this is one text; give {name: content} or a list of paths")
    pairs = list(files.items()) if isinstance(files, Mapping) else [(Path(item).name, Path(item)) for item in files]
    names: set[str] = set()
    for name, _ in pairs:
        if not name or ("/" in name and not has_folders):
            raise ArgumentError(
                "files", f"{name!r} is not a plain file name; programs find files by name, without folder"
            )
        if name in names:
            raise ArgumentError("files", f"two files have the name {name!r}; give them as {{name: path}}")
        names.add(name)
    return {name: UploadSource(f"files[{name!r}]", source) for name, source in pairs}
