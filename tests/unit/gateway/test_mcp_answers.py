"""What is made of the answer of an MCP server's tool."""

import math

import pytest

from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import McpFailedError, ServerAnswer
from proofbox.service.gateway.mcp.results import read_answer
from proofbox.service.gateway.redaction import Redactor

TOOL = PinnedTool("desk", "read", "mcp_tools.desk.read", "desk__read", "", {"type": "object"}, None, {}, "")


def answer(structured):
    return ServerAnswer(is_error=False, texts=(), structured=structured, has_structured=True, files=(), links=())


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_number_that_is_not_finite_fails_the_call(value):
    with pytest.raises(McpFailedError, match="structured result is not JSON: it has a number that is not finite"):
        read_answer(answer({"rows": [value]}), TOOL, Redactor(()), 1_000)


def test_a_result_that_is_nested_too_deep_fails_the_call():
    deep = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(McpFailedError, match="structured result is nested too deep"):
        read_answer(answer({"rows": deep}), TOOL, Redactor(()), 1_000)
