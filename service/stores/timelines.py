"""The timelines of conversations in SQLite: an event log each, whose blocks are added and never changed."""

import asyncio
import base64
import binascii
import sqlite3
from collections.abc import Collection, Iterable, Sequence

from pydantic import ValidationError

from contracts.blocks import Block
from service.core.errors import StoreFailedError, TimelineMovedError
from service.core.scopes import Scope
from service.core.store_ports import PlacedBlock, TurnSpan, described_path, hidden_path
from service.stores.sqlite import Database, ensure_conversation, find_conversation

BlockRow = tuple[str, str | None, str, str | None, str | None, str, bytes | None]
"""Turn, call, path, described path, hidden path, JSON text without base64, and what the base64 says."""
_BARE = "SELECT position, block, NULL AS content, LENGTH(content) AS size FROM blocks"
_GROUP_MAX = 1_000  # blocks of one call; a contract has at most as many files as a call may leave


class SqliteTimelineStore:
    """The port ``TimelineStore`` in SQLite.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, scope: Scope, blocks: Sequence[Block], *, if_last: int | None = None) -> int:
        """Adds blocks at the end, all or none; the position of the last one.

        Raises:
            TimelineMovedError: the last position is not ``if_last``.
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """
        rows = await asyncio.to_thread(block_rows, blocks)

        def work(connection: sqlite3.Connection) -> int:
            conversation, _ = ensure_conversation(connection, scope)
            last = _last(connection, conversation)
            if if_last not in (None, last):
                raise TimelineMovedError(
                    f"if_last: the timeline ends at {last}, not at {if_last}; read what came after and decide again"
                )
            return append_rows(connection, conversation, rows)

        return await self._database.write(work)

    async def after(self, scope: Scope, position: int, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """At most ``limit`` blocks after a position, in order.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        content = "content" if binaries else "NULL AS content"

        def work(connection: sqlite3.Connection) -> list[PlacedBlock]:
            found = connection.execute(
                f"SELECT position, block, {content}, LENGTH(content) AS size FROM blocks "  # noqa: S608 - one of two constants
                "WHERE conversation = ? AND position > ? ORDER BY position LIMIT ?",
                (find_conversation(connection, scope), position, limit),
            )
            return [_placed(row) for row in found.fetchall()]

        return await self._database.read(work)

    async def last(self, scope: Scope) -> int:
        """The position of the last block; 0 if there is none.

        Raises:
            StoreFailedError: the database failed.
        """
        return await self._database.read(lambda connection: _last(connection, find_conversation(connection, scope)))

    async def before(self, scope: Scope, position: int, limit: int) -> list[PlacedBlock]:
        """At most ``limit`` blocks at or before a position, the newest first, without base64.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        where = "conversation = ? AND position <= ? ORDER BY position DESC LIMIT ?"
        return await self._bare(scope, where, position, limit)

    async def of_path(self, scope: Scope, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """The newest ``limit`` blocks of a logical path, or whose digest describes it, in order.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        content = "content" if binaries else "NULL AS content"

        def work(connection: sqlite3.Connection) -> list[PlacedBlock]:
            conversation = find_conversation(connection, scope)
            found = connection.execute(
                f"SELECT position, block, {content}, LENGTH(content) AS size FROM blocks "  # noqa: S608 - one of two constants
                "WHERE conversation = ? AND position IN ("
                "SELECT position FROM (SELECT position FROM blocks WHERE conversation = ? AND path = ? "
                "ORDER BY position DESC LIMIT ?) "
                "UNION SELECT position FROM (SELECT position FROM blocks WHERE conversation = ? AND describes = ? "
                "ORDER BY position DESC LIMIT ?) ORDER BY position DESC LIMIT ?) ORDER BY position",
                (conversation, conversation, path, limit, conversation, path, limit, limit),
            )
            return [_placed(row) for row in found.fetchall()]

        return await self._database.read(work)

    async def of_call(self, scope: Scope, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        """The first ``limit`` blocks of a call, in order, without base64.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        where = "conversation = ? AND call_id = ? ORDER BY position LIMIT ?"
        return await self._bare(scope, where, tool_call_id, limit)

    async def of_turns(self, scope: Scope, turn_ids: Collection[str], *, described: bool) -> list[PlacedBlock]:
        """The blocks of some turns, in order, without base64; with ``described`` only those that hold a digest.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        only = " AND describes IS NOT NULL" if described else ""
        found: list[PlacedBlock] = []
        for turn_id in turn_ids:
            found += await self._bare(scope, f"conversation = ? AND turn = ?{only}", turn_id)
        return sorted(found, key=lambda placed: placed.position)

    async def files_of_turn(self, scope: Scope, turn_id: str) -> list[str]:
        """The ``fi:`` paths of the blocks of a turn, each once.

        Raises:
            StoreFailedError: the database failed.
        """

        def work(connection: sqlite3.Connection) -> list[str]:
            found = connection.execute(
                "SELECT path FROM blocks WHERE conversation = ? AND turn = ? AND path LIKE 'fi:%' "
                "GROUP BY path ORDER BY MIN(position)",
                (find_conversation(connection, scope), turn_id),
            )
            return [row["path"] for row in found.fetchall()]

        return await self._database.read(work)

    async def hidings(self, scope: Scope, after: int) -> list[PlacedBlock]:
        """The blocks after a position that hide others, in order.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        where = "conversation = ? AND position > ? AND hides IS NOT NULL ORDER BY position"
        return await self._bare(scope, where, after)

    async def summaries(self, scope: Scope) -> list[PlacedBlock]:
        """The blocks of type ``conv.range.summary``, in order.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """
        # A range of the index by path; what was read of a summary has its path too.
        found = await self._bare(scope, "conversation = ? AND path >= 'su:' AND path < 'su;' ORDER BY position")
        return [placed for placed in found if placed.block.type == "conv.range.summary"]

    async def turns(self, scope: Scope) -> list[TurnSpan]:
        """Where each turn begins and ends, by their beginning.

        Raises:
            StoreFailedError: the database failed.
        """

        def work(connection: sqlite3.Connection) -> list[TurnSpan]:
            found = connection.execute(
                "SELECT turn, first, last FROM turns WHERE conversation = ? ORDER BY first",
                (find_conversation(connection, scope),),
            )
            return [TurnSpan(row["turn"], row["first"], row["last"]) for row in found.fetchall()]

        return await self._database.read(work)

    async def _bare(self, scope: Scope, where: str, *values: object) -> list[PlacedBlock]:
        def work(connection: sqlite3.Connection) -> list[PlacedBlock]:
            found = connection.execute(f"{_BARE} WHERE {where}", (find_conversation(connection, scope), *values))
            return [_placed(row) for row in found.fetchall()]

        return await self._database.read(work)

    async def group_before(self, scope: Scope, position: int) -> list[PlacedBlock]:
        """The block at ``position`` and those right before it of the same call, in order, without base64.

        Raises:
            StoreFailedError: the database failed, or holds a block that is none.
        """

        def work(connection: sqlite3.Connection) -> list[PlacedBlock]:
            found = connection.execute(
                "SELECT position, call_id, block, NULL AS content, LENGTH(content) AS size FROM blocks "
                "WHERE conversation = ? AND position <= ? ORDER BY position DESC LIMIT ?",
                (find_conversation(connection, scope), position, _GROUP_MAX),
            )
            group: list[PlacedBlock] = []
            call_id = None
            for row in found:
                if group and (call_id is None or row["call_id"] != call_id):
                    break
                call_id = row["call_id"]
                group.append(_placed(row))
            return group[::-1]

        return await self._database.read(work)


def block_rows(blocks: Iterable[Block]) -> list[BlockRow]:
    """Blocks as they are kept."""
    return [_row(block) for block in blocks]


def append_rows(connection: sqlite3.Connection, conversation: int, rows: Sequence[BlockRow]) -> int:
    """Adds rows at the end of a conversation's timeline, inside a transaction; the last position."""
    last = _last(connection, conversation)
    connection.executemany(
        "INSERT INTO blocks (conversation, position, turn, call_id, path, describes, hides, block, content) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(conversation, position, *row) for position, row in enumerate(rows, start=last + 1)],
    )
    connection.executemany(
        "INSERT INTO turns (conversation, turn, first, last) VALUES (?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET last = excluded.last",
        [(conversation, row[0], position, position) for position, row in enumerate(rows, start=last + 1)],
    )
    return last + len(rows)


def _last(connection: sqlite3.Connection, conversation: int | None) -> int:
    found = connection.execute(
        "SELECT COALESCE(MAX(position), 0) FROM blocks WHERE conversation = ?", (conversation,)
    )
    return int(found.fetchone()[0])


def _row(block: Block) -> BlockRow:
    content = _decoded(block.base64)
    kept = block if content is None else block.model_copy(update={"base64": None})
    return (
        block.turn_id,
        block.call_id,
        block.path,
        described_path(block),
        hidden_path(block),
        kept.model_dump_json(),
        content,
    )


def _decoded(text: str | None) -> bytes | None:
    """What base64 says, if that text comes back from it: then a quarter of the space is saved."""
    if text is None:
        return None
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == text else None


def _placed(row: sqlite3.Row) -> PlacedBlock:
    try:
        block = Block.model_validate_json(row["block"])
    except ValidationError as exc:
        raise StoreFailedError("the database holds a block that this release cannot read") from exc
    if row["content"] is not None:
        block.base64 = base64.b64encode(row["content"]).decode()
    size = row["size"]
    return PlacedBlock(row["position"], block, len(block.base64 or "") if size is None else -(-size // 3) * 4)
