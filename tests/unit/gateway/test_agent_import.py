"""The import of configurations of version 1: a golden example of each row of the table, and what is refused."""

import copy
import json
from pathlib import Path

import pytest

from proofbox.contracts.gateway.configuration import CONFIGURATION_BYTES_MAX
from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.environment import Environment, EnvironmentEntry
from proofbox.service.gateway.imports.importer import import_configuration
from proofbox.service.gateway.imports.notes import MESSAGE_CHARACTERS_MAX, NOTES_MAX, PartNotes
from proofbox.service.gateway_errors import InvalidToolError

PROJECT = "acme/books"
EXAMPLES = Path(__file__).with_name("old_configurations")
SHOP, MCP = frozenset({"api.shop.example"}), frozenset({"mcp.shop.example"})
ENVIRONMENT = Environment(
    {
        "SHOP_KEY": EnvironmentEntry("shop-key-0123456789", SHOP),
        "MCP_TOKEN": EnvironmentEntry("mcp-token-0123456789", MCP),
        "MCP_PATH": EnvironmentEntry("mcp-path-0123456789", MCP),
    }
)


def imported(document):
    return import_configuration(document, ENVIRONMENT, PROJECT)


def with_tools(*tools, **more):
    return {"version": "1.0", "agent": {"name": "helper"}, "tools": list(tools), **more}


def one(tool, **fields):
    """The converted tool and its entry of the report."""
    result = imported(with_tools({"name": "t", "description": "d", **tool, **fields}))
    (entry,) = result.report
    return next(iter(result.config["tools"]), None), entry


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.v1.json")))
def test_an_example_becomes_what_is_stored_beside_it(name):
    given = json.loads((EXAMPLES / name).read_text("utf-8"))
    unchanged = copy.deepcopy(given)
    result = imported(given)
    made = {
        "config": result.config,
        "report": [entry.model_dump(mode="json") for entry in result.report],
        "saved_tools": [tool["name"] for tool in result.savable["tools"]],
        "saved_servers": [server["name"] for server in result.savable.get("mcp", {}).get("servers", [])],
    }
    expected = json.loads((EXAMPLES / name.replace(".v1.", ".imported.")).read_text("utf-8"))
    assert made == expected
    assert given == unchanged
    # What needs no review is a configuration of version 2, and importing that changes nothing.
    check_configuration(result.savable, ENVIRONMENT, PROJECT)
    again = imported(result.savable)
    assert (again.config, again.savable) == (result.savable, result.savable)
    assert {entry.status for entry in again.report} <= {"unchanged"}


@pytest.mark.parametrize("version", ["1", "1.0", "1.4.2", 1, 1.0])
def test_all_spellings_of_version_1_are_read(version):
    assert imported({"version": version, "agent": {"name": "a"}}).config["version"] == "2"
    assert imported({"agent": {"name": "a"}}).config == {"version": "2", "agent": {"name": "a"}, "tools": []}


def test_a_tool_of_version_2_needs_no_mark_to_stay_byte_for_byte():
    document = {
        "version": "2",
        "agent": {"name": "helper"},
        "tools": [{"name": "card", "description": "d", "executionType": "gateway", "execution": {"output": "{{x"}}],
    }
    with pytest.raises(InvalidToolError) as caught:
        imported(document)
    assert [error.field for error in caught.value.errors] == ["tools[0].execution.output"]
    document["tools"][0]["execution"]["output"] = "{{input}}"
    result = imported(document)
    assert result.config is document
    assert [(entry.tool, entry.from_, entry.to, entry.status) for entry in result.report] == [
        ("card", "gateway", "gateway", "unchanged")
    ]


