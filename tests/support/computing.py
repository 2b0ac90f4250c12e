"""Expressions and what their calls answer, for a service on any engine."""

from contextlib import asynccontextmanager

import httpx

from proofbox.service.app.serving import application
from tests.support.gateway_client import Loop

OWN = "{{input.expression}}"
OS = "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__"
"""How an expression gets hold of the module ``os``, as a dict."""
BUILTINS = f"{OS}['__builtins__']"


@asynccontextmanager
async def opened_computing_loop(service, agent_id, *tools):
    """A loop over a running service, with a run of an agent of some tools."""
    transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as web:
        loop = Loop(web, None)
        await loop.write_agent(*tools, agent_id=agent_id, name=agent_id)
        made = await web.post("/v1/runs", json={"agent_id": agent_id})
        assert made.status_code == 201, made.text
        loop.run = made.json()
        yield loop


def compute(expression, name="compute", **more):
    """A tool that evaluates an expression."""
    execution = {"operation": "evaluate", "expression": expression, **more}
    return {"name": name, "description": "d", "executionType": "internal", "execution": execution}


async def evaluated(loop, expression, **fields):
    """The answer of a call of the tool ``compute``, whose expression the model writes."""
    return await loop.call("compute", {"expression": expression, **fields})
