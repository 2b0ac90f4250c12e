"""The timelines of conversations in the database: an event log each, whose blocks are added and never changed."""

import asyncio
import base64
import binascii
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError
from sqlalchemy import (
    BindParameter,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    null,
    or_,
    select,
    union,
    update,
)
from typing_extensions import override

from proofbox.contracts.blocks import Block
from proofbox.service.errors import StoreFailedError, TimelineMovedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.conversation_rows import (
    CONVERSATION,
    ensure_conversation,
    new_or_changed,
    scope_values,
)
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import blocks, is_text, passages, short, turns
from proofbox.service.storage.text_columns import json_text
from proofbox.service.timeline.port import PlacedBlock, TimelineStore, TurnSpan, described_path, hidden_path

BlockRow = dict[str, object]
"""Turn, call, path, described path, hidden path, JSON text without base64, and the decoded base64."""
_GROUP_MAX = 1_000  # blocks of one call; a contract has at most as many files as a call may leave
_TURNS_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more

_SIZE = func.length(blocks.c.content).label("size")
_WHOLE = select(blocks.c.position, blocks.c.block, blocks.c.content, _SIZE).where(
    blocks.c.conversation == CONVERSATION
)
_BARE = _WHOLE.with_only_columns(blocks.c.position, blocks.c.block, null().label("content"), _SIZE)
_AT: BindParameter[int] = bindparam("at")
# Not grouped by the path: SQLite would walk the paths of the whole conversation in place of one turn.
_PATHS_OF_TURN = (
    select(blocks.c.path)
    .where(blocks.c.conversation == CONVERSATION, blocks.c.turn == bindparam("of_turn"))
    .order_by(blocks.c.position)
)
_DESCRIBES_OR_PLANS = or_(
    blocks.c.describes.is_not(None),
    and_(blocks.c.path.like("ar:%.react.plan.%"), blocks.c.path.not_like("ar:%.react.plan.ack.%")),
)
_LAST = select(func.coalesce(func.max(blocks.c.position), 0))
_LAST_OF = _LAST.where(blocks.c.conversation == bindparam("in_conversation"))
LAST_POSITION = _LAST_OF.scalar_subquery().label("last")
"""The position of the last block of the timeline of ``in_conversation``, in a statement on something else."""
_ADDED = insert(blocks)
_OF_GROUP = (
    blocks.c.conversation == bindparam("in_conversation"),
    blocks.c.position > bindparam("before"),
    blocks.c.position <= bindparam("newest"),
    blocks.c.path != bindparam("stored_path"),
)
_REMOVED = delete(blocks).where(*_OF_GROUP)
_LAST_STORED = (
    select(blocks.c.position, blocks.c.block).where(*_OF_GROUP[:3]).order_by(blocks.c.position.desc()).limit(1)
)
_MOVED = (
    update(blocks)
    .where(_OF_GROUP[0], blocks.c.position == bindparam("at"))
    .values(position=bindparam("newest"), block=bindparam("new_block"), hides=bindparam("new_hides"))
)
_FORGOTTEN = delete(passages).where(
    passages.c.conversation == bindparam("in_conversation"),
    passages.c.position > bindparam("before"),
    passages.c.position <= bindparam("newest"),
)


