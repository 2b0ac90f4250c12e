"""The two operations on MCP servers, by the official SDK: one connection each, entered and left in one task.

The SDK's own check of results is never used: it runs a server's patterns in an engine that backtracks, on the event
loop. Imported at the first use of a server.
"""

import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, TypeVar

import anyio
import httpx2
import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from proofbox.contracts.codes import WebCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.gateway.mcp.port import (
    AskedForm,
    AskedInput,
    EncodedFile,
    InputAnswers,
    McpFailedError,
    OnEffect,
    ReachedServer,
    ServerAnswer,
    ServerTool,
    ToolListing,
    ToolRequest,
)
from proofbox.service.mcp_sources.client import Reach
from proofbox.service.mcp_sources.limits import VALUES_MAX
from proofbox.service.mcp_sources.messages import bound_messages
from proofbox.service.mcp_sources.transport import ByteBudget, CheckedTransport
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

T = TypeVar("T")
_PAGES_MAX = 50
_VALUE_BYTES = 8  # of JSON for each comma or bracket of a result
_CLIENT = types.Implementation(name="proofbox", version="1")
_HEADERS = {"User-Agent": "Mozilla/5.0 (compatible; proofbox)", "Accept-Encoding": "identity"}
_RESULT: TypeAdapter[types.CallToolResult | types.InputRequiredResult] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)
_LOST = frozenset({types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT})
_ERROR_STATUS = 400
# What they log repeats bodies and addresses of requests, which may have secrets.
_SILENT = logging.CRITICAL + 1
for _name in ("mcp.client", "client", "mcp.shared", "httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(_SILENT)


async def list_tools(reach: Reach, server: ReachedServer) -> ToolListing:
    """See `McpClient.list_tools`."""
    budget = ByteBudget(reach.list_bytes_max, VALUES_MAX)

    async def work(session: ClientSession) -> ToolListing:
        tools: list[ServerTool] = []
        ttl_s: float | None = None
        async for page in _pages(session):
            tools += [_server_tool(tool) for tool in page.tools]
            if session.protocol_version in MODERN_PROTOCOL_VERSIONS:
                ttl_s = min(page.ttl_ms / 1000, ttl_s if ttl_s is not None else page.ttl_ms / 1000)
        return ToolListing(tools, ttl_s, budget.received)

    return await _Operation(reach, server, budget, lambda _effect: None).run(work)


async def call_tool(
    reach: Reach, server: ReachedServer, request: ToolRequest, on_effect: OnEffect
) -> ServerAnswer | AskedInput:
    """See `McpClient.call_tool`."""
    budget = ByteBudget(reach.result_bytes_max, min(reach.bytes_max // _VALUE_BYTES, VALUES_MAX))
    given = request.answers

    async def work(session: ClientSession) -> ServerAnswer | AskedInput:
        if request.is_listed_first:
            async for page in _pages(session):
                if any(tool.name == request.name for tool in page.tools):
                    break
        params = types.CallToolRequestParams(
            name=request.name,
            arguments=dict(request.arguments),
            input_responses=None if given is None else _responses(given),
            request_state=None if given is None else given.state,
        )
        # Not `session.call_tool`, which checks the result itself.
        result = await session.send_request(types.CallToolRequest(params=params), _RESULT)
        return _asked(result) if isinstance(result, types.InputRequiredResult) else _answer(result)

    return await _Operation(reach, server, budget, on_effect).run(work)


class _Operation:
    """One connection to a server."""

    def __init__(self, reach: Reach, server: ReachedServer, budget: ByteBudget, on_effect: OnEffect) -> None:
        self._reach = reach
        self._server = server
        self._budget = budget
        self._on_effect = on_effect
        self._url = WebUrl.parse(server.url)
        self._is_connected = False

    async def run(self, work: Callable[[ClientSession], Awaitable[T]]) -> T:
        """Connects, works, and leaves.

        Raises:
            McpFailedError: there is no result.
        """
        stream_url = self._server.url if self._server.transport == "sse" else None
        transport = CheckedTransport(self._reach.network, self._tls(), self._url, self._budget, stream_url)
        done: list[T] = []
        try:
            with anyio.fail_after(self._server.timeout_s) as scope:
                transport.on_failure(scope.cancel)
                await self._work(transport, work, done)
        except Exception as exc:  # the SDK raises groups of whatever its tasks met
            if not done:  # else only the end of the session has failed
                raise self._failure(exc, transport) from exc
        finally:
            for effect in transport.effects:
                self._on_effect(effect)
        if not done:  # the operation was ended by its failure
            raise self._failure(RuntimeError("ended"), transport)
        return done[0]

    def _tls(self) -> ssl.SSLContext | None:
        if self._url.scheme != "https":
            return None
        try:
            return self._reach.tls()
        except OSError as exc:
            message = f"{self._url.host} was not asked: the certificates of this service cannot be read"
            raise McpFailedError(GatewayCode.MCP_UNAVAILABLE, message) from exc

    async def _work(
        self, transport: CheckedTransport, work: Callable[[ClientSession], Awaitable[T]], done: list[T]
    ) -> None:
        server = self._server
        async with AsyncExitStack() as stack:
            build_http = partial(self._build_http, transport)
            if server.transport == "sse":
                streams = sse_client(server.url, None, server.timeout_s, server.timeout_s, build_http)
            else:
                http = await stack.enter_async_context(build_http())
                streams = streamable_http_client(
                    server.url, http_client=http, max_sse_event_size=self._budget.bytes_max
                )
            # The transport of server-sent events is older than any revision that has a probe.
            mode = "legacy" if server.transport == "sse" else "auto"
            client = Client(
                bound_messages(streams, transport),
                mode=mode,
                cache=None,
                client_info=_CLIENT,
                elicitation_callback=_decline,
            )
            async with client:
                self._is_connected = True
                done.append(await work(client.session))

    def _build_http(self, transport: CheckedTransport, **_options: Any) -> httpx2.AsyncClient:
        """The HTTP client of the SDK, whose own options for it are those of this operation."""
        headers = httpx2.Headers(_HEADERS)
        for name, value in self._server.headers:
            headers.update({name.encode("ascii"): value.encode("latin-1")})
        timeout = httpx2.Timeout(self._server.timeout_s)
        return httpx2.AsyncClient(transport=transport, headers=headers, timeout=timeout, trust_env=False)

    def _failure(self, exc: Exception, transport: CheckedTransport) -> McpFailedError:
        """Why there is no result."""
        host, may_have_run = self._url.host, "; it may have had effects" if self._is_connected else ""
        if (failure := transport.failure) is not None:
            if failure.code is WebCode.TOO_LARGE:
                return McpFailedError(GatewayCode.RESPONSE_TOO_LARGE, failure.message)
            return McpFailedError(GatewayCode.MCP_UNAVAILABLE, failure.message)
        for leaf in _leaves(exc):
            if isinstance(leaf, McpFailedError):
                return leaf
            if isinstance(leaf, WebFailedError):
                return McpFailedError(GatewayCode.MCP_UNAVAILABLE, leaf.message)
            if isinstance(leaf, TimeoutError):
                message = f"{host} did not answer within {self._server.timeout_s:g} s{may_have_run}"
                return McpFailedError(GatewayCode.MCP_UNAVAILABLE, message)
            if isinstance(leaf, MCPError) and self._is_connected and leaf.code not in _LOST:
                message = f"the server refused the call: {leaf.message} ({leaf.code})"
                return McpFailedError(GatewayCode.MCP_TOOL_ERROR, message)
            if isinstance(leaf, ValidationError | ValueError) and self._is_connected:
                message = "the result does not fit the protocol"
                return McpFailedError(GatewayCode.MCP_TOOL_ERROR, message)
        status = transport.last_status
        if status is not None and status >= _ERROR_STATUS:
            return McpFailedError(GatewayCode.MCP_UNAVAILABLE, f"{host} answered with HTTP status {status}")
        message = f"{host} broke off or speaks no MCP{may_have_run}"
        return McpFailedError(GatewayCode.MCP_UNAVAILABLE, message)


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        for inner in exc.exceptions:
            yield from _leaves(inner)
    else:
        yield exc


async def _pages(session: ClientSession) -> Any:
    """The pages of a server's list."""
    cursor: str | None = None
    for _ in range(_PAGES_MAX):
        params = None if cursor is None else types.PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=params)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return


async def _decline(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answers a server of the older handshake, whose question cannot outlive its connection."""
    del context, params
    return types.ElicitResult(action="decline")


def _server_tool(tool: types.Tool) -> ServerTool:
    hints: dict[str, Any] = {}
    if tool.annotations is not None:
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True, mode="json")
    if tool.title:
        hints["title"] = tool.title
    return ServerTool(tool.name, tool.description or "", tool.input_schema, tool.output_schema, hints)


def _responses(given: InputAnswers) -> dict[str, Any]:
    return {
        key: types.ElicitResult(action=action, content=given.contents.get(key))
        for key, action in given.actions.items()
    }


def _asked(result: types.InputRequiredResult) -> AskedInput:
    """What a server asks for.

    Raises:
        McpFailedError: it asks for what is not offered: a model, or the folders of a client.
    """
    forms, others = {}, []
    for key, asked in (result.input_requests or {}).items():
        if not isinstance(asked, types.ElicitRequest):
            raise McpFailedError(
                GatewayCode.MCP_TOOL_ERROR, f"the server asks for {asked.method}, which is not offered"
            )
        if isinstance(asked.params, types.ElicitRequestFormParams):
            forms[key] = AskedForm(asked.params.message, asked.params.requested_schema)
        else:
            others.append(key)
    return AskedInput(forms, others, result.request_state)


def _answer(result: types.CallToolResult) -> ServerAnswer:
    texts: list[str] = []
    files: list[EncodedFile] = []
    links: list[dict[str, Any]] = []
    for part in result.content:
        if isinstance(part, types.TextContent):
            texts.append(part.text)
        elif isinstance(part, types.ImageContent | types.AudioContent):
            files.append(EncodedFile(part.data, part.mime_type))
        elif isinstance(part, types.ResourceLink):
            links.append(
                {"uri": part.uri, "name": part.name, "description": part.description, "mime": part.mime_type}
            )
        elif isinstance(part.resource, types.TextResourceContents):
            texts.append(part.resource.text)
        else:
            files.append(EncodedFile(part.resource.blob, part.resource.mime_type or ""))
    has_structured = "structured_content" in result.model_fields_set
    return ServerAnswer(result.is_error, has_structured, result.structured_content, texts, files, links)
