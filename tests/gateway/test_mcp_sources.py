"""Tools of MCP servers in runs: real servers of the SDK in each era, and what is left out of their lists."""

import base64
import json
import subprocess
import sys

import pytest

from tests.support.gateway_client import opened_loop
from tests.support.mcp_servers import (
    ERAS,
    PNG,
    begin_with,
    desk,
    mcp_tools_of,
    raw_server,
    raw_tool,
    sdk_server,
    write_with,
)

SECRET = "s3cret-+/=value"


@pytest.fixture(params=ERAS)
async def served(request):
    async with sdk_server(desk(), request.param) as server:
        yield server


@pytest.fixture
async def modern():
    async with sdk_server(desk()) as server:
        yield server


@pytest.fixture
async def raw():
    async with raw_server() as server:
        yield server


def codes(run):
    return [warning["code"] for warning in run["warnings"]]


async def test_the_tools_of_a_server_are_listed_and_called_in_each_era(loop, served):
    begun = await begin_with(loop, served.entry())
    assert (begun.status_code, begun.json()["warnings"]) == (201, [])
    tools = await mcp_tools_of(loop)
    add = tools["desk__add"]
    assert (add["tool_id"], add["visibility"], add["execution_type"]) == ("mcp_tools.desk.add", "hidden", "gateway")
    assert add["description"] == "Adds numbers"
    assert add["annotations"] == {"title": "Add", "readOnlyHint": True}
    answer = await loop.call("desk__add", {"numbers": [1, None, 2]})
    assert (answer["ok"], answer["ret"]) == (True, {"total": 3, "parts": [1, None, 2]})
    assert "mcp_tools.desk.add" in json.dumps(answer["blocks"])
    answer = await loop.call("mcp_tools.desk.say", {"text": "hello"})
    assert answer["ret"] == "hello\nthat is all"
    line = loop.pipeline.audit_lines()[-1].gateway
    assert line.execution == "mcp"
    assert {effect.host for effect in line.effects} == {f"127.0.0.1:{served.port}"}
    assert "POST" in {effect.method for effect in line.effects}


async def test_each_era_is_spoken_as_its_server_does(loop):
    for era, first in zip(
        ERAS, (["server/discover", "tools/list"], ["server/discover", "initialize"], ["initialize"]), strict=True
    ):
        async with sdk_server(desk(), era) as server:
            await begin_with(loop, server.entry())
            assert server.methods[: len(first)] == first
            assert ("initialize" in server.methods) == (era != "modern")


async def test_an_input_that_does_not_fit_never_reaches_the_server(loop, modern):
    await begin_with(loop, modern.entry())
    answer = await loop.call("desk__add", {"numbers": "many"})
    assert answer["error"]["code"] == "invalid_input"
    assert modern.called == []


async def test_pictures_sounds_and_files_become_artifacts_and_links_are_listed(loop, served):
    await begin_with(loop, served.entry())
    answer = await loop.call("desk__draw")
    ret, turn = answer["ret"], f"turn_{loop.run['run_id']}"
    assert ret["data"] == "a picture\nand a note"
    assert [(file["artifact_path"], file["mime"]) for file in ret["files"]] == [
        (f"fi:{turn}.files/call-1.png", "image/png"),
        (f"fi:{turn}.files/call-1.2.wav", "audio/wav"),
        (f"fi:{turn}.files/call-1.3.bin", "application/octet-stream"),
    ]
    assert ret["links"] == [{"uri": "https://docs.example/a", "name": "a", "mime": "text/html"}]
    path = f"/v1/conversations/{loop.run['conversation_id']}/artifacts/{ret['files'][0]['artifact_path']}"
    assert (await loop.web.get(path)).content == PNG


async def test_a_tool_that_fails_says_why(loop, served):
    await begin_with(loop, served.entry())
    answer = await loop.call("desk__fail", {"why": "no paper"})
    assert (answer["ok"], answer["error"]["code"]) == (False, "mcp_tool_error")
    assert "no paper" in answer["error"]["message"]


