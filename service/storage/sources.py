"""The sources of conversations in the database: rows whose ids never change their meaning."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Select, and_, bindparam, func, insert, select, update
from typing_extensions import override

from proofbox.contracts.paths import Namespace
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.port import NewPage, SourcePool, StoredArtifact
from proofbox.service.errors import SidConflictError, StoreFailedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.conversation_rows import CONVERSATION, ensure_conversation, scope_values
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import is_short, is_text, short, sources
from proofbox.service.storage.text_columns import json_text, storable

FILE_SID_MIN = 10_001
"""Files and attachments are numbered from here: sources that a client numbers from 1 never collide with them.
One call may bring 10,000 rows."""
_SID_MAX = 10**9  # as the wire allows
_MIME_MAX = 128  # as the wire allows
_TITLE_MAX = 1_000  # as the wire allows
_FILLED = ("title", "url", "text", "mime", "size_bytes", "turn_id")
"""Fields of a stored row that a later call may fill; none of them changes what a row of its kind means."""
_SHOWN_MAX = 120  # of a meaning in an error's text

_ALL = select(sources.c.sid, sources.c.source).where(sources.c.conversation == CONVERSATION).order_by(sources.c.sid)
_HERE = sources.c.conversation == bindparam("in_conversation")
_OLDEST = select(sources.c.sid, sources.c.source).where(_HERE).order_by(sources.c.sid).limit(1)
_OF_SID = _OLDEST.where(sources.c.sid == bindparam("of_sid"))
_HIGHEST_OF_ALL = select(func.coalesce(func.max(sources.c.sid), 0).label("highest")).where(_HERE)
_ALL_SIDS = _HIGHEST_OF_ALL.subquery()
_OF_LONG, _OF_SHORT = (
    select(sources.c.file, sources.c.source, _ALL_SIDS.c.highest)
    .outerjoin_from(
        _ALL_SIDS, sources, and_(_HERE, sources.c.file.in_(bindparam("of_files", expanding=True)), *more)
    )
    .order_by(sources.c.sid)
    for more in ((), (short(sources.c.file),))
)
_FILES_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more
_ADDED = insert(sources)
_CHANGED = (
    update(sources)
    .where(_HERE, sources.c.sid == bindparam("of_sid"))
    .values(file=bindparam("new_file"), url=bindparam("new_url"), source=bindparam("new_source"))
)
_HIGHEST_PAGE = _HIGHEST_OF_ALL.where(sources.c.sid < FILE_SID_MIN)


class SqlSourcePool(SourcePool):
    """The SourcePool in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def rows(self, scope: ConversationKey) -> list[SourceRow]:
        def work(connection: Connection) -> list[SourceRow]:
            return [_parse_source(row.source) for row in connection.execute(_ALL, scope_values(scope))]

        return await self._database.read(work)

    @override
    async def sids(self, scope: ConversationKey) -> frozenset[int]:
        query = _ALL.with_only_columns(sources.c.sid)
        return await self._database.read(
            lambda connection: frozenset(connection.scalars(query, scope_values(scope)))
        )

    @override
    async def pick(self, scope: ConversationKey, ranges: Sequence[tuple[int, int]], limit: int) -> list[SourceRow]:
        query = _ALL.where(sources.c.sid.between(bindparam("first"), bindparam("last"))).limit(limit)

        def work(connection: Connection) -> list[SourceRow]:
            found: dict[int, str] = {}
            for first, last in ranges:
                # No sid lies beyond, and no column takes any number that a caller may write.
                values = {**scope_values(scope), "first": min(first, _SID_MAX + 1), "last": min(last, _SID_MAX)}
                found.update({row.sid: row.source for row in connection.execute(query, values)})
            return [_parse_source(found[sid]) for sid in sorted(found)[:limit]]

        return await self._database.read(work)

    @override
    async def add_pages(self, scope: ConversationKey, pages: Sequence[NewPage]) -> list[SourceRow]:
        def work(connection: Connection) -> list[SourceRow]:
            conversation, _ = ensure_conversation(connection, scope)
            return [_put_page(connection, conversation, page) for page in pages]

        return await self._database.write(work)

    @override
    async def add_file(self, scope: ConversationKey, artifact: StoredArtifact) -> SourceRow:
        def work(connection: Connection) -> SourceRow:
            conversation, _ = ensure_conversation(connection, scope)
            (row,) = put_files(connection, conversation, [artifact])
            return row

        return await self._database.write(work)

    @override
    async def complete(self, scope: ConversationKey, rows: Sequence[SourceRow]) -> None:
        if not rows:
            return

        def work(connection: Connection) -> None:
            conversation, _ = ensure_conversation(connection, scope)
            for row in rows:
                known = _known(connection, conversation, _OF_SID, of_sid=row.sid)
                if known is None:
                    _add(connection, conversation, [row])
                elif (stored := _meaning(known)) != (given := _meaning(row)):
                    raise SidConflictError(
                        f"source {row.sid} is {_show(stored)} in this conversation and {_show(given)} in "
                        "sources_pool; give the new source another sid"
                    )
                elif (filled := _fill_row(known, row)) != known:
                    _change(connection, conversation, [filled])

        await self._database.write(work)


