"""Plans of what a service offers: its tools and its image. Imported on first use: models of tools take long."""

from typing import Any

from pydantic import BaseModel

from proofbox.client.api import Api, target
from proofbox.client.exchange import Plan, Request
from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import Tool


class _Catalogue(BaseModel):
    tools: list[Tool]
    image: ImageContents | None = None


class _Functions(BaseModel):
    tools: list[dict[str, Any]]


def list_tools(api: Api) -> Plan[list[Tool]]:
    """Ask for the tools of the service."""
    return api.parse(_Catalogue, (yield from api.request(Request("GET", target("tools"))))).tools


def read_image(api: Api) -> Plan[ImageContents | None]:
    """Ask for what the programs find in the sandbox image."""
    return api.parse(_Catalogue, (yield from api.request(Request("GET", target("tools"))))).image


def list_functions(api: Api, style: str) -> Plan[list[dict[str, Any]]]:
    """Ask for the tools as function definitions of a model's API."""
    reply = yield from api.request(Request("GET", target("tools", format=style)))
    return api.parse(_Functions, reply).tools
