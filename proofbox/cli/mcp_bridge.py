"""Passes MCP messages between standard input and output and the endpoint ``/mcp`` of a service.

Each request is a POST of its own, in the era of the protocol that its client speaks; its answers and progress are
written as they arrive. A cancelled request is a closed connection.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any, BinaryIO
from urllib.parse import urlencode

import httpx2

from proofbox.client.api import Api
from proofbox.client.transport import connection_settings

LINE_BYTES_MAX = 32 * 1024 * 1024
CLOSING_CANCELS = {"Proofbox-Closing-Cancels": "1"}
"""Reports to the service that a closed connection is a cancelled request also in the older era of the protocol."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter of a method that the header ``Mcp-Name`` repeats."""
_SAFE_HEADER = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_PARSE_ERROR, _INVALID_REQUEST, _INTERNAL_ERROR = -32700, -32600, -32603
_LAST_ANSWERS_S = 5.0
_TIMEOUT = httpx2.Timeout(120.0, connect=10.0)  # the service sends a comment every 15 s
_ACCEPTED = 202


async def serve(url: str, api_key: str | None, switched_off: Sequence[str] = ()) -> None:
    """Serve until standard input ends.

    Args:
        url: the URL of the service.
        api_key: the key for it; None without.
        switched_off: names of parts that results do not have.
    """
    with _protocol_streams() as (given, taken):
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # One request a connection that waits: a host may run many calls at the same time.
        limits = httpx2.Limits(max_connections=None)
        settings = http_settings(url)
        async with httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT, limits=limits, **settings) as http:
            query = urlencode(dict.fromkeys(switched_off, "false"))
            endpoint = f"{url.rstrip('/')}/mcp{'?' if query else ''}{query}"
            await McpBridge(http, endpoint, taken).run(_lines(given))


def http_settings(url: str) -> dict[str, Any]:
    """Which proxies and certificates a connection uses: as the client of the other commands."""
    settings = connection_settings(Api(url, headers={}, timeout_s=0, retries=0))
    return {name: settings[name] for name in ("trust_env", "verify")}


