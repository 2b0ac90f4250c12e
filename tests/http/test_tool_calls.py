import asyncio
import json
from urllib.parse import urlsplit

import pytest

from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse
from proofbox.service.api.routes.tool_calls import prefers_async
from proofbox.service.errors import (
    CallCancelledError,
    EngineUnavailableError,
    LimitNotAllowedError,
    NetworkNotAllowedError,
    PackageIndexError,
    PackagesNotAllowedError,
    QueueFullError,
    SidConflictError,
)
from tests.support.calls import problem, result

ROUTE = "/v1/tool-calls"
C1 = {"conversation_id": "c1"}


async def test_a_call_is_answered_with_its_result(client, call_body):
    answer = await client.post(ROUTE, json=call_body)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "idempotent-replayed" not in answer.headers
    response = ToolCallResponse.model_validate_json(answer.content)
    assert response.ok is True
    assert response.ret["request"] == call_body
    assert response.ret["principal"] == "u-17"


async def test_the_stored_text_of_an_answer_is_sent_as_it_is(client, calls, call_body):
    stored = result("spaced")
    body = stored.body.replace(":", " : ")
    calls.answers["t1"] = type(stored)(200, body, is_problem=False)
    answer = await client.post(ROUTE, json=call_body)
    assert answer.text == body


async def test_a_large_body_is_read_like_a_small_one(client, call_body):
    call_body["notes"] = "ü" * 100_000
    answer = await client.post(ROUTE, json=call_body)
    assert answer.json()["ret"]["request"]["notes"] == call_body["notes"]


async def test_the_same_call_again_is_marked_as_replayed(client, call_body):
    first = await client.post(ROUTE, json=call_body)
    again = await client.post(ROUTE, json=call_body)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.content == first.content


async def test_an_id_with_another_payload_is_refused(client, call_body):
    await client.post(ROUTE, json=call_body)
    answer = await client.post(ROUTE, json={**call_body, "code": "print(2)\n"})
    assert (answer.status_code, answer.json()["code"]) == (409, "id_reused")


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (QueueFullError("full", retry_after_s=1.2), (429, "queue_full", range(2, 4))),
        (SidConflictError("sid 1"), (409, "sid_conflict", None)),
        (LimitNotAllowedError("limits.wall_s"), (422, "limit_not_allowed", None)),
        (NetworkNotAllowedError("network.allow[0]"), (422, "network_not_allowed", None)),
        (PackagesNotAllowedError("packages[0]"), (422, "packages_not_allowed", None)),
        (PackageIndexError("packages: away", retry_after_s=3), (503, "package_index_unavailable", range(3, 6))),
        (EngineUnavailableError("away", retry_after_s=0), (503, "engine_unavailable", range(1))),
    ],
)
async def test_a_refused_call_is_a_problem_with_its_status(client, calls, call_body, exc, expected):
    calls.refused["t1"] = exc
    answer = await client.post(ROUTE, json=call_body)
    assert answer.headers["content-type"] == "application/problem+json"
    status, code, seconds = expected
    told = answer.headers.get("retry-after")
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert told is None if seconds is None else int(told) in seconds
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_a_problem_that_is_the_answer_of_a_call_keeps_its_text_and_status(client, calls, call_body):
    calls.answers["t1"] = problem(EngineUnavailableError("the engine is away", retry_after_s=4.01))
    answer = await client.post(ROUTE, json=call_body)
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) in range(5, 9)
    assert answer.json()["request_id"] == "the-first-request"


async def test_an_unknown_tool_is_a_404(client, call_body):
    answer = await client.post(ROUTE, json={**call_body, "tool_id": "exec_tools.format_disk"})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_tool")


async def test_an_idempotency_key_reaches_the_calls(client, call_body):
    key = "order 17/β".replace("β", "b")
    answer = await client.post(ROUTE, json=call_body, headers={"Idempotency-Key": key})
    assert answer.json()["ret"]["idempotency_key"] == key


@pytest.mark.parametrize("key", [b"", b"x" * 256, b"tab\tinside", "ü".encode(), b"\x7f"])
async def test_an_idempotency_key_that_is_blank_long_or_unprintable_is_refused(client, call_body, key):
    answer = await client.post(ROUTE, json=call_body, headers={b"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert [error["field"] for error in answer.json()["errors"]] == ["Idempotency-Key"]


async def test_the_longest_idempotency_key_is_taken(client, call_body):
    answer = await client.post(ROUTE, json=call_body, headers={"Idempotency-Key": "x" * 255})
    assert answer.status_code == 200


async def test_respond_async_is_accepted_at_once_and_says_where_to_ask(client, calls, call_body):
    call_body["tool_call_id"] = "held:1"
    call_body["conversation_id"] = "c:1"
    answer = await client.post(ROUTE, json=call_body, headers={"Prefer": "respond-async, wait=5"})
    assert answer.status_code == 202
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.headers["location"] == "../v1/tool-calls/held%3A1?conversation_id=c%3A1"
    assert CallStatus.model_validate_json(answer.content).status == "running"
    await calls.end(await calls.made("held:1"), result("late"))
    later = await client.get(answer.headers["location"])
    assert later.headers["cache-control"] == "no-store"
    status = CallStatus.model_validate_json(later.content)
    assert status.status == "done"
    assert status.response is not None
    assert status.response.ret == "late"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], False),
        (["respond-async"], True),
        (["Respond-Async"], True),
        (["wait=5, respond-async;x=1"], True),
        (["wait=5", "respond-async"], True),
        (["respond-asynchronously"], False),
        (["handling=respond-async"], False),
    ],
)
def test_prefer_is_read_as_rfc_7240_says(values, expected):
    assert prefers_async(values) is expected


