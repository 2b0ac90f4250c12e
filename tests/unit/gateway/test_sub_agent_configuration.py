"""What is refused in tools that ask a model, when the configuration is written."""

import pytest

from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.llm.endpoints import LlmEndpoint, LlmEndpoints
from proofbox.service.gateway_errors import InvalidToolError
from proofbox.service.web.urls import WebUrl

URL = WebUrl.parse("https://llm.example/v1")
ENDPOINTS = LlmEndpoints(
    {
        "default": LlmEndpoint("default", URL, ("small", "large"), frozenset({"chat"}), "sk-0123456789"),
        "painter": LlmEndpoint("painter", URL, ("brush",), frozenset({"images"})),
    }
)
INNER = {"name": "t", "description": "d", "executionType": "gateway", "execution": {"output": 1}}


def refused(execution, schema=None):
    tool = {"name": "research", "description": "d", "executionType": "gateway", "execution": execution}
    if schema is not None:
        tool["inputSchema"] = schema
    with pytest.raises(InvalidToolError) as caught:
        check_configuration(
            {"version": "2", "agent": {"name": "helper"}, "tools": [tool]}, Environment(), "a/b", ENDPOINTS
        )
    return [error.field.removeprefix("tools[0].") for error in caught.value.errors]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"model": {"name": "huge"}}, "model.name"),
        ({"model": {"provider": "painter"}}, "model.provider"),
        ({"model": {"provider": "painter", "name": "small"}}, "model.provider"),
        ({"model": {"provider": 7}}, "model.provider"),
        ({"model": {"provider": ""}}, "model.provider"),
        ({"model": {"name": ["small"]}}, "model.name"),
        ({"loop": {"maxSteps": 11}}, "loop.maxSteps"),
        ({"loop": {"maxSteps": 0}}, "loop.maxSteps"),
        ({"loop": {"maxSteps": "5"}}, "loop.maxSteps"),
        ({"loop": {"maxSteps": True}}, "loop.maxSteps"),
        ({"tools": [{**INNER, "name": "send_message"}]}, "tools[0].name"),
        ({"tools": [INNER, INNER]}, "tools[1].name"),
        ({"tools": [{**INNER, "execution": {"agentConfig": {}}}]}, "tools[0].execution"),
        ({"tools": [{**INNER, "requiresApproval": True}]}, "tools[0].requiresApproval"),
        ({"tools": [{"name": "t", "description": "d", "executionType": "space"}]}, "tools[0].executionType"),
        (
            {"tools": [{**INNER, "executionType": "external", "execution": {"webhookUrl": "https://x.example/"}}]},
            "tools[0].executionType",
        ),
        ({"tools": [{**INNER, "execution": {"tool": "space_tools.enter_space"}}]}, "tools[0].execution.tool"),
        ({"tools": [{**INNER, "execution": {"provider": "default"}}]}, "tools[0].execution.provider"),
        ({"tools": [{**INNER, "execution": {"output": "{{inptu}}"}}]}, "tools[0].execution.output"),
    ],
)
def test_a_sub_agent_that_could_not_work_is_refused_with_the_field(config, field):
    assert refused({"agentConfig": config}) == [f"execution.agentConfig.{field}"]


@pytest.mark.parametrize(
    ("execution", "schema", "field"),
    [
        ({"provider": "painter", "model": "pencil"}, None, "execution.model"),
        ({"provider": "default"}, None, "execution.provider"),
        (
            {"provider": "painter"},
            {"type": "object", "properties": {"text": {}}, "additionalProperties": False},
            "inputSchema",
        ),
        ({"provider": "painter", "size": "big"}, None, "execution.size"),
    ],
)
def test_a_tool_that_could_make_no_picture_is_refused_with_the_field(execution, schema, field):
    assert refused(execution, schema) == [field]


@pytest.mark.parametrize(
    "execution",
    [
        {"agentConfig": {}},
        {"agentConfig": {"model": {"name": "large"}, "loop": {"maxSteps": 10}, "tools": [INNER]}},
        {"agentConfig": {"model": {"provider": "later", "name": "any"}}},
        {"provider": "painter", "model": "brush"},
        {"provider": "later", "model": "any"},
    ],
)
def test_what_can_work_and_endpoints_that_may_still_come_are_accepted(execution):
    tool = {"name": "research", "description": "d", "executionType": "gateway", "execution": execution}
    document = {"version": "2", "agent": {"name": "helper"}, "tools": [tool]}
    assert check_configuration(document, Environment(), "a/b", ENDPOINTS).warnings == []
