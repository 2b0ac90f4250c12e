"""Waits for replies in a transaction: which ones a message answers, and what they have.

Lock order: run, agent, wait, space. A wait that takes a reply is locked, and so is one that ends, so none is lost.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, or_, select, update

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.port import EffectRefusedError
from proofbox.service.gateway.waits.port import WAITS_TOPIC, WaitState
from proofbox.service.gateway.waits.replies import REPLY, Reply, TakenReplies
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import announce, count_changed
from proofbox.service.storage.gateway.message_rows import MentionedMember, StoredText
from proofbox.service.storage.gateway.run_rows import read_spec
from proofbox.service.storage.gateway.schema import agents, members, messages, reply_waits, runs, spaces, waits
from proofbox.service.storage.gateway.space_rows import EntityRow

_log = logging.getLogger("proofbox.gateway")
SPACE_WAITS_MAX = 200
"""Calls that wait for replies in one space at the same time: a person's text may answer all of them at once."""
_PENDING_OF_SPACE = select(func.count()).where(
    waits.c.space == bindparam("of_space"), waits.c.state == WaitState.PENDING.value, waits.c.kind == REPLY
)
_OWN = reply_waits.c.wait == bindparam("of_wait")
_OF_WAIT_ID = select(waits.c.id).where(waits.c.wait_id == bindparam("of_wait_id")).scalar_subquery()
_REPLIES = (
    select(reply_waits.c.reply, messages.c.body)
    .join_from(reply_waits, messages, reply_waits.c.reply == messages.c.id, isouter=True)
    .where(reply_waits.c.wait == _OF_WAIT_ID)
    .order_by(messages.c.id)
)
_COUNT = select(func.count(reply_waits.c.reply)).where(reply_waits.c.wait == _OF_WAIT_ID)
_MISSING = select(func.count()).select_from(reply_waits).where(_OWN, reply_waits.c.reply.is_(None))
_TAKEN = (
    update(reply_waits)
    .where(reply_waits.c.id == bindparam("of_row"), reply_waits.c.reply.is_(None))
    .values(reply=bindparam("new_reply"), responded=bindparam("at"))
)
_SPEC = update(waits).where(waits.c.id == bindparam("of_wait")).values(spec=bindparam("new_spec"))
# One with all its replies is due at once: the timer, or the next start of the service, ends it if nobody else does.
_DUE = update(waits).where(waits.c.id == bindparam("of_wait")).values(expires=bindparam("at"))


@dataclass(frozen=True, slots=True)
class AskedReply:
    """A pending wait that wants a reply of the sender of a message; it is locked.

    Attributes:
        row: the row of what it wants.
        wait: the row of the wait.
        wait_id: the id of the wait.
        spec: what the wait stored.
        run_id: its run.
        agent: the row of the agent of that run.
        agent_id: the id of that agent.
    """

    row: int
    wait: int
    wait_id: str
    spec: dict[str, Any]
    run_id: str
    agent: int
    agent_id: str


@dataclass(frozen=True, slots=True)
class AnsweredWait:
    """A wait that took a message as a reply.

    Attributes:
        asked: the wait.
        is_complete: whether it has all its replies now.
    """

    asked: AskedReply
    is_complete: bool


def lock_asked(connection: Connection, space: int, sender: EntityRow, reply_to: str | None) -> list[AskedReply]:
    """Return the pending waits of a space that a message of a sender answers, and lock them, before the space.

    Args:
        connection: the transaction.
        space: the row of the space.
        sender: who sends the message; waits for replies to its own messages are left out.
        reply_to: only a wait on exactly this message; None: any.
    """
    asked = _asked_of(space, sender, reply_to).order_by(waits.c.id).with_for_update(key_share=True, of=waits)
    found = [_build_asked(row) for row in connection.execute(asked).all()]
    return [one for one in found if one is not None]


def find_asked(connection: Connection, space: int, sender: EntityRow, reply_to: str | None) -> set[int]:
    """Return the rows of what `lock_asked` returns, as they are now; locks nothing."""
    found = (_build_asked(row) for row in connection.execute(_asked_of(space, sender, reply_to)).all())
    return {one.row for one in found if one is not None}


def _asked_of(space: int, sender: EntityRow, reply_to: str | None) -> Select[Any]:
    asked = (
        select(
            reply_waits.c.id,
            reply_waits.c.wait,
            waits.c.wait_id,
            waits.c.spec,
            runs.c.run_id,
            runs.c.agent,
            agents.c.agent_id,
        )
        .join_from(reply_waits, waits, reply_waits.c.wait == waits.c.id)
        .join(messages, reply_waits.c.message == messages.c.id)
        .join(runs, waits.c.run == runs.c.id)
        .join(agents, runs.c.agent == agents.c.id)
        .where(
            waits.c.space == space,
            waits.c.kind == REPLY,
            waits.c.state == WaitState.PENDING.value,
            waits.c.expires > utc_now(),
            runs.c.ended.is_(None),
            messages.c.entity != sender.id,
            reply_waits.c.reply.is_(None),
            or_(reply_waits.c.entity.is_(None), reply_waits.c.entity == sender.id),
        )
    )
    return asked if reply_to is None else asked.where(messages.c.message_id == reply_to)


