"""The messages of spaces in the database; `call_records` writes those of calls."""

import json
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, insert, select
from typing_extensions import override

from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, NewMessage
from proofbox.service.calls.validation import invalid_value
from proofbox.service.gateway.posting import new_message_id
from proofbox.service.gateway.spaces.mentions import Mentions, find_mentions
from proofbox.service.gateway.spaces.port import Actor, ListedArtifact, MessageStore, RequestKey
from proofbox.service.gateway.spaces.records import MessageHead, build_text, listed_artifacts, value_artifacts
from proofbox.service.gateway_errors import NotReplyableError, UnknownMessageError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.project_rows import StoredCreation, find_creation, store_creation
from proofbox.service.storage.gateway.schema import entities, members, messages, projects, runs
from proofbox.service.storage.gateway.space_access import open_space, require_writable
from proofbox.service.storage.gateway.space_rows import EntityRow, SpaceRow, add_event, json_of, take_seq
from proofbox.service.storage.schema import principals

_CREATED = 201
_BODY: Select[Any] = select(messages.c.seq, messages.c.body).where(messages.c.space == bindparam("of_space"))
_ONE: Select[Any] = select(messages.c.id, messages.c.kind, messages.c.body, messages.c.run).where(
    messages.c.space == bindparam("of_space"), messages.c.message_id == bindparam("of_message_id")
)
_HANDLES = (
    select(entities.c.entity_id, entities.c.handle_folded)
    .join_from(members, entities)
    .where(members.c.space == bindparam("of_space"), entities.c.handle_folded.is_not(None))
)
_CONVERSATION_OF_RUN = (
    select(projects.c.tenant, projects.c.project, principals.c.user_type, principals.c.user, runs.c.conversation)
    .join_from(runs, projects, runs.c.project == projects.c.id)
    .join(principals, runs.c.principal == principals.c.id)
    .where(runs.c.id == bindparam("of_run"))
)


class SqlMessageStore(MessageStore):
    """The MessageStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def post(
        self, actor: Actor, space_id: str, message: NewMessage, key: RequestKey | None
    ) -> tuple[str, bool]:
        def work(connection: Connection) -> tuple[str, bool]:
            stored = find_creation(connection, actor.principal, key)
            if stored is not None:
                return stored.answer, True
            answer = _post(connection, actor, space_id, message).model_dump_json()
            store_creation(connection, actor.principal, key, StoredCreation(_CREATED, answer))
            return answer, False

        return await self._database.write(work)

    @override
    async def list(
        self, actor: Actor, space_id: str, *, before: int | None, after: int | None, limit: int
    ) -> MessagePage:
        def work(connection: Connection) -> MessagePage:
            space = open_space(connection, actor, space_id).space
            if after is not None:
                rows = read_after(connection, space.id, after, before, limit + 1)
                items = [_build_message(row) for row in rows[:limit]]
                return MessagePage(items=items, next=items[-1].seq if len(rows) > limit else None)
            rows = read_newest(connection, space.id, before, limit + 1)
            items = [_build_message(row) for row in rows[:limit]][::-1]
            return MessagePage(items=items, next=items[0].seq if len(rows) > limit else None)

        return await self._database.read(work)

    @override
    async def find(self, actor: Actor, space_id: str, message_id: str) -> Message:
        def work(connection: Connection) -> Message:
            space = open_space(connection, actor, space_id).space
            return _build_message(find_message(connection, space, message_id))

        return await self._database.read(work)

    @override
    async def find_artifact(self, actor: Actor, space_id: str, message_id: str, path: str) -> ListedArtifact:
        def work(connection: Connection) -> ListedArtifact:
            space = open_space(connection, actor, space_id).space
            found = find_message(connection, space, message_id)
            message = json.loads(found.body)
            scope = None if found.run is None else _conversation_of(connection, found.run)
            if scope is None or path not in listed_artifacts(message):
                raise UnknownMessageError(
                    f"artifact: the message '{message_id[:100]}' lists no artifact '{path[:200]}'"
                )
            return ListedArtifact(scope, message["tool"]["tool_call_id"], path in value_artifacts(message))

        return await self._database.read(work)


def read_newest(connection: Connection, space: int, before: int | None, limit: int) -> list[Row[Any]]:
    """Return ``seq`` and ``body`` of the newest messages of a space, or the newest before a number."""
    query = _BODY.order_by(messages.c.seq.desc()).limit(limit)
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


def mentioned_members(
    connection: Connection, space: SpaceRow, sender: EntityRow, text: str
) -> tuple[list[str], Mentions]:
    """Return the ids of the members that a text mentions, without its sender, and the mentions as written."""
    by_handle = {row.handle_folded: row.entity_id for row in connection.execute(_HANDLES, {"of_space": space.id})}
    found = find_mentions(text, by_handle)
    ids = [by_handle[handle] for handle in found.known]
    return [entity_id for entity_id in ids if entity_id != sender.sender.entity_id], found


def post_text(
    connection: Connection, space: SpaceRow, sender: EntityRow, text: str, reply_to: str | None = None
) -> tuple[Message, Mentions]:
    """Post the text of a person to a locked space, with ``message.created``; the message, and its mentions.

    Raises:
        UnknownMessageError: ``reply_to`` is not a message of the space.
        NotReplyableError: it is the record of a call.
    """
    if reply_to is not None and find_message(connection, space, reply_to).kind != "text":
        raise NotReplyableError(f"reply_to: '{reply_to}' is the record of a tool call; reply to a text")
    ids, found = mentioned_members(connection, space, sender, text)
    head = MessageHead(
        new_message_id(), space.space_id, take_seq(connection, space), sender.sender, None, utc_now()
    )
    body = build_text(head, text, ids, reply_to)
    connection.execute(
        insert(messages),
        {
            "message_id": head.message_id,
            "space": space.id,
            "seq": head.seq,
            "revision": 1,
            "kind": "text",
            "entity": sender.id,
            "reply_to": reply_to,
            "body": json_of(body),
            "ts": head.ts,
            "updated": head.ts,
        },
    )
    add_event(connection, space, "message.created", {"message": body, "stream_id": None})
    return Message.model_validate(body), found


def _post(connection: Connection, actor: Actor, space_id: str, message: NewMessage) -> MessageSent:
    opened = open_space(connection, actor, space_id, lock=True)
    require_writable(opened.space)
    if opened.entity is None:
        raise invalid_value("entity_id", "the caller's user is not an entity of the project; name the sender")
    posted, found = post_text(connection, opened.space, opened.entity, message.text, message.reply_to)
    return MessageSent(message=posted, runs=[], unknown_mentions=list(found.unknown))


def _build_message(row: Row[Any]) -> Message:
    return Message.model_validate_json(row.body)


def _conversation_of(connection: Connection, run: int) -> ConversationKey | None:
    found = connection.execute(_CONVERSATION_OF_RUN, {"of_run": run}).first()
    if found is None:
        return None
    return ConversationKey(Principal(found.tenant, found.project, found.user_type, found.user), found.conversation)
