"""The sources of conversations in SQLite: rows whose ids never change their meaning."""

import sqlite3
from collections.abc import Sequence

from pydantic import ValidationError

from contracts.paths import Namespace
from contracts.tool_calls import SourceRow
from service.core.errors import SidConflictError, StoreFailedError
from service.core.scopes import Scope
from service.core.store_ports import NewPage, StoredArtifact
from service.stores.sqlite import Database, ensure_conversation, find_conversation

_SID_MAX = 10**9  # as the wire allows
_MIME_MAX = 128  # as the wire allows
_TITLE_MAX = 1_000  # as the wire allows
_SHOWN_MAX = 120  # of a meaning in an error's text


class SqliteSourcePool:
    """The port ``SourcePool`` in SQLite.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rows(self, scope: Scope) -> list[SourceRow]:
        """All rows, by ascending sid.

        Raises:
            StoreFailedError: the database failed, or holds a row that is none.
        """

        def work(connection: sqlite3.Connection) -> list[SourceRow]:
            found = connection.execute(
                "SELECT source FROM sources WHERE conversation = ? ORDER BY sid",
                (find_conversation(connection, scope),),
            )
            return [_parsed(row["source"]) for row in found.fetchall()]

        return await self._database.read(work)

    async def sids(self, scope: Scope) -> frozenset[int]:
        """The ids of all rows.

        Raises:
            StoreFailedError: the database failed.
        """

        def work(connection: sqlite3.Connection) -> frozenset[int]:
            found = connection.execute(
                "SELECT sid FROM sources WHERE conversation = ?", (find_conversation(connection, scope),)
            )
            return frozenset(int(row["sid"]) for row in found)

        return await self._database.read(work)

    async def pick(self, scope: Scope, ranges: Sequence[tuple[int, int]], limit: int) -> list[SourceRow]:
        """At most ``limit`` rows whose sid lies in one of the inclusive ranges, by ascending sid.

        Raises:
            StoreFailedError: the database failed, or holds a row that is none.
        """

        def work(connection: sqlite3.Connection) -> list[SourceRow]:
            conversation = find_conversation(connection, scope)
            found: dict[int, str] = {}
            for first, last in ranges:
                rows = connection.execute(
                    "SELECT sid, source FROM sources WHERE conversation = ? AND sid BETWEEN ? AND ? "
                    "ORDER BY sid LIMIT ?",
                    (conversation, first, last, limit),
                )
                found.update({int(row["sid"]): row["source"] for row in rows})
            return [_parsed(found[sid]) for sid in sorted(found)[:limit]]

        return await self._database.read(work)

    async def add_pages(self, scope: Scope, pages: Sequence[NewPage]) -> list[SourceRow]:
        """The rows of web pages, in their order; a page whose URL has a row keeps its sid and gets the new text.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """

        def work(connection: sqlite3.Connection) -> list[SourceRow]:
            conversation, _ = ensure_conversation(connection, scope)
            return [_put_page(connection, conversation, page) for page in pages]

        return await self._database.write(work)

    async def add_file(self, scope: Scope, artifact: StoredArtifact) -> SourceRow:
        """The row of the artifact's path, made with the next free sid, or brought to this version.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """

        def work(connection: sqlite3.Connection) -> SourceRow:
            conversation, _ = ensure_conversation(connection, scope)
            known = connection.execute(
                "SELECT sid, source FROM sources WHERE conversation = ? AND file = ? ORDER BY sid LIMIT 1",
                (conversation, artifact.path.logical),
            ).fetchone()
            row = _row_of(artifact, _free_sid(connection, conversation) if known is None else known["sid"])
            if known is not None:
                # What a caller said about the file stays; what the store knows about it is brought up to date.
                said = _parsed(known["source"])
                row = row.model_copy(update={"title": said.title or row.title, "url": said.url, "text": said.text})
            _put(connection, conversation, row)
            return row

        return await self._database.write(work)

    async def complete(self, scope: Scope, rows: Sequence[SourceRow]) -> None:
        """Adds the rows whose sid is free; the others must mean what is stored, or each other.

        Raises:
            SidConflictError: a sid means something else here; nothing is added then.
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """
        if not rows:
            return

        def work(connection: sqlite3.Connection) -> None:
            conversation, _ = ensure_conversation(connection, scope)
            for row in rows:
                known = connection.execute(
                    "SELECT source FROM sources WHERE conversation = ? AND sid = ?", (conversation, row.sid)
                ).fetchone()
                if known is None:
                    _put(connection, conversation, row)
                elif (stored := _meaning(_parsed(known["source"]))) != (given := _meaning(row)):
                    raise SidConflictError(
                        f"source {row.sid} is {_shown(stored)} in this conversation and {_shown(given)} in "
                        "sources_pool; give the new source another sid"
                    )

        await self._database.write(work)


