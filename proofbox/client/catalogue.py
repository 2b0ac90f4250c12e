"""Plans of what a service offers: its tools, its image, its health."""

from typing import Any

from pydantic import BaseModel

from proofbox.client.api import Api, target
from proofbox.client.errors import ProblemError, ProofboxError
from proofbox.client.exchange import Plan, Request, TransportFailure, send
from proofbox.client.results import Health
from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import Tool

_OK = 200


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


def read_health(api: Api) -> Plan[Health]:
    """Ask once whether the service can take a call.

    Raises:
        UnreachableError: there was no answer.
        UnexpectedResponseError: the answer is not one of Proofbox.
    """
    try:
        reply = yield from send(Request("GET", "/readyz"))
    except TransportFailure as exc:
        raise api.unreachable(exc) from None
    if reply.status == _OK:
        return Health(is_ready=True)
    error: ProofboxError = api.error(reply)
    if isinstance(error, ProblemError):
        return Health(is_ready=False, problem=error.problem)
    raise error
