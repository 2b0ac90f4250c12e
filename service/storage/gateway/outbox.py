"""The texts of agents in the database; a text whose call waits is stored with its wait."""

import json

from sqlalchemy import Connection, select
from typing_extensions import override

from proofbox.service.gateway.spaces.outbox import MessageWindow, Outbox, OutgoingText, ReadMessages, SentText
from proofbox.service.gateway.waits.replies import REPLY, OpenReplyWait
from proofbox.service.identity import Principal
from proofbox.service.storage.call_row import CallRow
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.message_rows import read_newest
from proofbox.service.storage.gateway.project_rows import PROJECT, project_values
from proofbox.service.storage.gateway.reply_waits import insert_asked, require_few
from proofbox.service.storage.gateway.run_rows import find_run
from proofbox.service.storage.gateway.schema import members, spaces
from proofbox.service.storage.gateway.sending import post_for_run
from proofbox.service.storage.gateway.space_rows import agent_of_run
from proofbox.service.storage.gateway.waits import NewWait, insert_wait, require_place


class SqlOutbox(Outbox):
    """The Outbox in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def send(self, principal: Principal, text: OutgoingText) -> SentText:
        def work(connection: Connection) -> SentText:
            _, _, posted = post_for_run(connection, principal, text)
            return posted.sent

        return await self._database.write(work)

    @override
    async def read(
        self, principal: Principal, run_id: str, space_id: str, window: MessageWindow
    ) -> ReadMessages | None:
        def work(connection: Connection) -> ReadMessages | None:
            agent = agent_of_run(connection, find_run(connection, principal, run_id).row)
            space = connection.execute(
                select(spaces.c.id, spaces.c.space_id, spaces.c.next_seq, members.c.seen_seq)
                .join_from(spaces, members)
                .where(
                    spaces.c.project == PROJECT,
                    spaces.c.space_id == space_id,
                    members.c.entity == (None if agent is None else agent.id),
                ),
                project_values(principal),
            ).first()
            if space is None:
                return None
            rows = read_newest(connection, space.id, window.before_seq, window.limit + 1, window.offset)
            found = [{**json.loads(row.body), "seen": row.seq <= space.seen_seq} for row in rows[: window.limit]]
            has_more = len(rows) > window.limit
            return ReadMessages(
                space.space_id, found[::-1], space.next_seq - 1, found[-1]["seq"] if has_more else None
            )

        return await self._database.read(work)


def open_reply_wait(connection: Connection, call: CallRow, effect: OpenReplyWait) -> None:
    """Send a text and let its call wait for replies.

    Raises:
        EffectRefusedError: the text cannot be sent, or the run takes no more waits.
    """
    principal = call.key.scope.principal
    require_place(connection, find_run(connection, principal, effect.text.run_id, lock=True))
    held, space, posted = post_for_run(connection, principal, effect.text)
    require_few(connection, space.id)  # after the space is locked
    too_deep = {member.row for member in posted.too_deep}
    mentioned = [member for member in posted.found.members if member.row not in too_deep]
    # One that waits only for agents which get no run ends at once.
    expires = effect.expires if mentioned or not too_deep else posted.stored.message["ts"]
    spec = {
        **effect.spec,
        "posting": {**effect.posting.to_json(), "message_id": posted.stored.message["message_id"]},
        "sent": posted.sent.to_json(),
        "since": posted.stored.message["ts"],
        "until": expires,
        "waiting_for": [
            {"entity_id": member.entity_id, "handle": member.handle, "responded": False} for member in mentioned
        ],
    }
    new = NewWait(effect.wait_id, REPLY, held.row, expires, space.id, posted.stored.row, spec)
    row = insert_wait(connection, call, new, effect.lease_s)
    if mentioned or not too_deep:
        insert_asked(connection, row, posted.stored, mentioned)
