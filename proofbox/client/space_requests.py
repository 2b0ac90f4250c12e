"""Plans of spaces, messages and answers. Imported on first use."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from pydantic import ValidationError

from proofbox.client.api import target
from proofbox.client.errors import ArgumentError
from proofbox.client.exchange import Plan
from proofbox.client.gateway_events import watch_space
from proofbox.client.gateway_requests import GatewayRequests, key_header
from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, ResultAccepted
from proofbox.contracts.gateway.spaces import Entity, Space, SpacePage, SpaceToken
from proofbox.contracts.gateway.waits import ResultSubmission


class AnswerOptions(TypedDict, total=False):
    """The answer to a call that waits: exactly one of ``result``, ``error`` and ``cancelled``.

    Attributes:
        result: the result, also None; of an approval ``{"approved": True}``.
        error: why there is none.
        cancelled: True: there is none, on purpose.
        entity_id: who answers, if the caller may act for others.
    """

    result: Any
    error: str
    cancelled: Literal[True]
    entity_id: str


class SpaceRequests(GatewayRequests):
    """Plans of spaces, messages and answers."""

    # ---- answers ----

    def answer_message(
        self, space_id: str, message_id: str, **answer: Unpack[AnswerOptions]
    ) -> Plan[ResultAccepted]:
        """Answer a card: give a result, approve, or give none. See `AnswerOptions`."""
        where = target("spaces", space_id, "messages", message_id, "result")
        return self._ask(ResultAccepted, "POST", where, _checked(answer))

    def answer_tool_call(
        self, tool_call_id: str, conversation_id: str | None = None, **answer: Unpack[AnswerOptions]
    ) -> Plan[ResultAccepted]:
        """Answer a call that waits for a service or person; it approves nothing. See `AnswerOptions`."""
        where = target("tool-calls", tool_call_id, "result", conversation_id=conversation_id)
        return self._ask(ResultAccepted, "POST", where, _checked(answer))

    # ---- spaces ----

    def put_entity(
        self, entity_id: str, *, handle: str, display_name: str, user: str | None = None
    ) -> Plan[Entity]:
        """Write a person, who can be a member of spaces.

        Args:
            entity_id: the person.
            handle: others mention the person by ``@handle``.
            display_name: the name that is shown.
            user: the user of keys that act as this person.
        """
        body = {"type": "human", "handle": handle, "display_name": display_name, "user": user}
        return self._ask(Entity, "PUT", target("entities", entity_id), body)

    def create_space(
        self,
        name: str,
        members: Sequence[str] = (),
        *,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Plan[Space]:
        """Make a space.

        Args:
            name: the name that is shown.
            members: ids of persons and agents (``agent:<agent_id>``).
            metadata: what the caller wants to find again, at most 16 KiB.
            idempotency_key: the same key with the same arguments makes one space.
        """
        body = {"name": name, "members": list(members), "metadata": dict(metadata or {})}
        return self._ask(Space, "POST", target("spaces"), body, key_header(idempotency_key))

    def get_space(self, space_id: str) -> Plan[Space]:
        """Read a space with its members."""
        return self._ask(Space, "GET", target("spaces", space_id))

    def list_spaces(self) -> Plan[None]:
        """Yield the spaces that are open to the caller, the newest first."""
        return self._deliver_pages(SpacePage, lambda before: target("spaces", before=before))

    def archive_space(self, space_id: str) -> Plan[None]:
        """Archive a space: it can be read only."""
        yield from self._request("DELETE", target("spaces", space_id))

    def add_member(self, space_id: str, entity_id: str) -> Plan[Space]:
        """Add a member to a space."""
        return self._ask(Space, "PUT", target("spaces", space_id, "members", entity_id))

    def remove_member(self, space_id: str, entity_id: str) -> Plan[None]:
        """Remove a member from a space."""
        yield from self._request("DELETE", target("spaces", space_id, "members", entity_id))

    def create_space_token(self, space_id: str, entity_id: str, *, expires_s: int = 3_600) -> Plan[SpaceToken]:
        """Make a token that opens one space as one person; it is an ``api_key`` of another client."""
        body = {"entity_id": entity_id, "expires_s": expires_s}
        return self._ask(SpaceToken, "POST", target("spaces", space_id, "tokens"), body)

    def watch_space(self, space_id: str, *, after: int = 0) -> Plan[None]:
        """Yield the events of a space, without an end; a lost connection is resumed.

        Args:
            space_id: the space.
            after: only events with a greater id. After the event ``reset``, read the messages again.
        """
        return watch_space(self._api, space_id, after)

    # ---- messages ----

    def list_messages(
        self, space_id: str, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> Plan[MessagePage]:
        """Read a page of messages, the oldest first: the newest ones, or those before or after a number.

        Args:
            space_id: the space.
            before: only messages with a smaller ``seq``.
            after: only messages with a greater ``seq``.
            limit: how many at most, up to 100.
        """
        where = target("spaces", space_id, "messages", before=before, after=after, limit=limit)
        return self._ask(MessagePage, "GET", where)

    def get_message(self, space_id: str, message_id: str) -> Plan[Message]:
        """Read a message."""
        return self._ask(Message, "GET", target("spaces", space_id, "messages", message_id))

    def post_message(
        self,
        space_id: str,
        text: str,
        *,
        reply_to: str | None = None,
        entity_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Plan[MessageSent]:
        """Post a text; ``@handle`` mentions a member, and an agent that is mentioned gets a run.

        Args:
            space_id: the space.
            text: the text.
            reply_to: the message that it replies to.
            entity_id: who sends it, if the caller may act for others.
            idempotency_key: the same key with the same arguments posts once.
        """
        body = {"text": text, "reply_to": reply_to, "entity_id": entity_id}
        return self._ask(
            MessageSent, "POST", target("spaces", space_id, "messages"), body, key_header(idempotency_key)
        )


def _checked(answer: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(answer)
    if isinstance(given.get("error"), str):
        given["error"] = {"message": given["error"]}
    try:
        ResultSubmission.model_validate(given)
    except ValidationError as exc:
        raise ArgumentError("result", exc.errors()[0]["msg"].removeprefix("Value error, ")) from None
    return given
