"""The port of the texts that agents send to spaces, and of the messages that they read there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.identity import Principal

CHAIN_DEPTH_MAX = 5
"""How many runs that were made by mentions of agents may follow each other."""


@dataclass(frozen=True, slots=True)
class OutgoingText:
    """A text that a run sends.

    Attributes:
        run_id: the run; its agent is the sender.
        tool_call_id: the call that sends it.
        space_id: where to.
        text: the text.
        reply_to: the message that it replies to; None: it answers no wait.
    """

    run_id: str
    tool_call_id: str
    space_id: str
    text: str
    reply_to: str | None = None


@dataclass(frozen=True, slots=True)
class SentText:
    """A text that was sent.

    Attributes:
        message_id: the message.
        space_id: its space.
        mentioned: the members that it mentions, each with ``entity_id``, ``handle`` and ``run_id``: the run that it
            made or answered; null for a person, and for an agent that got no run.
        unknown_mentions: handles that no member has.
        too_deep: the handles of agents that got no run, because the chain of mentions is too long.
    """

    message_id: str
    space_id: str
    mentioned: Sequence[Mapping[str, Any]]
    unknown_mentions: Sequence[str]
    too_deep: Sequence[str] = field(default=())

    def to_json(self) -> Json:
        """Return it as a JSON object, for the record of a wait."""
        return {
            "message_id": self.message_id,
            "space_id": self.space_id,
            "mentioned": [dict(member) for member in self.mentioned],
            "unknown_mentions": list(self.unknown_mentions),
            "too_deep": list(self.too_deep),
        }

    @classmethod
    def from_json(cls, value: Json) -> "SentText":
        """Return what `to_json` stored."""
        return cls(**value)

    @property
    def ret(self) -> Json:
        """The result of the call that sent it."""
        return {name: value for name, value in self.to_json().items() if name != "too_deep"}

    @property
    def warnings(self) -> list[GatewayWarning]:
        """What the answer of the call warns of."""
        if not self.too_deep:
            return []
        handles = ", ".join(f"@{handle}" for handle in self.too_deep)
        message = f"{handles}: no run was made, as {CHAIN_DEPTH_MAX} runs by mentions of agents led to this one"
        return [GatewayWarning(code=WarningCode.MENTION_DEPTH, message=message)]


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """Messages of a space, as an agent reads them.

    Attributes:
        space_id: the space.
        messages: the messages, the oldest first, each as on the wire with ``seen``.
        total: how many the space has.
        next_before_seq: reads on before this number; None: there are no older ones.
    """

    space_id: str
    messages: Sequence[Mapping[str, Any]]
    total: int
    next_before_seq: int | None


@dataclass(frozen=True, slots=True)
class MessageWindow:
    """Which messages are wanted: the newest ones.

    Attributes:
        limit: how many at most.
        offset: how many of the newest are left out.
        before_seq: only messages with a smaller number.
    """

    limit: int
    offset: int = 0
    before_seq: int | None = None


class Outbox(Protocol):
    """Texts of agents in spaces. All methods raise StoreFailedError if the store fails."""

    async def send(self, principal: Principal, text: OutgoingText) -> SentText:
        """Send a text. What it mentions and answers is stored with it.

        Raises:
            EffectRefusedError: the run cannot send it; nothing is stored.
        """

    async def read(
        self, principal: Principal, run_id: str, space_id: str, window: MessageWindow
    ) -> ReadMessages | None:
        """Read messages of a space; None if there is no such space, or the run's agent is not a member of it."""
