"""The route ``/mcp``: checks the origin, reads the body, and imports the SDK when the first request arrives."""

import asyncio
import importlib
from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers, QueryParams
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofbox.service.api.origin import require_own_origin
from proofbox.service.api.services import Services
from proofbox.service.errors import BodyTooLargeError
from proofbox.service.mcp.options import BODY_BYTES_MAX, McpOptions, McpSwitches

PATH = "/mcp"


def mcp_route(services: Services, options: McpOptions) -> Route:
    """Build the route: not a mount, which answers ``/mcp`` with a redirect to ``/mcp/``."""
    return Route(
        PATH, McpEndpoint(partial(_load_handler, services, options), services.public_url), methods=["POST"]
    )


def _load_handler(services: Services, options: McpOptions) -> ASGIApp:
    """Import the SDK, and build the application that serves requests."""
    server = importlib.import_module("proofbox.service.mcp.server")
    handler: ASGIApp = server.build_handler(services, options)
    return handler


class McpEndpoint:
    """ASGI application of the endpoint.

    The protocol allows other methods than POST to be refused: there is no session to delete, and no stream
    outside of a request.

    Args:
        load: builds the application that serves requests; called once, in a thread.
        public_url: the URL of the service for clients; empty if it is not known.
    """

    path = PATH
    """The name of the route in logs and metrics."""

    def __init__(self, load: Callable[[], ASGIApp], public_url: str = "") -> None:
        self._load = load
        self._public_url = public_url
        self._loading = asyncio.Lock()
        self._handler: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        scope["route"] = self
        require_own_origin(Headers(scope=scope), self._public_url)
        McpSwitches.parse(QueryParams(scope["query_string"]))
        # Read here, outside of the SDK's task groups, so that errors of the body are problem documents.
        body = await _read_body(Request(scope, receive))
        handler = self._handler or await self._loaded()
        await handler(scope, _Replayed(body, receive), send)

    async def _loaded(self) -> ASGIApp:
        async with self._loading:
            if self._handler is None:
                # More than a second of imports: in a thread, so that other requests are served meanwhile.
                self._handler = await asyncio.to_thread(self._load)
        return self._handler


class _Replayed:
    """``receive`` of a request whose body was read: gives it as one message, then waits for the disconnect."""

    __slots__ = ("_body", "_receive")

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def _read_body(request: Request) -> bytes:
    """Read the body.

    Raises:
        BodyTooLargeError: it is larger than an MCP request may be.
    """
    pieces, size_bytes = [], 0
    async for piece in request.stream():
        size_bytes += len(piece)
        if size_bytes > BODY_BYTES_MAX:
            raise BodyTooLargeError(
                f"body: too large (limit {BODY_BYTES_MAX} bytes); upload large files with get_upload_link"
            )
        pieces.append(piece)
    return b"".join(pieces)