def _build_asked(row: Row[Any]) -> AskedReply | None:
    """Return a locked wait; None for one that this release cannot read, which expires without this reply."""
    try:
        spec = json.loads(row.spec)
        is_readable = all("entity_id" in entity for entity in spec["waiting_for"])
    except (KeyError, TypeError, ValueError):
        is_readable = False
    if not is_readable:
        _log.error("wait %s takes no reply: what it stored does not fit this release", row.wait_id)
        return None
    return AskedReply(row.id, row.wait, row.wait_id, spec, row.run_id, row.agent, row.agent_id)


def give_reply(connection: Connection, asked: Sequence[AskedReply], posted: StoredText) -> list[AnsweredWait]:
    """Give a message to the locked waits that it answers; those that took it."""
    answered = []
    sender = posted.message["sender"]["entity_id"]
    for one in asked:
        values = {"of_row": one.row, "new_reply": posted.row, "at": posted.message["ts"]}
        if not count_changed(connection, _TAKEN, values):
            continue  # another message of the sender came first
        is_complete = connection.execute(_MISSING, {"of_wait": one.wait}).scalar_one() == 0
        waiting_for = [
            {**entity, "responded": True} if entity["entity_id"] == sender else entity
            for entity in one.spec["waiting_for"]
        ]
        spec = json.dumps({**one.spec, "waiting_for": waiting_for})
        connection.execute(_SPEC, {"of_wait": one.wait, "new_spec": spec})
        if is_complete:
            connection.execute(_DUE, {"of_wait": one.wait, "at": utc_now()})
            announce(connection, WAITS_TOPIC)
        answered.append(AnsweredWait(one, is_complete))
    return answered


def require_few(connection: Connection, space: int) -> None:
    """Require that a locked space takes one more wait for replies, so that one text answers a bounded number.

    Raises:
        EffectRefusedError: it has as many as it may.
    """
    count = connection.execute(_PENDING_OF_SPACE, {"of_space": space}).scalar_one()
    if count >= SPACE_WAITS_MAX:
        raise EffectRefusedError(
            GatewayCode.TOO_MANY_WAITS,
            f"{SPACE_WAITS_MAX} calls wait for replies in this space already, the most there may be; send the text "
            "without waiting",
        )


def insert_asked(
    connection: Connection, wait: int, message: StoredText, mentioned: Sequence[MentionedMember]
) -> None:
    """Store whose replies a new wait is for: all mentioned members, or anyone."""
    awaited: list[int | None] = [member.row for member in mentioned]
    rows = [{"wait": wait, "entity": entity, "message": message.row} for entity in awaited or [None]]
    connection.execute(insert(reply_waits), rows)


def lock_awaiting(connection: Connection, entity: int | None = None, space: int | None = None) -> list[int]:
    """Return the pending waits for replies of an entity (its row), or of a space, and lock them, before spaces."""
    query = select(waits.c.id).where(waits.c.kind == REPLY, waits.c.state == WaitState.PENDING.value)
    if space is not None:
        query = query.where(waits.c.space == space)
    if entity is not None:
        awaited = select(reply_waits.c.wait).where(reply_waits.c.entity == entity, reply_waits.c.reply.is_(None))
        query = query.where(waits.c.id.in_(awaited))
    return list(connection.scalars(query.order_by(waits.c.id).with_for_update(key_share=True)))


def end_unanswerable(connection: Connection, locked: Sequence[int]) -> None:
    """Let locked waits be due to which nobody can reply: those whom they miss left, or the space is archived."""
    may_reply = (
        select(reply_waits.c.id)
        .join_from(reply_waits, waits, reply_waits.c.wait == waits.c.id)
        .join(spaces, waits.c.space == spaces.c.id)
        .outerjoin(members, (members.c.space == waits.c.space) & (members.c.entity == reply_waits.c.entity))
        .where(_OWN, reply_waits.c.reply.is_(None), spaces.c.archived.is_(None))
        .where(or_(reply_waits.c.entity.is_(None), members.c.entity.is_not(None)))
    )
    for wait in locked:
        if connection.execute(may_reply, {"of_wait": wait}).first() is not None:
            continue
        now = utc_now()
        spec = read_spec(connection.execute(select(waits.c.spec).where(waits.c.id == wait)).scalar_one())
        connection.execute(_SPEC, {"of_wait": wait, "new_spec": json.dumps({**spec, "until": now})})
        connection.execute(_DUE, {"of_wait": wait, "at": now})
        announce(connection, WAITS_TOPIC)


def read_replies(connection: Connection, wait_id: str) -> TakenReplies:
    """Return the replies that a wait has, in their order."""
    rows = connection.execute(_REPLIES, {"of_wait_id": wait_id}).all()
    bodies = [json.loads(row.body) for row in rows if row.reply is not None]
    replies = [
        Reply(
            body["sender"]["entity_id"],
            body["sender"]["handle"],
            body["sender"]["type"],
            body["text"],
            body["message_id"],
            body["ts"],
        )
        for body in bodies
    ]
    return TakenReplies(replies, is_complete=bool(rows) and len(replies) == len(rows))


def count_replies(connection: Connection, wait_id: str) -> int:
    """Return how many replies a wait has."""
    return int(connection.execute(_COUNT, {"of_wait_id": wait_id}).scalar_one())