def put_files(connection: Connection, conversation: int, artifacts: Sequence[StoredArtifact]) -> list[SourceRow]:
    """The rows of the artifacts' paths: inserted with the next free sids, or updated to these versions."""
    rows, highest = _of_files(connection, conversation, {_file_of(artifact) for artifact in artifacts})
    old, free = frozenset(rows), _free_file_sids(connection, conversation, highest)
    for artifact in artifacts:
        file = _file_of(artifact)
        known = rows.get(file)
        rows[file] = _row_of(artifact, next(free)) if known is None else _update_row(known, artifact)
    _add(connection, conversation, [row for file, row in rows.items() if file not in old])
    _change(connection, conversation, [row for file, row in rows.items() if file in old])
    return [rows[_file_of(artifact)] for artifact in artifacts]


def _of_files(connection: Connection, conversation: int, files: Iterable[str]) -> tuple[dict[str, SourceRow], int]:
    """The rows of those files that have one, of several the oldest; and the highest sid."""
    rows: dict[str, SourceRow] = {}
    highest = 0
    left = iter(sorted(files))
    while some := list(islice(left, _FILES_AT_ONCE)):
        short_ones, long_ones = ([file for file in some if is_short(file) is wanted] for wanted in (True, False))
        for query, names in ((_OF_SHORT, short_ones), (_OF_LONG, long_ones)):
            if names:
                for row in connection.execute(query, {"in_conversation": conversation, "of_files": names}):
                    highest = row.highest
                    if row.file is not None:
                        rows.setdefault(row.file, _parse_source(row.source))
    return rows, highest


def _file_of(artifact: StoredArtifact) -> str:
    """Return the artifact's path as the database stores it."""
    return storable(artifact.path.logical)


def _update_row(known: SourceRow, artifact: StoredArtifact) -> SourceRow:
    """Return the row with the current values of the store; the caller's values stay."""
    row = _row_of(artifact, known.sid)
    values = {"title": known.title or row.title, "url": known.url, "text": known.text}
    return row.model_copy(update=values)


def _fill_row(known: SourceRow, given: SourceRow) -> SourceRow:
    """A stored row whose blank fields have the values of a row of the same meaning."""
    blank = [name for name in _FILLED if getattr(known, name) in (None, "")]
    return known.model_copy(update={name: getattr(given, name) for name in blank})


def _known(connection: Connection, conversation: int, query: Select[Any], **values: object) -> SourceRow | None:
    found = connection.execute(query, {"in_conversation": conversation, **values}).first()
    return None if found is None else _parse_source(found.source)


def _columns(row: SourceRow) -> dict[str, object]:
    file = row.file
    return {
        "file": None if file is None else file.logical,
        "url": row.url if file is None else None,
        "source": json_text(row, exclude_none=True),
    }


def _add(connection: Connection, conversation: int, rows: Sequence[SourceRow]) -> None:
    if rows:
        values = [{"conversation": conversation, "sid": row.sid, **_columns(row)} for row in rows]
        connection.execute(_ADDED, values)


def _change(connection: Connection, conversation: int, rows: Sequence[SourceRow]) -> None:
    here = {"in_conversation": conversation}
    for row in rows:
        new = {f"new_{name}": value for name, value in _columns(row).items()}
        connection.execute(_CHANGED, {**here, "of_sid": row.sid, **new})


def _put_page(connection: Connection, conversation: int, page: NewPage) -> SourceRow:
    known = _known(connection, conversation, _OLDEST.where(is_text(sources.c.url, page.url)))
    row = known or SourceRow(
        sid=next(_free_page_sids(connection, conversation)), source_type="web", url=page.url, turn_id=page.turn_id
    )
    new = {"title": page.title[:_TITLE_MAX], "text": page.text, "mime": page.mime}
    row = row.model_copy(update={name: value for name, value in new.items() if value})
    (_add if known is None else _change)(connection, conversation, [row])
    return row


def _free_file_sids(connection: Connection, conversation: int, highest: int) -> Iterator[int]:
    """Numbers for files: those above the highest, then the lowest free ones from `FILE_SID_MIN` on."""
    yield from range(max(highest + 1, FILE_SID_MIN), _SID_MAX + 1)
    # A caller took the highest number that there is.
    taken = _taken_sids(connection, conversation)
    yield from (sid for sid in count(FILE_SID_MIN) if sid not in taken)


def _free_page_sids(connection: Connection, conversation: int) -> Iterator[int]:
    """Numbers for web pages: those above all others below `FILE_SID_MIN`, then the lowest free ones."""
    (highest,) = connection.execute(_HIGHEST_PAGE, {"in_conversation": conversation}).one()
    yield from range(highest + 1, FILE_SID_MIN)
    taken = _taken_sids(connection, conversation)
    yield from (sid for sid in count(1) if sid not in taken)


def _taken_sids(connection: Connection, conversation: int) -> frozenset[int]:
    query = select(sources.c.sid).where(_HERE)
    return frozenset(connection.scalars(query, {"in_conversation": conversation}))


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


def _show(meaning: tuple[str, ...]) -> str:
    kind, *what = meaning
    text = " — ".join(part for part in what if part)
    return f"{kind} '{text[:_SHOWN_MAX]}'"


def _parse_source(source: str) -> SourceRow:
    try:
        return SourceRow.model_validate_json(source)
    except ValidationError as exc:
        raise StoreFailedError("the database holds a source that this release cannot read") from exc
