"""A tool of an MCP server as a run has it: as its server listed it when the run began, checked and cut."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from proofbox.contracts.gateway.configuration import McpServer


@dataclass(frozen=True, slots=True)
class PinnedTool:
    """A tool that is pinned to a run.

    Attributes:
        server: the name of its server in the configuration.
        remote_name: its name there.
        tool_id: its id in blocks, audit lines and the catalogue.
        name: its name for the model.
        description: what it does, cleaned and cut.
        input_schema: checked.
        output_schema: checked; None: any result.
        annotations: hints of the server.
        sha256: of name, description and input schema as the server gave them: what ``pins`` compares.
    """

    server: str
    remote_name: str
    tool_id: str
    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any]
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Returns it as a JSON object, for the record of its run."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "PinnedTool":
        """Returns what `to_json` stored."""
        return cls(**value)


@dataclass(frozen=True, slots=True)
class McpBinding:
    """What a call of a server's tool needs.

    Attributes:
        server: the server as it is configured.
        tool: the tool, pinned.
    """

    server: McpServer
    tool: PinnedTool

    @property
    def is_allowed(self) -> bool:
        """Whether the configuration allows calls of the tool."""
        allowed = self.server.allowed_tools
        return allowed is None or self.tool.remote_name in allowed

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to approve its calls."""
        return self.tool.remote_name in self.server.requires_approval


@dataclass(frozen=True, slots=True)
class PinnedTools:
    """The tools of the MCP servers of an agent's version, as a run that begins now has them.

    Attributes:
        version: the version of the configuration.
        has_servers: whether it has servers at all.
        tools: the tools.
        warnings: what was left out, and why; each ``{code, message}``.
    """

    version: int
    has_servers: bool = False
    tools: Sequence[PinnedTool] = ()
    warnings: Sequence[dict[str, str]] = ()
