"""Templates are filled in threads: values of several MiB do not hold the event loop."""

import sys
from contextlib import contextmanager

import pytest

from proofbox.service.gateway import filling
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