async def test_a_second_prefer_header_counts_too(client, call_body):
    headers = [("Prefer", "wait=5"), ("Prefer", "respond-async")]
    assert (await client.post(ROUTE, json=call_body, headers=headers)).status_code == 202


async def test_a_call_is_cancelled_once_and_stays_cancelled(client, call_body):
    call_body["tool_call_id"] = "held1"
    await client.post(ROUTE, json=call_body, headers={"Prefer": "respond-async"})
    first = await client.delete(f"{ROUTE}/held1", params=C1)
    again = await client.delete(f"{ROUTE}/held1", params=C1)
    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert first.json()["problem"]["code"] == "cancelled"
    assert again.json() == first.json()


async def test_cancelling_a_call_that_is_done_changes_nothing(client, call_body):
    await client.post(ROUTE, json=call_body)
    answer = await client.delete(f"{ROUTE}/t1", params=C1)
    assert (answer.status_code, answer.json()["status"]) == (200, "done")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_call_that_nobody_made_is_a_404(client, method):
    answer = await client.request(method, f"{ROUTE}/t9", params=C1)
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_call")


@pytest.mark.parametrize("route", ["/twin", "/twin/events"])
async def test_a_call_id_of_two_conversations_needs_the_conversation(client, call_body, route):
    call_body["tool_call_id"] = "twin"
    await client.post(ROUTE, json=call_body)
    await client.post(ROUTE, json={**call_body, "conversation_id": "c2"})
    answer = await client.get(ROUTE + route)
    assert (answer.status_code, answer.json()["code"]) == (409, "ambiguous_call")
    one = await client.get(f"{ROUTE}/twin", params={"conversation_id": "c2"})
    assert (one.status_code, one.json()["conversation_id"]) == (200, "c2")


@pytest.mark.parametrize("conversation", ["", "/", "a b", "x" * 200])
async def test_a_conversation_id_of_another_form_is_refused(client, conversation):
    answer = await client.get(f"{ROUTE}/t1", params={"conversation_id": conversation})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "conversation_id")


async def test_a_call_id_of_another_form_in_the_path_is_refused(client):
    answer = await client.get(f"{ROUTE}/a.b", params=C1)
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")


async def _posted(server: str, body: bytes, *more: bytes) -> asyncio.StreamWriter:
    """Sends a call over a connection of its own and waits for nothing."""
    parts = urlsplit(server)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        b"POST /v1/tool-calls HTTP/1.1",
        b"Host: proofbox",
        b"Content-Type: application/json",
        f"Content-Length: {len(body)}".encode(),
        *more,
    )
    writer.write(b"\r\n".join((*head, b"", body)))
    await writer.drain()
    return writer


async def test_the_only_client_that_goes_away_cancels_the_call(server, web, calls, call_body):
    body = json.dumps({**call_body, "tool_call_id": "held1"}).encode()
    writer = await _posted(server, body)
    call = await calls.made("held1")
    writer.close()
    await calls.until(lambda: call.answer is not None)
    answer = await web.get(f"{ROUTE}/held1", params=C1)
    assert answer.json()["status"] == "cancelled"


async def test_a_client_that_goes_away_leaves_the_call_to_the_other_one(server, web, calls, call_body):
    call_body["tool_call_id"] = "held1"
    body = json.dumps(call_body).encode()
    first = await _posted(server, body)
    call = await calls.made("held1")
    second = asyncio.create_task(web.post(ROUTE, json=call_body))
    await calls.until(lambda: call.waiting == 2)
    first.close()
    await calls.until(lambda: call.waiting == 1)
    await calls.end(call, result("for the second"))
    assert (await second).json()["ret"] == "for the second"


async def test_a_client_of_respond_async_may_go_away(web, calls, call_body):
    call_body["tool_call_id"] = "held1"
    answer = await web.post(ROUTE, json=call_body, headers={"Prefer": "respond-async", "Connection": "close"})
    assert answer.status_code == 202
    assert (await web.get(answer.headers["location"])).json()["status"] == "running"
    await calls.end(await calls.made("held1"), result("done"))
    assert (await web.get(answer.headers["location"])).json()["status"] == "done"


async def test_a_call_that_is_cancelled_answers_the_client_that_waits(client, calls, call_body):
    call_body["tool_call_id"] = "held1"
    waiting = asyncio.create_task(client.post(ROUTE, json=call_body))
    await calls.made("held1")
    await client.delete(f"{ROUTE}/held1", params=C1)
    answer = await waiting
    assert (answer.status_code, answer.json()["code"]) == (CallCancelledError.status, "cancelled")


async def test_a_request_that_the_server_ends_gives_no_place_up(client, calls, call_body):
    """Servers cancel requests when they stop: the calls are then ended by the service, with that reason."""
    call_body["tool_call_id"] = "held1"
    waiting = asyncio.create_task(client.post(ROUTE, json=call_body))
    call = await calls.made("held1")
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (call.waiting, call.status) == (1, "running")
