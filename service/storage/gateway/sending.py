"""A text is posted to a space, with all that it leads to, in one transaction: replies to waits, and new runs.

Lock order: the run that sends, agents, waits, space; so `prepare_text` comes before the space is locked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.messages import Message, TriggeredRun
from proofbox.service.calls.port import EffectRefusedError
from proofbox.service.calls.validation import invalid_value
from proofbox.service.errors import InvalidRequestError, QueueFullError
from proofbox.service.gateway.runs_port import NewRun, RunLimits, new_run_id
from proofbox.service.gateway.spaces.outbox import CHAIN_DEPTH_MAX, OutgoingText, SentText
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway_errors import NotReplyableError, UnknownMessageError
from proofbox.service.identity import Principal
from proofbox.service.storage.gateway.message_rows import (
    FoundMentions,
    MentionedMember,
    NewText,
    SendingRun,
    StoredText,
    find_message,
    insert_text,
    mentions_of,
)
from proofbox.service.storage.gateway.project_rows import PROJECT, project_values
from proofbox.service.storage.gateway.reply_waits import (
    AnsweredWait,
    AskedReply,
    find_asked,
    give_reply,
    lock_asked,
)
from proofbox.service.storage.gateway.run_rows import HeldRun, find_run
from proofbox.service.storage.gateway.runs import create_run
from proofbox.service.storage.gateway.schema import agents, spaces
from proofbox.service.storage.gateway.space_access import open_space, require_writable
from proofbox.service.storage.gateway.space_rows import EntityRow, SpaceRow, agent_of_run, is_member, lock_space

MENTIONED_AGENTS_MAX = 20
"""Agents for which one text makes a run."""
_QUEUED = RunLimits()  # of runs that begin at once; those that are made here are queued


@dataclass(frozen=True, slots=True)
class PostedText:
    """A text that was posted.

    Attributes:
        stored: the message.
        found: whom it mentions.
        answered: the waits that took it as a reply.
        made: the runs that it made, by the ids of the mentioned entities.
        too_deep: the agents that got no run, because the chain of mentions is too long.
    """

    stored: StoredText
    found: FoundMentions
    answered: Sequence[AnsweredWait]
    made: dict[str, TriggeredRun]
    too_deep: Sequence[MentionedMember] = field(default=())

    @property
    def due(self) -> list[str]:
        """The ids of the waits that have all their replies now."""
        return [wait.asked.wait_id for wait in self.answered if wait.is_complete]

    @property
    def runs(self) -> list[TriggeredRun]:
        """The runs that it resumed and made."""
        resumed = {
            wait.asked.run_id: TriggeredRun(run_id=wait.asked.run_id, agent_id=wait.asked.agent_id, why="resumed")
            for wait in self.answered
            if wait.is_complete
        }
        return [*resumed.values(), *self.made.values()]

    @property
    def message(self) -> Message:
        """The message."""
        return Message.model_validate(self.stored.message)

    @property
    def sent(self) -> SentText:
        """What the run that sent it learns."""
        answered = {wait.asked.agent: wait.asked.run_id for wait in reversed(self.answered)}
        made = {entity_id: run.run_id for entity_id, run in self.made.items()}
        message = self.stored.message
        return SentText(
            message["message_id"],
            message["space_id"],
            [
                {
                    "entity_id": member.entity_id,
                    "handle": member.handle,
                    "run_id": made.get(member.entity_id) or answered.get(member.agent or 0),
                }
                for member in self.found.members
            ],
            list(self.found.unknown),
            [member.handle for member in self.too_deep],
        )


@dataclass(frozen=True, slots=True)
class _Sending:
    """Who sends a text, and what stands behind it.

    Attributes:
        principal: whose project it is.
        sender: the entity that sends it.
        depth: the chain depth of the runs that it makes.
    """

    principal: Principal
    sender: EntityRow
    depth: int


class WaitOpenedError(Exception):
    """A wait that a text answers was opened before its space was locked: it is posted again."""


def post_for_actor(connection: Connection, actor: Actor, space_id: str, new: NewText) -> PostedText:
    """Post the text of a person. It answers the waits for a reply to ``reply_to``; without that, all of the space.

    The text of an agent that is posted without a run answers waits only with ``reply_to``.

    Raises:
        WaitOpenedError: call it again in a new transaction; nothing was stored.
        UnknownSpaceError, UnknownEntityError, MissingPermissionError: as `open_space`.
        SpaceArchivedError: the space can be read only.
        UnknownMessageError, NotReplyableError: ``reply_to`` does not exist, or is the record of a call.
        InvalidRequestError: nobody is known who could be the sender, or the text mentions too many agents.
        QueueFullError: an agent that it mentions has too many queued runs.
    """
    opened = open_space(connection, actor, space_id)
    require_writable(opened.space)
    if opened.entity is None:
        raise invalid_value("entity_id", "the caller's user is not an entity of the project; name the sender")
    _require_replyable(connection, opened.space, new.reply_to)
    # An agent that posts through the API is treated as one that a run sends for.
    is_agent = opened.entity.sender.type == "agent"
    answers = new.reply_to is not None or not is_agent
    sending = _Sending(actor.principal, opened.entity, 1 if is_agent else 0)
    asked = _lock_others(connection, sending, opened.space.id, new, answers=answers)
    space = open_space(connection, actor, space_id, lock=True).space
    require_writable(space)
    # No wait opens while the space is locked, and none is locked after it.
    if answers and not find_asked(connection, space.id, sending.sender, new.reply_to) <= {one.row for one in asked}:
        raise WaitOpenedError
    return _post(connection, sending, space, new, asked)


def post_for_run(
    connection: Connection, principal: Principal, text: OutgoingText
) -> tuple[HeldRun, SpaceRow, PostedText]:
    """Post the text of a run, which is locked, to its active space; it answers waits only with ``reply_to``.

    Raises:
        EffectRefusedError: the run has ended, or the text cannot be sent; nothing is stored.
    """
    held = find_run(connection, principal, text.run_id, lock=True)
    run = held.run
    if run.status.is_ended:
        raise EffectRefusedError(GatewayCode.RUN_ENDED, f"run '{run.run_id}' has ended; nothing was sent")
    agent = agent_of_run(connection, held.row)
    row = connection.execute(
        select(spaces.c.id).where(spaces.c.project == PROJECT, spaces.c.space_id == text.space_id),
        project_values(principal),
    ).scalar_one_or_none()
    if agent is None or row is None:
        raise _left(text.space_id)
    new = NewText(
        text.text,
        text.reply_to,
        run=SendingRun(held.row, run.run_id, run.trigger),
        stream_id=text.tool_call_id,
    )
    _require_item(connection, SpaceRow(row, text.space_id, is_archived=False), text.reply_to)
    sending = _Sending(principal, agent, run.chain_depth + 1)
    asked = _lock_others(connection, sending, row, new, answers=text.reply_to is not None)
    space = lock_space(connection, row)
    if space.is_archived or not is_member(connection, space.id, agent.id):
        raise _left(text.space_id)
    try:
        return held, space, _post(connection, sending, space, new, asked)
    except (QueueFullError, InvalidRequestError) as exc:
        raise EffectRefusedError(GatewayCode.TOO_MANY_ITEMS, f"{exc}; nothing was sent") from exc


def _left(space_id: str) -> EffectRefusedError:
    return EffectRefusedError(
        GatewayCode.NO_ACTIVE_SPACE,
        f"the agent has left the space '{space_id}', or it was archived; call enter_space to go to another one",
    )


def _require_item(connection: Connection, space: SpaceRow, reply_to: str | None) -> None:
    try:
        _require_replyable(connection, space, reply_to)
    except UnknownMessageError as exc:
        message = f"reply_to: the active space has no message '{(reply_to or '')[:100]}'; read_messages lists them"
        raise EffectRefusedError(GatewayCode.UNKNOWN_ITEM, message) from exc
    except NotReplyableError as exc:
        raise EffectRefusedError(GatewayCode.NOT_REPLYABLE, str(exc)) from exc


def _require_replyable(connection: Connection, space: SpaceRow, reply_to: str | None) -> None:
    if reply_to is not None and find_message(connection, space, reply_to).kind != "text":
        raise NotReplyableError(f"reply_to: '{reply_to}' is the record of a tool call; reply to a text")


def _lock_others(
    connection: Connection, sending: _Sending, space: int, new: NewText, *, answers: bool
) -> list[AskedReply]:
    """Lock what is locked before a space: the agents that a text mentions, and the waits that it answers."""
    found = mentions_of(connection, space, sending.sender, new.text)
    rows = [member.agent for member in found.members if member.agent is not None]
    if rows:
        own = select(agents.c.id).where(agents.c.id.in_(rows)).order_by(agents.c.id)
        connection.execute(own.with_for_update(key_share=True)).all()
    return lock_asked(connection, space, sending.sender, new.reply_to) if answers else []


def _post(
    connection: Connection, sending: _Sending, space: SpaceRow, new: NewText, asked: Sequence[AskedReply]
) -> PostedText:
    """Post a text to a locked space, give it to the waits that it answers, and make the runs that it asks for."""
    found = mentions_of(connection, space.id, sending.sender, new.text)
    ids = [member.entity_id for member in found.members]
    stored = insert_text(connection, space, sending.sender, new, ids)
    answered = give_reply(connection, asked, stored)
    resumed = {wait.asked.agent for wait in answered}
    wanted = [member for member in found.members if member.agent is not None and member.agent not in resumed]
    if sending.depth > CHAIN_DEPTH_MAX:
        return PostedText(stored, found, answered, {}, wanted)
    if len(wanted) > MENTIONED_AGENTS_MAX:
        raise invalid_value(
            "text",
            f"mentions too many agents (limit {MENTIONED_AGENTS_MAX} that get a run, got {len(wanted)}); mention "
            "the others in another message",
        )
    made = {member.entity_id: _make_run(connection, sending, stored, member.agent_id or "") for member in wanted}
    return PostedText(stored, found, answered, made)


def _make_run(connection: Connection, sending: _Sending, posted: StoredText, agent_id: str) -> TriggeredRun:
    message, run_id = posted.message, new_run_id()
    trigger = {
        "type": "message" if message["reply_to"] is None else "reply",
        "space_id": message["space_id"],
        "message_id": message["message_id"],
        "sender": message["sender"]["entity_id"],
    }
    new = NewRun(
        run_id,
        agent_id,
        f"run:{run_id}",
        trigger,
        space_id=message["space_id"],
        chain_depth=sending.depth,
        queued=True,
    )
    create_run(connection, sending.principal, new, _QUEUED)
    return TriggeredRun(run_id=run_id, agent_id=agent_id, why="mention")
