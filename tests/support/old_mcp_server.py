"""An MCP server of the older handshake that answers calls and streams with what the test says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.mcp_servers import raw_tool
from tests.support.web_server import response


def events(*messages: Any) -> bytes:
    """A stream of events with messages, which then ends."""
    lines = b"".join(b"data: " + json.dumps(message).encode() + b"\n\n" for message in messages)
    return response(lines, "text/event-stream")


@dataclass
class OldMcpServer:
    """A server with the tool ``say``.

    Attributes:
        port: where it listens.
        called: its answer to a call: the whole HTTP response; None: an empty result.
        stream: its answer to each GET: the whole HTTP response.
        requests: the methods of the HTTP requests that came, in order.
    """

    port: int = 0
    called: bytes | None = None
    stream: bytes = response(b"retry: 0\n\n", "text/event-stream")
    requests: list[str] = field(default_factory=list)

    def entry(self, **more: Any) -> dict[str, Any]:
        """The server as an entry of ``mcp.servers``."""
        return {"name": "desk", "url": f"http://127.0.0.1:{self.port}/mcp", "transport": "http", **more}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            self.requests.append(head.split(" ", 1)[0].upper())
            size = int(head.partition("content-length:")[2].split("\r\n")[0] or 0)
            body = await reader.readexactly(size)
            writer.write(self._answer(json.loads(body)) if body else self.stream)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _answer(self, message: dict[str, Any]) -> bytes:
        method = message.get("method")
        if method is None or "id" not in message:
            return response(b"", "text/plain", status="202 Accepted")
        if method == "tools/call" and self.called is not None:
            return self.called
        about = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "old", "version": "1"}}
        results: dict[str, Any] = {
            "initialize": {**about, "capabilities": {"tools": {}}},
            "tools/list": {"tools": [raw_tool("say")]},
            "tools/call": {"content": []},
        }
        reply: dict[str, Any] = {"error": {"code": -32601, "message": "unknown"}}
        if method in results:
            reply = {"result": results[method]}
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}).encode()
        session = {"mcp_session_id": "1"} if method == "initialize" else {}
        return response(text, "application/json", **session)


@asynccontextmanager
async def old_mcp_server() -> AsyncIterator[OldMcpServer]:
    """A server that runs."""
    server = OldMcpServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
