"""Messages of spaces: texts, and records of tool calls."""

from typing import Annotated, Any, Literal

from pydantic import Field

from proofbox.contracts.gateway.configuration import ExecutionType, Visibility
from proofbox.contracts.gateway.names import EntityId, MessageId
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.contracts.tool_call_response import CallStatus
from proofbox.contracts.wire_model import WireModel

TEXT_CHARACTERS_MAX = 20_000
VALUE_BYTES_MAX = 256 * 1024
"""Of the input and of the output of a record; what is larger is ``truncated``."""
ToolState = Literal["streaming", "running", "waiting", "done", "failed", "denied", "expired", "cancelled"]
ENDED_TOOL_STATES: frozenset[str] = frozenset({"done", "failed", "denied", "expired", "cancelled"})
MessageText = Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS_MAX)]


class Sender(WireModel):
    """Who sent a message."""

    entity_id: str
    """The id."""
    type: Literal["human", "agent"]
    """A person or an agent."""
    handle: str | None
    """The handle; null if the agent was deleted."""
    display_name: str
    """The name that is shown."""


class Member(Sender):
    """A member of a space."""

    joined: str
    """Since when: UTC, RFC 3339, ``Z``."""


class MessageOrigin(WireModel):
    """Where the run of a message began, if not in this space."""

    trigger: str
    """The type of its trigger."""
    space_id: str | None = None
    """The space of its trigger, if the reader is a member of it."""


class RecordError(WireModel):
    """Why a call has no result."""

    code: str
    """The stable code."""
    message: str
    """One sentence."""


class TruncatedValue(WireModel):
    """A value that is too large for the record."""

    size_bytes: int
    """Its size as JSON."""
    artifact_path: str | None = None
    """The artifact that has the whole value."""


class ToolRecord(WireModel):
    """The record of a tool call in a space."""

    name: str
    """The tool's name for the model."""
    tool_id: str
    """The tool."""
    execution_type: ExecutionType
    """Where it runs."""
    visibility: Visibility
    """What of it is shown."""
    custom_ui: str
    """The component that shows it."""
    input: Any = None
    """The input as JSON; null if it is not shown, not known yet, or truncated."""
    output: Any = None
    """The output as JSON; null if it is not shown, not there, or truncated."""
    error: RecordError | None = None
    """Why there is no output."""
    state: ToolState
    """How the call stands; ``waiting``: a person is asked."""
    result_schema: JsonObject | None = None
    """JSON Schema (2020-12) of the answer that is asked for."""
    expires: str | None = None
    """Until when an answer is accepted: UTC, RFC 3339, ``Z``."""
    answered_by: str | None = None
    """The entity that answered."""
    tool_call_id: str
    """The call."""
    truncated: dict[Literal["input", "output"], TruncatedValue] = {}
    """The values that are too large, at most 256 KiB each are shown."""


class Message(WireModel):
    """One message of a space."""

    message_id: str
    """Its id."""
    space_id: str
    """Its space."""
    seq: int
    """Its number in the space, from 1 without gaps; it never changes."""
    revision: int
    """1, and one more after each change."""
    kind: Literal["text", "tool_call"]
    """Which of the fields below it has."""
    sender: Sender
    """Who sent it."""
    run_id: str | None = None
    """The run that made it."""
    ts: str
    """When it was made: UTC, RFC 3339, ``Z``."""
    updated: str
    """When it last changed: UTC, RFC 3339, ``Z``."""
    origin: MessageOrigin | None = None
    """Where its run began, if elsewhere."""
    replyable: bool
    """Whether it can be replied to: texts only."""
    text: str | None = None
    """Of a text: the text."""
    mentions: list[str] = []
    """Of a text: the ids of the members that it mentions."""
    reply_to: str | None = None
    """Of a text: the message that it replies to."""
    tool: ToolRecord | None = None
    """Of a tool call: its record."""


class MessagePage(WireModel):
    """A page of the messages of a space, the oldest first."""

    items: list[Message]
    """The messages."""
    next: int | None
    """What the next request gives as ``before`` or ``after``; null on the last page."""


class NewMessage(WireModel):
    """A text that a person sends to a space."""

    text: MessageText
    """The text; ``@handle`` mentions a member."""
    reply_to: MessageId | None = None
    """The message that it replies to."""
    entity_id: EntityId | None = None
    """Who sends it, if the caller may act for others."""


class TriggeredRun(WireModel):
    """A run that a message made or resumed."""

    run_id: str
    """The run."""
    agent_id: str
    """Its agent."""
    why: Literal["mention", "resumed"]
    """Whether the message made it or answered its wait."""


class MessageSent(WireModel):
    """A message that was sent, and what it led to."""

    message: Message
    """The message."""
    runs: list[TriggeredRun]
    """The runs that it made or resumed."""
    unknown_mentions: list[str]
    """Handles that no member has, without ``@``."""


class ResultAccepted(WireModel):
    """An answer that was accepted."""

    message: Message | None
    """The record of the call; null if no space shows it."""
    call: CallStatus
    """The call, which has its answer now."""


class ToolInputDelta(WireModel):
    """A part of the arguments that a model is writing."""

    tool: Annotated[str, Field(min_length=1, max_length=128)]
    """The tool's name for the model, or its id."""
    offset: Annotated[int, Field(ge=0)]
    """Where the part begins, in characters of the text so far."""
    delta: Annotated[str, Field(max_length=VALUE_BYTES_MAX)]
    """The part: text of the arguments as JSON."""


class ToolInputLength(WireModel):
    """How much of the arguments has arrived."""

    length: int
    """Characters; the offset of the next part."""
