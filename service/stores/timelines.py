"""The timelines of conversations in SQLite: an event log each, whose blocks are added and never changed."""

import asyncio
import base64
import binascii
import sqlite3
from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from contracts.blocks import Block
from service.core.errors import StoreFailedError, TimelineMovedError
from service.core.scopes import Scope
from service.core.store_ports import PlacedBlock
from service.stores.sqlite import Database, ensure_conversation, find_conversation

BlockRow = tuple[str | None, str, str, bytes | None]
"""Call, path, JSON text without base64, and what the base64 says."""
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
        "INSERT INTO blocks (conversation, position, call_id, path, block, content) VALUES (?, ?, ?, ?, ?, ?)",
        [(conversation, position, *row) for position, row in enumerate(rows, start=last + 1)],
    )
    return last + len(rows)


def _last(connection: sqlite3.Connection, conversation: int) -> int:
    found = connection.execute(
        "SELECT COALESCE(MAX(position), 0) FROM blocks WHERE conversation = ?", (conversation,)
    )
    return int(found.fetchone()[0])


def _row(block: Block) -> BlockRow:
    content = _decoded(block.base64)
    kept = block if content is None else block.model_copy(update={"base64": None})
    return block.call_id, block.path, kept.model_dump_json(), content


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
