"""``GET /v1/tools``: the catalogue, as it is or as function definitions of a model's API."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict

from proofbox.contracts.function_names import anthropic_tool, openai_function
from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import Tool, catalogue
from proofbox.service import errors
from proofbox.service.api.identity import AnyCaller
from proofbox.service.api.openapi_responses import answer, json_content, problems
from proofbox.service.api.responses import JSON, model_response
from proofbox.service.api.services import InjectedServices
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


class FunctionList(BaseModel):
    """The same tools as function definitions, ready to be sent to a model."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tools: list[dict[str, Any]]
    """``format=openai``: ``{type, function: {name, description, parameters}}``; ``format=anthropic``:
    ``{name, description, input_schema}``."""


def _either() -> dict[str, Any]:
    content = json_content(ToolList)
    content[JSON]["schema"] = {"anyOf": [content[JSON]["schema"], json_content(FunctionList)[JSON]["schema"]]}
    return content


@router.get(
    "/v1/tools",
    operation_id="list_tools",
    summary="List the tools and their parameters",
    response_class=Response,
    responses={200: answer("The catalogue.", _either()), **problems(errors.InvalidRequestError)},
)
async def list_tools(
    _caller: AnyCaller,
    services: InjectedServices,
    format: Annotated[  # noqa: A002 - the name of the parameter
        Format,
        Query(
            description="`proofbox`: ids, `params` and what the image has. `openai`, `anthropic`: `tools` as these "
            "APIs take them, with names that they allow (`exec_tools__execute_code_python`) and `code` among the "
            "parameters; calls are accepted under these names."
        ),
    ] = "proofbox",
) -> Response:
    """Which tools a call may name, with the JSON Schema of each one's parameters in the order of the protocol."""
    image = _contents(await services.image.get())
    tools = [tool for tool in catalogue(image) if tool.tool_id not in services.absent_tools]
    if format == "openai":
        return model_response(FunctionList(tools=[openai_function(tool) for tool in tools]))
    if format == "anthropic":
        return model_response(FunctionList(tools=[anthropic_tool(tool) for tool in tools]))
    return model_response(ToolList(tools=tools, image=image, absent=dict(services.absent_tools)))


def _contents(inventory: Inventory) -> ImageContents | None:
    if not inventory.is_known:
        return None
    return ImageContents(
        python=inventory.python,
        libraries=dict(inventory.libraries),
        commands=list(inventory.commands),
        languages=list(inventory.languages),
    )
