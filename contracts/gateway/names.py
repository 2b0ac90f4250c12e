"""Ids and names of agents, entities, spaces, runs and messages."""

from typing import Annotated

from pydantic import Field

BUILT_IN_NAMES = (
    "enter_space",
    "send_message",
    "send_reply",
    "read_messages",
    "stop_run",
    "set_goals",
    "delete_goals",
    "set_memories",
    "delete_memories",
    "set_plans",
    "delete_plans",
    "get_plans",
    "get_my_runs",
)
"""The tools that every run has; no configured tool may have one of these names."""
CONFIGURED_PREFIX = "gateway_tools."
BUILT_IN_PREFIX = "space_tools."
MCP_PREFIX = "mcp_tools."
AGENT_ENTITY_PREFIX = "agent:"

TOOL_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
HANDLE_PATTERN = r"^[A-Za-z][A-Za-z0-9_-]{0,63}$"
AgentId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
EntityId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:@-]{0,127}$")]
SpaceId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]
MessageId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$")]
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
Handle = Annotated[str, Field(pattern=HANDLE_PATTERN)]
ToolName = Annotated[str, Field(pattern=TOOL_NAME_PATTERN)]


def agent_entity_id(agent_id: str) -> str:
    """The id of an agent as an entity: ``agent:<agent_id>``."""
    return AGENT_ENTITY_PREFIX + agent_id
