"""Templates are filled in threads: values of several MiB do not hold the event loop."""

import asyncio
import sys
from contextlib import contextmanager

import pytest

from proofbox.service.gateway import filling
from tests.support.gateway_client import opened_loop
from tests.support.web_server import response

TOOLS = {
    "http": ("gateway", {"method": "POST", "body": {"x": "{{input.x}}"}}, "url"),
    "output": ("gateway", {"output": {"x": "{{input.x}}"}}, None),
    "own tool": ("gateway", {"tool": "exec_tools.execute_code_python", "code": "print({{input.x}})"}, None),
    "compute": ("gateway", {"operation": "evaluate", "expression": "len({{input.x}})"}, None),
    "webhook": ("external", {"headers": {"X-Size": "{{input.n}}"}}, "webhookUrl"),
}


@contextmanager
def filled_in_this_thread():
    """The functions of `filling` that this thread, which has the event loop, runs meanwhile."""
    ran = []

    def record(frame, event, _value):
        if event == "call" and frame.f_code.co_filename == filling.__file__:
            ran.append(frame.f_code.co_name)

    sys.setprofile(record)
    try:
        yield ran
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize("name", TOOLS)
async def test_no_template_is_filled_on_the_event_loop(loop, elsewhere, name):
    kind, execution, address = TOOLS[name]
    elsewhere.answers = [response(b"{}", "application/json")]
    if address is not None:
        execution = {**execution, address: elsewhere.url("/{{input.n}}")}
    tool = {"name": "t", "description": "d", "executionType": kind, "execution": execution}
    await loop.begin({**tool, "inputSchema": {"type": "object"}})
    with filled_in_this_thread() as ran:
        await loop.call("t", {"x": "y" * 100_000, "n": 7})
    assert set(ran) <= {"__init__", "redactor"}


async def test_a_call_of_an_own_tool_ends_without_filling_a_template(tmp_path):
    execution = {
        "tool": "exec_tools.execute_code_python",
        "code": "print({{input.x}})",
        "params": {"explore": True},
    }
    tool = {"name": "t", "description": "d", "executionType": "gateway", "execution": execution}
    async with opened_loop(tmp_path) as loop:
        running = asyncio.Event()

        async def run_for_ever(_run):
            running.set()
            await asyncio.Event().wait()

        loop.pipeline.engine.program = run_for_ever
        await loop.begin({**tool, "inputSchema": {"type": "object"}})
        asking = asyncio.create_task(loop.post_call("t", {"x": "y" * 100_000}))
        async with asyncio.timeout(20):
            await running.wait()
        with filled_in_this_thread() as ran:
            await loop.web.delete("/v1/tool-calls/call-1")
        assert (await asking).json()["code"] == "cancelled"
        blocks = (await loop.web.get(f"/v1/conversations/{loop.run['conversation_id']}/timeline")).json()["blocks"]
    assert set(ran) <= {"__init__", "redactor"}
    assert "react.tool.code" in [block["type"] for block in blocks]
