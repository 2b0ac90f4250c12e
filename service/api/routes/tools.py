"""``GET /v1/tools``: the catalogue, as it is or as function definitions of a model's API."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from proofbox.contracts.function_names import anthropic_tool, openai_function
from proofbox.contracts.gateway.catalogue import RunTool as ListedTool
from proofbox.contracts.gateway.names import AgentId, RunId
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import Tool, catalogue
from proofbox.service import errors, gateway_errors
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.identity import AnyCaller
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.openapi_responses import answer, json_content, problems
from proofbox.service.api.responses import JSON, model_response
from proofbox.service.api.services import InjectedServices, Services, require_gateway
from proofbox.service.gateway.catalogue import (
    ToolSet,
    anthropic_run_tool,
    in_image,
    listed_tool,
    openai_tool,
    with_servers,
)
from proofbox.service.sandbox.image_inventory import Inventory

Format = Literal["proofbox", "openai", "anthropic"]
router = APIRouter(tags=["tools"])


class ToolList(BaseModel):
    """The tools of this service, and what the programs that they run find in the sandbox image."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tools: list[Tool]
    """Every tool, in a stable order."""
    image: ImageContents | None = None
    """Libraries, commands and languages of the sandbox image; null while the image cannot be asked."""
    absent: dict[str, str] = {}
    """Tools that are left out because their libraries are not installed: id and reason."""


class RunToolList(BaseModel):
    """The tools of a run or of an agent."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tools: list[ListedTool]
    """Every tool, those of the configuration first."""
    image: ImageContents | None = None
    """Libraries, commands and languages of the sandbox image; null while the image cannot be asked."""
    absent: dict[str, str] = {}
    """Tools of the service that are left out because their libraries are not installed: id and reason."""
    warnings: list[GatewayWarning] = []
    """With `agent_id`: what of the agent's MCP servers is left out, and why."""


class FunctionList(BaseModel):
    """The same tools as function definitions, ready to be sent to a model."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tools: list[dict[str, Any]]
    """``format=openai``: ``{type, function: {name, description, parameters}}``; ``format=anthropic``:
    ``{name, description, input_schema}``."""


def _either() -> dict[str, Any]:
    content = json_content(ToolList)
    others = [json_content(model)[JSON]["schema"] for model in (RunToolList, FunctionList)]
    content[JSON]["schema"] = {"anyOf": [content[JSON]["schema"], *others]}
    return content


@router.get(
    "/v1/tools",
    operation_id="list_tools",
    summary="List the tools and their parameters",
    response_class=Response,
    responses={
        200: answer("The catalogue.", _either()),
        **problems(
            gateway_errors.UnknownRunError,
            gateway_errors.UnknownAgentError,
            gateway_errors.McpUnavailableError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def list_tools(
    request: Request,
    principal: AnyCaller,
    services: InjectedServices,
    format: Annotated[  # noqa: A002 - the name of the parameter
        Format,
        Query(
            description="`proofbox`: ids, `params` and what the image has. `openai`, `anthropic`: `tools` as these "
            "APIs take them, with names that they allow (`exec_tools__execute_code_python`) and `code` among the "
            "parameters; calls are accepted under these names."
        ),
    ] = "proofbox",
    run_id: Annotated[
        RunId | None, Query(description="The tools of this run, with their names for the model.")
    ] = None,
    agent_id: Annotated[AgentId | None, Query(description="The tools of this agent's newest version.")] = None,
) -> Response:
    """Which tools a call may name, with the JSON Schema of each one's parameters in the order of the protocol.

    With `run_id` or `agent_id`, which need the scope `runs:read` or `agents:read`, these are the configured tools,
    those of MCP servers, the built-in ones, and those of the service. A run has the tools of servers with which it
    began; with `agent_id` the servers are asked, as when a run begins.
    """
    image = _contents(await services.image.get())
    packages = services.packages_of(principal)
    has_packages = packages is not None and packages.names != []
    tools = [
        tool for tool in catalogue(image, has_packages=has_packages) if tool.tool_id not in services.absent_tools
    ]
    if run_id is not None or agent_id is not None:
        of_agent, warnings = await _tools_of(request, services, run_id, agent_id)
        found = in_image(of_agent.tools, tools)
        if format == "openai":
            return model_response(FunctionList(tools=[openai_tool(tool) for tool in found]))
        if format == "anthropic":
            return model_response(FunctionList(tools=[anthropic_run_tool(tool) for tool in found]))
        listed = [listed_tool(tool) for tool in found]
        absent = dict(services.absent_tools)
        return model_response(RunToolList(tools=listed, image=image, absent=absent, warnings=warnings))
    if format == "openai":
        return model_response(FunctionList(tools=[openai_function(tool) for tool in tools]))
    if format == "anthropic":
        return model_response(FunctionList(tools=[anthropic_tool(tool) for tool in tools]))
    return model_response(ToolList(tools=tools, image=image, absent=dict(services.absent_tools)))


async def _tools_of(
    request: Request, services: Services, run_id: str | None, agent_id: str | None
) -> tuple[ToolSet, list[GatewayWarning]]:
    """The tools of a run, or those that a run of an agent would have that begins now, with what is left out.

    Raises:
        UnknownRunError, UnknownAgentError: there is none.
        McpUnavailableError: a server that the agent requires does not answer.
        MissingPermissionError: the key has not the scope.
    """
    caller, gateway = caller_of(request.scope["state"]), require_gateway(services)
    if run_id is not None:
        caller.require(Permission.RUNS_READ)
        run = await gateway.runs.find(caller.principal, run_id)
        return await gateway.catalogue.tools_of_run(caller.principal, run), []
    caller.require(Permission.AGENTS_READ)
    pinned = await gateway.pins.pin(caller.principal, agent_id or "")
    version = None if pinned is None else pinned.version
    found = await gateway.catalogue.tools_of(caller.principal, agent_id or "", version)
    if pinned is None:
        return found, []
    return with_servers(found, pinned.tools), [GatewayWarning.model_validate(each) for each in pinned.warnings]


def _contents(inventory: Inventory) -> ImageContents | None:
    if not inventory.is_known:
        return None
    return ImageContents(
        python=inventory.python,
        libraries=dict(inventory.libraries),
        commands=list(inventory.commands),
        languages=list(inventory.languages),
    )
