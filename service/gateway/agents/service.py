"""Agents: their configurations are checked, stored in versions, listed and deleted."""

import asyncio
import json
import logging
from typing import Any, Protocol

from proofbox.contracts.gateway.agents import AgentPage, AgentVersion, AgentWritten, ListedAgent, WrittenTool
from proofbox.contracts.gateway.configuration import AgentConfiguration
from proofbox.contracts.gateway.names import CONFIGURED_PREFIX, agent_entity_id
from proofbox.service.gateway.agents.checker import CheckedConfiguration, check_configuration
from proofbox.service.gateway.agents.port import AgentStore, NewVersion, StoredAgent
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.llm.endpoints import LlmEndpoints
from proofbox.service.gateway_errors import AgentInUseError
from proofbox.service.identity import Principal

_DELETIONS_MAX = 3
_log = logging.getLogger("proofbox.agents")


class RunCanceller(Protocol):
    """Cancels runs; `Runs` is one."""

    async def cancel(self, principal: Principal, run_id: str) -> Any:
        """Cancel a run; one that has ended stays as it is."""


class Agents:
    """The agents of all projects.

    Args:
        store: their records.
        environment: the secrets that configurations may name.
        endpoints: the endpoints of models that they may name; None: there are none.
    """

    def __init__(self, store: AgentStore, environment: Environment, endpoints: LlmEndpoints | None = None) -> None:
        self._store = store
        self._environment = environment
        self._endpoints = endpoints or LlmEndpoints()

    async def put(
        self, principal: Principal, agent_id: str, document: dict[str, Any], if_version: int | None = None
    ) -> tuple[AgentWritten, bool]:
        """Check a configuration and make it an agent's newest version, unless it is that already.

        Args:
            principal: its project's agent.
            agent_id: the id.
            document: the configuration as JSON.
            if_version: the version that has to be the newest one; 0: there has to be no agent; None: any.

        Returns:
            What was written, and whether the agent is new.

        Raises:
            InvalidToolError: the configuration has mistakes; ``errors`` lists them all.
            VersionMovedError: another version is the newest one.
            NameTakenError: another entity of the project has the handle.
        """
        # In a thread: schemas are compiled, and a document may have 1 MiB.
        checked = await asyncio.to_thread(
            check_configuration, document, self._environment, project_name(principal), self._endpoints
        )
        new = NewVersion(checked.configuration.agent.name, checked.document, checked.sha256)
        stored, is_new = await self._store.write(principal, agent_id, new, if_version)
        _log.info(
            "agent written",
            extra={"agent_id": agent_id, "version": stored.version, "key_id": principal.key_id},
        )
        return _written(stored, checked), is_new

    async def find(self, principal: Principal, agent_id: str, version: int | None = None) -> AgentVersion:
        """Return a version of an agent's configuration, the newest one by default.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """
        stored = await self._store.find(principal, agent_id, version)
        return AgentVersion(
            agent_id=stored.agent_id,
            version=stored.version,
            sha256=stored.sha256,
            created=stored.updated,
            configuration=json.loads(stored.document),
        )

    async def find_version(self, principal: Principal, agent_id: str, version: int | None) -> AgentConfiguration:
        """Return a version of an agent's configuration as a model. Raises as `find`."""
        stored = await self._store.find(principal, agent_id, version)
        return AgentConfiguration.model_validate(json.loads(stored.document))

    async def page(self, principal: Principal, before: str | None, limit: int) -> AgentPage:
        """Return a page of the list of agents, the newest first.

        Raises:
            UnknownAgentError: there is no agent ``before``.
        """
        found = await self._store.page(principal, before, limit + 1)
        items = [_listed(stored) for stored in found[:limit]]
        return AgentPage(items=items, next=items[-1].agent_id if len(found) > limit else None)

    async def delete(self, principal: Principal, agent_id: str, runs: RunCanceller | None) -> None:
        """Delete an agent; its ended runs and its messages stay.

        Args:
            principal: its project's agent.
            agent_id: the id.
            runs: cancels its runs that have not ended; None: these are a reason to refuse.

        Raises:
            UnknownAgentError: there is no such agent.
            AgentInUseError: runs of it have not ended.
        """
        for attempt in range(_DELETIONS_MAX):
            if runs is not None:
                for run_id in await self._store.runs_not_ended(principal, agent_id):
                    await runs.cancel(principal, run_id)
            try:
                await self._store.delete(principal, agent_id)
            except AgentInUseError:  # a run was made in between
                if runs is None or attempt == _DELETIONS_MAX - 1:
                    raise
            else:
                _log.info("agent deleted", extra={"agent_id": agent_id, "key_id": principal.key_id})
                return


def project_name(principal: Principal) -> str:
    """The project of a principal as the operator's secrets name it: ``tenant/project``."""
    return f"{principal.tenant}/{principal.project}"


def _written(stored: StoredAgent, checked: CheckedConfiguration) -> AgentWritten:
    tools = [
        WrittenTool(
            tool_id=CONFIGURED_PREFIX + tool.name,
            name=tool.name,
            execution_type=tool.execution_type,
            visibility=tool.effective_visibility,
        )
        for tool in checked.configuration.tools
    ]
    return AgentWritten(
        agent_id=stored.agent_id,
        version=stored.version,
        sha256=stored.sha256,
        tools=tools,
        warnings=checked.warnings,
    )


def _listed(stored: StoredAgent) -> ListedAgent:
    agent = json.loads(stored.document)["agent"]
    return ListedAgent(
        agent_id=stored.agent_id,
        entity_id=agent_entity_id(stored.agent_id),
        handle=stored.handle,
        description=agent.get("description") or "",
        version=stored.version,
        sha256=stored.sha256,
        created=stored.created,
        updated=stored.updated,
    )
