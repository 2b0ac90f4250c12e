"""Which tools of an MCP server an agent gets, by their names, schemas and pins."""

import json
import math
from dataclasses import replace

import pytest

from proofbox.contracts.gateway.configuration import McpServer
from proofbox.service.app.gateway import AgentConfigurations
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.catalogue import CACHED_BYTES_MAX, ToolCatalogue
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import McpClient, McpFailedError, ServerTool, ToolListing
from proofbox.service.gateway.mcp.run_pins import UNAVAILABLE_S, McpPins
from proofbox.service.gateway.mcp.selection import id_of, model_name, pin_sha256, select_tools
from proofbox.service.gateway.mcp.sources import PINNED_BYTES_MAX, McpSources
from proofbox.service.gateway.runs_port import NewRun, RunLimits
from proofbox.service.gateway_errors import McpUnavailableError
from proofbox.service.identity import Principal
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.runs import SqlRunStore
from tests.support.pipeline import NO_SERVER

ANN = Principal("acme", "books", "registered", "ann")
OBJECT = {"type": "object"}


def server(name="desk", **more):
    return McpServer.model_validate({"name": name, "url": "https://mcp.example/mcp", "transport": "http", **more})


def tool(name, schema=OBJECT, description="Does it", **more):
    return ServerTool(name, description, schema, **more)


def test_names_hold_what_models_take_and_long_ones_stay_apart():
    assert model_name("desk", "get/it ☃") == "desk__get_it__"
    assert id_of("desk", "get/it") == "mcp_tools.desk.get_it"
    long = [model_name("desk", "x" * 80 + end) for end in ("", "y")]
    assert [len(name) for name in long] == [64, 64]
    assert long[0] != long[1]
    assert all(set(name[-6:]) <= set("0123456789abcdef") for name in long)
    assert len(id_of("d" * 31, "x" * 300)) == 128


def test_without_a_list_64_tools_are_allowed_and_the_others_are_named():
    found = select_tools(server(), [tool(f"t{number}") for number in range(70)], ())
    assert len(found.tools) == 64
    assert [warning["code"] for warning in found.warnings] == ["mcp_tool_missing"]
    allowed = [f"t{number}" for number in range(70)]
    found = select_tools(server(allowedTools=allowed), [tool(name) for name in allowed], ())
    assert len(found.tools) == 70
    assert found.warnings == []


def test_a_pin_is_of_name_description_and_schema():
    pin = pin_sha256(tool("pay"))
    changed = [tool("pay2"), tool("pay", description="Pays"), tool("pay", {"type": "object", "required": ["x"]})]
    assert len({pin, *(pin_sha256(each) for each in changed)}) == 4
    assert pin_sha256(tool("pay", annotations={"readOnlyHint": True})) == pin
    assert [each.name for each in select_tools(server(pins={"pay": pin}), [tool("pay")], ()).tools] == ["desk__pay"]
    found = select_tools(server(pins={"pay": pin}), [changed[2]], ())
    assert (found.tools, found.warnings[0]["code"]) == ([], "mcp_tool_changed")
    assert pin_sha256(changed[2]) in found.warnings[0]["message"]


def test_a_name_that_is_taken_stays_with_its_owner():
    found = select_tools(server(), [tool("a"), tool("b/c"), tool("b_c")], {"desk__a"})
    assert [each.remote_name for each in found.tools] == ["b/c"]
    assert [warning["code"] for warning in found.warnings] == ["name_taken", "name_taken"]


def test_an_input_is_an_object_and_a_schema_that_is_refused_drops_its_tool_alone():
    outside = {"type": "object", "properties": {"x": {"$ref": "file:///etc/hostname"}}}
    listed = [tool("a", {"type": "string"}), tool("b", outside), tool("c", output_schema=outside), tool("d")]
    found = select_tools(server(), listed, ())
    assert [each.remote_name for each in found.tools] == ["d"]
    assert [warning["code"] for warning in found.warnings] == ["mcp_schema_refused"] * 3
    assert found.warnings[1]["message"].startswith("desk.b: schema.properties.x.$ref: ")


@pytest.mark.parametrize("field", ["schema", "output_schema"])
def test_a_schema_with_a_number_that_is_not_finite_drops_its_tool(field):
    given = {"type": "object", "properties": {"x": {"maximum": math.inf}}}
    found = select_tools(server(), [tool("a", **{field: given}), tool("b")], ())
    assert [each.remote_name for each in found.tools] == ["b"]
    assert found.warnings == [
        {
            "code": "mcp_schema_refused",
            "message": "desk.a: its schema is not JSON: it has a number that is not finite",
        }
    ]


def test_hints_are_booleans_and_one_visible_title():
    hints = {"readOnlyHint": True, "title": "A\nB\x00", "other": {"deep": [1]}}
    [found] = select_tools(server(), [tool("a", annotations=hints)], ()).tools
    assert found.annotations == {"readOnlyHint": True, "title": "A\\nB"}


def test_what_is_stored_comes_back():
    [found] = select_tools(server(), [tool("a", output_schema=OBJECT)], ()).tools
    assert PinnedTool.from_json(found.to_json()) == found


