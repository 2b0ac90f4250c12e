"""The server-sent events of a space."""

from typing import Any, Literal

from proofbox.contracts.gateway.messages import Member, Message, Sender
from proofbox.contracts.gateway.runs import RunStatus
from proofbox.contracts.wire_model import WireModel

SpaceEventName = Literal[
    "message.created",
    "message.delta",
    "tool-call.start",
    "tool-input-delta",
    "tool-call.waiting",
    "tool-call.complete",
    "tool-call.error",
    "run.status",
    "member.joined",
    "member.left",
    "reset",
]


class MessageCreatedEvent(WireModel):
    """A text message."""

    message: Message
    """The message."""
    stream_id: str | None = None
    """The call whose text was streamed before."""


class MessageDeltaEvent(WireModel):
    """A part of a text that a model is writing; it has no id."""

    stream_id: str
    """The call."""
    run_id: str
    """Its run: calls of two runs may have the same id."""
    message_id: str
    """The message, which is created when the call is made."""
    offset: int
    """Where the part begins, in characters."""
    delta: str
    """The part."""


class ToolCallEvent(WireModel):
    """The data of ``tool-call.start``, ``.waiting``, ``.complete`` and ``.error``."""

    stream_id: str
    """The call."""
    message: Message
    """Its record as it is stored now."""
    resumed: bool = False
    """Whether a client that came back gets it again."""
    text: str | None = None
    """Of a call that still streams, if ``resumed``: the text of its arguments so far."""


class ToolInputDeltaEvent(WireModel):
    """A part of the arguments that a model is writing; it has no id."""

    stream_id: str
    """The call."""
    message_id: str
    """Its record."""
    offset: int
    """Where the part begins, in characters."""
    delta: str
    """The part: JSON text."""
    input: Any = None
    """What can be read of the arguments so far: to be shown, not acted on."""


class RunStatusEvent(WireModel):
    """How a run stands whose active space this is."""

    run_id: str
    """The run."""
    agent: Sender
    """Its agent."""
    status: RunStatus
    """How it stands."""


class MemberEvent(WireModel):
    """The data of ``member.joined`` and ``member.left``."""

    entity: Member | Sender
    """The member."""


class ResetEvent(WireModel):
    """Events are missing: read the messages again and go on after ``last``."""

    last: int
    """The id of the newest event."""
