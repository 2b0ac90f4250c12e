"""The services of agents, runs, spaces and waits that routes use."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from proofbox.service.access.space_tokens import SpaceTokens
from proofbox.service.gateway.agents.port import AgentStore
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.llm.endpoints import LlmEndpoints
from proofbox.service.gateway.mcp.run_pins import RunPins
from proofbox.service.gateway.records.port import AgentStates
from proofbox.service.gateway.runs import Runs
from proofbox.service.gateway.spaces.feed import SpaceFeed
from proofbox.service.gateway.spaces.port import MessageStore, SpaceStore
from proofbox.service.gateway.spaces.tool_inputs import ToolInputs
from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.callbacks import CallbackWaits
from proofbox.service.gateway.waits.port import WaitStore
from proofbox.service.gateway.waits.webhook_signing import CallbackTokens, SigningSecrets


@dataclass(frozen=True, slots=True)
class WaitServices:
    """Waits of calls and the webhooks that begin some of them.

    Attributes:
        answers: takes answers from outside.
        store: the waits.
        secrets: the secrets that sign webhooks.
        tokens: the tokens that services call back with.
        callbacks: finds the waits of these tokens.
    """

    answers: WaitAnswers
    store: WaitStore
    secrets: SigningSecrets
    tokens: CallbackTokens
    callbacks: CallbackWaits


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """The services of agents, runs, spaces and waits.

    Attributes:
        spaces: entities, spaces and members.
        messages: the messages of spaces.
        feed: the events of spaces.
        inputs: the arguments that are being written.
        tokens: makes space tokens.
        runs: the runs of agents.
        catalogue: the tools of agents and runs.
        pins: what a run that begins now would get of MCP servers.
        agents: the agents.
        states: what agents have noted.
        environment: the operator's secrets.
        endpoints: the operator's endpoints of models.
        waits: the waits of calls.
    """

    spaces: SpaceStore
    messages: MessageStore
    feed: SpaceFeed
    inputs: ToolInputs
    tokens: SpaceTokens
    runs: Runs
    catalogue: ToolCatalogue
    pins: RunPins
    agents: AgentStore
    states: AgentStates
    environment: Environment
    endpoints: LlmEndpoints
    waits: WaitServices


async def get_gateway(request: Request) -> GatewayServices:
    """Return the gateway services of the application that serves a request."""
    gateway: GatewayServices = request.app.state.services.gateway
    return gateway


InjectedGateway = Annotated[GatewayServices, Depends(get_gateway)]
