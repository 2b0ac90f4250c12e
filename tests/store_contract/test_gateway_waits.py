"""Calls that wait for a person, on every database: one answer whatever happens, and the run goes on."""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest
from sqlalchemy import update

import proofbox.service
from proofbox.contracts.provenance import AuditLine
from proofbox.service.storage.gateway.waits import SqlWaitStore
from proofbox.service.storage.schema import calls
from tests.support.asking import ASK, PAY, opened_asking
from tests.support.pipeline import ANN

SUBMITTER = Path(__file__).with_name("dying_submitter.py")
REPOSITORY = Path(proofbox.service.__file__).parents[2]
PENDING = ("waiting", "waiting", "waiting_tool")
ANSWERED = ("done", "done", "running")


@pytest.fixture
async def asking(database_url, tmp_path):
    async with opened_asking(tmp_path, database_url) as opened:
        await opened.enter()
        yield opened


async def states(asking, wait, tool_call_id="call-1"):
    """How the call, its card and its run stand."""
    call, card, run = await asking.status(tool_call_id), await asking.card(wait), await asking.current()
    return call["status"], card["state"], run["status"]


async def until(look, status):
    """Looks until something has a status."""
    while True:
        seen = await look()
        if seen["status"] == status:
            return seen
        await asyncio.sleep(0.02)


async def test_an_answer_ends_the_call_its_card_and_the_wait_of_the_run(asking):
    wait = await asking.ask(params={"what": "go?"})
    assert await states(asking, wait) == PENDING
    assert (await asking.current())["waiting_for"][0]["wait_id"] == wait["wait_id"]
    answered = await asking.answer(wait, result={"yes": True})
    assert answered.status_code == 200, answered.text
    assert await states(asking, wait) == ANSWERED
    body = answered.json()
    assert (body["call"]["response"]["ok"], body["call"]["response"]["ret"]) == (True, {"yes": True})
    assert (body["message"]["tool"]["output"], body["message"]["tool"]["answered_by"]) == ({"yes": True}, "ann")


async def test_the_audit_line_names_who_answered(asking):
    await asking.answer(await asking.ask(), result={"yes": True})
    line = await asking.pipeline.provenance.line(ANN, "call-1", asking.run["conversation_id"])
    assert AuditLine.model_validate_json(line.text).gateway.answered_by == "ann"


async def test_the_repeated_call_gets_the_stored_answer(asking):
    await asking.answer(await asking.ask(), result={"yes": True})
    asking.count -= 1
    again = await asking.post_call("ask")
    assert (again.status_code, again.json()["ret"]) == (200, {"yes": True})
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_held_request_gets_the_answer(asking):
    holding = asyncio.create_task(held(asking, "ask"))
    await until(asking.current, "waiting_tool")
    wait = (await asking.status())["wait"]
    await asking.answer(wait, result={"yes": False})
    assert (await holding).json()["ret"] == {"yes": False}


async def held(asking, tool):
    asking.count += 1
    body = {
        "tool_id": tool,
        "tool_call_id": f"call-{asking.count}",
        "conversation_id": asking.run["conversation_id"],
        "run_id": asking.run["run_id"],
        "params": {},
    }
    return await asking.web.post("/v1/tool-calls", json=body, headers={**asking.leased(), "Prefer": "wait=30"})


async def test_of_fifty_answers_at_once_one_is_taken(asking):
    wait = await asking.ask()
    answers = await asyncio.gather(*(asking.answer(wait, result={"yes": True, "n": n}) for n in range(50)))
    assert Counter(answer.status_code for answer in answers) == {200: 1, 409: 49}
    [taken] = [answer.json() for answer in answers if answer.status_code == 200]
    status = await asking.status()
    assert status["response"]["ret"] == taken["call"]["response"]["ret"]
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} == {"already_answered"}


