"""The models of the gateway whose JSON Schemas and examples are published."""

from pydantic import BaseModel

from proofbox.contracts.gateway.agents import AgentPage, AgentVersion, AgentWritten
from proofbox.contracts.gateway.catalogue import RunTool
from proofbox.contracts.gateway.configuration import AgentConfiguration
from proofbox.contracts.gateway.external import ExternalResponse, WebhookEnvelope
from proofbox.contracts.gateway.imports import AgentImport, AgentImported
from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, NewMessage, ToolInputDelta
from proofbox.contracts.gateway.records import AgentState
from proofbox.contracts.gateway.runs import Run, RunClaim, RunContext, RunCreation, RunFinish, RunPage
from proofbox.contracts.gateway.spaces import (
    Entity,
    EntityDefinition,
    Space,
    SpaceCreation,
    SpacePage,
    SpaceToken,
    SpaceTokenRequest,
)
from proofbox.contracts.gateway.waits import ResultSubmission, Wait

GATEWAY_MODELS: dict[str, type[BaseModel]] = {
    "agent_configuration": AgentConfiguration,
    "agent_import": AgentImport,
    "agent_imported": AgentImported,
    "agent_page": AgentPage,
    "agent_state": AgentState,
    "agent_version": AgentVersion,
    "agent_written": AgentWritten,
    "entity": Entity,
    "entity_definition": EntityDefinition,
    "external_response": ExternalResponse,
    "message": Message,
    "message_page": MessagePage,
    "message_sent": MessageSent,
    "new_message": NewMessage,
    "result_submission": ResultSubmission,
    "run": Run,
    "run_claim": RunClaim,
    "run_context": RunContext,
    "run_creation": RunCreation,
    "run_finish": RunFinish,
    "run_page": RunPage,
    "run_tool": RunTool,
    "space": Space,
    "space_creation": SpaceCreation,
    "space_page": SpacePage,
    "space_token": SpaceToken,
    "space_token_request": SpaceTokenRequest,
    "tool_input_delta": ToolInputDelta,
    "wait": Wait,
    "webhook_envelope": WebhookEnvelope,
}
