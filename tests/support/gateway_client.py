"""A loop's side of the gateway: agents are written, runs made, tools called, over the real routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from pydantic import SecretStr

from proofbox.service.api.app import create_app
from tests.support.pipeline import NO_SERVER, Pipeline, opened_pipeline, services_over

ANY_PORT = tuple(range(1, 65_536))
LOCAL = {"gateway_networks": ("127.0.0.0/8",), "gateway_ports": ANY_PORT}


@dataclass
class Loop:
    """A client that drives runs.

    Attributes:
        web: the HTTP client.
        pipeline: the service behind it.
        run: the newest run that it made or claimed.
    """

    web: httpx.AsyncClient
    pipeline: Pipeline
    run: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    async def write_agent(self, *tools: dict[str, Any], agent_id: str = "helper", name: str = "Helper") -> Any:
        """Writes an agent with some tools."""
        document = {"version": "2", "agent": {"name": name}, "tools": list(tools)}
        response = await self.web.put(f"/v1/agents/{agent_id}", json=document)
        assert response.status_code in (200, 201), response.text
        return response.json()

    async def begin(self, *tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Writes an agent and makes a run of it."""
        await self.write_agent(*tools)
        response = await self.web.post("/v1/runs", json={"agent_id": "helper", **fields})
        assert response.status_code == 201, response.text
        self.run = response.json()
        return self.run

    async def post_call(self, tool: str, params: dict[str, Any] | None = None, **fields: Any) -> httpx.Response:
        """Calls a tool of the run; its id is ``call-1``, ``call-2`` and so on."""
        self.count += 1
        lease = fields.pop("lease", (self.run.get("lease") or {}).get("number", 1))
        body = {
            "tool_id": tool,
            "tool_call_id": f"call-{self.count}",
            "conversation_id": self.run["conversation_id"],
            "run_id": self.run["run_id"],
            "params": params or {},
            **fields,
        }
        return await self.web.post("/v1/tool-calls", json=body, headers={"Run-Lease": str(lease)})

    async def call(self, tool: str, params: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """The body of the answer of a call."""
        response = await self.post_call(tool, params, **fields)
        assert response.status_code == 200, response.text
        body: dict[str, Any] = response.json()
        return body

    async def current(self) -> dict[str, Any]:
        """The run as it stands."""
        response = await self.web.get(f"/v1/runs/{self.run['run_id']}")
        body: dict[str, Any] = response.json()
        return body

    def leased(self, number: int | None = None) -> dict[str, str]:
        """The header of the lease."""
        return {"Run-Lease": str(number if number is not None else self.run["lease"]["number"])}


@asynccontextmanager
async def opened_loop(
    folder: Path, running_max: int = 4, url: SecretStr = NO_SERVER, **settings_of: Any
) -> AsyncIterator[Loop]:
    """A client over a service on local stores, whose tools may ask servers of this machine."""
    async with opened_pipeline(folder, running_max, url, **{**LOCAL, **settings_of}) as pipeline:
        transport = httpx.ASGITransport(create_app(services_over(pipeline)))
        async with httpx.AsyncClient(transport=transport, base_url="http://proofbox.test", timeout=60) as web:
            yield Loop(web, pipeline)
