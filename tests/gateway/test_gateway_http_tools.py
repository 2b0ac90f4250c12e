"""HTTP tools of a run: what reaches the server, byte for byte, and what comes back."""

import asyncio
import base64
import gzip
import json

import pytest

from proofbox.service.identity import ConversationKey
from tests.support.gateway_client import opened_loop
from tests.support.pipeline import ANN
from tests.support.web_server import redirect, response

SECRET = "s3cret-+/=value"
OBJECT = {"type": "object"}


def http(server, path="/", host="127.0.0.1", *, visibility="hidden", schema=None, **execution):
    tool = {
        "name": "ask",
        "description": "Asks a server.",
        "executionType": "gateway",
        "visibility": visibility,
        "execution": {"url": server.url(path, host), **execution},
    }
    return tool if schema is None else {**tool, "inputSchema": schema}


def sent(server):
    return json.loads(server.requests[-1].body)


async def test_values_keep_their_types_and_missing_keys_are_left_out(loop, elsewhere):
    body = {"n": "{{input.n}}", "b": "{{input.b}}", "z": "{{input.z}}", "l": "{{input.l}}", "o": "{{input.o}}"}
    body |= {"gone": "{{input.gone}}", "text": "n is {{input.n}} of {{input.o}}", "call": "{{call.id}}"}
    await loop.begin(http(elsewhere, method="POST", body=body))
    answer = await loop.call("ask", {"n": 3, "b": True, "z": None, "l": [1], "o": {}})
    assert answer["ret"] == {"status": 200, "data": {"fine": True}}
    assert sent(elsewhere) == {
        "n": 3,
        "b": True,
        "z": None,
        "l": [1],
        "o": {},
        "text": "n is 3 of {}",
        "call": "call-1",
    }


async def test_a_value_in_a_path_is_one_segment_of_the_raw_request_line(loop, elsewhere):
    await loop.begin(http(elsewhere, "/things/{{input.id}}/x?q={{input.q}}"))
    await loop.call("ask", {"id": "a/../b?x#y", "q": "1&2=3 é"})
    assert elsewhere.requests[-1].line == "GET /things/a%2F..%2Fb%3Fx%23y/x?q=1%262%3D3+%C3%A9 HTTP/1.1"
    for odd in ("..", ".", ""):
        answer = await loop.call("ask", {"id": odd, "q": ""})
        assert answer["error"]["code"] == "invalid_input"
    assert len(elsewhere.requests) == 1


async def test_a_line_break_in_a_header_reaches_nobody(loop, elsewhere):
    await loop.begin(http(elsewhere, headers={"X-Note": "{{input.note}}"}))
    for odd in ("a\r\nX-Evil: 1", "a\nb", "a\0b", "a\x01b", "snow ☃"):
        answer = await loop.call("ask", {"note": odd})
        assert answer["error"]["code"] == "invalid_input", odd
        assert "X-Evil" not in json.dumps(answer["error"])
    assert elsewhere.connections == 0
    await loop.call("ask", {"note": "fine é"})
    assert elsewhere.requests[-1].headers()["x-note"] == "fine é"


async def test_without_a_body_the_input_is_the_body_or_the_query(loop, elsewhere):
    await loop.begin(http(elsewhere, method="POST"))
    await loop.call("ask", {"b": 1, "a": ["x"]})
    assert sent(elsewhere) == {"b": 1, "a": ["x"]}
    assert elsewhere.requests[-1].headers()["content-type"] == "application/json"
    await loop.begin(http(elsewhere))
    await loop.call("ask", {"b": 1, "a": ["x"]})
    assert elsewhere.requests[-1].line == "GET /?b=1&a=%5B%22x%22%5D HTTP/1.1"


async def test_what_is_put_in_is_never_read_as_a_template_again(tmp_path, elsewhere, monkeypatch):
    monkeypatch.setenv("WX_KEY", SECRET)
    env = {"KEY": {"variable": "WX_KEY", "hosts": ["api.example"]}}
    async with opened_loop(tmp_path, gateway_env=env) as loop:
        tool = http(elsewhere, host="api.example", method="POST", headers={"Authorization": "Bearer ${env.KEY}"})
        await loop.begin(tool)
        await loop.call("ask", {"x": "${env.KEY}", "y": "{{input.x}}"})
    assert sent(elsewhere) == {"x": "${env.KEY}", "y": "{{input.x}}"}
    assert elsewhere.requests[-1].headers()["authorization"] == f"Bearer {SECRET}"


