"""The service of the session behind a real port, and clients of both eras of the protocol."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
import pytest_asyncio
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ImageContent, ResourceLink

from proofbox.service.access.api_keys import ALL_PERMISSIONS, ApiKey, new_key_id, new_secret, secret_sha256
from proofbox.service.app.bootstrap import Service
from proofbox.service.app.serving import http_config
from proofbox.service.storage.api_keys import SqlApiKeys

ROOT = Path(__file__).parents[3]
ERAS = ("auto", pytest.param("legacy", marks=pytest.mark.slow))


@dataclass
class Result:
    """A result of a tool, taken apart."""

    raw: CallToolResult

    @property
    def text(self) -> str:
        first = self.raw.content[0]
        assert first.type == "text"
        return first.text

    @property
    def pictures(self) -> list[ImageContent]:
        return [block for block in self.raw.content if isinstance(block, ImageContent)]

    @property
    def links(self) -> list[ResourceLink]:
        return [block for block in self.raw.content if isinstance(block, ResourceLink)]

    @property
    def data(self) -> dict[str, Any]:
        assert isinstance(self.raw.structured_content, dict)
        return self.raw.structured_content

    @property
    def size_bytes(self) -> int:
        return len(self.raw.model_dump_json(by_alias=True, exclude_none=True))


class Host:
    """A host of MCP with one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> Result:
        return Result(await self.client.call_tool(tool, arguments))


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextlib.asynccontextmanager
async def served(service: Service) -> AsyncIterator[str]:
    """The service behind a port of this machine; its URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = _Server(http_config(service))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await server.up.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        await serving


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def url(service: Service) -> AsyncIterator[str]:
    async with served(service) as address:
        yield address


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def guarded_url(service: Service) -> AsyncIterator[str]:
    """The same service, which requires keys."""
    settings = service.settings.model_copy(update={"auth": "required"})
    async with served(replace(service, settings=settings)) as address:
        yield address


@contextlib.asynccontextmanager
async def connected(url: str, era: str, key: str = "") -> AsyncIterator[Host]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with httpx2.AsyncClient(headers=headers, trust_env=False, timeout=120) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=era) as client:
            yield Host(client)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(url: str, era: str) -> AbstractAsyncContextManager[Host]:
    """A host, to be connected by the test: its task group must end in the task that opened it."""
    return connected(url, era)


@pytest_asyncio.fixture(loop_scope="session")
async def web(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture
def issue(service: Service) -> Callable[..., Any]:
    """Makes a key of a tenant and answers its secret."""

    async def make(tenant: str, **fields: Any) -> str:
        key_id = new_key_id()
        secret = new_secret(key_id)
        values = {
            "id": key_id,
            "name": "host",
            "tenant": tenant,
            "project": "p",
            "user_type": None,
            "user": None,
            "permissions": ALL_PERMISSIONS,
            "sha256": secret_sha256(secret),
            "created": "2026-01-01T00:00:00.000Z",
        }
        await SqlApiKeys(service.database).add(ApiKey(**{**values, **fields}))
        service.keyring._read_at = float("-inf")  # read again: it knows the keys of the last second
        return secret

    return make


class Bridge:
    """``proofbox mcp`` as a host starts it: a process with pipes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._count = 0

    def send(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def request(self, method: str, params: dict[str, Any] | None = None) -> int:
        self._count += 1
        self.send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params or {}})
        return self._count

    async def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the process has ended"
        message: dict[str, Any] = json.loads(line)
        return message

    async def answer(self, request_id: int | None) -> dict[str, Any]:
        while True:
            message = await self.read()
            if "method" not in message and message["id"] == request_id:
                return message


COMMAND = (sys.executable, "-m", "proofbox.cli", "mcp")


def environment(key: str) -> dict[str, str]:
    """The variables of the program, with a key for the service if there is one."""
    own = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
    return {**own, "PROOFBOX_API_KEY": key} if key else own


@contextlib.asynccontextmanager
async def bridged(url: str, key: str = "") -> AsyncIterator[Bridge]:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--url",
        url,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=environment(key),
        limit=64 * 1024 * 1024,
    )
    try:
        yield Bridge(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
