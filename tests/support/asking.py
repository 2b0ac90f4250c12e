"""A loop whose agent asks a person in a space, over the real routes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.support.gateway_client import Loop, opened_loop
from tests.support.pipeline import NO_SERVER

YES_NO = {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}
ASK = {"name": "ask", "executionType": "space", "resultSchema": YES_NO}
SOON = {"name": "soon", "executionType": "space", "execution": {"timeout": 1_000}}
PAY = {
    "name": "pay",
    "executionType": "gateway",
    "requiresApproval": True,
    "execution": {"output": {"paid": "{{input.amount}}"}},
}
SECRETLY = {**PAY, "name": "secretly", "visibility": "hidden"}
SHOW = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}


class Asking(Loop):
    """A loop with a run in a space that has a person, `ann`, and the agent.

    Attributes:
        space_id: the space.
    """

    space_id: str = ""

    async def enter(self, *tools: dict[str, Any]) -> None:
        """Makes the agent with its tools, the space and a run that is in it."""
        await self.write_agent(*(tools or (ASK, SOON, PAY, SECRETLY, SHOW)))
        await self.web.put(
            "/v1/entities/ann", json={"type": "human", "handle": "ann", "display_name": "Ann", "user": "ann"}
        )
        made = await self.web.post("/v1/spaces", json={"name": "room", "members": ["ann", "agent:helper"]})
        assert made.status_code == 201, made.text
        self.space_id = made.json()["space_id"]
        begun = await self.web.post("/v1/runs", json={"agent_id": "helper", "space_id": self.space_id})
        assert begun.status_code == 201, begun.text
        self.run = begun.json()

    async def ask(self, tool: str = "ask", params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Calls a tool that waits; what it waits for."""
        response = await self.post_call(tool, params)
        assert response.status_code == 202, response.text
        wait: dict[str, Any] = response.json()["wait"]
        return wait

    async def answer(self, wait: dict[str, Any], **body: Any) -> Any:
        """Answers a card."""
        path = f"/v1/spaces/{wait['space_id']}/messages/{wait['message_id']}/result"
        return await self.web.post(path, json=body)

    async def card(self, wait: dict[str, Any]) -> dict[str, Any]:
        """The tool part of a record."""
        response = await self.web.get(f"/v1/spaces/{wait['space_id']}/messages/{wait['message_id']}")
        tool: dict[str, Any] = response.json()["tool"]
        return tool

    async def status(self, tool_call_id: str = "call-1") -> dict[str, Any]:
        """How a call stands."""
        body: dict[str, Any] = (await self.web.get(f"/v1/tool-calls/{tool_call_id}")).json()
        return body


@asynccontextmanager
async def opened_asking(
    folder: Path, url: SecretStr = NO_SERVER, known: Loop | None = None, **settings_of: Any
) -> AsyncIterator[Asking]:
    """Opens the service and a client.

    Args:
        folder: where its data are.
        url: the database.
        known: the client of an earlier process, whose run goes on.
        settings_of: settings.
    """
    async with opened_loop(folder, url=url, **settings_of) as loop:
        asking = Asking(loop.web, loop.pipeline)
        if known is not None:
            asking.run, asking.count, asking.space_id = known.run, known.count, getattr(known, "space_id", "")
        yield asking