def _put(connection: sqlite3.Connection, conversation: int, row: SourceRow) -> None:
    file = row.file
    connection.execute(
        "INSERT OR REPLACE INTO sources (conversation, sid, file, url, source) VALUES (?, ?, ?, ?, ?)",
        (
            conversation,
            row.sid,
            None if file is None else file.logical,
            row.url if file is None else None,
            row.model_dump_json(exclude_none=True),
        ),
    )


def _put_page(connection: sqlite3.Connection, conversation: int, page: NewPage) -> SourceRow:
    known = connection.execute(
        "SELECT source FROM sources WHERE conversation = ? AND url = ? ORDER BY sid LIMIT 1",
        (conversation, page.url),
    ).fetchone()
    if known is None:
        row = SourceRow(
            sid=_free_sid(connection, conversation), source_type="web", url=page.url, turn_id=page.turn_id
        )
    else:
        row = _parsed(known["source"])
    new = {"title": page.title[:_TITLE_MAX], "text": page.text, "mime": page.mime}
    row = row.model_copy(update={name: value for name, value in new.items() if value})
    _put(connection, conversation, row)
    return row


def _free_sid(connection: sqlite3.Connection, conversation: int) -> int:
    highest = connection.execute(
        "SELECT COALESCE(MAX(sid), 0) FROM sources WHERE conversation = ?", (conversation,)
    ).fetchone()[0]
    if highest < _SID_MAX:
        return int(highest) + 1
    # A caller took the highest number that there is: the lowest one that nobody has follows.
    return int(
        connection.execute(
            "SELECT MIN(before) + 1 FROM (SELECT 0 AS before UNION SELECT sid FROM sources WHERE conversation = ?)"
            " WHERE before + 1 NOT IN (SELECT sid FROM sources WHERE conversation = ?)",
            (conversation, conversation),
        ).fetchone()[0]
    )


def _row_of(artifact: StoredArtifact, sid: int) -> SourceRow:
    path = artifact.path
    return SourceRow(
        sid=sid,
        source_type="attachment" if path.namespace is Namespace.ATTACHMENTS else "file",
        title=path.rel.rpartition("/")[2],
        mime=artifact.mime if len(artifact.mime) <= _MIME_MAX else None,
        size_bytes=artifact.size_bytes,
        artifact_path=path.logical,
        physical_path=path.physical,
        hosted_uri=artifact.hosted_uri,
        rn=artifact.rn,
        key=artifact.key,
        turn_id=path.turn_id,
    )


def _meaning(row: SourceRow) -> tuple[str, ...]:
    """What a sid stands for: a file by its path, a page by its URL, anything else by its title and text."""
    file = row.file
    if file is not None:
        return "the file", file.logical
    if row.artifact_path is not None:
        return "the artifact", row.artifact_path
    if row.url is not None:
        return "the page", row.url
    return "the text", row.title, row.text or ""


def _shown(meaning: tuple[str, ...]) -> str:
    kind, *what = meaning
    text = " — ".join(part for part in what if part)
    return f"{kind} '{text[:_SHOWN_MAX]}'"


def _parsed(source: str) -> SourceRow:
    try:
        return SourceRow.model_validate_json(source)
    except ValidationError as exc:
        raise StoreFailedError("the database holds a source that this release cannot read") from exc
