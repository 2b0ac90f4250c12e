"""The client of MCP servers by itself: lists are shared out among projects, and what cannot start fails."""

import asyncio
import subprocess
import sys

import pytest

from proofbox.service.gateway.mcp.port import McpFailedError, ReachedServer
from proofbox.service.mcp_sources.client import Reach, SdkMcpClient
from proofbox.service.mcp_sources.limits import LISTS_MAX, LISTS_OF_PROJECT_MAX
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import SystemResolver
from tests.support.mcp_servers import begin_with, raw_server, raw_tool, write_with

EXHAUST = """
import asyncio, os, resource, sys, threading
from proofbox.service.gateway.mcp.port import McpFailedError, ReachedServer
from proofbox.service.mcp_sources.client import Reach, SdkMcpClient

what = sys.argv[1]
no_tls = lambda: (_ for _ in ()).throw(OSError(24, "Too many open files"))

async def main():
    client = SdkMcpClient(Reach(None, no_tls, frozenset({443}), 1 << 20))
    if what == "files":
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        held = []
        try:
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            pass
    elif what == "threads":
        threading.stack_size(1 << 46)  # more than there is
    try:
        await client.list_tools(ReachedServer("https://desk.example/mcp", "http", [], 30.0))
    except McpFailedError as exc:
        if what == "files":
            for each in held:
                os.close(each)
        print(exc.code, exc.message)

asyncio.run(main())
"""


def client_of(*ports):
    return SdkMcpClient(Reach(CheckedNetwork(SystemResolver(), None), lambda: None, frozenset(ports), 1 << 20))


class HoldingServer:
    """Takes connections and answers none."""

    def __init__(self):
        self.port, self.connections, self.changed = 0, 0, asyncio.Condition()
        self.writers, self.tasks = [], []

    async def hold(self, reader, writer):
        self.writers.append(writer)
        self.tasks.append(asyncio.current_task())
        async with self.changed:
            self.connections += 1
            self.changed.notify_all()
        while await reader.read(1_000):
            pass
        writer.close()

    async def release(self):
        while any(not task.done() for task in self.tasks):
            for writer in self.writers:
                writer.transport.abort()
            await asyncio.wait(self.tasks)

    async def wait_for(self, count):
        async with self.changed:
            await self.changed.wait_for(lambda: self.connections >= count)


@pytest.mark.timeout(25)  # less than the lists that are held
async def test_the_slow_servers_of_one_project_hold_up_no_other_project():
    holding = HoldingServer()
    listening = await asyncio.start_server(holding.hold, "127.0.0.1", 0)
    holding.port = listening.sockets[0].getsockname()[1]
    async with listening, raw_server(raw_tool("say")) as raw:
        client = client_of(holding.port, raw.port)
        slow = ReachedServer(f"http://127.0.0.1:{holding.port}/mcp", "http", [], 30.0, "acme/slow")
        held = [asyncio.create_task(client.list_tools(slow)) for _ in range(LISTS_MAX)]
        try:
            await holding.wait_for(LISTS_OF_PROJECT_MAX)
            fast = ReachedServer(f"http://127.0.0.1:{raw.port}/mcp", "http", [], 30.0, "acme/fast")
            listing = await client.list_tools(fast)
            assert [tool.name for tool in listing.tools] == ["say"]
            hasty = ReachedServer(slow.url, "http", [], 0.2, "acme/slow")
            with pytest.raises(McpFailedError, match=r"was not asked within 0\.2 s") as failed:
                await client.list_tools(hasty)
            assert failed.value.code == "mcp_unavailable"
            assert holding.connections == LISTS_OF_PROJECT_MAX
        finally:
            for each in held:
                each.cancel()
            await asyncio.gather(*held, return_exceptions=True)
    await holding.release()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("files", "desk.example was not asked: the service has too many threads or open files"),
        ("threads", "desk.example was not asked: the service has too many threads or open files"),
        ("certificates", "desk.example was not asked: the certificates of this service cannot be read"),
    ],
)
def test_what_cannot_start_is_unavailable_at_once(what, message):
    found = subprocess.run(
        [sys.executable, "-c", EXHAUST, what], capture_output=True, text=True, timeout=50, check=False
    )
    assert found.stdout.strip() == f"mcp_unavailable {message}", found.stderr


@pytest.mark.timeout(25)  # less than the server is held
async def test_a_claim_passes_by_runs_whose_server_is_slow(loop):
    holding = HoldingServer()
    listening = await asyncio.start_server(holding.hold, "127.0.0.1", 0)
    holding.port = listening.sockets[0].getsockname()[1]
    entry = {"name": "slow", "url": f"http://127.0.0.1:{holding.port}/mcp", "transport": "http", "required": True}
    async with listening:
        slow = await begin_with(loop, entry, queued=True)
        assert (await loop.web.post("/v1/runs/claim", json={})).status_code == 204
        claiming = asyncio.create_task(loop.web.post("/v1/runs/claim", json={"wait_s": 20}))
        await holding.wait_for(1)
        await write_with(loop, agent_id="fast")
        fast = await loop.web.post("/v1/runs", json={"agent_id": "fast", "queued": True})
        claimed = await claiming
        assert claimed.json()["run_id"] == fast.json()["run_id"]
        left = await loop.web.get(f"/v1/runs/{slow.json()['run_id']}")
        assert left.json()["status"] == "queued"
    await holding.release()
