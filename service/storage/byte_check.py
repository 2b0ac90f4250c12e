"""Check that the bytes of all stored files are there and as they were written; the service may run meanwhile."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal, null, select, union_all

from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError
from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.blob_port import BlobStore, is_sha256
from proofbox.service.storage.conversation_rows import DELETED
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import artifacts, conversations, principals, workspaces

WORKSPACE = "workspace"
"""The path of the archive of a conversation's workspace."""
PLACES_MAX = 100
"""Files with the same bytes that are named."""
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
OWNER = (
    conversations.c.name.label("conversation_name"),
    principals.c.tenant,
    principals.c.project,
    principals.c.user_type,
    principals.c.user,
)
"""The columns that `scope_of_row` reads."""
_PLACES = tuple(
    select(*columns, *OWNER)
    .join_from(table, conversations)
    .join(principals)
    .where(table.c.sha256 == bindparam("of_sha256"), principals.c.tenant != DELETED)
    .order_by(table.c.id)
    .limit(PLACES_MAX)
    for table, columns in (
        (
            artifacts,
            [artifacts.c[name] for name in ("turn", "namespace", "rel", "version", "tool_call_id", "hosted_name")],
        ),
        (
            workspaces,
            [
                workspaces.c.turn,
                literal(WORKSPACE).label("namespace"),
                null().label("rel"),
                literal(0).label("version"),
                workspaces.c.tool_call_id,
                null().label("hosted_name"),
            ],
        ),
    )
)


@dataclass(frozen=True, slots=True)
class BytePlace:
    """A version of a file, or a workspace, that has some bytes.

    Attributes:
        scope: its conversation.
        path: its logical path, or `WORKSPACE`.
        version: its number; 0 of a workspace.
        tool_call_id: the call that made it.
        hosted_name: under which it is hosted.
    """

    scope: ConversationKey
    path: str
    version: int
    tool_call_id: str | None
    hosted_name: str | None


@dataclass(frozen=True, slots=True)
class DamagedBytes:
    """Bytes that are missing or have changed.

    Attributes:
        sha256: the hash that they should have.
        size_bytes: the size that they should have.
        is_lost: whether they are missing.
        places: the first `PLACES_MAX` of what has them.
    """

    sha256: str
    size_bytes: int
    is_lost: bool
    places: list[BytePlace]


@dataclass(slots=True)
class ByteCheck:
    """What a check found.

    Attributes:
        checked: how many different contents.
        size_bytes: the bytes of those that are sound.
        damaged: those that are missing or have changed.
    """

    checked: int = 0
    size_bytes: int = 0
    damaged: list[DamagedBytes] = field(default_factory=list)


async def check_bytes(database: Database, files: BlobStore, progress: Callable[[str], None]) -> ByteCheck:
    """Read all stored bytes and compare their hashes.

    Raises:
        StoreFailedError: the database or the bytes cannot be read.
    """
    check = ByteCheck()
    check.damaged = [damaged async for damaged in damaged_bytes(database, files, progress, check)]
    return check


async def damaged_bytes(
    database: Database, files: BlobStore, progress: Callable[[str], None], check: ByteCheck | None = None
) -> AsyncIterator[DamagedBytes]:
    """The same, one after the other.

    Args:
        database: the records.
        files: the bytes.
        progress: called with a line for people now and then.
        check: counts what was checked.
    """
    check, after, found = check or ByteCheck(), "", 0
    while page := await database.read(partial(_page, after=after)):
        for sha256, size_bytes in page:
            check.checked += 1
            if await asyncio.to_thread(is_sound, files, sha256, size_bytes):
                check.size_bytes += size_bytes
            elif await database.read(partial(_is_named, sha256=sha256)):
                found += 1
                is_lost = not is_sha256(sha256) or await asyncio.to_thread(files.blob_bytes, sha256) is None
                places = await database.read(partial(_places, sha256=sha256))
                yield DamagedBytes(sha256, size_bytes, is_lost, places)
        after = page[-1][0]
        progress(f"{check.checked} files checked, {found} damaged")


def _page(connection: Connection, after: str) -> list[tuple[str, int]]:
    return [(sha256, int(size_bytes)) for sha256, size_bytes in connection.execute(_PAGE, {"after": after})]


def _is_named(connection: Connection, sha256: str) -> bool:
    """Whether a file still has these bytes: it may have been deleted since."""
    return bool(connection.execute(_IS_NAMED, {"of_sha256": sha256}).scalar_one())


def _places(connection: Connection, sha256: str) -> list[BytePlace]:
    found = [row for query in _PLACES for row in connection.execute(query, {"of_sha256": sha256})]
    return [
        BytePlace(scope_of_row(row), path_of_row(row), row.version, row.tool_call_id, row.hosted_name)
        for row in found[:PLACES_MAX]
    ]


def scope_of_row(row: Any) -> ConversationKey:
    """The conversation of a row with the columns `OWNER`."""
    return ConversationKey(Principal(row.tenant, row.project, row.user_type, row.user), row.conversation_name)


def path_of_row(row: Any) -> str:
    """The logical path of a row of a file; of one that no release wrote, something to recognise it by."""
    if row.namespace == WORKSPACE:
        return WORKSPACE
    try:
        return FilePath(row.turn, Namespace(row.namespace), row.rel).logical
    except (ValueError, UnsafePathError):
        return f"{row.turn}/{row.namespace}/{row.rel}"


def is_sound(files: BlobStore, sha256: str, size_bytes: int) -> bool:
    """Whether the bytes of a hash, which may be no hash in a damaged row, are there, and are as many; blocking."""
    if not is_sha256(sha256) or files.blob_bytes(sha256) != size_bytes:
        return False
    return has_hash(partial(files.piece, sha256), sha256, size_bytes, files.piece_bytes)


def has_hash(read: Callable[[int, int], bytes], sha256: str, size_bytes: int, piece_bytes: int) -> bool:
    """Whether bytes that are read piece by piece have a hash; blocking."""
    digest = hashlib.sha256()
    try:
        for piece in pieces_of(read, size_bytes, piece_bytes):
            digest.update(piece)
    except DamagedBytesError:
        return False
    return digest.hexdigest() == sha256


def pieces_of(read: Callable[[int, int], bytes], size_bytes: int, piece_bytes: int) -> Iterator[bytes]:
    """All bytes, piece by piece."""
    at = 0
    while at < size_bytes:
        piece = read(at, min(piece_bytes, size_bytes - at))
        at += len(piece)
        yield piece
