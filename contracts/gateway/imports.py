"""The import of an agent's configuration of version 1: the request and the report."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from proofbox.contracts.gateway.agents import AgentWritten
from proofbox.contracts.gateway.names import AgentId
from proofbox.contracts.wire_model import WireModel

ImportStatus = Literal["unchanged", "converted", "dropped", "needs_review"]


class AgentImport(WireModel):
    """Asks for a configuration in version 2."""

    config: dict[str, Any]
    """The configuration, of version 1 or 2."""
    save_as: AgentId | None = None
    """The agent that gets it as its newest version; absent: nothing is saved."""


class ImportedPart(WireModel):
    """What became of one tool or of another part of a configuration."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True, validate_by_alias=True)

    tool: str | None
    """The tool's name; null for another part, which ``from`` names."""
    from_: str = Field(alias="from")
    """What it was, such as ``request``."""
    to: str | None
    """What it is now, such as ``gateway http``; null: nothing."""
    status: ImportStatus
    """``needs_review``: it is in ``config`` and is not saved."""
    message: str
    """What changed and what to do; empty if nothing did."""


class AgentImported(WireModel):
    """A configuration in version 2, and how it came to be."""

    config: dict[str, Any]
    """The configuration, with the parts that need review."""
    report: list[ImportedPart]
    """The tools in their order, then the other parts that changed."""
    saved: AgentWritten | None
    """The agent, without the parts that need review; null without ``save_as``."""