REFUSALS = {
    "version 3": ({"version": "3", "agent": {"name": "a"}}, "version"),
    "a version that is a list": ({"version": ["1"], "agent": {"name": "a"}}, "version"),
    "version true": ({"version": True, "agent": {"name": "a"}}, "version"),
    "version null": ({"version": None, "agent": {"name": "a"}}, "version"),
    "no agent": ({"version": "1.0"}, "agent.name"),
    "an agent that is a text": ({"version": "1.0", "agent": "a"}, "agent.name"),
    "a name without letters": ({"version": "1.0", "agent": {"name": "---"}}, "agent.name"),
    "tools that are an object": ({"version": "1.0", "agent": {"name": "a"}, "tools": {}}, "tools"),
    "a tool that is a text": ({"version": "1.0", "agent": {"name": "a"}, "tools": ["x"]}, "tools"),
    "too many tools": ({"version": "1.0", "agent": {"name": "a"}, "tools": [{}] * 257}, "tools"),
    "servers that are an object": (
        {"version": "1.0", "agent": {"name": "a"}, "mcp": {"servers": {}}},
        "mcp.servers",
    ),
    "too many servers": (
        {"version": "1.0", "agent": {"name": "a"}, "mcp": {"servers": [{}] * 257}},
        "mcp.servers",
    ),
    "a model that is a list": ({"version": "1.0", "agent": {"name": "a"}, "model": []}, "model"),
    "more tools than an agent has": (
        with_tools(*({"name": f"t{n}", "description": "d"} for n in range(129))),
        "tools",
    ),
    "larger than an agent's document": (
        with_tools(agent={"name": "a", "system": "x" * CONFIGURATION_BYTES_MAX}),
        "configuration",
    ),
}


