"""The whole check, and the repair of what has another copy."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection, bindparam, select

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.port import NewArtifact, StoreAwayError
from proofbox.service.errors import OurError
from proofbox.service.file_content import FileContent
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import BlobStore
from proofbox.service.storage.artifacts.save_journal import served_file
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.byte_check import has_hash, is_sound, pieces_of
from proofbox.service.storage.check.finding import Finding, FindingKind
from proofbox.service.storage.check.records import check_database, check_records
from proofbox.service.storage.check.stored_files import (
    check_blobs_without_rows,
    check_bytes_of_files,
    check_hosted,
    check_hosted_without_rows,
    check_journal,
    check_that_records_fit,
    is_hosted,
    unknown_blobs,
    unknown_hosted,
)
from proofbox.service.storage.database import Database
from proofbox.service.storage.error_translation import DamagedDatabaseError
from proofbox.service.storage.schema import artifacts

_COPIES_MAX = 20  # of one content, that are tried
_COPIES = (
    select(artifacts.c.hosted_name)
    .where(artifacts.c.sha256 == bindparam("of_sha256"), artifacts.c.hosted_name.is_not(None))
    .order_by(artifacts.c.id.desc())
    .limit(_COPIES_MAX)
)
_ANY_PATH = FilePath("turn_check", Namespace.FILES, "restored")  # for errors only
_log = logging.getLogger("proofbox.storage")


class StoreCheck:
    """Checks the records and files of one service.

    Args:
        database: the open database.
        files: the bytes.
        is_idle: whether no service uses them.
        progress: called with a line for people now and then.
    """

    def __init__(
        self,
        database: Database,
        files: BlobStore,
        *,
        is_idle: bool,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._database = database
        self._files = files
        self._is_idle = is_idle
        self._progress = progress
        self._restored: dict[str, bool] = {}

    async def run(self, *, repairs: bool = False) -> AsyncIterator[Finding]:
        """Yield what is wrong, and with ``repairs`` what was.

        Raises:
            StoreFailedError: the database or the bytes cannot be read.
        """
        database, files, is_idle = self._database, self._files, self._is_idle
        # In this order: each repair is in time for the checks behind it.
        steps = {
            "database": check_database(database),
            "journal": check_journal(database, is_idle=is_idle),
            "records": check_records(database),
            "files": check_bytes_of_files(database, files, self._progress),
            "hosted files": check_hosted(database, files),
            "records of the bytes": check_that_records_fit(database, files),
            "stored bytes": check_blobs_without_rows(database, files, is_idle=is_idle),
            "hosted names": check_hosted_without_rows(database, files, is_idle=is_idle),
        }
        for name, step in steps.items():
            self._progress(f"checking: {name}")
            try:
                async for finding in step:
                    yield await self._repair(finding) if repairs else finding
                    if finding.kind is FindingKind.OTHER_RECORDS:  # all bytes would seem to belong to nothing
                        return
            except DamagedDatabaseError:
                yield Finding(FindingKind.DATABASE_DAMAGED, f"what the check of {name} needs cannot be read")

    async def _repair(self, finding: Finding) -> Finding:
        try:
            is_repaired = await self._try(finding)
        except StoreAwayError:
            raise
        except OurError as exc:
            _log.warning("%s could not be repaired: %s", finding.path or finding.kind, exc)
            is_repaired = False
        return replace(finding, is_repaired=is_repaired)

    async def _try(self, finding: Finding) -> bool:
        sha256, name = finding.sha256 or "", finding.hosted_name or ""
        match finding.kind:
            case FindingKind.BYTES_LOST | FindingKind.BYTES_CHANGED:
                if sha256 not in self._restored:
                    self._restored[sha256] = await self._restore(sha256, finding.size_bytes)
                return self._restored[sha256]
            case FindingKind.NOT_HOSTED | FindingKind.HOSTED_CHANGED:
                return await self._host(name)
            case FindingKind.UNFINISHED if self._is_idle:
                return await self._undo(finding.path or "")
            case FindingKind.BYTES_OF_NOTHING if self._is_idle:
                if await unknown_blobs(self._database, self._files, [sha256], is_idle=True):
                    await asyncio.to_thread(self._files.remove_blob, sha256)
                return True
            case FindingKind.HOSTED_OF_NOTHING if self._is_idle:
                if await unknown_hosted(self._database, self._files, [name], is_idle=True):
                    await asyncio.to_thread(self._files.remove_hosted, name)
                return True
        return False

    async def _undo(self, name: str) -> bool:
        """Undo the whole journal, as a start of the service does; whether it has a name no more."""
        store = SqlArtifactStore(self._database, self._files)
        await store.open()
        try:
            await store.retry_removals()
        finally:
            await store.close()
        left = await self._database.read(rows.unfinished_saves)
        return all(name not in names for names in left.values())

    async def _restore(self, sha256: str, size_bytes: int) -> bool:
        """Put the bytes of a hash in place from a hosted copy, if one has them."""

        def find(connection: Connection) -> list[str]:
            return list(dict.fromkeys(connection.execute(_COPIES, {"of_sha256": sha256}).scalars()))

        names = await self._database.read(find)
        return await asyncio.to_thread(self._restore_from, names, sha256, size_bytes)

    def _restore_from(self, names: list[str], sha256: str, size_bytes: int) -> bool:
        files = self._files
        for name in names:
            read = partial(files.hosted_piece, name)
            if files.hosted_bytes(name) != size_bytes or not has_hash(read, sha256, size_bytes, files.piece_bytes):
                continue
            folder = files.stage()
            try:
                copy = folder / "restored"
                with copy.open("xb") as stream:
                    for piece in pieces_of(read, size_bytes, files.piece_bytes):
                        stream.write(piece)
                new = NewArtifact(_ANY_PATH, FileContent(copy), size_bytes, sha256, "", "internal", "", None)
                files.seal([new])
                files.place([new])
                if not is_sound(files, sha256, size_bytes):  # a server takes large bytes of this name to be there
                    files.remove_blob(sha256)
                    files.place([new])
            finally:
                files.unstage(folder)
            return is_sound(files, sha256, size_bytes)
        return False

    async def _host(self, name: str) -> bool:
        """Host the latest version of a name, unless its own bytes are damaged; a running service may do it, too."""
        while True:
            row = await self._database.read(lambda connection: rows.hosted_latest(connection, name))
            if row is None:
                return True
            if not await asyncio.to_thread(is_sound, self._files, row.sha256, row.size_bytes):
                return False
            await asyncio.to_thread(self._files.host, {name: served_file(row)})
            latest = await self._database.read(lambda connection: rows.hosted_latest(connection, name))
            if latest is not None and latest.number == row.number:
                return await asyncio.to_thread(is_hosted, self._files, name, row.sha256, row.size_bytes)
