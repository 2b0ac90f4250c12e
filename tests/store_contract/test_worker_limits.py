"""A worker applies the limits and hosts of a caller whose request only an API process has had."""

import asyncio
import json
from dataclasses import replace

import pytest

from proofbox.service.access.api_keys import USUAL_PERMISSIONS, ApiKey
from tests.support.dispatching import SCOPE, noted, notes, opened_process, request

KEY = ApiKey(
    id="aaaa1111",
    name="loop",
    tenant=SCOPE.principal.tenant,
    project=SCOPE.principal.project,
    user_type=None,
    user=None,
    permissions=USUAL_PERMISSIONS,
    sha256="0" * 64,
    created="2026-01-01T00:00:00Z",
    limits={"running_calls": 2, "queued_calls": 1},
    network=("a.example:443",),
)


async def report_of(place, key_id, before=None):
    """The limits of a caller as the worker has them that runs its call."""
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        await api.keys.add(KEY)
        if before is not None:
            await before(api.keys)
        asked = request(limits=True)
        ticket = await api.calls.submit(
            replace(SCOPE.principal, key_id=key_id), asked, idempotency_key=None, request_id="r", detached=False
        )
        return json.loads((await ticket.answer()).body)["report"]


async def revoke(keys):
    await keys.revoke(KEY.id)


@pytest.mark.parametrize("before", [None, revoke])
async def test_a_worker_knows_hosts_and_limits_of_a_key(place, before):
    assert await report_of(place, KEY.id, before) == "hosts ('a.example:443',), running 2"


@pytest.mark.parametrize(
    ("key_id", "hosts"),
    [
        (None, "None"),  # without a key: those of the operator
        ("librechat:acme/ann", "None"),  # the same for a signed token
        ("bbbb2222", "()"),  # no such key: none
    ],
)
async def test_a_worker_takes_the_hosts_of_a_caller_without_a_key_from_the_operator(place, key_id, hosts):
    assert await report_of(place, key_id) == f"hosts {hosts}, running 0"


async def test_accepted_calls_wait_at_a_worker_however_few_of_a_key_may_be_queued(place):
    few = replace(KEY, limits={"running_calls": 1, "queued_calls": 1})
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        await api.keys.add(few)
        principal = replace(SCOPE.principal, key_id=few.id)
        tickets = [
            await api.calls.submit(
                principal, request(f"call-{n}", hold="go"), idempotency_key=None, request_id="r", detached=False
            )
            for n in range(4)
        ]
        async with asyncio.timeout(20):
            await noted(place.folder, "waits", 4)
            await noted(place.folder, "began")
        assert len(notes(place.folder, "began")) == 1
        (place.folder / "go").touch()
        reports = [json.loads((await ticket.answer()).body)["report"] for ticket in tickets]
        assert reports == [f"ran call-{n}" for n in range(4)]
