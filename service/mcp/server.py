"""The MCP server over the services of the routes, for both eras of the protocol."""

import logging
from dataclasses import dataclass
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
)
from starlette.types import ASGIApp, Receive, Scope, Send

from proofbox.service.api.services import Services
from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.errors import ServiceError
from proofbox.service.mcp.actions import Actions
from proofbox.service.mcp.arguments import InvalidArgumentsError, parse_arguments
from proofbox.service.mcp.errors import protocol_error, result_of_error
from proofbox.service.mcp.exchange import exchange_of
from proofbox.service.mcp.options import BODY_BYTES_MAX, McpOptions
from proofbox.service.mcp.results import error_result, without_structure
from proofbox.service.mcp.tools import McpTool, all_tools
from proofbox.service.sandbox.image_inventory import Inventory

Context = ServerRequestContext[Any]
_TOOLS_FRESH_MS = 60_000
_TEMPLATES_FRESH_MS = 3_600_000
_INSTRUCTIONS = (
    "Proofbox runs programs and renders documents in fresh sandboxes without network. Each result names its "
    "conversation: "
    "give it in further calls, which then find the files of the earlier ones. Promise the files that the user "
    "shall get "
    "(files_promised); each is opened and checked. Results have no links: get_download_link gives one for the "
    "user, "
    "get_upload_link takes large files. A call that takes long returns a handle: ask get_result."
)
_TEMPLATE = ResourceTemplate(
    uri_template="proofbox://{conversation}/{+path}",
    name="file",
    title="File of a conversation",
    description="A file by its path, such as turn_1/files/report.md: text, or a blob of at most 512 KiB.",
)


def build_handler(services: Services, options: McpOptions) -> ASGIApp:
    """Build the ASGI application that serves requests of the endpoint."""
    return stateless_app(build_server(services, options))


def stateless_app(server: Server[Any]) -> ASGIApp:
    """Build the ASGI application of a server of the SDK.

    Each request has a session manager of its own, so all that runs for a request ends with it.
    """
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it logs each session, which here is each request
    # Host and Origin are checked before.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=security, max_request_body_size=BODY_BYTES_MAX
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    return handle


def build_server(services: Services, options: McpOptions) -> Server[Any]:
    """Build the server of the SDK with its handlers."""
    handlers = _Handlers(services, options)
    return Server(
        "proofbox",
        version=options.release,
        title="Proofbox",
        instructions=_INSTRUCTIONS,
        cache_hints={
            "tools/list": CacheHint(_TOOLS_FRESH_MS, "public"),
            "resources/templates/list": CacheHint(_TEMPLATES_FRESH_MS, "public"),
            "resources/list": CacheHint(_TEMPLATES_FRESH_MS, "public"),
            "resources/read": CacheHint(0, "private"),
            "server/discover": CacheHint(_TEMPLATES_FRESH_MS, "public"),
        },
        # Validates headers that mirror arguments; no tool has any.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


@dataclass(frozen=True, slots=True)
class _Catalogue:
    """The tools for an image.

    Attributes:
        image: what the image has.
        tools: the tools by name.
        listed: the result of ``tools/list``: its schemas take a while to make.
        bare: the same without schemas of structured content.
    """

    image: Inventory
    tools: dict[str, McpTool]
    listed: ListToolsResult
    bare: ListToolsResult


class _Handlers:
    """The handlers of the protocol's methods."""

    def __init__(self, services: Services, options: McpOptions) -> None:
        self._services = services
        self._options = options
        self._actions = Actions(services, options)
        self._catalogue: _Catalogue | None = None

    async def list_tools(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Answer ``tools/list``."""
        del params
        exchange, catalogue = exchange_of(context, self._services.public_url), await self._current()
        return catalogue.listed if exchange.switches.structured_content else catalogue.bare

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        """Answer ``tools/call``."""
        exchange = exchange_of(context, self._services.public_url)
        tool = (await self._current()).tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"unknown tool '{params.name[:80]}'; tools/list names all")
        try:
            result = await tool.run(exchange, parse_arguments(tool.arguments, params.arguments))
        except InvalidArgumentsError as exc:
            return error_result(str(exc))
        except ServiceError as exc:
            return result_of_error(exc, exchange.request_id)
        return result if exchange.switches.structured_content else without_structure(result)

    async def list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Answer ``resources/list``: files have no list across conversations; ``list_files`` has one of each."""
        del context, params
        return ListResourcesResult(resources=[])

    async def list_templates(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Answer ``resources/templates/list``."""
        del context, params
        return ListResourceTemplatesResult(resource_templates=[_TEMPLATE])

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Answer ``resources/read``."""
        exchange = exchange_of(context, self._services.public_url)
        try:
            return await self._actions.files.read_resource(exchange, str(params.uri))
        except ServiceError as exc:
            problem = problem_of(exc, exchange.request_id)
            raise protocol_error(problem, retry_after_s(exc, problem)) from exc

    async def _current(self) -> _Catalogue:
        """Return the catalogue; a new one when the image has answered what it has."""
        image = await self._services.image.get()
        known = self._catalogue
        if known is None or known.image is not image:
            tools = all_tools(self._actions.all(), self._options, image)
            listed = [tool.as_tool() for tool in tools.values()]
            bare = [tool.model_copy(update={"output_schema": None}) for tool in listed]
            known = self._catalogue = _Catalogue(
                image, tools, ListToolsResult(tools=listed), ListToolsResult(tools=bare)
            )
        return known