async def test_a_tool_that_is_not_allowed_is_never_called(loop, modern):
    await begin_with(loop, modern.entry(allowedTools=["add", "nothing"]))
    assert list(await mcp_tools_of(loop)) == ["desk__add"]
    assert codes(loop.run) == ["mcp_tool_missing"]
    for name in ("desk__wipe", "mcp_tools.desk.wipe"):
        refused = await loop.post_call(name)
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_tool")
    assert (await loop.call("desk__add", {"numbers": [1]}))["ok"]
    assert modern.called == ["add"]
    await begin_with(loop, modern.entry(allowedTools=[]))
    assert await mcp_tools_of(loop) == {}


async def test_two_servers_with_a_tool_of_one_name_are_both_called(loop, modern, raw):
    raw.tools, raw.results = [raw_tool("say")], {"say": {"content": [{"type": "text", "text": "raw"}]}}
    await begin_with(loop, modern.entry(), raw.entry("other"))
    assert (await loop.call("desk__say", {"text": "sdk"}))["ret"].startswith("sdk")
    assert (await loop.call("other__say"))["ret"] == "raw"
    assert (modern.called, raw.called) == (["say"], ["say"])


async def test_names_for_the_model_are_cut_cleaned_and_never_taken_twice(loop, raw):
    long = "x" * 80
    raw.tools = [raw_tool(name) for name in ("get/it", "get_it", "hi", long, long + "y", "read")]
    mine = {"name": "desk__hi", "description": "mine", "executionType": "internal"}
    await begin_with(loop, raw.entry(), raw.entry("react"), tools=(mine,))
    tools = await mcp_tools_of(loop)
    first = [name for name in tools if name.startswith("desk__")]
    assert first[0] == "desk__get_it"
    cut = [name for name in first if "xxx" in name]
    assert [len(name) for name in cut] == [64, 64]
    assert cut[0][:57] == cut[1][:57]
    assert cut[0] != cut[1]
    assert "react__read" not in tools  # a tool of this service has that name
    assert codes(loop.run).count("name_taken") == 4
    assert (await loop.call("desk__hi"))["ret"] == {"status": "ok"}
    assert (await loop.call(cut[1]))["ok"]
    assert raw.called == [long + "y"]


async def test_a_pinned_tool_that_changed_is_gone(loop, raw):
    raw.tools = [raw_tool("pay"), raw_tool("say")]
    await begin_with(loop, raw.entry())
    pin = (await mcp_tools_of(loop))["desk__pay"]["pin"]
    await begin_with(loop, raw.entry(pins={"pay": pin}))
    assert "desk__pay" in await mcp_tools_of(loop)
    raw.tools = [raw_tool("pay", description="Pays the server too"), raw_tool("say")]
    await begin_with(loop, raw.entry(pins={"pay": pin}))
    assert list(await mcp_tools_of(loop)) == ["desk__say"]
    assert codes(loop.run) == ["mcp_tool_changed"]
    assert (await loop.post_call("desk__pay")).status_code == 404
    assert raw.called == []


async def test_a_run_keeps_the_tools_with_which_it_began(loop, raw):
    raw.tools = [raw_tool("pay")]
    await begin_with(loop, raw.entry())
    raw.tools = [raw_tool("pay", description="Another thing")]
    assert (await mcp_tools_of(loop))["desk__pay"]["description"] == "Does pay"
    async with opened_loop(loop.pipeline.folder / "other") as other:
        await begin_with(other, raw.entry())
        assert (await mcp_tools_of(other))["desk__pay"]["description"] == "Another thing"


async def test_descriptions_lose_what_nobody_sees_and_their_end(loop, raw):
    raw.tools = [raw_tool("say", description="a\x00\u202eb\x1b[31m" + "c" * 5_000)]
    await begin_with(loop, raw.entry())
    shown = (await mcp_tools_of(loop))["desk__say"]["description"]
    assert shown.startswith("a\\u202eb")
    assert not set(shown) & {"\x00", "\u202e", "\x1b"}
    assert len(shown) == 2_048


