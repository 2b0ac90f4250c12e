"""Assets by ``file://`` URI, from folders that the operator allows and from nowhere else."""

import asyncio
import os
import shutil
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from typing_extensions import override

from proofbox.service.artifacts.conversation_files import AssetSource
from proofbox.service.errors import build_store_error


class AssetFolders(AssetSource):
    """The port `AssetSource` over local folders."""

    def __init__(self, roots: tuple[Path, ...]) -> None:
        self._roots = tuple(root.resolve() for root in roots)

    @override
    async def fetch(self, uri: str, staging: Path) -> Path | None:
        return await asyncio.to_thread(self._copy, uri, staging)

    def _copy(self, uri: str, staging: Path) -> Path | None:
        try:
            parts = urlsplit(uri)
        except ValueError:
            return None
        if parts.scheme != "file" or parts.netloc or parts.query or parts.fragment or "\0" in unquote(parts.path):
            return None
        # Resolved first, so that neither .. nor a symbolic link leads out of a root.
        source = Path(os.path.realpath(unquote(parts.path)))  # Path.resolve() would raise on a loop of links
        if not any(source.is_relative_to(root) for root in self._roots):
            return None
        try:
            # Opened without waiting, so that a FIFO below a root is seen for what it is.
            fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            target = staging / f"uri-{len(os.listdir(staging))}"  # noqa: PTH208 - a count, no paths needed
            try:
                with target.open("xb") as copy:
                    shutil.copyfileobj(file, copy)
            except OSError as exc:
                raise build_store_error(
                    exc,
                    full="the artifact store has no space left for an asset",
                    failed="an asset could not be copied into the staging folder",
                ) from exc
        return target
