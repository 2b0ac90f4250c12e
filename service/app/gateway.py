"""Builds what runs of agents need: before the calls, whose tools it has, and after them, whose ends it drives."""

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from proofbox.contracts.gateway.configuration import AgentConfiguration
from proofbox.contracts.gateway.executions import VARIANTS
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tools import Tool as ListedTool
from proofbox.service.api.gateway_services import GatewayServices
from proofbox.service.app.gateway_llm import LlmDependencies, build_endpoints, build_llm_executions
from proofbox.service.app.gateway_mcp import McpTools, build_mcp_client, build_mcp_tools
from proofbox.service.app.gateway_records import RecordParts, build_record_parts, run_limits
from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.gateway_spaces import SpaceParts, build_space_parts, build_space_tokens, build_space_tools
from proofbox.service.app.gateway_waits import WaitEnds, WaitParts, build_wait_ends, build_wait_parts
from proofbox.service.app.settings import Settings
from proofbox.service.app.tools import absent_tools
from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.artifacts.port import ArtifactStore
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.port import CallStore
from proofbox.service.calls.service import Calls
from proofbox.service.calls.tool import Tools
from proofbox.service.errors import InvalidRequestError, ServiceError
from proofbox.service.gateway.agents.input_schemas import own_tools
from proofbox.service.gateway.agents.port import AgentStore
from proofbox.service.gateway.catalogue import ToolCatalogue, own_run_tool
from proofbox.service.gateway.compute.tool import ComputeTool
from proofbox.service.gateway.environment import Environment, EnvironmentEntry
from proofbox.service.gateway.http_tool import HttpParts, HttpTool
from proofbox.service.gateway.llm.endpoints import LlmEndpoints
from proofbox.service.gateway.own_tool import OwnTool
from proofbox.service.gateway.records.plan_timer import PlanTimer
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.run_tools import MCP, NOTHING, GatewayTools, RunToolParts
from proofbox.service.gateway.runs import RunParts, Runs
from proofbox.service.gateway.runs_port import RunStore
from proofbox.service.gateway.simple_tools import NothingTool, OutputTool
from proofbox.service.gateway.tool_call import ToolExecution
from proofbox.service.identity import Principal
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.timeline.token_counter import TokenCounter
from proofbox.service.web.client.outgoing import OutgoingClient
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import loaded_when_asked

log = logging.getLogger("proofbox.gateway")


class EnvironmentRefusedError(ServiceError):
    """A secret that tools may name is not there, or cannot be used."""


@dataclass(frozen=True, slots=True)
class GatewayDependencies:
    """What the gateway needs of the rest of the service.

    Attributes:
        database: the records of all stores.
        artifacts: the files of conversations.
        tools: the service's own tools.
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        resolver: resolves the host names of requests.
        tokens: counts tokens.
        audited: the service that writes audit lines.
    """

    database: Database
    artifacts: ArtifactStore
    tools: Tools
    jobs: JobRunner
    policy: CallPolicy
    resolver: Resolver
    tokens: TokenCounter
    audited: AuditService


@dataclass(frozen=True, slots=True)
class GatewayParts:
    """The parts that calls need; built before `Calls`.

    Attributes:
        tools: the tools of runs.
        runs: the records of runs.
        agents: the agents.
        catalogue: the tools of agents.
        spaces: the parts of spaces.
        waits: the parts of waits.
        environment: the operator's secrets.
        records: the parts of goals, memories and plans.
        endpoints: the operator's endpoints of models.
        mcp: the tools of MCP servers.
    """

    tools: GatewayTools
    runs: RunStore
    agents: AgentStore
    catalogue: ToolCatalogue
    spaces: SpaceParts
    waits: WaitParts
    environment: Environment
    records: RecordParts
    endpoints: LlmEndpoints
    mcp: McpTools


