"""Every JSON example of the tool system's document is accepted as a configuration, fragments in their places."""

import pytest

from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.environment import Environment, EnvironmentEntry

PROJECT = "acme/books"
ENVIRONMENT = Environment(
    {
        "API_KEY": EnvironmentEntry("api-key-0123456789", frozenset({"api.example.com"})),
        "SERVICE_KEY": EnvironmentEntry("service-key-0123456789", frozenset({"my-service.com"})),
    }
)

WEATHER = {
    "name": "fetchWeather",
    "executionType": "gateway",
    "visibility": "visible",
    "execution": {"url": "https://api.weather.com/current", "method": "GET"},
}
EXECUTIONS = {
    "http": (
        "gateway",
        {
            "url": "https://api.example.com/data",
            "method": "POST",
            "headers": {"Authorization": "Bearer ${env.API_KEY}"},
            "body": {"query": "{{input.query}}"},
            "timeout": 30000,
        },
    ),
    "sub-agent": ("gateway", {"agentConfig": {}, "includeContext": True, "timeout": 60000}),
    "image": (
        "gateway",
        {"provider": "dall-e", "model": "dall-e-3", "size": "1024x1024", "quality": "hd"},
    ),
    "compute": ("gateway", {"operation": "evaluate", "expression": "{{input.expression}}"}),
    "webhook": (
        "external",
        {
            "webhookUrl": "https://my-service.com/tools/process",
            "method": "POST",
            "headers": {"Authorization": "Bearer ${env.SERVICE_KEY}"},
            "timeout": 30000,
        },
    ),
    "space": ("space", {"display": {"customUI": "confirmAction"}}),
    "static output": ("internal", {"output": {"status": "ok"}}),
}
MCP = {
    "servers": [
        {
            "name": "my-mcp-server",
            "url": "https://mcp.example.com",
            "transport": "http",
            "allowedTools": ["tool_a", "tool_b"],
        }
    ]
}
TYPES_AND_VISIBILITIES = [
    (kind, visibility)
    for kind, allowed in {
        "gateway": ("visible", "hidden", "result-only"),
        "external": ("visible", "hidden", "result-only"),
        "space": ("visible",),
        "internal": ("hidden",),
    }.items()
    for visibility in allowed
]
OF_TYPE = {"gateway": "http", "external": "webhook", "space": "space", "internal": "static output"}


def configuration(*tools, **more):
    return {"version": "2", "agent": {"name": "helper"}, "tools": list(tools), **more}


def accepted(document):
    return check_configuration(document, ENVIRONMENT, PROJECT).configuration


def test_the_example_of_visibility_is_accepted():
    (tool,) = accepted(configuration(WEATHER)).tools
    assert (tool.name, tool.effective_visibility, tool.execution.method) == ("fetchWeather", "visible", "GET")


@pytest.mark.parametrize(("kind", "execution"), EXECUTIONS.values(), ids=EXECUTIONS)
def test_each_execution_is_accepted(kind, execution):
    (tool,) = accepted(configuration({"name": "t", "executionType": kind, "execution": execution})).tools
    assert tool.model_dump(by_alias=True, exclude_unset=True)["execution"] == execution


@pytest.mark.parametrize(("kind", "visibility"), TYPES_AND_VISIBILITIES)
def test_the_configuration_schema_is_accepted_with_its_placeholders_filled(kind, visibility):
    tool = {
        "name": "string",
        "description": "string",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}},
        "executionType": kind,
        "visibility": visibility,
        "execution": EXECUTIONS[OF_TYPE[kind]][1],
        "display": {"customUI": "component-name"},
    }
    assert accepted(configuration(tool)).tools[0].effective_display.custom_ui == "component-name"


def test_the_example_of_mcp_is_accepted():
    (server,) = accepted(configuration(mcp=MCP)).mcp.servers
    assert server.allowed_tools == ["tool_a", "tool_b"]


def test_the_display_inside_an_execution_is_the_tool_s():
    kind, execution = EXECUTIONS["space"]
    (tool,) = accepted(configuration({"name": "t", "executionType": kind, "execution": execution})).tools
    assert tool.effective_display.custom_ui == "confirmAction"


@pytest.mark.parametrize(
    ("kind", "visibility"),
    [("internal", "hidden"), ("gateway", "visible"), ("external", "visible"), ("space", "visible")],
)
def test_the_default_visibility_is_that_of_the_type(kind, visibility):
    execution = EXECUTIONS[OF_TYPE[kind]][1]
    (tool,) = accepted(configuration({"name": "t", "executionType": kind, "execution": execution})).tools
    assert tool.effective_visibility == visibility


def test_internal_and_space_tools_need_no_execution():
    tools = [{"name": "a", "executionType": "internal"}, {"name": "b", "executionType": "space"}]
    assert [tool.execution for tool in accepted(configuration(*tools)).tools] == [None, None]
