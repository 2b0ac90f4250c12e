"""The port of the store of agents, with its records."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.service.identity import Principal


@dataclass(frozen=True, slots=True)
class StoredAgent:
    """An agent with one version of its configuration.

    Attributes:
        agent_id: its id.
        handle: its handle.
        current: the number of its newest version.
        version: the number of this version.
        sha256: of this version's configuration, in hex.
        document: this version's configuration as JSON text, as it was written.
        created: when the agent was first written: UTC, RFC 3339, ``Z``.
        updated: when this version was written.
    """

    agent_id: str
    handle: str
    current: int
    version: int
    sha256: str
    document: str
    created: str
    updated: str


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A configuration that is to be an agent's newest version.

    Attributes:
        handle: the agent's handle.
        document: the configuration as JSON text.
        sha256: of the configuration, in hex.
    """

    handle: str
    document: str
    sha256: str


class AgentStore(Protocol):
    """Agents of a tenant's project. All methods raise StoreFailedError if the store fails."""

    async def write(
        self, principal: Principal, agent_id: str, new: NewVersion, if_version: int | None
    ) -> tuple[StoredAgent, bool]:
        """Make a configuration the newest version, unless it is that already; versions without a run are removed.

        Args:
            principal: its project's agent.
            agent_id: the id.
            new: the configuration.
            if_version: the version that has to be the newest one; 0: there has to be no agent; None: any.

        Returns:
            The agent with its newest version, and whether it is new.

        Raises:
            VersionMovedError: another version is the newest one.
            NameTakenError: another entity of the project has the handle.
            StoreFullError: no space is left.
        """

    async def find(self, principal: Principal, agent_id: str, version: int | None = None) -> StoredAgent:
        """Return an agent with a version of its configuration, the newest one by default.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """

    async def page(self, principal: Principal, before: str | None, limit: int) -> list[StoredAgent]:
        """Return agents with their newest versions, the one that was first written last first.

        Raises:
            UnknownAgentError: there is no agent ``before``.
        """

    async def runs_not_ended(self, principal: Principal, agent_id: str) -> Sequence[str]:
        """Return the ids of an agent's runs that have not ended; none for an unknown agent."""

    async def delete(self, principal: Principal, agent_id: str) -> None:
        """Delete an agent; its ended runs and its messages stay, its handle is free.

        Raises:
            UnknownAgentError: there is no such agent.
            AgentInUseError: a run of it has not ended.
        """