@dataclass(frozen=True, slots=True)
class Gateway:
    """Agents, runs, spaces and waits of a service.

    Attributes:
        services: for the routes.
        runs: the runs.
        spaces: the parts of spaces.
        waits: what ends waits.
        plans: the timer of plans.
    """

    services: GatewayServices
    runs: Runs
    spaces: SpaceParts
    waits: WaitEnds
    plans: PlanTimer

    async def start(self, *, alone: bool = True) -> None:
        """End what was due while the service was down, and begin to look after runs, waits and streams.

        Args:
            alone: whether no other process uses the stores; else one of them calls `start_jobs`.

        Raises:
            StoreFailedError: the store failed.
        """
        if left := await self.spaces.start(alone=alone):
            log.warning("ended %d streams of arguments that an earlier process of the service left", left)
        if alone:
            await self.start_jobs()

    async def start_jobs(self) -> None:
        """Begin what one process does for all: end waits in time, take runs back, fire plans.

        Raises:
            StoreFailedError: the store failed.
        """
        if expired := await self.waits.services.answers.expire_overdue():
            log.warning("ended %d waits that expired while the service was down", expired)
        self.waits.timer.start()
        await self.runs.sweep()
        self.runs.start()
        self.plans.start()

    async def stop_jobs(self) -> None:
        """End that: another process does it from now on."""
        for stop in (self.plans.stop, self.runs.stop_sweeps, self.waits.timer.stop):
            await stop()

    async def stop(self) -> None:
        """Let those go who wait, and stop; a part that fails is logged, and the others stop."""
        for stop in (self.plans.stop, self.runs.stop, self.waits.timer.stop, self.spaces.stop):
            try:
                await stop()
            except Exception:
                log.exception("a part of the gateway failed as it stopped")


class AgentConfigurations:
    """The `Configurations` of the stored agents.

    Args:
        agents: the agents.
    """

    def __init__(self, agents: AgentStore) -> None:
        self._agents = agents

    async def find_version(self, principal: Principal, agent_id: str, version: int | None) -> AgentConfiguration:
        """See `Configurations.find_version`."""
        stored = await self._agents.find(principal, agent_id, version)
        try:
            return AgentConfiguration.model_validate_json(stored.document)
        except ValidationError as exc:
            raise InvalidRequestError(
                f"agent_id: version {stored.version} of agent '{agent_id}' does not fit this release; write the "
                "agent again, and make a new run"
            ) from exc


def build_gateway_parts(settings: Settings, needs: GatewayDependencies) -> GatewayParts:
    """Build what the calls of runs need.

    Raises:
        EnvironmentRefusedError: a secret of ``gateway_env`` is not there or too short.
        EndpointsRefusedError: the key of an endpoint of ``llm_endpoints`` is not there or cannot be used.
        OSError: the certificates of ``web_ca_file`` cannot be read.
        LookupError: see `require_executions`.
    """
    database = needs.database
    environment, endpoints = build_environment(settings, os.environ), build_endpoints(settings, os.environ)
    network = CheckedNetwork(needs.resolver, settings.gateway_networks)
    tls = loaded_when_asked(settings.web_ca_file)
    sender = OutgoingClient(network, tls, frozenset(settings.gateway_ports))
    files = ResultFiles(needs.artifacts)
    agents, runs = SqlAgentStore(database), SqlRunStore(database, run_limits(settings))
    waits = build_wait_parts(settings, database, files, sender, environment)
    records = build_record_parts(settings, database, files)
    built_ins = [*build_space_tools(database, files, waits), *records.built_ins]
    tool_catalogue = ToolCatalogue(AgentConfigurations(agents), built_ins, _own_tools(), runs)
    spaces = build_space_parts(database, runs, tool_catalogue)
    admission = Admission(running_max=settings.gateway_running_max, queue_max=settings.queue_max)
    http = HttpParts(sender, files, environment, admission, settings.gateway_response_bytes_max, settings.queue_s)
    mcp = build_mcp_tools(build_mcp_client(settings, network, tls), http, agents, tool_catalogue, waits.policy)
    executions: dict[str, ToolExecution] = {
        **waits.executions,
        "mcp": mcp.execution,
        "http": HttpTool(http),
        "output": OutputTool(files),
        "none": NothingTool(),
        "own_tool": OwnTool(needs.tools, needs.jobs.admission.refuse_if_full),
        "compute": ComputeTool(needs.jobs, needs.policy, files),
    }
    llm = LlmDependencies(
        database,
        needs.jobs,
        needs.policy,
        needs.tokens,
        needs.audited,
        needs.resolver,
        admission,
        sender,
        files,
        mcp.sources,
    )
    own = {tool.tool_id: own_run_tool(tool) for tool in _own_tools()}
    executions |= build_llm_executions(settings, endpoints, llm, own, executions)
    require_executions(executions)
    parts = RunToolParts(
        runs=runs,
        catalogue=tool_catalogue,
        places=spaces.places,
        executions=executions,
        built_ins=built_ins,
        waits=waits.policy,
        lease_s=settings.run_lease_s,
        keep_input=files.keep_input,
    )
    return GatewayParts(
        GatewayTools(parts), runs, agents, tool_catalogue, spaces, waits, environment, records, endpoints, mcp
    )