class FixedClient(McpClient):
    """Lists what the test says; counts how often it is asked."""

    def __init__(self, tools, ttl_s=None):
        self.tools, self.ttl_s, self.asked, self.is_up = tools, ttl_s, 0, True

    async def list_tools(self, _server):
        self.asked += 1
        if not self.is_up:
            raise McpFailedError("mcp_unavailable", "gone")
        return ToolListing(self.tools, self.ttl_s, 100)


async def test_a_list_is_kept_for_300_s_if_nobody_says_how_long():
    now = [0.0]
    client = FixedClient([tool("a")])
    sources = McpSources(client, Environment(), lambda: now[0])
    for at, asked in ((0, 1), (299, 1), (301, 2)):
        now[0] = at
        offered = await sources.offer([server()], "acme/books", [])
        assert [each.name for each in offered.tools] == ["desk__a"]
        assert client.asked == asked
    await sources.offer([server()], "acme/films", [])
    assert client.asked == 3


async def test_the_tools_of_a_run_have_a_limit_in_all():
    schema = {"type": "object", "description": "x" * 60_000}
    servers = [server(f"s{number}") for number in range(2)]
    client = FixedClient([tool(f"t{number}", schema) for number in range(60)])
    offered = await McpSources(client, Environment()).offer(servers, "acme/books", [])
    assert sum(len(str(each.to_json())) for each in offered.tools) < PINNED_BYTES_MAX
    assert len(offered.tools) < 120
    assert [warning["code"] for warning in offered.warnings] == ["mcp_schema_refused"]


@pytest.fixture
async def database(tmp_path):
    database = Database(tmp_path, NO_SERVER)
    await database.open()
    yield database
    await database.close()


async def test_claims_pass_by_a_version_for_a_while_before_they_ask_again(database):
    agents = SqlAgentStore(database)
    entry = server(required=True).model_dump(mode="json", by_alias=True)
    document = {"version": "2", "agent": {"name": "Helper"}, "tools": [], "mcp": {"servers": [entry]}}
    await agents.write(ANN, "helper", NewVersion("Helper", json.dumps(document), "a" * 64), None)
    now, client = [0.0], FixedClient([tool("a")], ttl_s=0)
    catalogue = ToolCatalogue(AgentConfigurations(agents), [], [], SqlRunStore(database, RunLimits()))
    pins = McpPins(agents, catalogue, McpSources(client, Environment()), lambda: now[0])
    client.is_up = False
    for at, asked in ((0, 1), (UNAVAILABLE_S - 1, 1), (UNAVAILABLE_S + 1, 2)):
        now[0] = at
        with pytest.raises(McpUnavailableError, match="desk: gone"):
            await pins.pin_queued(ANN, "helper", 1)
        assert client.asked == asked
    client.is_up = True
    now[0] += UNAVAILABLE_S
    assert [each.name for each in (await pins.pin_queued(ANN, "helper", 1)).tools] == ["desk__a"]
    assert await pins.pin(ANN, "nobody") is None


class CountedPins:
    """Pins that have a size; counts how often they are read."""

    def __init__(self, characters):
        schema = {"type": "object", "description": "x" * characters}
        self.tools, self.read = select_tools(server(), [tool("a")], ()).tools, []
        self.tools = [replace(each, input_schema=schema) for each in self.tools]

    async def tools_of(self, run_id):
        self.read.append(run_id)
        return self.tools


@pytest.mark.parametrize(("share", "read_again"), [(3, ["run_0"]), (8, [])])
async def test_the_tools_of_runs_in_memory_are_bounded_by_their_size(database, share, read_again):
    agents, store = SqlAgentStore(database), SqlRunStore(database, RunLimits())
    entry = server().model_dump(mode="json", by_alias=True)
    document = {"version": "2", "agent": {"name": "Helper"}, "tools": [], "mcp": {"servers": [entry]}}
    await agents.write(ANN, "helper", NewVersion("Helper", json.dumps(document), "a" * 64), None)
    pins = CountedPins(CACHED_BYTES_MAX // share)
    catalogue = ToolCatalogue(AgentConfigurations(agents), [], [], pins)
    runs = [NewRun(f"run_{number}", "helper", f"run:{number}", {"type": "manual"}) for number in range(3)]
    stored = [(await store.create(ANN, run))[0] for run in runs]
    for run in (*stored, stored[2], stored[0]):
        assert (await catalogue.tools_of_run(ANN, run)).find("desk__a") is not None
    assert pins.read == ["run_0", "run_1", "run_2", *read_again]


async def test_the_versions_in_memory_are_bounded_by_their_size(database):
    agents = SqlAgentStore(database)
    built = []

    class Counted(AgentConfigurations):
        async def find_version(self, principal, agent_id, version):
            built.append(agent_id)
            return await super().find_version(principal, agent_id, version)

    catalogue = ToolCatalogue(Counted(agents), [], [], CountedPins(1))
    for number in range(3):
        given = {"name": f"h{number}", "system": "x" * (CACHED_BYTES_MAX // 3)}
        document = json.dumps({"version": "2", "agent": given, "tools": []})
        await agents.write(ANN, f"a{number}", NewVersion(f"h{number}", document, f"{number}" * 64), None)
        await catalogue.tools_of(ANN, f"a{number}", 1)
        await catalogue.tools_of(ANN, f"a{number}", 1)
    await catalogue.tools_of(ANN, "a0", 1)
    assert built == ["a0", "a1", "a2", "a0"]
