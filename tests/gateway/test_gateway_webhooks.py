"""External tools against a real receiver, which checks each signature with the library of Standard Webhooks."""

import json

import httpx
import pytest
from sqlalchemy import func, update
from standardwebhooks import Webhook

from proofbox.service.storage.gateway.schema import agent_versions
from tests.support.asking import Asking, opened_asking
from tests.support.recording_server import recording_server
from tests.support.web_server import response

SECRET = "whsec_" + "c2lnbmluZyBzZWNyZXQgb2YgdGhlIG9wZXJhdG9y"
HIDDEN = "s3cr3t-of-the-operator"


def webhook(server, **more):
    return {
        "name": "notify",
        "executionType": "external",
        "resultSchema": {"type": "object", "required": ["sent"]},
        "execution": {"webhookUrl": server.url("/hooks/{{input.room}}"), **more},
    }


def answers(*given):
    return [response(body, "application/json", status) for status, body in given]


@pytest.fixture
async def receiver():
    async with recording_server() as server:
        yield server


@pytest.fixture
async def asking(tmp_path, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    monkeypatch.setenv("HOOK_KEY", HIDDEN)
    known = {
        "SIGN": {"variable": "HOOK_SECRET", "hosts": ["127.0.0.1"]},
        "KEY": {"variable": "HOOK_KEY", "hosts": ["127.0.0.1"]},
    }
    async with opened_asking(tmp_path, gateway_env=known, public_url="https://box.example") as opened:
        yield opened


async def own_secret(asking: Asking, **body):
    answer = await asking.web.post("/v1/agents/helper/signing-secret", json=body)
    return answer.json()["secret"]


def envelopes(server):
    return [json.loads(request.body) for request in server.requests]


async def test_the_receiver_verifies_the_signature_and_answers_the_call(asking, receiver):
    receiver.answers = answers((200, b'{"sent": true}'))
    await asking.enter(webhook(receiver))
    answer = await asking.call("notify", {"room": "a/b", "text": "grüße"})
    assert (answer["ok"], answer["ret"]) == (True, {"sent": True})
    [request] = receiver.requests
    assert request.line == "POST /hooks/a%2Fb HTTP/1.1"
    verified = Webhook(await own_secret(asking)).verify(request.body.decode(), request.headers())
    assert verified["data"]["input"] == {"room": "a/b", "text": "grüße"}
    assert (verified["type"], verified["data"]["tool"], verified["data"]["attempt"]) == ("tool.call", "notify", 1)
    assert verified["data"]["callback"]["url"] == "https://box.example/v1/tool-calls/call-1/result"


async def test_both_secrets_sign_while_they_are_rotated(asking, receiver):
    receiver.answers = answers((204, b""))
    await asking.enter(webhook(receiver))
    before = await own_secret(asking)
    after = await own_secret(asking, rotate=True)
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], answer["ret"]) == (True, None)
    for secret in (before, after):
        Webhook(secret).verify(receiver.requests[0].body.decode(), receiver.requests[0].headers())


async def test_the_operators_secret_signs_alone_and_is_never_shown(asking, receiver):
    receiver.answers = answers((200, json.dumps({"sent": f"with {HIDDEN}"}).encode()))
    await asking.enter(webhook(receiver, secret="${env.SIGN}", headers={"X-Key": "${env.KEY}"}))
    answer = await asking.call("notify", {"room": "a"})
    [request] = receiver.requests
    Webhook(SECRET).verify(request.body.decode(), request.headers())
    assert len(request.headers()["webhook-signature"].split(" ")) == 1
    assert (request.headers()["x-key"], answer["ret"]) == (HIDDEN, {"sent": "with [redacted]"})
    assert HIDDEN not in json.dumps(answer)


async def test_attempts_have_one_id_and_signatures_of_their_own(asking, receiver):
    receiver.answers = answers((503, b""), (500, b""), (200, b'{"sent": 1}'))
    await asking.enter(webhook(receiver))
    answer = await asking.call("notify", {"room": "a"})
    assert answer["ok"], answer
    secret = await own_secret(asking)
    assert [envelope["data"]["attempt"] for envelope in envelopes(receiver)] == [1, 2, 3]
    assert len({request.headers()["webhook-id"] for request in receiver.requests}) == 1
    for request in receiver.requests:
        Webhook(secret).verify(request.body.decode(), request.headers())


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ((500, b"broken"), 3),
        ((404, b"gone"), 1),
        ((302, b""), 1),
        ((200, b"no json"), 1),
    ],
)
async def test_a_service_without_a_result_is_external_failed(asking, receiver, given, count):
    receiver.answers = answers(given)
    await asking.enter(webhook(receiver))
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], answer["error"]["code"], len(receiver.requests)) == (False, "external_failed", count)


