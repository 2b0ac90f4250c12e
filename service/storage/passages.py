"""Passages of conversations and their embeddings in the database."""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, or_, select, update
from typing_extensions import override

from proofbox.service.identity import ConversationKey
from proofbox.service.react.memsearch.port import Candidate, Passage, PassageStore
from proofbox.service.storage.conversation_rows import (
    CONVERSATION,
    ensure_conversation,
    new_or_changed,
    scope_values,
)
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import passages as rows
from proofbox.service.storage.schema import passages_through as ends

_PICKED_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more

_END = select(ends.c.position).where(ends.c.conversation == CONVERSATION)
_HERE = rows.c.conversation == CONVERSATION
_COMPARED = (rows.c.id, rows.c.turn, rows.c.target, rows.c.ts, rows.c.text, rows.c.model, rows.c.vector)
_CANDIDATES = select(*_COMPARED).where(_HERE, rows.c.ts >= bindparam("since"))
_NEW_VECTOR: dict[str, Any] = {"vector": bindparam("new_vector"), "model": bindparam("new_model")}
_VECTOR_SET = (
    update(rows)
    .where(rows.c.conversation == bindparam("in_conversation"), rows.c.id == bindparam("of_id"))
    .values(_NEW_VECTOR)
)
_VECTOR_RENEWED = update(rows).where(rows.c.id == bindparam("of_id")).values(_NEW_VECTOR)
_WANTED: Any = bindparam("wanted")
# Two ranges of an index: where nothing is outdated, no passage is read.
_OUTDATED = select(rows.c.id, rows.c.text).where(
    rows.c.model > "", or_(rows.c.model < _WANTED, rows.c.model > _WANTED)
)


class SqlPassageStore(PassageStore):
    """The PassageStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def through(self, scope: ConversationKey) -> int:
        return await self._database.read(lambda connection: connection.scalar(_END, scope_values(scope)) or 0)

    @override
    async def add(self, scope: ConversationKey, passages: Sequence[Passage], *, since: int, through: int) -> bool:
        def work(connection: Connection) -> bool:
            conversation, _ = ensure_conversation(connection, scope)
            if (connection.scalar(_END, scope_values(scope)) or 0) != since:
                return False
            if passages:
                connection.execute(insert(rows), [_columns(conversation, passage) for passage in passages])
            moved = new_or_changed(ends, connection.dialect.name, "position")
            connection.execute(moved, {"conversation": conversation, "position": through})
            return True

        return await self._database.write(work)

    @override
    async def candidates(
        self, scope: ConversationKey, targets: Collection[str], since_ts: str, model: str
    ) -> list[Candidate]:
        query = _CANDIDATES.where(rows.c.target.in_(list(targets))).order_by(rows.c.id)
        values = {**scope_values(scope), "since": since_ts}

        def work(connection: Connection) -> list[Candidate]:
            return [
                Candidate(
                    row.id,
                    row.turn,
                    row.target,
                    row.ts,
                    row.text,
                    row.vector if row.model == model else b"",
                    row.model not in {"", model},
                )
                for row in connection.execute(query, values)
            ]

        return await self._database.read(work)

    @override
    async def set_vectors(self, scope: ConversationKey, vectors: Mapping[int, bytes], model: str) -> None:
        def work(connection: Connection) -> None:
            conversation, _ = ensure_conversation(connection, scope)
            values = [{"in_conversation": conversation, **row} for row in _new_vectors(vectors, model)]
            connection.execute(_VECTOR_SET, values)

        if vectors:
            await self._database.write(work)

    @override
    async def outdated(self, model: str, limit: int) -> dict[int, str]:
        def work(connection: Connection) -> dict[int, str]:
            found = connection.execute(_OUTDATED.limit(limit), {"wanted": model})
            return {row.id: row.text for row in found}

        return await self._database.read(work)

    @override
    async def renew_vectors(self, vectors: Mapping[int, bytes], model: str) -> None:
        def work(connection: Connection) -> None:
            connection.execute(_VECTOR_RENEWED, _new_vectors(vectors, model))

        if vectors:
            await self._database.write(work)

    @override
    async def pick(self, scope: ConversationKey, ids: Collection[int]) -> dict[int, Passage]:
        def work(connection: Connection) -> dict[int, Passage]:
            found = {}
            left = iter(ids)
            while group := list(islice(left, _PICKED_AT_ONCE)):
                query: Select[Any] = select(rows).where(_HERE, rows.c.id.in_(group))
                found.update({row.id: _passage(row) for row in connection.execute(query, scope_values(scope))})
            return found

        return await self._database.read(work)


def _columns(conversation: int, passage: Passage) -> dict[str, object]:
    return {
        "conversation": conversation,
        "position": passage.position,
        "turn": passage.turn_id,
        "target": passage.target,
        "ts": passage.ts,
        "path": passage.path,
        "text": passage.text,
        "vector": passage.vector,
        "model": passage.model,
    }


def _new_vectors(vectors: Mapping[int, bytes], model: str) -> list[dict[str, object]]:
    return [{"of_id": number, "new_vector": vector, "new_model": model} for number, vector in vectors.items()]


def _passage(row: Row[Any]) -> Passage:
    return Passage(row.position, row.turn, row.target, row.ts, row.path, row.text, row.vector, row.model)