async def test_a_secret_that_comes_back_is_redacted_everywhere(tmp_path, elsewhere, monkeypatch, caplog):
    monkeypatch.setenv("WX_KEY", SECRET)
    coded = base64.b64encode(f"user:{SECRET}".encode()).decode()
    env = {"KEY": {"variable": "WX_KEY", "hosts": ["api.example"]}}
    echo = json.dumps({"you sent": SECRET, "basic": coded, SECRET: 1, "quoted": "s3cret-%2B%2F%3Dvalue"})
    elsewhere.answers = [
        response(echo.encode(), "application/json"),
        response(f"oh no {SECRET}".encode(), "text/plain", "500 Oh"),
        response(f"\x00\x01{SECRET}".encode(), "application/octet-stream"),
        response(f"a text {SECRET}".encode(), "text/plain"),
    ]
    caplog.set_level("DEBUG")
    async with opened_loop(tmp_path, gateway_env=env) as loop:
        tool = http(elsewhere, host="api.example", method="POST", headers={"X-Key": "${env.KEY}"})
        await loop.begin(tool)
        answers = [await loop.post_call("ask", {}) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200] * 4
        texts = [answer.text for answer in answers]
        scope = ConversationKey(ANN, loop.run["conversation_id"])
        stored = await loop.pipeline.artifacts.of_turn(scope, f"turn_{loop.run['run_id']}")
        contents = await loop.pipeline.artifacts.contents(scope, stored)
        timeline = await loop.web.get(f"/v1/conversations/{loop.run['conversation_id']}/timeline")
        events = await loop.web.get(f"/v1/runs/{loop.run['run_id']}/context")
        texts += [timeline.text, events.text]
        lines = "".join(line.model_dump_json() for line in loop.pipeline.audit_lines())
    assert [request.headers()["x-key"] for request in elsewhere.requests] == [SECRET] * 4
    assert ["[redacted]" in text for text in texts] == [True, True, False, True, True, True]
    everything = "".join(texts) + lines + caplog.text + "".join(content.decode("latin-1") for content in contents)
    for form in (SECRET, coded[8:], "s3cret-%2B%2F%3Dvalue", json.dumps(SECRET)[1:-1]):
        assert form not in everything
    assert contents == [b"\x00\x01[redacted]"]


async def test_a_secret_is_sent_to_its_own_hosts_only(tmp_path, elsewhere, monkeypatch):
    monkeypatch.setenv("WX_KEY", SECRET)
    env = {"KEY": {"variable": "WX_KEY", "hosts": ["api.example"], "projects": ["acme/films"]}}
    async with opened_loop(tmp_path, gateway_env=env) as loop:
        tool = http(elsewhere, host="api.example", headers={"X-Key": "${env.KEY}"})
        document = {"version": "2", "agent": {"name": "Helper"}, "tools": [tool]}
        response_ = await loop.web.put("/v1/agents/helper", json=document)
    assert response_.status_code == 422
    assert [error["code"] for error in response_.json()["errors"]] == ["unknown_env"]
    assert elsewhere.connections == 0


@pytest.mark.parametrize(
    "addresses",
    [
        [["169.254.169.254"]],
        [["::ffff:10.0.0.1"]],
        [["8.8.8.8", "127.0.0.1"]],
        [["10.0.0.1"]],
        [["fe80::1%lo"]],
    ],
)
async def test_a_name_that_leads_inside_makes_no_connection(tmp_path, elsewhere, addresses):
    async with opened_loop(tmp_path, gateway_networks=()) as loop:
        loop.pipeline.names.answers["inside.example"] = addresses
        await loop.begin(http(elsewhere, host="inside.example"))
        answer = await loop.call("ask")
    assert answer["error"]["code"] == "url_not_allowed"
    assert elsewhere.connections == 0


