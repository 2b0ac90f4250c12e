"""Rows of messages inside a transaction: how they are read, whom a text mentions, and how a text is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, select

from proofbox.service.gateway.posting import new_message_id, text_message_id
from proofbox.service.gateway.spaces.mentions import find_mentions
from proofbox.service.gateway.spaces.records import Json, MessageHead, build_text
from proofbox.service.gateway_errors import UnknownMessageError
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.gateway.schema import agents, entities, members, messages
from proofbox.service.storage.gateway.space_rows import EntityRow, SpaceRow, add_event, json_of, take_seq

_BODY: Select[Any] = select(messages.c.seq, messages.c.body).where(messages.c.space == bindparam("of_space"))
_ONE: Select[Any] = select(messages.c.id, messages.c.kind, messages.c.body, messages.c.run).where(
    messages.c.space == bindparam("of_space"), messages.c.message_id == bindparam("of_message_id")
)
_TAKEN = select(messages.c.message_id).where(messages.c.message_id == bindparam("of_message_id"))
_MEMBERS = (
    select(
        entities.c.id,
        entities.c.entity_id,
        entities.c.handle,
        entities.c.handle_folded,
        entities.c.agent,
        agents.c.agent_id,
    )
    .join_from(members, entities)
    .outerjoin(agents, entities.c.agent == agents.c.id)
    .where(members.c.space == bindparam("of_space"), entities.c.handle_folded.is_not(None))
)


@dataclass(frozen=True, slots=True)
class MentionedMember:
    """A member of a space that a text mentions.

    Attributes:
        row: the row of the entity.
        entity_id: its id.
        handle: its handle.
        agent: the row of its agent; None for a person.
        agent_id: the id of that agent.
    """

    row: int
    entity_id: str
    handle: str
    agent: int | None
    agent_id: str | None


@dataclass(frozen=True, slots=True)
class FoundMentions:
    """Whom a text mentions.

    Attributes:
        members: the members, without the sender, in the order of the text.
        unknown: what follows other ``@`` signs, as it is written.
    """

    members: tuple[MentionedMember, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendingRun:
    """The run that sends a message.

    Attributes:
        row: its row.
        run_id: its id.
        trigger: why it was made, as on the wire.
    """

    row: int
    run_id: str
    trigger: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewText:
    """A text that is to be posted.

    Attributes:
        text: the text.
        reply_to: the message that it replies to.
        run: the run that sends it; None for a person.
        stream_id: the call that sends it.
    """

    text: str
    reply_to: str | None = None
    run: SendingRun | None = None
    stream_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredText:
    """A text that was posted.

    Attributes:
        row: its row.
        message: the message as it is stored.
    """

    row: int
    message: Json


def read_newest(
    connection: Connection, space: int, before: int | None, limit: int, offset: int = 0
) -> list[Row[Any]]:
    """Return ``seq`` and ``body`` of the newest messages of a space, or the newest before a number.

    Args:
        connection: the transaction.
        space: the row of the space.
        before: only messages with a smaller number.
        limit: how many at most.
        offset: how many of the newest are left out.
    """
    query = _BODY.order_by(messages.c.seq.desc()).limit(limit).offset(offset)
    if before is not None:
        query = query.where(messages.c.seq < before)
    return list(connection.execute(query, {"of_space": space}).all())


def read_after(connection: Connection, space: int, after: int, before: int | None, limit: int) -> list[Row[Any]]:
    """Return ``seq`` and ``body`` of the messages of a space after a number; oldest first."""
    query = _BODY.where(messages.c.seq > after).order_by(messages.c.seq).limit(limit)
    if before is not None:
        query = query.where(messages.c.seq < before)
    return list(connection.execute(query, {"of_space": space}).all())


def find_message(connection: Connection, space: SpaceRow, message_id: str) -> Row[Any]:
    """Return the row ``id, kind, body, run`` of a message of a space.

    Raises:
        UnknownMessageError: the space has no such message.
    """
    found = connection.execute(_ONE, {"of_space": space.id, "of_message_id": message_id}).first()
    if found is None:
        raise UnknownMessageError(f"message_id: the space has no message '{message_id[:100]}'")
    return found


def mentions_of(connection: Connection, space: int, sender: EntityRow, text: str) -> FoundMentions:
    """Return the members of a space (its row) that a text mentions, without its sender."""
    if "@" not in text:
        return FoundMentions((), ())
    by_handle = {row.handle_folded: row for row in connection.execute(_MEMBERS, {"of_space": space})}
    found = find_mentions(text, by_handle)
    mentioned = [by_handle[handle] for handle in found.known]
    return FoundMentions(
        tuple(
            MentionedMember(row.id, row.entity_id, row.handle, row.agent, row.agent_id)
            for row in mentioned
            if row.id != sender.id
        ),
        found.unknown,
    )


def build_head(
    connection: Connection,
    space: SpaceRow,
    sender: EntityRow,
    run: SendingRun | None = None,
    message_id: str | None = None,
) -> MessageHead:
    """Return the head of a new message of a locked space.

    Args:
        connection: the transaction.
        space: the space.
        sender: who sends it.
        run: the run that sends it; None for a person.
        message_id: its id; None: a new one.
    """
    origin = None
    if run is not None and run.trigger.get("space_id") not in (None, space.space_id):
        origin = {"trigger": run.trigger["type"], "space_id": run.trigger["space_id"]}
    seq = take_seq(connection, space)
    run_id = None if run is None else run.run_id
    new_id = message_id or new_message_id()
    return MessageHead(new_id, space.space_id, seq, sender.sender, run_id, utc_now(), origin)


def insert_text(
    connection: Connection, space: SpaceRow, sender: EntityRow, new: NewText, mentioned: list[str]
) -> StoredText:
    """Store a text in a locked space, with ``message.created``; ``mentioned`` are the ids of entities."""
    head = build_head(connection, space, sender, new.run, _id_of(connection, space, new))
    body = build_text(head, new.text, mentioned, new.reply_to)
    row = {
        "message_id": head.message_id,
        "space": space.id,
        "seq": head.seq,
        "revision": 1,
        "kind": "text",
        "entity": sender.id,
        "run": None if new.run is None else new.run.row,
        "reply_to": new.reply_to,
        "body": json_of(body),
        "ts": head.ts,
        "updated": head.ts,
    }
    number = connection.execute(insert(messages).returning(messages.c.id), row).scalar_one()
    add_event(connection, space, "message.created", {"message": body, "stream_id": new.stream_id})
    return StoredText(number, body)


def _id_of(connection: Connection, space: SpaceRow, new: NewText) -> str | None:
    """The id under which the text of a call was shown as it was written; None for others, and once it is taken."""
    if new.run is None or new.stream_id is None:
        return None
    message_id = text_message_id(new.run.run_id, new.stream_id, space.id)
    taken = connection.execute(_TAKEN, {"of_message_id": message_id}).first()
    return message_id if taken is None else None