async def test_a_list_is_kept_for_as_long_as_its_server_allows(loop, raw):
    raw.tools = [raw_tool("say")]
    for ttl_ms, lists in ((0, 2), (60_000, 3)):
        raw.extra = {"ttlMs": ttl_ms}
        for _ in range(2):
            await begin_with(loop, raw.entry())
        assert raw.methods.count("tools/list") == lists


async def test_a_list_of_the_older_handshake_is_kept(loop):
    async with sdk_server(desk(), "handshake") as server:
        for _ in range(2):
            await begin_with(loop, server.entry())
        assert server.methods.count("tools/list") == 1


async def test_a_server_that_does_not_answer_is_a_warning_or_ends_the_request(loop, modern):
    gone = {"name": "gone", "url": "http://nobody.example/mcp", "transport": "http"}
    loop.pipeline.names.answers["nobody.example"] = [["127.0.0.77"]]
    begun = await begin_with(loop, gone, modern.entry())
    assert (begun.status_code, codes(begun.json())) == (201, ["mcp_unavailable"])
    assert {name.split("__")[0] for name in await mcp_tools_of(loop)} == {"desk"}
    refused = await begin_with(loop, {**gone, "required": True}, modern.entry())
    assert (refused.status_code, refused.json()["code"]) == (503, "mcp_unavailable")
    runs = (await loop.web.get("/v1/runs")).json()["items"]
    assert [run["run_id"] for run in runs] == [loop.run["run_id"]]


async def test_a_claim_leaves_a_run_queued_whose_required_server_is_away(loop, modern):
    gone = {"name": "gone", "url": "http://nobody.example/mcp", "transport": "http", "required": True}
    loop.pipeline.names.answers["nobody.example"] = [["127.0.0.77"]]
    queued = await begin_with(loop, gone, queued=True)
    assert (await loop.web.post("/v1/runs/claim", json={})).status_code == 204
    await write_with(loop, modern.entry(), agent_id="second")
    second = await loop.web.post("/v1/runs", json={"agent_id": "second", "queued": True})
    assert second.json()["warnings"] == []
    claimed = await loop.web.post("/v1/runs/claim", json={"wait_s": 20})
    assert claimed.json()["run_id"] == second.json()["run_id"]
    loop.run = claimed.json()
    assert "desk__add" in await mcp_tools_of(loop)
    first = await loop.web.get(f"/v1/runs/{queued.json()['run_id']}")
    assert first.json()["status"] == "queued"
    assert modern.methods.count("tools/list") == 1


async def test_a_run_that_is_claimed_again_keeps_its_tools(loop, raw):
    raw.tools = [raw_tool("say")]
    await begin_with(loop, raw.entry())
    await loop.web.post(f"/v1/runs/{loop.run['run_id']}/release", headers=loop.leased())
    raw.tools = []
    loop.run = (await loop.web.post("/v1/runs/claim", json={})).json()
    assert list(await mcp_tools_of(loop)) == ["desk__say"]
    assert raw.methods.count("tools/list") == 1


