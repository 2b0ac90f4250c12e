"""Passages of conversations and their embeddings in SQLite."""

import sqlite3
from collections.abc import Collection, Sequence

from service.core.scopes import Scope
from service.core.store_ports import Passage
from service.stores.sqlite import Database, ensure_conversation, find_conversation


class SqlitePassageStore:
    """The port ``PassageStore`` in SQLite.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def through(self, scope: Scope) -> int:
        """Up to which position of the timeline the passages are there.

        Raises:
            StoreFailedError: the database failed.
        """
        return await self._database.read(
            lambda connection: _through(connection, find_conversation(connection, scope))
        )

    async def add(self, scope: Scope, passages: Sequence[Passage], *, since: int, through: int) -> bool:
        """Adds the passages of the blocks after ``since`` up to ``through``, unless somebody else has.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """

        def work(connection: sqlite3.Connection) -> bool:
            conversation, _ = ensure_conversation(connection, scope)
            if _through(connection, conversation) != since:
                return False
            connection.executemany(
                "INSERT INTO passages (conversation, position, turn, target, ts, path, text, vector) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [(conversation, p.position, p.turn_id, p.target, p.ts, p.path, p.text, p.vector) for p in passages],
            )
            connection.execute(
                "INSERT INTO passages_through VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position",
                (conversation, through),
            )
            return True

        return await self._database.write(work)

    async def vectors(self, scope: Scope, targets: Collection[str], since_ts: str) -> list[tuple[int, str, bytes]]:
        """Id, time and embedding of the passages of some targets from a time on.

        Raises:
            StoreFailedError: the database failed.
        """

        def work(connection: sqlite3.Connection) -> list[tuple[int, str, bytes]]:
            conversation = find_conversation(connection, scope)
            found: list[tuple[int, str, bytes]] = []
            for target in targets:
                rows = connection.execute(
                    "SELECT id, ts, vector FROM passages "
                    "WHERE conversation = ? AND target = ? AND ts >= ? ORDER BY id",
                    (conversation, target, since_ts),
                )
                found += [(row["id"], row["ts"], row["vector"]) for row in rows.fetchall()]
            return found

        return await self._database.read(work)

    async def pick(self, scope: Scope, ids: Collection[int]) -> dict[int, Passage]:
        """Passages of this conversation by their ids.

        Raises:
            StoreFailedError: the database failed.
        """

        def work(connection: sqlite3.Connection) -> dict[int, Passage]:
            conversation = find_conversation(connection, scope)
            found = {}
            for number in ids:
                row = connection.execute(
                    "SELECT * FROM passages WHERE conversation = ? AND id = ?", (conversation, number)
                ).fetchone()
                if row is not None:
                    found[number] = Passage(
                        row["position"],
                        row["turn"],
                        row["target"],
                        row["ts"],
                        row["path"],
                        row["text"],
                        row["vector"],
                    )
            return found

        return await self._database.read(work)


def _through(connection: sqlite3.Connection, conversation: int | None) -> int:
    row = connection.execute(
        "SELECT position FROM passages_through WHERE conversation = ?", (conversation,)
    ).fetchone()
    return 0 if row is None else int(row["position"])
