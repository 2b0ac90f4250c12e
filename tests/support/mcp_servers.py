"""Real MCP servers of the official SDK on the loopback interface, and one that sends what the test says."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resolve import AcceptedElicitation, Elicit, ElicitationResult, Resolve
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
ERAS = ("modern", "handshake", "sse")


@dataclass
class McpTestServer:
    """A server that runs.

    Attributes:
        port: where it listens.
        path: its endpoint.
        transport: how it is reached.
        messages: the JSON-RPC messages that came, in order.
        headers: the headers of each request, names in lower case.
    """

    port: int = 0
    path: str = "/mcp"
    transport: str = "http"
    messages: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def entry(self, name: str = "desk", host: str = "127.0.0.1", **more: Any) -> dict[str, Any]:
        """The server as an entry of ``mcp.servers``."""
        url = f"http://{host}:{self.port}{self.path}"
        return {"name": name, "url": url, "transport": self.transport, **more}

    @property
    def called(self) -> list[str]:
        """The names of the tools that were called."""
        return [message["params"]["name"] for message in self.messages if message.get("method") == "tools/call"]

    @property
    def methods(self) -> list[str]:
        """The methods that were asked for."""
        return [message["method"] for message in self.messages if "method" in message]


class _Recorder:
    """Notes each message; one without the newest revision answers its probe as servers before it do."""

    def __init__(self, app: Any, server: McpTestServer, *, has_probe: bool) -> None:
        self._app = app
        self._server = server
        self._has_probe = has_probe

    async def __call__(self, scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        message = json.loads(body)
        self._server.messages.append(message)
        names = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        self._server.headers.append(names)
        if not self._has_probe and message.get("method") == "server/discover":
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Bad Request: no session"})
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> Any:
            return given.pop(0) if given else await receive()

        await self._app(scope, replayed, send)


@asynccontextmanager
async def sdk_server(tools: MCPServer, era: str = "modern") -> AsyncIterator[McpTestServer]:
    """A server of the SDK: ``modern`` (revision 2026-07-28), ``handshake`` (before it), or ``sse``."""
    server = McpTestServer(path="/sse" if era == "sse" else "/mcp", transport="sse" if era == "sse" else "http")
    app = tools.sse_app() if era == "sse" else tools.streamable_http_app()
    recorded = _Recorder(app, server, has_probe=era == "modern")
    # With a configuration of its log it would change the loggers of the whole process, for later tests.
    listening = uvicorn.Config(recorded, host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=1)
    async with _running(uvicorn.Server(listening), server):
        yield server


@asynccontextmanager
async def _running(running: uvicorn.Server, server: McpTestServer) -> AsyncIterator[None]:
    # It listens at once: the first request waits until the server takes it.
    listening = running.config.bind_socket()
    listening.listen()
    server.port = listening.getsockname()[1]
    task = asyncio.create_task(running.serve([listening]))
    try:
        yield
    finally:
        running.should_exit = True
        await task
        listening.close()


class Amount(BaseModel):
    """What a person is asked for."""

    amount: int


class Sum(BaseModel):
    """A structured result."""

    total: int
    parts: list[int | None]


def desk() -> MCPServer:
    """A server with one tool of each kind."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool(description="Adds\x07 numbers", annotations=ToolAnnotations(title="Add", read_only_hint=True))
    def add(numbers: list[int | None]) -> Sum:
        return Sum(total=sum(number or 0 for number in numbers), parts=numbers)

    @server.tool(description="Says something")
    def say(text: str) -> CallToolResult:
        return CallToolResult(content=[TextContent(text=text), TextContent(text="that is all")])

    @server.tool(description="Deletes everything")
    def wipe() -> str:
        return "gone"

    @server.tool(description="Fails")
    def fail(why: str) -> str:
        raise ToolError(why)

    @server.tool(description="Draws")
    def draw() -> CallToolResult:
        picture = base64.b64encode(PNG).decode()
        return CallToolResult(
            content=[
                TextContent(text="a picture"),
                ImageContent(data=picture, mime_type="image/png"),
                AudioContent(data=base64.b64encode(b"RIFFsound").decode(), mime_type="audio/wav"),
                EmbeddedResource(
                    resource=BlobResourceContents(
                        uri="file:///a.bin", blob=base64.b64encode(b"\x00\x01").decode(), mime_type="odd thing"
                    )
                ),
                EmbeddedResource(resource=TextResourceContents(uri="file:///a.txt", text="and a note")),
                ResourceLink(uri="https://docs.example/a", name="a", mime_type="text/html"),
            ]
        )

    async def ask_amount() -> Elicit[Amount]:
        return Elicit("How much?", Amount)

    @server.tool(description="Pays what a person says")
    async def pay(to: str, amount: Annotated[ElicitationResult[Amount], Resolve(ask_amount)]) -> str:
        if isinstance(amount, AcceptedElicitation):
            return f"paid {amount.data.amount} to {to}"
        return f"not paid: {amount.action}"

    return server