async def begin_later(asking, receiver):
    receiver.answers = answers((202, b""))
    await asking.enter(webhook(receiver, headers={"X-Key": "${env.KEY}"}))
    wait = await asking.ask("notify", {"room": "a"})
    assert (wait["kind"], wait["space_id"]) == ("external", None)
    return envelopes(receiver)[0]["data"]["callback"]


async def call_back(asking, token, tool_call_id="call-1", **body) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return await asking.web.post(f"/v1/tool-calls/{tool_call_id}/result", json=body, headers=headers)


async def test_a_service_that_answers_later_ends_the_call_by_its_callback(asking, receiver):
    callback = await begin_later(asking, receiver)
    assert (await asking.current())["status"] == "waiting_tool"
    messages = (await asking.web.get(f"/v1/spaces/{asking.space_id}/messages")).json()["items"]
    assert messages[0]["tool"]["state"] == "running"
    refused = await asking.answer({"space_id": asking.space_id, **messages[0]}, result={"sent": 1})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_waiting")
    taken = await call_back(asking, callback["token"], result={"sent": HIDDEN})
    assert (taken.status_code, taken.json()["call"]["response"]) == (200, None)
    status = await asking.status()
    assert (status["status"], status["response"]["ret"]) == ("done", {"sent": "[redacted]"})
    assert (await asking.current())["status"] == "running"
    again = await call_back(asking, callback["token"], result={"sent": HIDDEN})
    assert (again.status_code, again.headers["idempotent-replayed"]) == (200, "true")
    assert (await call_back(asking, callback["token"], result={"sent": 2})).json()["code"] == "already_answered"


async def test_a_callback_is_checked_as_any_answer(asking, receiver):
    callback = await begin_later(asking, receiver)
    refused = await call_back(asking, callback["token"], result={"other": 1})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_result")
    failed = await call_back(asking, callback["token"], error={"message": "no printer"})
    assert failed.status_code == 200
    assert (await asking.status())["response"]["error"]["code"] == "user_error"


async def test_a_token_opens_its_own_call_only(asking, receiver):
    callback = await begin_later(asking, receiver)
    await asking.ask("notify", {"room": "b"})
    other = envelopes(receiver)[1]["data"]["callback"]["token"]
    assert (await call_back(asking, other, result={"sent": 1})).status_code == 401
    assert (await call_back(asking, f"{callback['token']}0", result={"sent": 1})).status_code == 401
    forged = callback["token"][:-1] + ("0" if callback["token"][-1] != "0" else "1")
    assert (await call_back(asking, forged, result={"sent": 1})).status_code == 401
    assert (await asking.status())["status"] == "waiting"


async def test_the_audit_line_lists_each_attempt(asking, receiver):
    receiver.answers = answers((503, b""), (200, b'{"sent": 1}'))
    await asking.enter(webhook(receiver))
    await asking.call("notify", {"room": "a"})
    [line] = [line for line in asking.pipeline.audit_lines() if line.call.tool_call_id == "call-1"]
    assert [(effect.status, effect.attempt) for effect in line.gateway.effects] == [(503, 1), (200, 2)]
    assert "hooks" not in line.model_dump_json()


async def test_our_own_tools_take_the_envelope_of_a_gateway(asking):
    params = {"path": "note.txt", "channel": "canvas", "content": "hello", "kind": "file"}
    envelope = {
        "type": "tool.call",
        "timestamp": "x",
        "data": {"tool_call_id": "c-9", "input": params, "attempt": 1},
    }
    first = await asking.web.post("/v1/external/react.write", json=envelope)
    again = await asking.web.post("/v1/external/react.write", json=envelope)
    assert (first.status_code, first.json()["ok"]) == (200, True)
    stored, replayed = first.json(), again.json()
    [file], [link] = stored["files"], [replayed["files"][0].pop("url")]
    # Each answer has a link of its own: its time of expiry is that of the answer.
    assert link.partition("?")[0] == file.pop("url").partition("?")[0]
    assert (replayed, again.headers["idempotent-replayed"]) == (stored, "true")
    assert (file["path"], file["size_bytes"]) == ("note.txt", 5)
    assert (await asking.web.get("/v1/tool-calls/c-9?conversation_id=ext:local")).json()["status"] == "done"


