"""Limits at the door: what is refused says which limit and when to come again, and others are served."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from proofbox.service.access.authenticator import Authenticator
from proofbox.service.access.quotas import Allowances, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.api.middleware.body_limit import _Held
from proofbox.service.errors import RateLimitedError
from proofbox.service.identity import Principal
from tests.http.conftest import BODY_BYTES_MAX, PRINCIPAL

CALLS = "/v1/tool-calls"
ATTACHMENT = "/v1/conversations/c1/turns/turn_1/attachments/a.bin"
NONE = Allowances()


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(services, stores, clock):
    """The service with such limits, as one tenant sees it."""

    def make(tenant: str = PRINCIPAL.tenant, quotas: Quotas | None = None, **limits: int) -> httpx.AsyncClient:
        quotas = quotas or Quotas(Allowances(**limits), stores.artifacts.stored_bytes, clock)
        authenticator = Authenticator(replace(PRINCIPAL, tenant=tenant), without_key=NONE)
        transport = httpx.ASGITransport(create_app(replace(services, authenticator=authenticator, quotas=quotas)))
        return httpx.AsyncClient(transport=transport, base_url="http://x")

    return make


async def test_calls_beyond_the_limit_are_429_with_the_limit_and_the_time(limited, call_body, clock):
    client = limited(calls_per_minute=2)
    statuses = [
        (await client.post(CALLS, json={**call_body, "tool_call_id": f"t{number}"})).status_code
        for number in range(3)
    ]
    assert statuses == [200, 200, 429]
    refused = await client.post(CALLS, json=call_body)
    problem = refused.json()
    assert (problem["code"], problem["retryable"]) == ("rate_limited", True)
    assert 30 <= int(refused.headers["retry-after"]) <= 46
    assert problem["errors"][0]["field"] == "calls_per_minute"
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["ratelimit-policy"] == '"calls";q=2;w=60'
    assert refused.headers["ratelimit"] == '"calls";r=0;t=60'
    assert (await client.get(f"{CALLS}/t0")).status_code == 200, "other requests are another limit"
    clock.now += 30
    assert (await client.post(CALLS, json={**call_body, "tool_call_id": "t9"})).status_code == 200


async def test_every_answer_says_what_is_left(limited):
    client = limited(requests_per_minute=10, calls_per_minute=5)
    answers = [await client.get(path) for path in ("/v1/tools", "/nowhere", "/metrics")]
    assert [answer.headers["ratelimit"] for answer in answers] == [
        f'"requests";r={left};t={10 * 6 - left * 6}, "calls";r=5;t=0' for left in (9, 8, 7)
    ]
    assert "ratelimit" not in (await client.get("/livez")).headers


async def test_one_tenant_is_refused_and_another_is_served(limited, clock):
    quotas = Quotas(Allowances(requests_per_minute=3), None, clock)
    loud, quiet = limited("loud", quotas), limited("quiet", quotas)
    assert [(await loud.get("/v1/tools")).status_code for _ in range(5)] == [200, 200, 200, 429, 429]
    assert [(await quiet.get("/v1/tools")).status_code for _ in range(3)] == [200] * 3


async def test_bytes_of_bodies_are_counted_declared_or_not(limited, clock):
    client = limited(upload_bytes_per_minute=1_000)
    assert (await client.put(ATTACHMENT, content=b"x" * 5_000)).status_code == 201
    refused = await client.put(ATTACHMENT, content=b"y")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (429, "upload_bytes_per_minute")
    assert 240 <= int(refused.headers["retry-after"]) <= 361
    clock.now += 241

    async def pieces():
        for _ in range(10):
            yield b"z" * 900

    broken_off = await client.put(ATTACHMENT, content=pieces())
    assert (broken_off.status_code, broken_off.json()["code"]) == (429, "rate_limited")
    assert broken_off.headers["connection"] == "close"


async def test_a_project_that_is_full_takes_no_file_and_no_call(limited, call_body, clock):
    client = limited(stored_bytes=4_000)
    assert (await client.put(ATTACHMENT, content=b"x" * 5_000)).status_code == 201
    clock.now += 31
    for refused in (await client.put(ATTACHMENT, content=b"y"), await client.post(CALLS, json=call_body)):
        assert (refused.status_code, refused.json()["code"]) == (403, "storage_quota")
        assert "limit 4000 bytes, stored 5000" in refused.json()["detail"]
    read = await client.get("/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/a.bin")
    assert len(read.content) == 5_000
    other = limited("other", stored_bytes=4_000)
    assert (await other.put(ATTACHMENT, content=b"x")).status_code == 201


async def test_bodies_in_memory_are_bounded_and_of_one_caller_to_half(services, call_body):
    app = create_app(replace(services, bodies_bytes_max=2 * BODY_BYTES_MAX))
    body = json.dumps({**call_body, "tool_call_id": "held-1"}).encode().ljust(BODY_BYTES_MAX)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        holding = asyncio.ensure_future(client.post(CALLS, content=body, headers=headers))
        while (await client.get(f"{CALLS}/held-1")).status_code != 200:  # noqa: ASYNC110
            # A request within this process may never let anything else run, and no event tells what is waited for.
            await asyncio.sleep(0.01)
        refused = await client.post(CALLS, content=body, headers=headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
        assert int(refused.headers["retry-after"]) in {1, 2}
        assert "request_bodies" in refused.json()["detail"]

        async def pieces():
            while True:
                yield b" " * 50_000

        assert (await client.post(CALLS, content=pieces(), headers=headers)).status_code == 429
        await client.delete(f"{CALLS}/held-1")
        assert (await holding).status_code == 409
        again = {**call_body, "tool_call_id": "t2"}
        served = await client.post(CALLS, content=json.dumps(again).ljust(BODY_BYTES_MAX), headers=headers)
        assert served.status_code == 200


@pytest.mark.parametrize("path", ["/v1/agents/helper", "/v1/entities/ann"])
async def test_a_document_that_is_put_is_bounded_as_each_body_is(services, path):
    app = create_app(replace(services, body_bytes_max=1_000))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        refused = await client.put(path, content=b" " * 1_001, headers={"Content-Type": "application/json"})
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
        stored = await client.put(ATTACHMENT, content=b"x" * 1_001)
        assert stored.status_code == 201


async def test_a_length_that_is_only_declared_takes_no_room(services, call_body):
    app = create_app(replace(services, bodies_bytes_max=2 * BODY_BYTES_MAX))
    stop, begun = asyncio.Event(), asyncio.Semaphore(0)

    async def nothing():
        begun.release()
        yield b" "
        await stop.wait()

    declared = {"Content-Type": "application/json", "Content-Length": str(BODY_BYTES_MAX)}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        idle = [asyncio.ensure_future(client.post(CALLS, content=nothing(), headers=declared)) for _ in range(5)]
        for _ in idle:
            await begun.acquire()
        body = json.dumps(call_body).ljust(BODY_BYTES_MAX - 100)
        served = await client.post(CALLS, content=body, headers={"Content-Type": "application/json"})
        assert served.status_code == 200
        assert not any(each.done() for each in idle)
        stop.set()
        assert {answer.status_code for answer in await asyncio.gather(*idle)} == {422}


def test_others_find_room_while_one_caller_has_its_half():
    held = _Held(200, 100)
    with held.room("a") as a, held.room("b") as b, held.room("c") as c:
        a(100)
        for too_many in (a, lambda size_bytes: b(size_bytes + 100)):
            with pytest.raises(RateLimitedError):
                too_many(1)
        b(100)
        with pytest.raises(RateLimitedError):
            c(1)
    with held.room("c") as c:
        c(100)
    assert held._of == {}


async def test_a_principal_is_counted_by_its_key_else_by_its_tenant():
    assert Principal("acme", "books", "t", "u").caller == Principal("acme", "sales", "t", "v").caller
    assert Principal("acme", "books", "t", "u", "k1").caller != Principal("acme", "books", "t", "u", "k2").caller
    assert Principal("k1", "books", "t", "u").caller != Principal("acme", "books", "t", "u", "k1").caller