def build_gateway(
    settings: Settings,
    database: Database,
    parts: GatewayParts,
    store: CallStore,
    calls: Calls,
    link_keys: Callable[[], Sequence[LinkKey]],
) -> Gateway:
    """Build what drives runs and waits."""
    runs = Runs(RunParts(parts.runs, calls, database.changes, run_limits(settings), parts.mcp.pins))
    ends = build_wait_ends(settings, database, parts.waits, store, calls)
    services = GatewayServices(
        spaces=parts.spaces.spaces,
        messages=parts.spaces.messages,
        feed=parts.spaces.feed,
        inputs=parts.spaces.inputs,
        tokens=build_space_tokens(link_keys),
        runs=runs,
        catalogue=parts.catalogue,
        pins=parts.mcp.pins,
        agents=parts.agents,
        states=parts.records.states,
        environment=parts.environment,
        endpoints=parts.endpoints,
        waits=ends.services,
    )
    return Gateway(services, runs, parts.spaces, ends, PlanTimer(parts.records.plans, database.changes))


def require_executions(executions: Collection[str]) -> None:
    """Check that each variant of ``execution`` can run.

    Raises:
        LookupError: a variant has no `ToolExecution`; its calls would fail.
    """
    if missing := {*VARIANTS, MCP, NOTHING} - set(executions):
        raise LookupError(
            f"no ToolExecution runs the variant {', '.join(sorted(missing))} of execution; add it to the "
            "executions of build_gateway_parts"
        )


def _own_tools() -> list[ListedTool]:
    absent = absent_tools()
    return [tool for name, tool in own_tools().items() if name == tool.tool_id and name not in absent]


def build_environment(settings: GatewaySettings, variables: Mapping[str, str]) -> Environment:
    """Build the operator's secrets, whose values are environment variables.

    Raises:
        EnvironmentRefusedError: a variable is not set, or its value cannot be used; the message has no value.
    """
    entries = {}
    for name, secret in settings.gateway_env.items():
        value = variables.get(secret.variable)
        if value is None:
            raise EnvironmentRefusedError(
                f"PROOFBOX_GATEWAY_ENV: {name} names the variable {secret.variable}, which is not set; set it, or "
                "remove the entry"
            )
        hosts = frozenset(host.lower() for host in secret.hosts)
        projects = None if secret.projects is None else frozenset(secret.projects)
        entries[name] = EnvironmentEntry(value, hosts, projects)
    try:
        return Environment(entries)
    except ValueError as exc:
        raise EnvironmentRefusedError(f"PROOFBOX_GATEWAY_ENV: {exc}") from exc
