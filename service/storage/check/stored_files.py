"""The check of the bytes: blobs, hosted copies, and the journal of saves."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, union_all

from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import BlobStore, is_sha256
from proofbox.service.storage.artifacts.shared_names import BLOBS, HOSTED, REMOVING
from proofbox.service.storage.byte_check import (
    OWNER,
    WORKSPACE,
    damaged_bytes,
    has_hash,
    path_of_row,
    scope_of_row,
)
from proofbox.service.storage.check.finding import Finding, FindingKind
from proofbox.service.storage.conversation_rows import DELETED
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.members import SqlMemberStore
from proofbox.service.storage.schema import artifacts, conversations, principals, unfinished, workspaces

LOOK_AGAIN_S = 1.0
"""After this time a running service has recorded what it has written, and removed what it has unrecorded."""
_AT_ONCE = 500
_KNOWN_HASHES = union_all(
    *(
        select(table.c.sha256).where(table.c.sha256.in_(bindparam("of_names", expanding=True)))
        for table in (artifacts, workspaces)
    )
)
_KNOWN_HOSTED = select(artifacts.c.hosted_name).where(
    artifacts.c.hosted_name.in_(bindparam("of_names", expanding=True))
)
_IN_JOURNAL = select(unfinished.c.name).where(unfinished.c.name.in_(bindparam("of_names", expanding=True)))
_LATER = artifacts.alias("later_hosted")
_HOSTED = (
    select(artifacts, *OWNER)
    .join_from(artifacts, conversations)
    .join(principals)
    .where(
        artifacts.c.id > bindparam("after"),
        artifacts.c.hosted_name.is_not(None),
        principals.c.tenant != DELETED,
        ~select(_LATER.c.id)
        .where(
            *(_LATER.c[name] == artifacts.c[name] for name in ("conversation", "turn", "namespace", "rel")),
            _LATER.c.version > artifacts.c.version,
            _LATER.c.hosted_name.is_not(None),
        )
        .exists(),
    )
    .order_by(artifacts.c.id)
    .limit(_AT_ONCE)
)


async def check_journal(database: Database, *, is_idle: bool) -> AsyncIterator[Finding]:
    """What the journal has of saves and removals that nobody completes any more.

    Args:
        database: the records.
        is_idle: whether nobody uses the data, so that each entry is left over; else those of processes that are
            gone.
    """
    living = await SqlMemberStore(database).living()
    for save, names in (await database.read(rows.unfinished_saves)).items():
        owner, dot, _ = save.partition(".")
        if is_idle or (dot and owner not in living):
            for name in names:
                yield Finding(FindingKind.UNFINISHED, "a save or removal was cut short", path=name)


async def check_bytes_of_files(
    database: Database, files: BlobStore, progress: Callable[[str], None]
) -> AsyncIterator[Finding]:
    """The bytes of every version and workspace."""
    async for damaged in damaged_bytes(database, files, progress):
        kind = FindingKind.BYTES_LOST if damaged.is_lost else FindingKind.BYTES_CHANGED
        reason = "are missing" if damaged.is_lost else "have changed"
        for place in damaged.places:
            version = "" if place.path == WORKSPACE else f" of version {place.version}"
            yield Finding(
                kind,
                f"the bytes{version} {reason}, SHA-256 {damaged.sha256}",
                place.scope,
                place.tool_call_id,
                place.path,
                damaged.sha256,
                damaged.size_bytes,
            )


async def check_blobs_without_rows(
    database: Database, files: BlobStore, *, is_idle: bool
) -> AsyncIterator[Finding]:
    """Bytes that belong to no version, no workspace and no save that is under way."""
    async for page in _pages(files.list_blobs()):
        for sha256 in await unknown_blobs(database, files, page, is_idle=is_idle):
            text = "bytes belong to no file"
            yield Finding(FindingKind.BYTES_OF_NOTHING, text, path=BLOBS + sha256, sha256=sha256)


async def check_hosted_without_rows(
    database: Database, files: BlobStore, *, is_idle: bool
) -> AsyncIterator[Finding]:
    """Hosted files that no version has."""
    async for page in _pages(files.list_hosted()):
        for name in await unknown_hosted(database, files, page, is_idle=is_idle):
            text = "it is hosted and belongs to no file"
            yield Finding(FindingKind.HOSTED_OF_NOTHING, text, path=HOSTED + name, hosted_name=name)


async def check_that_records_fit(database: Database, files: BlobStore) -> AsyncIterator[Finding]:
    """Whether the records have any of the stored bytes: those of another service, or new ones, have none."""
    has_some = False
    kinds = ((files.list_blobs(), _KNOWN_HASHES, BLOBS), (files.list_hosted(), _KNOWN_HOSTED, HOSTED))
    for names, known, kind in kinds:
        async for page in _pages(names):
            has_some = True
            if len(await database.read(partial(_unknown, query=known, kind=kind, names=page))) < len(page):
                return
    if has_some:
        text = "the database names none of the files that are stored: it is empty, or another one"
        yield Finding(FindingKind.OTHER_RECORDS, text)


async def unknown_blobs(
    database: Database, files: BlobStore, names: Collection[str], *, is_idle: bool
) -> list[str]:
    """Those of some hashes that have bytes and that nothing in the database has."""
    found = await database.read(partial(_unknown, query=_KNOWN_HASHES, kind=BLOBS, names=names))
    if found and not is_idle:
        await asyncio.sleep(LOOK_AGAIN_S)
        found = await database.read(partial(_unknown, query=_KNOWN_HASHES, kind=BLOBS, names=found))
    return [name for name in found if await asyncio.to_thread(files.blob_bytes, name) is not None]


async def unknown_hosted(
    database: Database, files: BlobStore, names: Collection[str], *, is_idle: bool
) -> list[str]:
    """Those of some hosted names that are there and that nothing in the database has."""
    found = await database.read(partial(_unknown, query=_KNOWN_HOSTED, kind=HOSTED, names=names))
    if found and not is_idle:
        await asyncio.sleep(LOOK_AGAIN_S)
        found = await database.read(partial(_unknown, query=_KNOWN_HOSTED, kind=HOSTED, names=found))
    return [name for name in found if await asyncio.to_thread(files.hosted_bytes, name) is not None]


def _unknown(connection: Connection, query: Any, kind: str, names: Collection[str]) -> list[str]:
    known = set(connection.execute(query, {"of_names": list(names)}).scalars())
    left = [name for name in names if name not in known]
    written = [f"{begin}{kind}{name}" for name in left for begin in ("", REMOVING)]
    busy = set(connection.execute(_IN_JOURNAL, {"of_names": written}).scalars())
    return [name for name in left if busy.isdisjoint({f"{kind}{name}", f"{REMOVING}{kind}{name}"})]


async def _pages(names: Iterator[str]) -> AsyncIterator[Sequence[str]]:
    """The names of a blocking iterator, page by page."""
    while page := await asyncio.to_thread(lambda: list(islice(names, _AT_ONCE))):
        yield page


async def check_hosted(database: Database, files: BlobStore) -> AsyncIterator[Finding]:
    """The hosted copy of the latest version of each external file."""
    after = 0
    while page := await database.read(partial(_hosted, after=after)):
        for row in page:
            if await asyncio.to_thread(is_hosted, files, row.hosted_name, row.sha256, row.size_bytes):
                continue
            if await database.read(partial(_has_moved, row=row)):
                continue
            size = await asyncio.to_thread(files.hosted_bytes, row.hosted_name)
            yield Finding(
                FindingKind.NOT_HOSTED if size is None else FindingKind.HOSTED_CHANGED,
                "it is not hosted" if size is None else "its hosted copy has other bytes",
                scope_of_row(row),
                row.tool_call_id,
                path_of_row(row),
                row.sha256,
                row.size_bytes,
                row.hosted_name,
            )
        after = page[-1].id


def _hosted(connection: Connection, after: int) -> Sequence[Row[Any]]:
    return connection.execute(_HOSTED, {"after": after}).all()


def _has_moved(connection: Connection, row: Row[Any]) -> bool:
    """Whether a name has a later version since, or is being hosted."""
    latest = rows.hosted_latest(connection, row.hosted_name)
    named = {"of_names": [HOSTED + row.hosted_name]}
    return latest is None or latest.number != row.id or connection.execute(_IN_JOURNAL, named).first() is not None


def is_hosted(files: BlobStore, name: str, sha256: str, size_bytes: int) -> bool:
    """Whether a name has the bytes of a hash, or is the same file as they are; blocking."""
    if not is_sha256(sha256):
        return False
    if files.is_linked(name, sha256):
        return True  # then the check of the bytes is one of both
    if files.hosted_bytes(name) != size_bytes:
        return False
    return has_hash(partial(files.hosted_piece, name), sha256, size_bytes, files.piece_bytes)
