"""The server-sent events of a running call."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from proofbox.contracts.gateway.waits import Wait
from proofbox.contracts.network import NetworkConnection
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import ToolCallResponse

EventName = Literal["queued", "started", "stdout", "stderr", "connection", "waiting", "result", "error"]
TERMINAL_EVENTS: frozenset[str] = frozenset({"result", "error"})


class QueuedEvent(BaseModel):
    """The call waits for a free place."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    position: int
    """How many calls are before it."""


class StartedEvent(BaseModel):
    """The call has a container."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    acquired: Literal["warm", "cold"]
    """Whether the container was started before the call."""


class OutputEvent(BaseModel):
    """A piece of stdout or stderr, as it came."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    text: str
    """The piece; bytes that are no UTF-8 are replaced by U+FFFD."""
    truncated: bool = False
    """True on the last piece of a stream that wrote more than is passed on."""


ConnectionEvent = NetworkConnection
WaitingEvent = Wait
ResultEvent = ToolCallResponse
ErrorEvent = Problem