class SqlTimelineStore(TimelineStore):
    """The TimelineStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def append(self, scope: ConversationKey, blocks: Sequence[Block], *, if_last: int | None = None) -> int:
        rows = await asyncio.to_thread(block_rows, blocks)

        def work(connection: Connection) -> int:
            conversation, _ = ensure_conversation(connection, scope)
            last = last_position(connection, conversation)
            if if_last not in (None, last):
                raise TimelineMovedError(
                    f"if_last: the timeline ends at {last}, not at {if_last}; read what came after and decide again"
                )
            return _append_after(connection, conversation, last, rows)

        return await self._database.write(work)

    @override
    async def after(
        self, scope: ConversationKey, position: int, limit: int, *, binaries: bool
    ) -> list[PlacedBlock]:
        query = (_WHOLE if binaries else _BARE).where(blocks.c.position > _AT).order_by(blocks.c.position)
        return await self._find(scope, query.limit(limit), at=position)

    @override
    async def last(self, scope: ConversationKey) -> int:
        query = _LAST.where(blocks.c.conversation == CONVERSATION)
        return await self._database.read(
            lambda connection: connection.execute(query, scope_values(scope)).scalar_one()
        )

    @override
    async def before(self, scope: ConversationKey, position: int, limit: int) -> list[PlacedBlock]:
        query = _BARE.where(blocks.c.position <= _AT).order_by(blocks.c.position.desc())
        return await self._find(scope, query.limit(limit), at=position)

    @override
    async def of_path(self, scope: ConversationKey, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        def newest(column: Any) -> Select[Any]:
            where = (blocks.c.conversation == CONVERSATION, is_text(column, path))
            found = select(blocks.c.position).where(*where).order_by(blocks.c.position.desc()).limit(limit)
            return select(found.subquery().c.position)

        # Each of the two by its own index; an OR would read the whole timeline.
        both = union(newest(blocks.c.path), newest(blocks.c.describes)).subquery()
        positions = select(both.c.position).order_by(both.c.position.desc()).limit(limit)
        query = (_WHOLE if binaries else _BARE).where(blocks.c.position.in_(positions)).order_by(blocks.c.position)
        return await self._find(scope, query)

    @override
    async def of_call(self, scope: ConversationKey, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        query = _BARE.where(is_text(blocks.c.call_id, tool_call_id)).order_by(blocks.c.position)
        return await self._find(scope, query.limit(limit))

    @override
    async def of_turns(
        self, scope: ConversationKey, turn_ids: Collection[str], *, described: bool
    ) -> list[PlacedBlock]:
        query = _BARE.where(_DESCRIBES_OR_PLANS) if described else _BARE
        found: list[PlacedBlock] = []
        left = iter(turn_ids)
        while group := list(islice(left, _TURNS_AT_ONCE)):
            found += await self._find(scope, query.where(blocks.c.turn.in_(group)))
        return sorted(found, key=lambda placed: placed.position)

    @override
    async def files_of_turn(self, scope: ConversationKey, turn_id: str) -> list[str]:
        values = {**scope_values(scope), "of_turn": turn_id}
        rows = await self._database.read(lambda connection: connection.execute(_PATHS_OF_TURN, values).all())
        return list(dict.fromkeys(row.path for row in rows if row.path.startswith("fi:")))

    @override
    async def hidings(self, scope: ConversationKey, after: int) -> list[PlacedBlock]:
        query = _BARE.where(blocks.c.position > _AT, blocks.c.hides.is_not(None)).order_by(blocks.c.position)
        return await self._find(scope, query, at=after)

    @override
    async def summaries(self, scope: ConversationKey) -> list[PlacedBlock]:
        # A range of the index by path; what was read of a summary has its path too.
        path = blocks.c.path
        query = _BARE.where(path >= "su:", path < "su;", short(path)).order_by(blocks.c.position)
        return [placed for placed in await self._find(scope, query) if placed.block.type == "conv.range.summary"]

    @override
    async def turns(self, scope: ConversationKey) -> list[TurnSpan]:
        query = (
            select(turns.c.turn, turns.c.first, turns.c.last)
            .where(turns.c.conversation == CONVERSATION)
            .order_by(turns.c.first)
        )

        def work(connection: Connection) -> list[TurnSpan]:
            return [TurnSpan(*row) for row in connection.execute(query, scope_values(scope))]

        return await self._database.read(work)

    @override
    async def group_before(self, scope: ConversationKey, position: int) -> list[PlacedBlock]:
        query = (
            _BARE.add_columns(blocks.c.call_id)
            .where(blocks.c.position <= _AT)
            .order_by(blocks.c.position.desc())
            .limit(_GROUP_MAX)
        )

        def work(connection: Connection) -> list[PlacedBlock]:
            group: list[PlacedBlock] = []
            call_id = None
            with connection.execute(query, {**scope_values(scope), "at": position}) as found:
                for row in found:
                    if group and (call_id is None or row.call_id != call_id):
                        break
                    call_id = row.call_id
                    group.append(_place_row(row))
            return group[::-1]

        return await self._database.read(work)

    async def _find(self, scope: ConversationKey, query: Select[Any], **values: object) -> list[PlacedBlock]:
        def work(connection: Connection) -> list[PlacedBlock]:
            return [_place_row(row) for row in connection.execute(query, {**scope_values(scope), **values})]

        return await self._database.read(work)


def block_rows(blocks: Iterable[Block]) -> list[BlockRow]:
    """Convert blocks to rows."""
    return [_row(block) for block in blocks]


def append_rows(
    connection: Connection, conversation: int, rows: Sequence[BlockRow], last: int | None = None
) -> None:
    """Add rows at the end of a timeline whose conversation this transaction has locked.

    Args:
        connection: the database.
        conversation: its number.
        rows: the blocks.
        last: the position of its last block, if that is known.
    """
    if rows:
        last = last_position(connection, conversation) if last is None else last
        _append_after(connection, conversation, last, rows)


def remove_group(connection: Connection, conversation: int, newest: int, count: int, stored_path: str) -> None:
    """Remove the blocks that one call added, but for those of one path, of which the last takes the last position.

    So no position is given twice, and whoever has read up to the last one misses nothing. That block counts as one
    that hides others, so the revision of the rendered view changes.

    Args:
        connection: a transaction that has locked the conversation.
        conversation: its row.
        newest: the position of the last block.
        count: how many there are.
        stored_path: the path of those that stay.
    """
    values = {"in_conversation": conversation, "before": newest - count, "newest": newest}
    connection.execute(_FORGOTTEN, values)
    connection.execute(_REMOVED, {**values, "stored_path": stored_path})
    last = connection.execute(_LAST_STORED, values).first()
    if last is not None:
        block = Block.model_validate_json(last.block)
        block.meta |= {"hides": stored_path, "hides_from": newest, "replaces": True}
        row = _row(block)
        moved = {"at": last.position, "newest": newest, "new_block": row["block"], "new_hides": row["hides"]}
        connection.execute(_MOVED, {"in_conversation": conversation, **moved})


def _append_after(connection: Connection, conversation: int, last: int, rows: Sequence[BlockRow]) -> int:
    spans: dict[object, tuple[int, int]] = {}
    placed = []
    for position, row in enumerate(rows, start=last + 1):
        first, _ = spans.get(row["turn"], (position, position))
        spans[row["turn"]] = first, position
        placed.append({"conversation": conversation, "position": position, **row})
    if placed:
        connection.execute(_ADDED, placed)
    for turn, (first, newest) in spans.items():
        grown = new_or_changed(turns, connection.dialect.name, "last")
        connection.execute(grown, {"conversation": conversation, "turn": turn, "first": first, "last": newest})
    return last + len(rows)


def last_position(connection: Connection, conversation: int) -> int:
    """The position of the last block of a timeline; 0 if it has none."""
    (last,) = connection.execute(_LAST_OF, {"in_conversation": conversation}).one()
    return int(last)


def _row(block: Block) -> BlockRow:
    content = _decode_text(block.base64)
    stored = block if content is None else block.model_copy(update={"base64": None})
    return {
        "turn": block.turn_id,
        "call_id": block.call_id,
        "path": block.path,
        "describes": described_path(block),
        "hides": hidden_path(block),
        "block": json_text(stored),
        "content": content,
    }


def _decode_text(text: str | None) -> bytes | None:
    """Decode base64 if encoding gives the same text again: bytes take a quarter less space."""
    if text is None:
        return None
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return content if base64.b64encode(content).decode() == text else None


def _place_row(row: Row[Any]) -> PlacedBlock:
    try:
        block = Block.model_validate_json(row.block)
    except ValidationError as exc:
        raise StoreFailedError("the database has a block that this release cannot read") from exc
    if row.content is not None:
        block.base64 = base64.b64encode(row.content).decode()
    size = row.size
    return PlacedBlock(row.position, block, len(block.base64 or "") if size is None else -(-size // 3) * 4)
