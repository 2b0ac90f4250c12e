"""Builds what tools that ask a model need: the operator's endpoints, pictures, sub-agents."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofbox.contracts.provenance import AuditService
from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.settings import Settings
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import ServiceError
from proofbox.service.gateway.http_exchange import FILE_FACTOR, HttpSender
from proofbox.service.gateway.llm.client import LlmClient
from proofbox.service.gateway.llm.context_tail import ContextTail
from proofbox.service.gateway.llm.endpoints import LlmEndpoint, LlmEndpoints
from proofbox.service.gateway.llm.image_tool import ImageParts, ImageTool
from proofbox.service.gateway.llm.inner_calls import InnerCallParts
from proofbox.service.gateway.llm.pictures import PictureInspector
from proofbox.service.gateway.llm.sub_agent import SubAgentParts, SubAgentTool
from proofbox.service.gateway.mcp.sources import McpSources
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import RunTool, ToolExecution
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.timelines import SqlTimelineStore
from proofbox.service.timeline.token_counter import TokenCounter
from proofbox.service.web.client.outgoing import OutgoingClient
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import loaded_when_asked
from proofbox.service.web.urls import WebUrl


class EndpointsRefusedError(ServiceError):
    """The key of an endpoint of models is not there, or cannot be used."""


@dataclass(frozen=True, slots=True)
class LlmDependencies:
    """What tools that ask a model need of the rest of the service.

    Attributes:
        database: the records of all stores.
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        tokens: counts tokens.
        audited: the service that writes audit lines.
        resolver: resolves the host names of endpoints.
        admission: how many requests are made at the same time.
        sender: sends requests over the checked network.
        files: stores results.
        mcp: the tools of MCP servers.
    """

    database: Database
    jobs: JobRunner
    policy: CallPolicy
    tokens: TokenCounter
    audited: AuditService
    resolver: Resolver
    admission: Admission
    sender: HttpSender
    files: ResultFiles
    mcp: McpSources


def build_endpoints(settings: GatewaySettings, variables: Mapping[str, str]) -> LlmEndpoints:
    """Build the operator's endpoints, whose keys are environment variables.

    Raises:
        EndpointsRefusedError: a variable is not set, or its value cannot be used; the message has no value.
    """
    endpoints = {}
    for name, given in settings.llm_endpoints.items():
        key = "" if given.key is None else variables.get(given.key, "")
        if given.key is not None and not key:
            raise EndpointsRefusedError(
                f"PROOFBOX_LLM_ENDPOINTS: {name}.key names the variable {given.key}, which is not set; set it, or "
                "leave key out for an endpoint that takes none"
            )
        endpoints[name] = LlmEndpoint(name, WebUrl.parse(given.url), given.models, frozenset(given.can), key)
    try:
        return LlmEndpoints(endpoints)
    except ValueError as exc:
        raise EndpointsRefusedError(f"PROOFBOX_LLM_ENDPOINTS: {exc}") from exc


def build_llm_executions(
    settings: Settings,
    endpoints: LlmEndpoints,
    needs: LlmDependencies,
    own_tools: Mapping[str, RunTool],
    executions: Mapping[str, ToolExecution],
) -> dict[str, ToolExecution]:
    """Build what runs the calls of the variants ``image`` and ``sub-agent``.

    Args:
        settings: of the service.
        endpoints: the operator's endpoints.
        needs: the rest of the service.
        own_tools: the tools of the service, as tools of a run.
        executions: runs the calls of sub-agents' tools; it may be completed later.

    Raises:
        OSError: the certificates of ``web_ca_file`` cannot be read.
    """
    # The operator chose the endpoints: they may be on private networks, and at any port.
    sender = OutgoingClient(CheckedNetwork(needs.resolver, None), loaded_when_asked(settings.web_ca_file))
    client = LlmClient(sender, needs.admission, settings.queue_s)
    image = ImageParts(
        endpoints,
        client,
        needs.sender,
        needs.admission,
        PictureInspector(needs.jobs, needs.policy),
        needs.files,
        FILE_FACTOR * settings.gateway_response_bytes_max,
        settings.queue_s,
    )
    sub_agent = SubAgentParts(
        endpoints,
        client,
        InnerCallParts(executions, SqlAuditStore(needs.database), needs.audited),
        own_tools,
        needs.mcp,
        ContextTail(SqlTimelineStore(needs.database), needs.tokens),
        needs.tokens,
        needs.files,
    )
    return {"image": ImageTool(image), "sub_agent": SubAgentTool(sub_agent)}
