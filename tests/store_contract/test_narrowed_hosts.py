"""A call that waited gets the hosts that the operator and its key allow as it begins to run, or is refused."""

import json
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from sqlalchemy import update

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.access.api_keys import USUAL_PERMISSIONS, ApiKey
from proofbox.service.access.quotas import Allowances
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.schema import api_keys
from tests.support.asking import opened_asking
from tests.support.dispatching import joined
from tests.support.pipeline import ANN, EXEC, opened_pipeline

HOST, OTHER = "pypi.org:443", "a.example:443"
OPEN = {"sandbox_network": (HOST, OTHER)}
KEY = ApiKey(
    id="aaaa1111",
    name="loop",
    tenant=ANN.tenant,
    project=ANN.project,
    user_type=None,
    user=None,
    permissions=USUAL_PERMISSIONS,
    sha256="0" * 64,
    created="2026-01-01T00:00:00Z",
    network=(HOST, OTHER),
)
CALLER = replace(ANN, key_id=KEY.id)
RUN_PYTHON = {
    "name": "run_python",
    "executionType": "gateway",
    "requiresApproval": True,
    "execution": {"tool": EXEC, "params": {"explore": True}, "code": "print(1)"},
}


async def add_key(pipeline):
    """Adds the key, with which a request has just come."""
    await SqlApiKeys(pipeline.database).add(KEY)
    pipeline.quotas.meter(CALLER.caller, Allowances.of_key(KEY))


async def narrow_key(pipeline):
    limits = json.dumps({"network": [OTHER]})
    narrowed = update(api_keys).where(api_keys.c.id == KEY.id).values(limits=limits)
    await pipeline.database.write(lambda connection: connection.execute(narrowed))


async def submit(pipeline, run_lease=None, principal=CALLER, **fields):
    asked = {
        "tool_id": EXEC,
        "tool_call_id": "call-1",
        "conversation_id": "conv-1",
        "turn_id": "turn_1",
        "params": {"explore": True},
        "code": "print(1)",
        "network": {"allow": [HOST]},
        **fields,
    }
    return await pipeline.calls.submit(
        principal,
        ToolCallRequest.model_validate(asked),
        idempotency_key=None,
        request_id="r",
        detached=True,
        run_lease=run_lease,
    )


async def ask_for_approval(asking):
    """Calls the tool that has to be approved, with a key; what it waits for."""
    await add_key(asking.pipeline)
    run = {"run_id": asking.run["run_id"], "conversation_id": asking.run["conversation_id"]}
    ticket = await submit(asking.pipeline, 1, **run, tool_id="run_python", params={}, code=None)
    return json.loads((await ticket.answer()).body)["wait"]


async def ended(asking):
    """How the call ends, as followers of its events see it."""
    found = await asking.pipeline.calls.events(ANN, "call-1", None, after=0)
    return [json.loads(event.data) async for event in found][-1]


def refusal(problem):
    [error] = problem["errors"]
    return problem["code"], error["field"], error["message"].partition(";")[0]


BY_KEY = (
    "network_not_allowed",
    "network.allow[0]",
    f"{HOST} is not allowed for this API key ({OTHER})",
)


@pytest.mark.parametrize("is_narrowed", [False, True])
async def test_a_call_that_waited_for_a_slot_gets_the_hosts_that_its_key_has_then(
    database_url, tmp_path, is_narrowed
):
    async with opened_pipeline(tmp_path, url=database_url, **OPEN) as pipeline:
        await add_key(pipeline)
        with await pipeline.admission.enter(pipeline.deadline(), lambda _: None, "other"):
            ticket = await submit(pipeline)
            events = await pipeline.calls.events(ANN, "call-1", None, after=0)
            assert (await anext(events)).name == "queued"
            if is_narrowed:
                await narrow_key(pipeline)
        answer = json.loads((await ticket.answer()).body)
        if is_narrowed:
            assert (refusal(answer), pipeline.engine.jobs) == (BY_KEY, [])
        else:
            assert (answer["ok"], len(pipeline.engine.jobs)) == (True, 1)


@pytest.mark.parametrize("is_narrowed", [False, True])
async def test_a_call_that_was_approved_gets_the_hosts_that_its_key_has_then(database_url, tmp_path, is_narrowed):
    async with opened_asking(tmp_path, database_url, **OPEN) as asking:
        await asking.enter(RUN_PYTHON)
        wait = await ask_for_approval(asking)
        if is_narrowed:
            await narrow_key(asking.pipeline)
        assert (await asking.answer(wait, result={"approved": True})).status_code == 200
        answer, jobs = await ended(asking), asking.pipeline.engine.jobs
        if is_narrowed:
            assert (refusal(answer), jobs) == (BY_KEY, [])
            card = await asking.card(wait)
            assert (card["state"], card["error"]["code"]) == ("failed", "network_not_allowed")
            line = await asking.pipeline.provenance.line(ANN, "call-1", asking.run["conversation_id"])
            assert json.loads(line.text)["gateway"]["run_id"] == asking.run["run_id"]
        else:
            assert (answer["ok"], len(jobs)) == (True, 1)
            assert jobs[0].network is not None


@pytest.mark.parametrize(("approved", "code"), [(True, "network_not_allowed"), (False, "denied")])
async def test_a_call_that_waited_while_the_operator_took_its_hosts_back_never_runs_without_them(
    database_url, tmp_path, approved, code
):
    async with opened_asking(tmp_path, database_url, **OPEN) as before:
        await before.enter(RUN_PYTHON)
        wait = await ask_for_approval(before)
    async with opened_asking(tmp_path, database_url, known=before, sandbox_network=(OTHER,)) as asking:
        assert (await asking.answer(wait, result={"approved": approved})).status_code == 200
        answer = await ended(asking)
        assert (answer["code"] if approved else answer["error"]["code"]) == code
        assert asking.pipeline.engine.jobs == []


async def test_a_worker_with_fewer_hosts_refuses_a_call_that_asks_for_more(tmp_path, place):
    many = {"url": place.url, "shared": True}
    async with AsyncExitStack() as stack:
        api, worker = [
            await stack.enter_async_context(
                opened_pipeline(tmp_path / role, boot_id=f"boot-{role}", sandbox_network=allowed, **many)
            )
            for role, allowed in (("api", (HOST, OTHER)), ("worker", (OTHER,)))
        ]
        await stack.enter_async_context(joined(place, api, "api"))
        await stack.enter_async_context(joined(place, worker, "worker"))
        ticket = await submit(api, principal=ANN)
        answer = json.loads((await ticket.answer()).body)
        assert (answer["code"], worker.engine.jobs) == ("network_not_allowed", [])
