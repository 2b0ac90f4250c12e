"""``GET /v1/tools``: the catalogue."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict

from contracts.tools import Tool, catalogue
from service.api.documented import json_answer, problems
from service.api.principal import AnyCaller
from service.api.responses import model_response

router = APIRouter(tags=["tools"])


class ToolList(BaseModel):
    """The tools of this service."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    tools: list[Tool]
    """Every tool, in a stable order."""


@router.get(
    "/v1/tools",
    operation_id="list_tools",
    summary="List the tools and their parameters",
    response_class=Response,
    responses={200: json_answer("The catalogue.", ToolList), **problems()},
)
async def list_tools(_caller: AnyCaller) -> Response:
    """Which tools a call may name, with the JSON Schema of each one's parameters in the order of the protocol."""
    return model_response(ToolList(tools=catalogue()))