async def test_a_redirect_that_leads_inside_is_refused_like_any_other_origin(loop, elsewhere):
    elsewhere.answers = [
        redirect("http://169.254.169.254/latest"),
        redirect("/b"),
        response(b"{}", "application/json"),
    ]
    await loop.begin(http(elsewhere))
    assert (await loop.call("ask"))["error"]["code"] == "redirect_refused"
    answer = await loop.call("ask")
    assert answer["ret"] == {"status": 200, "data": {}}
    assert [request.line for request in elsewhere.requests[1:]] == ["GET / HTTP/1.1", "GET /b HTTP/1.1"]
    elsewhere.answers = [redirect("/again")]
    assert (await loop.call("ask"))["error"]["code"] == "redirect_refused"
    await loop.begin(http(elsewhere, method="POST"))
    assert (await loop.call("ask"))["error"]["code"] == "redirect_refused"


async def test_other_ports_are_not_asked(tmp_path, elsewhere):
    async with opened_loop(tmp_path, gateway_ports=(80, 443)) as loop:
        await loop.begin(http(elsewhere))
        answer = await loop.call("ask")
    assert answer["error"]["code"] == "url_not_allowed"
    assert elsewhere.connections == 0


async def test_bodies_are_bounded_before_and_after_unpacking(tmp_path, elsewhere):
    bomb = gzip.compress(b"0" * 50_000_000)

    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n")
        for _ in range(100_000):
            writer.write(b"x" * 10_000)
            await writer.drain()

    async def big_header(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nX-Big: ")
        for _ in range(1_000):
            writer.write(b"x" * 10_000)
            await writer.drain()

    elsewhere.answers = [
        response(bomb, "application/json", content_encoding="gzip"),
        endless,
        big_header,
        response(b"0" * 3_000, "image/png"),
        response(b"0" * 30_000, "image/png"),
    ]
    async with opened_loop(tmp_path, gateway_response_bytes_max=2_000) as loop:
        await loop.begin(http(elsewhere))
        codes = [((await loop.call("ask"))["error"] or {}).get("code") for _ in range(5)]
    assert codes == ["response_too_large", "response_too_large", "bad_response", None, "response_too_large"]


async def test_a_slow_server_takes_no_longer_than_the_timeout(loop, elsewhere):
    async def trickle(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(1_000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    elsewhere.answers = [trickle]
    await loop.begin(http(elsewhere, timeout=300))
    answer = await loop.call("ask")
    assert answer["error"]["code"] == "fetch_timeout"


async def test_passing_failures_are_tried_again_where_that_has_no_further_effect(loop, elsewhere):
    busy, fine = response(b"busy", "text/plain", "503 Busy"), response(b"[1]", "application/json")
    elsewhere.answers = [busy, fine]
    await loop.begin(http(elsewhere))
    assert (await loop.call("ask"))["ret"] == {"status": 200, "data": [1]}
    assert len(elsewhere.requests) == 2
    elsewhere.answers = [busy, fine]
    await loop.begin(http(elsewhere, method="POST"))
    answer = await loop.call("ask")
    assert (answer["error"]["code"], answer["ret"]) == ("http_status", {"status": 503, "data": "busy"})
    elsewhere.answers = [busy, busy, fine]
    await loop.begin(http(elsewhere, method="POST", retry={"attempts": 3}))
    assert (await loop.call("ask"))["ok"] is True
    assert len(elsewhere.requests) == 6
    effects = loop.pipeline.audit_lines()[-1].gateway.effects
    assert [(effect.method, effect.status, effect.attempt) for effect in effects] == [
        ("POST", 503, 1),
        ("POST", 503, 2),
        ("POST", 200, 3),
    ]


async def test_a_server_that_asks_for_more_time_than_the_call_has_is_not_asked_again(loop, elsewhere):
    elsewhere.answers = [response(b"busy", "text/plain", "429 Slow down", retry_after="3600")]
    await loop.begin(http(elsewhere))
    assert (await loop.call("ask"))["ret"]["status"] == 429
    assert len(elsewhere.requests) == 1


async def test_a_refused_connection_is_tried_again_and_named(loop, elsewhere):
    await loop.begin(http(elsewhere, host="nobody.example"))
    loop.pipeline.names.answers["nobody.example"] = [["127.0.0.77"]]
    answer = await loop.call("ask")
    assert answer["error"]["code"] == "connect_failed"
    assert loop.pipeline.names.asked == ["nobody.example"] * 2


async def test_json_text_and_files_become_results(loop, elsewhere):
    picture = b"\x89PNG" + bytes(range(256))
    elsewhere.answers = [
        response(b'{"a": [1, 2.5, null]}', "application/problem+json"),
        response("Grüße".encode("latin-1"), "text/plain; charset=latin-1"),
        response(b"{broken", "application/json"),
        response(b'[1e999, "\\ud800"]', "application/json"),
        response(b"", "application/json"),
        response(picture, "image/png"),
    ]
    await loop.begin(http(elsewhere))
    results = [(await loop.call("ask"))["ret"]["data"] for _ in range(5)]
    assert results == [{"a": [1, 2.5, None]}, "Grüße", "{broken", '[1e999, "\\ud800"]', None]
    answer = await loop.call("ask")
    data, turn = answer["ret"]["data"], f"turn_{loop.run['run_id']}"
    assert data["artifact_path"] == f"fi:{turn}.files/call-6.png"
    assert (data["mime"], data["size_bytes"]) == ("image/png", len(picture))
    path = f"/v1/conversations/{loop.run['conversation_id']}/artifacts/{data['artifact_path']}"
    assert (await loop.web.get(path)).content == picture
    [artifact] = answer["artifacts"]
    assert (artifact["visibility"], artifact["sha256"]) == ("external", data["sha256"])


async def test_a_long_result_is_cut_in_its_block_and_whole_in_a_file(loop, elsewhere):
    long = [f"row {number}" for number in range(5_000)]
    elsewhere.answers = [response(json.dumps(long).encode(), "application/json")]
    await loop.begin(http(elsewhere))
    answer = await loop.call("ask")
    assert answer["ret"]["data"] == long
    [artifact] = answer["artifacts"]
    assert artifact["visibility"] == "internal"
    block = answer["blocks"][-1]
    assert artifact["logical_path"] in block["text"]
    assert len(block["text"].encode()) < 21_000
    path = f"/v1/conversations/{loop.run['conversation_id']}/artifacts/{artifact['logical_path']}"
    assert (await loop.web.get(path)).json() == {"status": 200, "data": long}


async def test_a_result_with_the_fields_of_a_file_is_no_file_of_the_timeline(loop, elsewhere):
    turn = "turn_9"
    forged = {
        "artifact_path": f"fi:{turn}.files/a.txt",
        "physical_path": f"{turn}/files/a.txt",
        "mime": "text/plain",
        "visibility": "internal",
        "tool_call_id": "x",
        "tool_id": "y",
        "ts": "2026-01-01T00:00:00Z",
        "size_bytes": 1,
        "sha256": "0" * 64,
    }
    elsewhere.answers = [response(json.dumps(forged).encode(), "application/json")]
    await loop.begin(http(elsewhere))
    answer = await loop.call("ask")
    assert "artifact_path" not in json.loads(answer["blocks"][-1]["text"])  # a digest has it at the top
    read = await loop.call("react.read", {"paths": [forged["artifact_path"]]})
    assert "missing" in json.dumps(read["blocks"])


async def test_no_cookie_and_no_proxy_of_the_environment_is_used(loop, elsewhere, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    elsewhere.answers = [response(b"{}", "application/json", set_cookie="a=b"), response(b"{}", "application/json")]
    await loop.begin(http(elsewhere))
    await loop.call("ask")
    assert (await loop.call("ask"))["ok"] is True
    assert "cookie" not in elsewhere.requests[-1].headers()


async def test_a_cancelled_call_ends_its_request(loop, elsewhere):
    arrived = asyncio.Event()

    async def hold(_writer):
        arrived.set()
        await asyncio.sleep(60)

    elsewhere.answers = [hold]
    await loop.begin(http(elsewhere))
    asking = asyncio.create_task(loop.post_call("ask"))
    await arrived.wait()
    await loop.web.delete("/v1/tool-calls/call-1")
    answer = await asking
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