Reply = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]


@dataclass
class RawServer(McpTestServer):
    """A server of the newest revision that answers what the test says, valid or not.

    Attributes:
        tools: what it lists.
        results: the results of its tools by name; a function gets the parameters of the call.
        extra: more fields of its list, such as ``ttlMs``.
        raw: in place of a result of ``tools/call``: the whole HTTP response.
        held: what a call waits for before it is answered; `arrived` is set when one waits.
    """

    tools: list[dict[str, Any]] = field(default_factory=list)
    results: dict[str, Reply] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    raw: bytes | None = None
    held: asyncio.Event | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
                names = {name.lower(): value.strip() for name, _, value in lines}
                body = await reader.readexactly(int(names.get("content-length", 0)))
                message = json.loads(body)
                self.headers.append(names)
                self.messages.append(message)
                if message["method"] == "tools/call" and self.held is not None:
                    self.arrived.set()
                    await self.held.wait()
                if message["method"] == "tools/call" and self.raw is not None:
                    writer.write(self.raw)
                    break
                text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": self._result(message)}).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text)
                )
                writer.write(text)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _result(self, message: dict[str, Any]) -> dict[str, Any]:
        common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if message["method"] == "server/discover":
            return {**common, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        if message["method"] == "tools/list":
            return {**common, "tools": self.tools, **self.extra}
        reply = self.results.get(message["params"]["name"], {"content": []})
        return {"resultType": "complete", **(reply(message["params"]) if callable(reply) else reply)}


def raw_tool(name: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A tool as a raw server lists it."""
    return {"name": name, "description": f"Does {name}", "inputSchema": schema or {"type": "object"}, **more}


@asynccontextmanager
async def raw_server(*tools: dict[str, Any]) -> AsyncIterator[RawServer]:
    """A server that answers what the test says."""
    server = RawServer(tools=list(tools))
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


async def begin_with(
    loop: Any, *servers: dict[str, Any], tools: tuple[dict[str, Any], ...] = (), **fields: Any
) -> Any:
    """Writes the agent of a loop with MCP servers and makes a run of it; the response of the run."""
    await write_with(loop, *servers, tools=tools)
    response = await loop.web.post("/v1/runs", json={"agent_id": "helper", **fields})
    if response.status_code == 201:
        loop.run = response.json()
    return response


async def write_with(
    loop: Any, *servers: dict[str, Any], tools: tuple[dict[str, Any], ...] = (), agent_id: str = "helper"
) -> None:
    """Writes an agent with MCP servers."""
    document = {
        "version": "2",
        "agent": {"name": agent_id},
        "tools": list(tools),
        "mcp": {"servers": list(servers)},
    }
    response = await loop.web.put(f"/v1/agents/{agent_id}", json=document)
    assert response.status_code in (200, 201), response.text


async def mcp_tools_of(loop: Any) -> dict[str, dict[str, Any]]:
    """The tools of MCP servers of a loop's run, by their names for the model."""
    response = await loop.web.get("/v1/tools", params={"run_id": loop.run["run_id"]})
    assert response.status_code == 200, response.text
    return {tool["name"]: tool for tool in response.json()["tools"] if tool["source"] == "mcp"}
