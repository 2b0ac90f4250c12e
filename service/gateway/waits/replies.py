"""Waits for replies: how one begins, and what its call answers at its end."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from proofbox.service.calls.port import Effect
from proofbox.service.calls.suspension import WaitOutcome
from proofbox.service.gateway.posting import Posting
from proofbox.service.gateway.spaces.outbox import OutgoingText
from proofbox.service.gateway.spaces.records import Json

REPLY = "reply"
"""The kind of such waits."""


@dataclass(frozen=True, slots=True)
class OpenReplyWait(Effect):
    """A text is sent, and its call begins to wait for replies to it: of all whom it mentions, or of anyone.

    Attributes:
        wait_id: its id.
        posting: the place of the call.
        expires: until when replies are taken: UTC, RFC 3339, ``Z``.
        text: the text.
        spec: what the end of the wait needs to know; the store adds ``sent``, ``since``, ``until`` and
            ``waiting_for``.
        lease_s: see `CloseWait`.
    """

    wait_id: str
    posting: Posting
    expires: str
    text: OutgoingText
    spec: dict[str, Any] = field(default_factory=dict)
    lease_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Reply:
    """A message that answers a wait.

    Attributes:
        entity_id: who sent it.
        handle: the sender's handle at that time.
        type: ``human`` or ``agent``.
        text: the text.
        message_id: the message.
        ts: when: UTC, RFC 3339, ``Z``.
    """

    entity_id: str
    handle: str | None
    type: str
    text: str
    message_id: str
    ts: str

    def to_json(self) -> Json:
        """Return it as the result of the call has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TakenReplies:
    """The replies that a wait has.

    Attributes:
        replies: the replies, the first one first.
        is_complete: whether nobody is left whom it waits for.
    """

    replies: Sequence[Reply]
    is_complete: bool


def ret_of_wait(outcome: WaitOutcome) -> Json:
    """Return what the result of a call has of its wait for replies.

    Args:
        outcome: ``result`` if the wait is complete, else ``expired``; its value is the replies, as JSON objects.
    """
    replies: list[Json] = outcome.value
    spec = outcome.spec
    is_complete = outcome.how == "result"
    until = replies[-1]["ts"] if is_complete else spec["until"]
    waited = datetime.fromisoformat(until) - datetime.fromisoformat(spec["since"])
    responded = {reply["entity_id"] for reply in replies}
    return {
        "status": "resolved" if is_complete else "partial_timeout" if replies else "timeout",
        "replies": replies,
        "waiting_for": [
            {**entity, "responded": entity["entity_id"] in responded} for entity in spec["waiting_for"]
        ],
        "wait_ms": max(0, round(waited.total_seconds() * 1000)),
    }