async def test_a_bare_input_has_the_id_of_its_webhook(asking):
    params = {"path": "note.txt", "channel": "canvas", "content": "hello", "kind": "file"}
    given = {"webhook-id": "msg_77"}
    assert (await asking.web.post("/v1/external/react.write", json=params, headers=given)).json()["ok"]
    assert (await asking.web.get("/v1/tool-calls/msg_77")).json()["status"] == "done"
    missing = await asking.web.post("/v1/external/no.such_tool", json=params)
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_tool")


@pytest.mark.parametrize("body", [b'{"sent": NaN}', b"[" * 5_000 + b"]" * 5_000, b'{"sent": 1e999}'])
async def test_json_that_cannot_be_stored_is_external_failed(asking, receiver, body):
    receiver.answers = answers((200, body))
    await asking.enter(webhook(receiver))
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], answer["error"]["code"]) == (False, "external_failed")


async def test_half_of_a_surrogate_pair_does_not_lose_the_answer(asking, receiver):
    receiver.answers = answers((200, b'{"sent": "\\ud800"}'))
    await asking.enter(webhook(receiver))
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], answer["ret"]) == (True, {"sent": "?"})


async def test_no_part_of_a_secret_is_shown_where_an_error_is_cut(asking, receiver):
    receiver.answers = answers((404, b"x" * 2_040 + HIDDEN.encode()))
    await asking.enter(webhook(receiver, headers={"X-Key": "${env.KEY}"}))
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], HIDDEN[:4] in json.dumps(answer)) == (False, False)


async def test_a_host_that_is_a_secret_is_in_no_audit_line(tmp_path, receiver, monkeypatch):
    monkeypatch.setenv("HOOK_HOST", "intern.example")
    known = {"HOST": {"variable": "HOOK_HOST", "hosts": ["intern.example"]}}
    async with opened_asking(tmp_path, gateway_env=known, public_url="https://box.example") as asking:
        asking.pipeline.names.answers["intern.example"] = [["127.0.0.1"]]
        receiver.answers = answers((200, b'{"sent": 1}'))
        tool = webhook(receiver)
        tool["execution"]["webhookUrl"] = f"http://${{env.HOST}}:{receiver.port}/hooks"
        await asking.enter(tool)
        assert (await asking.call("notify", {}))["ok"]
        lines = [line.model_dump_json() for line in asking.pipeline.audit_lines()]
    assert any("[redacted]" in line for line in lines)
    assert not any("intern.example" in line for line in lines)


async def test_a_secret_signs_webhooks_to_its_own_hosts_only(asking, receiver):
    tool = webhook(receiver, secret="${env.SIGN}")
    tool["execution"]["webhookUrl"] = "https://elsewhere.example/hooks"
    document = {"version": "2", "agent": {"name": "Helper"}, "tools": [tool]}
    refused = await asking.web.put("/v1/agents/helper", json=document)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert (error["code"], error["field"]) == ("unknown_env", "tools[0].execution.secret")


async def test_a_stored_header_that_cannot_be_sent_fails_the_call(asking, receiver):
    changed = agent_versions.c.config
    tool = webhook(receiver, headers={"X-Old": "trailers"})
    await asking.write_agent(tool)
    # As a release wrote it that took the header.
    old = update(agent_versions).values(config=func.replace(changed, "X-Old", "TE"))
    await asking.pipeline.database.write(lambda connection: connection.execute(old))
    await asking.enter(tool)
    answer = await asking.call("notify", {"room": "a"})
    assert (answer["ok"], answer["error"]["code"]) == (False, "external_failed")
    assert "headers.TE" in answer["error"]["message"]
    assert receiver.connections == 0


@pytest.mark.parametrize("addresses", [[["169.254.169.254"]], [["8.8.8.8", "127.0.0.1"]], [["::ffff:10.0.0.1"]]])
async def test_a_webhook_to_an_address_inside_makes_no_connection(tmp_path, receiver, addresses):
    async with opened_asking(tmp_path, gateway_networks=()) as asking:
        asking.pipeline.names.answers["inside.example"] = addresses
        tool = webhook(receiver)
        tool["execution"]["webhookUrl"] = receiver.url("/hooks", "inside.example")
        await asking.enter(tool)
        answer = await asking.call("notify", {"room": "a"})
    assert answer["error"]["code"] == "url_not_allowed"
    assert receiver.connections == 0
