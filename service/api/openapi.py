"""The OpenAPI document: the routes, with the models of the contracts as components."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from proofbox.contracts.artifact_lists import ArtifactPage
from proofbox.contracts.artifacts import ArtifactSpec
from proofbox.contracts.conversations import ConversationPage, FilePage
from proofbox.contracts.deletions import DeletionLine
from proofbox.contracts.events import OutputEvent, QueuedEvent, StartedEvent
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.gateway.agents import (
    AgentPage,
    AgentVersion,
    AgentWritten,
    SigningSecret,
    SigningSecretRequest,
)
from proofbox.contracts.gateway.configuration import AgentConfiguration
from proofbox.contracts.gateway.external import ExternalResponse, WebhookEnvelope
from proofbox.contracts.gateway.imports import AgentImport, AgentImported
from proofbox.contracts.gateway.messages import (
    Message,
    MessagePage,
    MessageSent,
    NewMessage,
    ResultAccepted,
    ToolInputDelta,
    ToolInputLength,
)
from proofbox.contracts.gateway.records import AgentState
from proofbox.contracts.gateway.runs import (
    CallAnsweredEvent,
    Run,
    RunClaim,
    RunContext,
    RunCreation,
    RunEvent,
    RunFinish,
    RunHeartbeat,
    RunPage,
)
from proofbox.contracts.gateway.space_events import (
    MemberEvent,
    MessageCreatedEvent,
    MessageDeltaEvent,
    ResetEvent,
    RunStatusEvent,
    ToolCallEvent,
    ToolInputDeltaEvent,
)
from proofbox.contracts.gateway.spaces import (
    Entity,
    EntityDefinition,
    EntityPage,
    Space,
    SpaceChange,
    SpaceCreation,
    SpacePage,
    SpaceToken,
    SpaceTokenRequest,
)
from proofbox.contracts.gateway.waits import ResultSubmission, Wait
from proofbox.contracts.operations import CallerInfo, CallPage, KeyList, ServiceStatus
from proofbox.contracts.previews import FileDifference, TablePreview, VersionPage
from proofbox.contracts.problems import Problem
from proofbox.contracts.provenance import AuditLine, RerunReport
from proofbox.contracts.render_tools import RENDER_PARAMS
from proofbox.contracts.timeline import AlignedTimeline, Sources, TimelineAppend, TimelineAppended, TimelinePage
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Attachment, CallStatus, ToolCallResponse
from proofbox.service.api.responses import PROBLEM_JSON
from proofbox.service.api.routes.health import Health, Readiness
from proofbox.service.api.routes.tools import FunctionList, RunToolList, ToolList

AGENT_MODELS: tuple[type[BaseModel], ...] = (
    AgentConfiguration,
    AgentImport,
    AgentImported,
    AgentPage,
    AgentState,
    AgentVersion,
    AgentWritten,
)
WAIT_MODELS: tuple[type[BaseModel], ...] = (
    ExternalResponse,
    ResultAccepted,
    ResultSubmission,
    SigningSecret,
    SigningSecretRequest,
    Wait,
    WebhookEnvelope,
)
SPACE_MODELS: tuple[type[BaseModel], ...] = (
    Entity,
    EntityDefinition,
    EntityPage,
    MemberEvent,
    Message,
    MessageCreatedEvent,
    MessageDeltaEvent,
    MessagePage,
    MessageSent,
    NewMessage,
    ResetEvent,
    RunStatusEvent,
    Space,
    SpaceChange,
    SpaceCreation,
    SpacePage,
    SpaceToken,
    SpaceTokenRequest,
    ToolCallEvent,
    ToolInputDelta,
    ToolInputDeltaEvent,
    ToolInputLength,
)
# Deletion lines, and those from `ArtifactSpec` on: named in descriptions only, but generators need them.
RUN_MODELS: tuple[type[BaseModel], ...] = (
    CallAnsweredEvent,
    Run,
    RunClaim,
    RunContext,
    RunCreation,
    RunEvent,
    RunFinish,
    RunHeartbeat,
    RunPage,
    RunToolList,
)
_COMPONENTS: tuple[type[BaseModel], ...] = (
    AlignedTimeline,
    ArtifactPage,
    Attachment,
    AuditLine,
    CallPage,
    CallStatus,
    CallerInfo,
    ConversationPage,
    DeletionLine,
    FileDifference,
    FilePage,
    FunctionList,
    Health,
    KeyList,
    Problem,
    Readiness,
    RerunReport,
    ServiceStatus,
    Sources,
    TablePreview,
    TimelineAppend,
    TimelineAppended,
    TimelinePage,
    ToolCallRequest,
    ToolCallResponse,
    ToolList,
    VersionPage,
    ArtifactSpec,
    OutputEvent,
    QueuedEvent,
    StartedEvent,
    ExecParams,
    *RENDER_PARAMS.values(),
    *AGENT_MODELS,
    *SPACE_MODELS,
    *RUN_MODELS,
    *WAIT_MODELS,
)


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document of an application's routes.

    Bodies are read and written by the routes themselves, so the framework knows no model of theirs: the routes
    refer to the components, and these come from the contracts, each once.
    """
    described = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
        tags=app.openapi_tags,
        license_info=app.license_info,
    )
    _, schemas = models_json_schema(
        [(model, "validation") for model in _COMPONENTS], ref_template="#/components/schemas/{model}"
    )
    described["components"] = {
        "schemas": schemas["$defs"],
        "securitySchemes": described["components"]["securitySchemes"],
    }
    # The framework gives a route with parameters a 422 of its own shape; the routes describe their own.
    for item in described["paths"].values():
        for operation in item.values():
            if PROBLEM_JSON not in operation["responses"].get("422", {}).get("content", {PROBLEM_JSON: {}}):
                del operation["responses"]["422"]
            for parameter in operation.get("parameters", []):
                parameter["schema"] = _without_null(parameter["schema"])
    return described


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter: a parameter without a value is left out; queries and headers have no ``null``."""
    kinds = [kind for kind in schema.get("anyOf", []) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{key: value for key, value in schema.items() if key != "anyOf"}}
