"""Check that the bytes of all stored files are there and as they were written; the service may run meanwhile."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from sqlalchemy import Connection, bindparam, func, select, union_all

from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.storage.artifacts.blob_port import BlobStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import artifacts, workspaces

_AT_ONCE = 500
_NAMED = union_all(*(select(table.c.sha256, table.c.size_bytes) for table in (artifacts, workspaces))).subquery()
_PAGE = (
    select(_NAMED.c.sha256, func.max(_NAMED.c.size_bytes))
    .where(_NAMED.c.sha256 > bindparam("after"))
    .group_by(_NAMED.c.sha256)
    .order_by(_NAMED.c.sha256)
    .limit(_AT_ONCE)
)
_IS_NAMED = select(select(_NAMED.c.sha256).where(_NAMED.c.sha256 == bindparam("of_sha256")).exists())


@dataclass(slots=True)
class ByteCheck:
    """What a check found.

    Attributes:
        checked: how many different contents.
        size_bytes: their bytes.
        damaged: the hashes of those that are missing or have changed.
    """

    checked: int = 0
    size_bytes: int = 0
    damaged: list[str] = field(default_factory=list)


async def check_bytes(database: Database, files: BlobStore, progress: Callable[[str], None]) -> ByteCheck:
    """Read all stored bytes and compare their hashes.

    Raises:
        StoreFailedError: the database or the bytes cannot be read.
    """
    check, after = ByteCheck(), ""
    while found := await database.read(partial(_page, after=after)):
        for sha256, size_bytes in found:
            if await asyncio.to_thread(_is_sound, files, sha256, size_bytes):
                check.size_bytes += size_bytes
            elif await database.read(partial(_is_named, sha256=sha256)):
                check.damaged.append(sha256)
            check.checked += 1
        after = found[-1][0]
        progress(f"{check.checked} files checked, {len(check.damaged)} damaged")
    return check


def _page(connection: Connection, after: str) -> list[tuple[str, int]]:
    return [(sha256, int(size_bytes)) for sha256, size_bytes in connection.execute(_PAGE, {"after": after})]


def _is_named(connection: Connection, sha256: str) -> bool:
    """Whether a file still has these bytes: it may have been deleted since."""
    return bool(connection.execute(_IS_NAMED, {"of_sha256": sha256}).scalar_one())


def _is_sound(files: BlobStore, sha256: str, size_bytes: int) -> bool:
    digest, at = hashlib.sha256(), 0
    try:
        while at < size_bytes:
            piece = files.piece(sha256, at, min(files.piece_bytes, size_bytes - at))
            digest.update(piece)
            at += len(piece)
    except DamagedBytesError:
        return False
    return digest.hexdigest() == sha256
