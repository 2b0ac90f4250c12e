"""The messages of spaces in the database; `call_records` writes those of calls."""

import json
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select
from typing_extensions import override

from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, NewMessage
from proofbox.service.errors import StoreFailedError
from proofbox.service.gateway.spaces.port import (
    Actor,
    ListedArtifact,
    MessageStore,
    PostedMessage,
    RequestKey,
)
from proofbox.service.gateway.spaces.records import listed_artifacts, value_artifacts
from proofbox.service.gateway_errors import UnknownMessageError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.message_rows import NewText, find_message, read_after, read_newest
from proofbox.service.storage.gateway.project_rows import StoredCreation, find_creation, store_creation
from proofbox.service.storage.gateway.schema import projects, runs
from proofbox.service.storage.gateway.sending import WaitOpenedError, post_for_actor
from proofbox.service.storage.gateway.space_access import open_space
from proofbox.service.storage.schema import principals

_CREATED = 201
_POSTED_AGAIN_MAX = 20
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
    async def post(self, actor: Actor, space_id: str, message: NewMessage, key: RequestKey | None) -> PostedMessage:
        new = NewText(message.text, message.reply_to)

        def work(connection: Connection) -> PostedMessage:
            stored = find_creation(connection, actor.principal, key)
            if stored is not None:
                return PostedMessage(stored.answer, was_known=True)
            posted = post_for_actor(connection, actor, space_id, new)
            sent = MessageSent(
                message=posted.message, runs=posted.runs, unknown_mentions=list(posted.found.unknown)
            )
            answer = sent.model_dump_json()
            store_creation(connection, actor.principal, key, StoredCreation(_CREATED, answer))
            return PostedMessage(answer, was_known=False, due=posted.due)

        for _ in range(_POSTED_AGAIN_MAX):
            with suppress(WaitOpenedError):
                return await self._database.write(work)
        raise StoreFailedError(f"space '{space_id}': too many calls begin to wait there; post the message again")

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


def _build_message(row: Row[Any]) -> Message:
    return Message.model_validate_json(row.body)


def _conversation_of(connection: Connection, run: int) -> ConversationKey | None:
    found = connection.execute(_CONVERSATION_OF_RUN, {"of_run": run}).first()
    if found is None:
        return None
    return ConversationKey(Principal(found.tenant, found.project, found.user_type, found.user), found.conversation)
