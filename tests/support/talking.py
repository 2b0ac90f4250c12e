"""Agents and persons that talk in a space, over the real routes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from tests.support.gateway_client import Loop, opened_loop
from tests.support.pipeline import NO_SERVER

PERSONS = ("ann", "bob")
AGENTS = ("helper", "clerk")


class Talk(Loop):
    """A space with the persons ``ann`` and ``bob`` and the agents ``helper`` and ``clerk``.

    Attributes:
        space_id: the space.
    """

    space_id: str = ""

    async def open(self) -> None:
        """Makes all of it."""
        for name in PERSONS:
            body = {"type": "human", "handle": name, "display_name": name.title(), "user": name}
            await self.web.put(f"/v1/entities/{name}", json=body)
        for name in AGENTS:
            await self.write_agent(agent_id=name, name=name.title())
        members = [*PERSONS, *(f"agent:{name}" for name in AGENTS)]
        made = await self.web.post("/v1/spaces", json={"name": "room", "members": members})
        assert made.status_code == 201, made.text
        self.space_id = made.json()["space_id"]

    async def begin_run(self, agent_id: str = "helper", **fields: Any) -> "Speaker":
        """A loop that drives a new run of an agent in the space."""
        body = {"agent_id": agent_id, "space_id": self.space_id, **fields}
        made = await self.web.post("/v1/runs", json=body)
        assert made.status_code == 201, made.text
        return Speaker(self.web, self.pipeline, made.json())

    async def claim(self, agent_id: str) -> "Speaker":
        """A loop that drives the oldest queued run of an agent."""
        claimed = await self.web.post("/v1/runs/claim", json={"agent_ids": [agent_id]})
        assert claimed.status_code == 200, claimed.text
        return Speaker(self.web, self.pipeline, claimed.json())

    async def queued(self, agent_id: str) -> list[dict[str, Any]]:
        """The queued runs of an agent."""
        found = await self.web.get("/v1/runs", params={"agent_id": agent_id, "status": "queued"})
        items: list[dict[str, Any]] = found.json()["items"]
        return items

    async def say(self, entity_id: str, text: str, reply_to: str | None = None) -> dict[str, Any]:
        """A person posts a text; what it led to."""
        body = {"text": text, "entity_id": entity_id, "reply_to": reply_to}
        posted = await self.web.post(f"/v1/spaces/{self.space_id}/messages", json=body)
        assert posted.status_code == 201, posted.text
        sent: dict[str, Any] = posted.json()
        return sent

    async def texts(self) -> list[str]:
        """The texts of the space."""
        items = (await self.web.get(f"/v1/spaces/{self.space_id}/messages")).json()["items"]
        return [item["text"] for item in items]


class Speaker(Loop):
    """A loop that drives a run which talks."""

    async def wait_for(self, tool: str, **params: Any) -> dict[str, Any]:
        """Sends a text and waits; what the call waits for."""
        response = await self.post_call(tool, {"wait": True, **params})
        assert response.status_code == 202, response.text
        wait: dict[str, Any] = response.json()["wait"]
        return wait

    async def status(self, tool_call_id: str = "call-1") -> dict[str, Any]:
        """How a call stands."""
        conversation = {"conversation_id": self.run["conversation_id"]}
        body: dict[str, Any] = (await self.web.get(f"/v1/tool-calls/{tool_call_id}", params=conversation)).json()
        return body

    async def ret(self, tool_call_id: str = "call-1") -> dict[str, Any]:
        """The result of a call that waits, once it has ended."""
        conversation = {"conversation_id": self.run["conversation_id"]}
        async with asyncio.timeout(20):  # the stream of its events ends with it
            await self.web.get(f"/v1/tool-calls/{tool_call_id}/events", params=conversation)
        ret: dict[str, Any] = (await self.status(tool_call_id))["response"]["ret"]
        return ret


@asynccontextmanager
async def opened_talk(
    folder: Path, url: SecretStr = NO_SERVER, known: Talk | None = None, **settings_of: Any
) -> AsyncIterator[Talk]:
    """Opens the service and a space.

    Args:
        folder: where its data are.
        url: the database.
        known: the space of an earlier process.
        settings_of: settings.
    """
    async with opened_loop(folder, url=url, **settings_of) as loop:
        talk = Talk(loop.web, loop.pipeline)
        if known is None:
            await talk.open()
        else:
            talk.space_id = known.space_id
        yield talk