class McpBridge:
    """One connection of a host.

    Args:
        http: the HTTP client, with the key.
        endpoint: the URL of the service's endpoint.
        out: where answers are written, a line each.
    """

    def __init__(self, http: httpx2.AsyncClient, endpoint: str, out: BinaryIO) -> None:
        self._http = http
        self._endpoint = endpoint
        self._out = out
        self._version: str | None = None
        self._running: dict[str | int, asyncio.Task[None]] = {}

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Serve the messages of a host, and what is still running at their end for a moment."""
        async for line in lines:
            if line.strip():
                await self._receive(line)
        if self._running:
            await asyncio.wait(self._running.values(), timeout=_LAST_ANSWERS_S)
        for task in self._running.values():
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _receive(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send_error(None, _PARSE_ERROR, "the line is not JSON")
            return
        if not isinstance(message, dict):
            self._send_error(None, _INVALID_REQUEST, "a line is one JSON-RPC message; send an object")
            return
        method, request_id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return  # an answer: the service asks nothing
        if method == "notifications/cancelled":
            self._cancel(message)
        elif not isinstance(request_id, str | int):
            await self._post(message, None)
        elif method == "initialize":
            await self._post(message, request_id)  # its answer decides the version of what follows
        else:
            task = asyncio.create_task(self._post(message, request_id))
            self._running[request_id] = task
            task.add_done_callback(lambda ended: self._forget(request_id, ended))

    def _forget(self, request_id: str | int, ended: asyncio.Task[None]) -> None:
        if self._running.get(request_id) is ended:
            del self._running[request_id]

    def _cancel(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        request_id = params.get("requestId") if isinstance(params, dict) else None
        task = self._running.get(request_id) if isinstance(request_id, str | int) else None
        if task is not None:
            task.cancel()

    async def _post(self, message: dict[str, Any], request_id: str | int | None) -> None:
        """Send a message, and write what the service answers."""
        try:
            async with self._http.stream(
                "POST", self._endpoint, content=json.dumps(message).encode(), headers=self._headers(message)
            ) as response:
                await self._relay(response, message, request_id)
        except httpx2.HTTPError as exc:
            reason = str(exc) or type(exc).__name__
            text = f"the service at {self._endpoint} does not answer ({reason}); start it with 'proofbox serve'"
            self._send_error(request_id, _INTERNAL_ERROR, text)
        except ValueError:
            text = f"the service at {self._endpoint} sent an event that is not a JSON-RPC message"
            self._send_error(request_id, _INTERNAL_ERROR, text)

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        method, params = message["method"], message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Method": _header_value(method),
            **CLOSING_CANCELS,
        }
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        version = version if isinstance(version, str) else self._version
        if version is not None and method != "initialize":
            headers["MCP-Protocol-Version"] = _header_value(version)
        name = params.get(_NAMES.get(method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = _header_value(name)
        return headers

    async def _relay(
        self, response: httpx2.Response, message: dict[str, Any], request_id: str | int | None
    ) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            answered = False
            async for event in httpx2.EventSource(response, max_event_size=LINE_BYTES_MAX):
                if event.data:
                    received = _parse_event(event.data)
                    answered = answered or "id" in received
                    self._answer(message, received)
            if not answered:
                self._send_error(request_id, _INTERNAL_ERROR, "the connection to the service was lost")
            return
        body = await response.aread()
        if response.status_code == _ACCEPTED:
            return
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if isinstance(answer, dict) and "jsonrpc" in answer:
            self._answer(message, {**answer, "id": request_id} if answer.get("id") is None else answer)
            return
        detail = answer.get("detail") if isinstance(answer, dict) else None
        text = detail if isinstance(detail, str) else f"the service answers HTTP {response.status_code}"
        self._send_error(request_id, _INTERNAL_ERROR, text, answer if isinstance(answer, dict) else None)

    def _answer(self, message: dict[str, Any], answer: dict[str, Any]) -> None:
        if message["method"] == "initialize" and isinstance(answer.get("result"), dict):
            self._version = answer["result"].get("protocolVersion")
        self._write(answer)

    def _send_error(
        self, request_id: str | int | None, code: int, text: str, data: dict[str, Any] | None = None
    ) -> None:
        error = {"code": code, "message": text, **({"data": data} if data else {})}
        self._write({"jsonrpc": "2.0", "id": request_id, "error": error})

    def _write(self, message: dict[str, Any]) -> None:
        self._out.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self._out.flush()


def _parse_event(text: str) -> dict[str, Any]:
    """The message of an event.

    Raises:
        ValueError: it is not a JSON object.
    """
    try:
        message = json.loads(text)
    except RecursionError as exc:
        raise ValueError(text) from exc
    if not isinstance(message, dict):
        raise ValueError(text)  # noqa: TRY004 - as for text that is not JSON
    return message


def _header_value(text: str) -> str:
    """A value as the protocol writes it in a header: as it is, or as base64 where a header could not carry it."""
    if _SAFE_HEADER.fullmatch(text) and not text.startswith("=?base64?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@contextlib.contextmanager
def _protocol_streams() -> Any:
    """Standard input and output for the protocol alone: what anything else prints goes to standard error."""
    given = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    taken = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        yield given, taken
    finally:
        taken.flush()
        os.dup2(taken.fileno(), sys.stdout.fileno())


async def _lines(given: BinaryIO) -> AsyncIterator[bytes]:
    """The lines of a stream, read in a thread of their own, which does not hold up the end of the process."""
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            while line := given.readline(LINE_BYTES_MAX):
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, b"")

    threading.Thread(target=read, name="proofbox-mcp-input", daemon=True).start()
    while line := await queue.get():
        yield line