@pytest.mark.parametrize(("document", "field"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_no_configuration_is_refused_with_its_field(document, field):
    with pytest.raises(InvalidToolError) as caught:
        imported(document)
    assert [error.field for error in caught.value.errors] == [field]


REVIEWS = {
    "no name": ({"name": None}, "name"),
    "a built-in's name": ({"name": "enter_space"}, "built-in"),
    "an unknown mode": ({"execution": {"mode": "lazy"}}, "'lazy'"),
    "an unknown key of the execution": ({"execution": {"mode": "static", "outputId": "a"}}, "'outputId'"),
    "an unknown key of the tool": ({"strict": True}, "'strict'"),
    "an execution that is a list": ({"execution": []}, "execution"),
    "an unknown display mode": ({"display": {"mode": "huge"}}, "'huge'"),
    "a schema that is a text": ({"inputSchema": "x"}, "inputSchema"),
    "a schema that is refused": ({"inputSchema": {"$ref": "https://x.example/"}}, "inputSchema"),
    "a secret of the output": ({"execution": {"mode": "static", "output": "${env.SHOP_KEY}"}}, "SHOP_KEY"),
    "no URL": ({"executionType": "request"}, "url"),
    "a literal credential of the query": (
        {"executionType": "request", "execution": {"url": "https://api.shop.example/?api_key=sk-1"}},
        "literal credential",
    ),
    "an unknown secret": (
        {
            "executionType": "request",
            "execution": {"url": "https://api.shop.example/", "headers": {"X": "${env.NO_SUCH}"}},
        },
        "NO_SUCH",
    ),
    "merged variables": (
        {
            "executionType": "request",
            "inputSchema": {"properties": {"variables": {"type": "object"}}},
            "execution": {"url": "https://api.shop.example/"},
        },
        "variables",
    ),
    "a picture without provider": ({"executionType": "image-generator"}, "provider"),
    "an expression of the input": ({"executionType": "compute"}, "Python"),
    "an expression without proposal": (
        {"executionType": "compute", "execution": {"expression": "a ?? b => c"}},
        "no simple proposal",
    ),
    "a nested agent of names": (
        {"executionType": "ai-agent", "execution": {"agentConfig": {"name": "a", "tools": ["x"]}}},
        "configuration",
    ),
    "a nested question": (
        {"executionType": "ai-agent", "execution": {"agentConfig": {"tools": [{"name": "q"}]}}},
        "wait for nobody",
    ),
    "a type that is a list": ({"executionType": ["basic"]}, "executionType"),
}


@pytest.mark.parametrize(("fields", "shown"), REVIEWS.values(), ids=REVIEWS)
def test_what_somebody_has_to_look_at_is_in_the_answer_and_not_saved(fields, shown):
    result = imported(with_tools({"name": "t", "description": "d", **fields}))
    (entry,) = result.report
    assert (entry.status, result.savable["tools"], len(result.config["tools"])) == ("needs_review", [], 1)
    assert shown in entry.message


def test_the_second_tool_of_a_name_needs_review():
    first = {"name": "t", "description": "first"}
    result = imported(with_tools(first, {"name": "t", "description": "second"}))
    assert [entry.status for entry in result.report] == ["converted", "needs_review"]
    assert [tool["description"] for tool in result.savable["tools"]] == ["first"]


@pytest.mark.parametrize(
    ("fields", "visibility"),
    [
        ({"displayTool": True}, "visible"),
        ({"display": {"mode": "full"}}, "visible"),
        ({"display": {"mode": "minimal"}}, "result-only"),
        ({"display": {"mode": "hidden"}}, "hidden"),
        ({"displayTool": True, "display": {"mode": "hidden"}}, "hidden"),
        ({}, "hidden"),
        ({"displayTool": False}, "hidden"),
    ],
)
def test_what_version_1_shows_is_the_visibility(fields, visibility):
    request = {"executionType": "request", "execution": {"url": "https://api.shop.example/"}}
    tool, entry = one(request, **fields)
    assert (tool["executionType"], tool["visibility"], entry.status) == ("gateway", visibility, "converted")


def test_a_request_without_query_sends_as_little_as_before():
    url = "https://api.shop.example/"
    for method in ("GET", "DELETE"):
        tool, _ = one({"executionType": "request", "execution": {"url": url, "method": method}})
        assert tool["execution"] == {"url": url, "method": method, "query": {}}
    tool, _ = one({"executionType": "request", "execution": {"url": url, "method": "POST"}})
    assert tool["execution"] == {"url": url, "method": "POST"}


def test_messages_have_no_credential():
    shop = json.loads((EXAMPLES / "shop.v1.json").read_text("utf-8"))
    messages = " ".join(entry.message for entry in imported(shop).report)
    assert "sk-" not in messages
    assert "sk-model" not in json.dumps(imported(shop).config)
    assert "sk-image" not in json.dumps(imported(shop).config)


MANY = range(60_000)
LARGE = {
    "question marks": {"executionType": "request", "execution": {"url": "https://a.example/" + "?" * 900_000}},
    "keys": {f"k{number}": 1 for number in MANY},
    "keys of display": {"display": {f"k{number}": 1 for number in MANY}},
    "credentials": {
        "executionType": "request",
        "execution": {"url": "https://a.example/?" + "&".join(f"token{number}=x" for number in MANY)},
    },
}


@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
def test_a_document_at_the_limit_is_read_in_linear_time(fields):
    # The time of the test is bounded, and a quadratic search takes longer: minutes to hours.
    _, entry = one(fields)
    assert entry.status in {"needs_review", "converted"}
    assert len(entry.message) <= MESSAGE_CHARACTERS_MAX


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        ({"tools": [1] * 257}, "too many tools (limit 256, got 257)"),
        ({"mcp": {"servers": [1] * 257}}, "too many servers (limit 256, got 257)"),
    ],
)
def test_a_nested_agent_has_no_more_parts_than_an_agent(inner, message):
    _, entry = one({"executionType": "ai-agent", "execution": {"agentConfig": inner}})
    assert entry.status == "needs_review"
    assert message in entry.message


def test_the_notes_on_a_part_have_a_limit_also_those_of_its_parts():
    notes, outer = PartNotes("t", "basic"), PartNotes("outer", "basic")
    for number in range(2 * NOTES_MAX):
        notes.doubt(f"doubt {number}")
        notes.change(f"change {number}")
    for number in range(3):
        outer.take_over(notes, f"inner{number}")
    for texts in (notes.doubts, notes.changes, outer.doubts, outer.changes):
        assert len(texts) == NOTES_MAX + 1
        assert texts[-1] == "and more"


def test_keys_beyond_the_limit_are_one_entry():
    result = imported(with_tools(**{f"k{number}": 1 for number in range(1_000)}))
    assert len(result.report) == NOTES_MAX
    assert "950 other keys" in result.report[-1].message


@pytest.mark.parametrize("url", ["https://a.example/?q=1&token=abc", "https://a.example/?a#?&api_key=abc"])
def test_a_literal_credential_in_a_query_needs_review(url):
    _, entry = one({"executionType": "request", "execution": {"url": url}})
    assert "looks like a literal credential" in entry.message
