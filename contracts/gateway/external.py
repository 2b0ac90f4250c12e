"""The envelope of a webhook, and the response to a call by such an envelope."""

from typing import Annotated, Any, Literal

from pydantic import Field

from proofbox.contracts.tool_call_request import CallId
from proofbox.contracts.tool_call_response import EnvelopeError
from proofbox.contracts.wire_model import WireModel


class WebhookCallback(WireModel):
    """Where a service that answers later sends the result."""

    url: str
    """The address of ``POST``; its body is ``{result}``, ``{error}`` or ``{cancelled}``."""
    token: str
    """For ``Authorization: Bearer``; it answers this call and nothing else."""
    expires: str
    """Until when it works: UTC, RFC 3339, ``Z``."""


class WebhookCall(WireModel):
    """The data of a webhook."""

    tool: str
    """The tool's name."""
    tool_call_id: str
    """The call."""
    run_id: str
    """Its run."""
    agent: str
    """The id of the agent."""
    input: Any
    """The input, checked against the tool's schema."""
    attempt: Annotated[int, Field(ge=1)]
    """1 for the first; ``webhook-id`` is the same for all."""
    callback: WebhookCallback
    """Where to answer later."""


class WebhookEnvelope(WireModel):
    """The body of a webhook."""

    type: Literal["tool.call"] = "tool.call"
    """What it is."""
    timestamp: str
    """When it was sent: UTC, RFC 3339, ``Z``."""
    data: WebhookCall
    """The call."""


class GivenCall(WireModel):
    """The data of an envelope that another gateway sends; unknown keys are ignored."""

    model_config = {"extra": "ignore"}

    tool_call_id: CallId | None = None
    """The id of the call; absent: the header ``webhook-id``, else a new one."""
    input: Any
    """The params of the tool."""


class ExternalFile(WireModel):
    """A file of a call."""

    path: str
    """Its path below ``files/``."""
    mime: str
    """Its media type."""
    size_bytes: int
    """Its size."""
    sha256: str
    """Its SHA-256, in hex."""
    url: str
    """A signed link to it."""


class ExternalResponse(WireModel):
    """The response to a call by an envelope."""

    ok: bool
    """Whether the call succeeded."""
    error: EnvelopeError | None
    """What went wrong."""
    report: str
    """The report, as a model reads it."""
    ret: Any = None
    """The tool's own return value."""
    files: list[ExternalFile]
    """The files that it produced, with links."""