async def test_a_secret_reaches_its_server_and_comes_back_nowhere(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("MCP_KEY", SECRET)
    caplog.set_level("DEBUG")
    env = {"KEY": {"variable": "MCP_KEY", "hosts": ["mcp.example"]}}
    async with opened_loop(tmp_path, gateway_env=env) as loop, raw_server() as raw:
        coded = base64.b64encode(SECRET.encode()).decode()
        raw.tools = [raw_tool("echo", description=f"knows {SECRET}"), raw_tool(SECRET)]
        raw.results = {
            "echo": {
                "content": [{"type": "text", "text": f"{SECRET} {coded}"}],
                "structuredContent": {SECRET: coded},
            }
        }
        headers = {"Authorization": "Bearer ${env.KEY}"}
        entry = raw.entry(host="mcp.example", headers=headers)
        await begin_with(loop, entry)
        tools = await mcp_tools_of(loop)
        answer = await loop.call("desk__echo")
        raw.raw = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{" + SECRET.encode()
        broken = await loop.call("desk__echo")
        lines = "".join(line.model_dump_json() for line in loop.pipeline.audit_lines())
    files = [file for file in (tmp_path / "data").rglob("*") if file.is_file()]
    stored = "".join(file.read_bytes().decode("latin-1") for file in files)
    assert "mcp_tools.desk.echo" in stored
    assert {names.get("authorization") for names in raw.headers} == {f"Bearer {SECRET}"}
    assert list(tools) == ["desk__echo"]
    assert answer["ret"] == {"[redacted]": "[redacted]"}
    assert broken["ok"] is False
    everything = json.dumps([tools, answer, broken]) + lines + caplog.text + stored
    for form in (SECRET, coded):
        assert form not in everything


async def test_a_secret_is_for_the_hosts_of_the_operator_only(tmp_path, modern, monkeypatch):
    monkeypatch.setenv("MCP_KEY", SECRET)
    env = {"KEY": {"variable": "MCP_KEY", "hosts": ["mcp.example"]}}
    async with opened_loop(tmp_path, gateway_env=env) as loop:
        entry = modern.entry(host="other.example", headers={"X-Key": "${env.KEY}"})
        document = {"version": "2", "agent": {"name": "Helper"}, "tools": [], "mcp": {"servers": [entry]}}
        refused = await loop.web.put("/v1/agents/helper", json=document)
    assert refused.status_code == 422
    assert [(error["field"], error["code"]) for error in refused.json()["errors"]] == [
        ("mcp.servers[0].headers.X-Key", "unknown_env")
    ]
    assert modern.messages == []


async def test_proxies_of_the_environment_are_not_used(loop, modern, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    await begin_with(loop, modern.entry())
    assert (await loop.call("desk__add", {"numbers": [1]}))["ok"]


async def test_parameters_that_become_headers_reach_a_server_of_the_newest_revision(loop, raw):
    region = {"type": "string", "x-mcp-header": "Region"}
    raw.tools = [raw_tool("query", {"type": "object", "properties": {"region": region}})]
    await begin_with(loop, raw.entry())
    await loop.call("desk__query", {"region": "eu"})
    assert raw.headers[-1]["mcp-param-region"] == "eu"


LAZILY = """
import asyncio, pathlib, sys
from tests.support.gateway_client import opened_loop

async def main():
    async with opened_loop(pathlib.Path(sys.argv[1])) as loop:
        show = {"name": "show", "description": "x", "executionType": "internal", "execution": {"output": 1}}
        await loop.begin(show)
        assert (await loop.call("show"))["ret"] == 1
        print([name for name in ("mcp", "mcp_types") if name in sys.modules])

asyncio.run(main())
"""


def test_without_servers_the_sdk_is_not_imported(tmp_path):
    done = subprocess.run([sys.executable, "-c", LAZILY, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_the_tools_that_a_run_of_an_agent_would_have_are_listed_before_it_begins(loop, modern):
    gone = {"name": "gone", "url": "http://nobody.example/mcp", "transport": "http"}
    loop.pipeline.names.answers["nobody.example"] = [["127.0.0.77"]]
    await write_with(loop, gone, modern.entry(allowedTools=["add"]))
    listed = (await loop.web.get("/v1/tools", params={"agent_id": "helper"})).json()
    assert [tool["name"] for tool in listed["tools"] if tool["source"] == "mcp"] == ["desk__add"]
    assert codes(listed) == ["mcp_unavailable"]
    functions = await loop.web.get("/v1/tools", params={"agent_id": "helper", "format": "openai"})
    assert "desk__add" in [tool["function"]["name"] for tool in functions.json()["tools"]]
    await write_with(loop, {**gone, "required": True}, modern.entry())
    refused = await loop.web.get("/v1/tools", params={"agent_id": "helper"})
    assert (refused.status_code, refused.json()["code"]) == (503, "mcp_unavailable")
