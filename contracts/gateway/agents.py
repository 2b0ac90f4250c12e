"""The responses of ``/v1/agents``."""

from typing import Annotated, Any

from pydantic import Field

from proofbox.contracts.gateway.configuration import ExecutionType, Visibility
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.wire_model import WireModel

PAGE_MAX = 100
"""Entries of a page of any list of the gateway."""


class WrittenTool(WireModel):
    """One tool of a configuration, as it is offered."""

    tool_id: str
    """``gateway_tools.<name>``."""
    name: str
    """Its name for the model."""
    execution_type: ExecutionType
    """Where it runs."""
    visibility: Visibility
    """What of a call the active space shows."""


class AgentWritten(WireModel):
    """An agent after its configuration was written."""

    agent_id: str
    """Its id."""
    version: int
    """The number of its newest version; the same one if nothing changed."""
    sha256: str
    """Of the configuration as JSON with sorted keys, in hex."""
    tools: list[WrittenTool]
    """Its tools, without those of MCP servers."""
    warnings: list[GatewayWarning]
    """What needs attention, such as a literal credential."""


class ListedAgent(WireModel):
    """One agent."""

    agent_id: str
    """Its id."""
    entity_id: str
    """Its id as a member of spaces: ``agent:<agent_id>``."""
    handle: str
    """Its handle."""
    description: str
    """What it is for; empty if its configuration has none."""
    version: int
    """The number of its newest version."""
    sha256: str
    """Of that version's configuration, in hex."""
    created: str
    """When it was first written: UTC, RFC 3339, ``Z``."""
    updated: str
    """When its newest version was written: UTC, RFC 3339, ``Z``."""


class AgentPage(WireModel):
    """A page of the list of agents, the newest first."""

    items: list[ListedAgent]
    """The agents."""
    next: str | None
    """What the next request gives as ``before``; null on the last page."""


class AgentVersion(WireModel):
    """One version of an agent's configuration."""

    agent_id: str
    """Its id."""
    version: int
    """The number of the version."""
    sha256: str
    """Of the configuration as JSON with sorted keys, in hex."""
    created: str
    """When the version was written: UTC, RFC 3339, ``Z``."""
    configuration: dict[str, Any]
    """The configuration as it was written; no secret was ever in it."""


class AgentRemoval(WireModel):
    """What a deletion of an agent did."""

    cancelled_runs: Annotated[int, Field(ge=0)]
    """The runs that were cancelled."""


class SigningSecretRequest(WireModel):
    """Asks for the secret that signs an agent's webhooks."""

    rotate: bool = False
    """Whether to make the next one; both sign for 24 hours."""


class SigningSecret(WireModel):
    """The secret that signs an agent's webhooks."""

    secret: str
    """``whsec_…``, as the Standard Webhooks libraries take it."""
    previous_until: str | None
    """Until when the previous one signs too: UTC, RFC 3339, ``Z``."""