async def test_the_same_answer_again_gets_the_stored_outcome(asking):
    wait = await asking.ask()
    first = await asking.answer(wait, result={"yes": True, "n": 1})
    again = await asking.answer(wait, result={"n": 1.0, "yes": True})
    other = await asking.answer(wait, result={"yes": False})
    assert (again.status_code, again.headers.get("idempotent-replayed")) == (200, "true")
    assert again.json() == first.json()
    assert "idempotent-replayed" not in first.headers
    assert (other.status_code, other.json()["code"]) == (409, "already_answered")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"result": {"yes": 3}}, "invalid_result"),
        ({"result": {"yes": True, "more": "x" * 300_000}}, "invalid_result"),
        ({"result": {"yes": True}, "error": {"message": "no"}}, "invalid_request"),
        ({}, "invalid_request"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_call_waiting(asking, body, code):
    wait = await asking.ask()
    refused = await asking.answer(wait, **body)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
    assert await states(asking, wait) == PENDING
    assert (await asking.answer(wait, result={"yes": True})).status_code == 200


async def test_an_agent_may_not_answer(asking):
    wait = await asking.ask()
    refused = await asking.answer(wait, result={"yes": True}, entity_id="agent:helper")
    assert (refused.status_code, refused.json()["code"]) == (403, "may_not_answer")
    assert await states(asking, wait) == PENDING


async def test_who_is_not_named_may_not_answer(database_url, tmp_path):
    async with opened_asking(tmp_path, database_url) as asking:
        await asking.enter({**ASK, "execution": {"answerBy": ["bob"]}})
        wait = await asking.ask()
        assert [who["entity_id"] for who in wait["waiting_for"]] == ["bob"]
        assert (await asking.answer(wait, result={"yes": True})).json()["code"] == "may_not_answer"


@pytest.mark.parametrize(
    ("body", "code", "state"),
    [
        ({"error": {"message": "the printer is broken"}}, "user_error", "failed"),
        ({"cancelled": True}, "user_cancelled", "cancelled"),
    ],
)
async def test_a_person_may_give_no_result(asking, body, code, state):
    wait = await asking.ask()
    answered = await asking.answer(wait, **body)
    response = answered.json()["call"]["response"]
    assert (response["ok"], response["error"]["code"]) == (False, code)
    assert await states(asking, wait) == ("done", state, "running")


async def test_nobody_answers_in_time(asking):
    expired = (await held(asking, "soon")).json()
    assert (expired["ok"], expired["error"]["code"]) == (False, "wait_expired")
    messages = (await asking.web.get(f"/v1/spaces/{asking.space_id}/messages")).json()["items"]
    assert messages[-1]["tool"]["state"] == "expired"
    late = await asking.answer({"space_id": asking.space_id, **messages[-1]}, result=1)
    assert (late.status_code, late.json()["code"]) == (410, "wait_expired")
    assert (await asking.current())["status"] == "running"


async def test_a_wait_outlives_the_service(database_url, tmp_path):
    async with opened_asking(tmp_path, database_url) as before:
        await before.enter()
        wait = await before.ask()
    async with opened_asking(tmp_path, database_url, before) as asking:
        assert await states(asking, wait) == PENDING
        assert (await asking.answer(wait, result={"yes": True})).status_code == 200
        assert await states(asking, wait) == ANSWERED


async def test_what_passed_while_the_service_was_down_has_expired_before_the_first_request(database_url, tmp_path):
    async with opened_asking(tmp_path, database_url) as before:
        await before.enter()
        wait = await before.ask("soon")
    await asyncio.sleep(1.1)
    async with opened_asking(tmp_path, database_url, before) as asking:
        assert await states(asking, wait) == ("done", "expired", "running")
        assert (await asking.answer(wait, result=1)).status_code == 410


async def test_a_cancelled_call_waits_no_more(asking):
    wait = await asking.ask()
    cancelled = await asking.web.delete("/v1/tool-calls/call-1")
    assert cancelled.json()["status"] == "cancelled"
    assert await states(asking, wait) == ("cancelled", "cancelled", "running")
    line = await asking.pipeline.provenance.line(ANN, "call-1", asking.run["conversation_id"])
    assert AuditLine.model_validate_json(line.text).gateway.message_id == wait["message_id"]
    late = await asking.answer(wait, result={"yes": True})
    assert (late.status_code, late.json()["code"]) == (409, "wait_cancelled")


async def test_a_call_that_this_release_cannot_read_leaves_nothing_that_waits(asking):
    wait = await asking.ask()
    await asking.pipeline.database.write(lambda connection: connection.execute(update(calls).values(request="{}")))
    cancelled = await asking.web.delete("/v1/tool-calls/call-1")
    assert cancelled.json()["status"] == "cancelled"
    assert await states(asking, wait) == ("cancelled", "cancelled", "running")


async def test_the_end_of_its_run_cancels_a_waiting_call(asking):
    wait = await asking.ask()
    await asking.web.delete(f"/v1/runs/{asking.run['run_id']}")
    await until(asking.status, "cancelled")
    assert await states(asking, wait) == ("cancelled", "cancelled", "cancelled")
    assert (await asking.answer(wait, result={"yes": True})).json()["code"] == "wait_cancelled"


async def test_the_run_waits_for_its_last_wait(asking):
    first, second = await asking.ask(), await asking.ask()
    await asking.answer(first, result={"yes": True})
    assert (await asking.current())["status"] == "waiting_tool"
    await asking.answer(second, result={"yes": True})
    assert (await asking.current())["status"] == "running"


async def test_a_released_run_comes_back_by_claim_after_the_answer(asking):
    wait = await asking.ask()
    released = await asking.web.post(f"/v1/runs/{asking.run['run_id']}/release", headers=asking.leased())
    assert released.status_code == 200, released.text
    assert (await asking.web.post("/v1/runs/claim", json={})).status_code == 204
    await asking.answer(wait, result={"yes": True})
    claimed = await asking.web.post("/v1/runs/claim", json={})
    assert (claimed.status_code, claimed.headers["run-lease"]) == (200, "2")
    asking.count = 0
    assert (await asking.post_call("ask", lease=2)).json()["ret"] == {"yes": True}


async def test_a_release_that_is_sent_again_answers_the_run_until_it_is_claimed(asking):
    async def release(lease):
        route = f"/v1/runs/{asking.run['run_id']}/release"
        answer = (await asking.web.post(route, headers=asking.leased(lease))).json()
        return answer["status"] if "run_id" in answer else answer["code"]

    assert [await release(1), await release(1)] == ["queued", "queued"]
    asking.run = (await asking.web.post("/v1/runs/claim", json={})).json()
    assert await release(1) == "lease_lost"
    await asking.ask()
    assert [await release(2), await release(2)] == ["waiting_tool", "waiting_tool"]


async def test_a_run_waits_for_twenty_answers_at_most(asking):
    for _ in range(20):
        await asking.ask()
    refused = await asking.call("ask")
    assert (refused["ok"], refused["error"]["code"]) == (False, "too_many_waits")
    assert (await asking.current())["status"] == "waiting_tool"


async def test_without_a_space_nobody_is_asked(asking):
    asking.run = (await asking.web.post("/v1/runs", json={"agent_id": "helper"})).json()
    for tool in ("ask", "pay", "secretly"):
        refused = await asking.call(tool, {"amount": 3})
        assert (refused["ok"], refused["error"]["code"]) == (False, "no_active_space")


@pytest.mark.parametrize("tool", ["pay", "secretly"])
async def test_an_approved_call_runs(asking, tool):
    wait = await asking.ask(tool, {"amount": 3})
    card = await asking.card(wait)
    assert (wait["kind"], card["custom_ui"], card["input"]) == ("approval", "approval", {"amount": 3})
    assert (await asking.answer(wait, result={"approved": True})).status_code == 200
    status = await until(asking.status, "done")
    assert status["response"]["ret"] == {"paid": 3}
    card = await asking.card(wait)
    assert (card["state"], card["answered_by"]) == ("done", "ann")
    assert card["output"] == ({"paid": 3} if tool == "pay" else {"approved": True})


@pytest.mark.parametrize("shows", [True, False])
async def test_an_approval_knows_whether_the_input_is_shown_afterwards(asking, shows):
    await asking.enter({**PAY, "display": {"customUI": "pay", "showInput": shows}})
    wait = await asking.ask("pay", {"amount": 3})
    assert (await asking.card(wait))["input"] == {"amount": 3}
    stored = await SqlWaitStore(asking.pipeline.database).get(wait["wait_id"])
    assert stored.spec["shows_input"] is shows
    await asking.answer(wait, result={"approved": True})
    await until(asking.status, "done")
    assert (await asking.card(wait)).get("input") == ({"amount": 3} if shows else None)


async def test_a_denied_call_does_not_run(asking):
    wait = await asking.ask("pay", {"amount": 3})
    answered = await asking.answer(wait, result={"approved": False, "reason": "too much"})
    error = answered.json()["call"]["response"]["error"]
    assert (error["code"], "too much" in error["message"]) == ("denied", True)
    assert await states(asking, wait) == ("done", "denied", "running")


async def test_a_key_answers_for_a_person_and_approves_nothing(asking):
    await asking.ask()
    wait = await asking.ask("pay", {"amount": 3})
    answered = await asking.web.post("/v1/tool-calls/call-1/result", json={"result": {"yes": True}})
    assert (answered.status_code, answered.json()["message"]["tool"]["answered_by"]) == (200, "key:local")
    refused = await asking.web.post("/v1/tool-calls/call-2/result", json={"result": {"approved": True}})
    assert (refused.status_code, refused.json()["code"]) == (403, "may_not_answer")
    assert (await asking.card(wait))["state"] == "waiting"


async def test_a_message_that_asks_nothing_is_not_answered(asking):
    await asking.call("show", {"a": 1})
    [message] = (await asking.web.get(f"/v1/spaces/{asking.space_id}/messages")).json()["items"]
    refused = await asking.answer({"space_id": asking.space_id, **message}, result=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "not_waiting")
    missing = await asking.answer({"space_id": asking.space_id, "message_id": "msg_none"}, result=1)
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_message")


async def test_a_conversation_with_a_waiting_call_is_not_deleted(asking):
    await asking.ask()
    refused: httpx.Response = await asking.web.delete(f"/v1/conversations/{asking.run['conversation_id']}")
    assert (refused.status_code, refused.json()["code"]) == (409, "conversation_busy")


async def stored_after(folder, url):
    """How the one call of a database stands, before and after the answer is given again."""
    async with opened_asking(folder, url) as asking:
        [asking.run] = (await asking.web.get("/v1/runs")).json()["items"]
        [space] = (await asking.web.get("/v1/spaces")).json()["items"]
        [message] = (await asking.web.get(f"/v1/spaces/{space['space_id']}/messages")).json()["items"]
        wait = {"space_id": space["space_id"], **message}
        before = await states(asking, wait)
        assert (await asking.answer(wait, result={"yes": True})).status_code == 200
        return before, await states(asking, wait)


@pytest.mark.parametrize(
    "database_url", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
async def test_an_answer_is_taken_whole_or_not_at_all_wherever_the_process_dies(
    database_url, empty_database, tmp_path
):
    dying = await asyncio.create_subprocess_exec(
        sys.executable,
        str(SUBMITTER),
        str(tmp_path),
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "DYING_DATABASE_URL": database_url.get_secret_value(),
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    seen = []
    async for line in dying.stdout:
        before, after = await stored_after(tmp_path / str(len(seen) + 1), database_url)
        seen.append(before)
        assert after == ANSWERED
        empty_database()
        dying.stdin.write(b"\n")
        await dying.stdin.drain()
        if line == b"came through\n":
            break
    assert await dying.wait() == 0
    assert len(seen) > 8
    assert set(seen[:-1]) <= {PENDING, ANSWERED}
    assert (seen[0], seen[-1]) == (PENDING, ANSWERED)
