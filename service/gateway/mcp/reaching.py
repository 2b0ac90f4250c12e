"""An MCP server of a configuration with its templates filled in: secrets of the operator, for its host."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.configuration import McpServer
from proofbox.service.gateway.environment import Environment, UnknownEnvError
from proofbox.service.gateway.filling import RefusedInputError, TemplateFiller
from proofbox.service.gateway.mcp.port import McpFailedError, ReachedServer
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.web.urls import UrlRefusedError, WebUrl


def reach_server(server: McpServer, environment: Environment, project: str) -> tuple[ReachedServer, Redactor]:
    """Fill in the templates of a server.

    Args:
        server: the server as it is configured.
        environment: the operator's secrets.
        project: ``tenant/project``, for which they are resolved.

    Returns:
        The server, and what removes its secrets from whatever comes back.

    Raises:
        McpFailedError: ``unknown_env`` or ``mcp_unavailable``: it cannot be asked; the message has no secret.
    """
    filler = TemplateFiller({}, "", environment, project)
    try:
        url, host = filler.fill_url(server.url)
        headers = filler.fill_headers(server.headers, host)
        address = WebUrl.parse(url)
    except UnknownEnvError as exc:
        raise McpFailedError(GatewayCode.UNKNOWN_ENV, str(exc)) from exc
    except (RefusedInputError, UrlRefusedError) as exc:
        message = filler.redactor.redact_text(str(exc))
        raise McpFailedError(GatewayCode.MCP_UNAVAILABLE, f"its url cannot be asked: {message}") from exc
    reached = ReachedServer(str(address), server.transport, headers, server.timeout / 1000, project)
    return reached, filler.redactor
