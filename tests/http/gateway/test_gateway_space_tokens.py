"""Space tokens: each opens one space as one person and nothing else, also for pages of named origins."""

import asyncio
import base64
from dataclasses import replace

import pytest

from proofbox.service.access.space_tokens import SpaceGrant, SpaceTokens
from tests.http.gateway.conftest import ORIGIN

FOREIGN = "https://evil.example.com"


@pytest.fixture
def make(people, kitchen):
    """Makes a token of the kitchen with ann's key."""

    async def made(**fields):
        answer = await people.ann.post(f"/v1/spaces/{kitchen}/tokens", json={"entity_id": "ann", **fields})
        assert answer.status_code == 201, answer.text
        return answer.json()["token"]

    return made


async def test_a_token_reads_and_posts_in_its_space(people, kitchen, make):
    page = await people.client(await make())
    sent = await page.post(f"/v1/spaces/{kitchen}/messages", json={"text": "from the page"})
    assert sent.json()["message"]["sender"]["entity_id"] == "ann"
    assert (await page.get(f"/v1/spaces/{kitchen}/messages")).json()["items"][0]["text"] == "from the page"
    assert (await page.get(f"/v1/spaces/{kitchen}")).json()["name"] == "Kitchen"


async def test_a_token_opens_nothing_else(people, kitchen, make):
    page = await people.client(await make())
    hall = (await people.ann.post("/v1/spaces", json={"name": "Hall"})).json()["space_id"]
    assert (await page.get(f"/v1/spaces/{hall}")).status_code == 404
    refused = [
        page.get("/v1/spaces"),
        page.post("/v1/spaces", json={"name": "x"}),
        page.patch(f"/v1/spaces/{kitchen}", json={"name": "x"}),
        page.delete(f"/v1/spaces/{kitchen}"),
        page.put(f"/v1/spaces/{kitchen}/members/bob"),
        page.delete(f"/v1/spaces/{kitchen}/members/ann"),
        page.post(f"/v1/spaces/{kitchen}/tokens", json={"entity_id": "ann"}),
        page.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x", "entity_id": "bob"}),
        page.get("/v1/entities/ann"),
        page.get("/v1/agents"),
        page.get("/v1/runs"),
        page.get("/v1/tools"),
        page.get("/v1/conversations"),
        page.post("/v1/tool-calls", json={}),
        page.get("/metrics"),
    ]
    for answer in await asyncio.gather(*refused):
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), answer.request.url


async def test_a_key_makes_tokens_of_its_own_person(people, kitchen):
    await people.ann.put(f"/v1/spaces/{kitchen}/members/bob")
    url = f"/v1/spaces/{kitchen}/tokens"
    assert (await people.bob.post(url, json={"entity_id": "ann"})).status_code == 403
    assert (await people.admin.post(url, json={"entity_id": "bob"})).status_code == 201
    agent = await people.admin.post(url, json={"entity_id": "agent:helper"})
    assert (agent.status_code, agent.json()["code"]) == (422, "invalid_request")
    assert (await people.ann.post(url, json={"entity_id": "ann", "expires_s": 86_401})).status_code == 422


async def test_a_token_ends_with_the_membership(people, kitchen, make):
    page = await people.client(await make())
    await people.ann.delete(f"/v1/spaces/{kitchen}/members/ann")
    assert (await page.get(f"/v1/spaces/{kitchen}")).status_code == 404


async def test_a_token_of_another_tenant_opens_nothing(people, kitchen):
    tokens = people.loop.pipeline.gateway.services.tokens
    grant = SpaceGrant("other", "books", kitchen, "ann", tokens.expiry(60))
    page = await people.client(tokens.make(grant))
    assert (await page.get(f"/v1/spaces/{kitchen}")).status_code == 404


async def test_changed_expired_and_foreign_tokens_are_refused(people, kitchen, make):
    token = await make()
    head, _, signature = token.partition(".")
    tokens = people.loop.pipeline.gateway.services.tokens
    expired = tokens.make(SpaceGrant("acme", "books", kitchen, "ann", tokens.expiry(-1)))
    forged = SpaceTokens(lambda: [(tokens._keys()[0][0], b"x" * 32)], tokens._now)
    foreign = forged.make(SpaceGrant("acme", "books", kitchen, "ann", tokens.expiry(60)))
    wrong = [
        expired,
        foreign,
        head,
        f"{head}.",
        f"{head[:-1]}.{signature}",
        f"{token}=",
        f"{token}x",
        "pbs_",
        "pbs_.",
        f"pbs_{base64.urlsafe_b64encode(b'[' * 6_000).decode()}.{signature}",
    ]
    for given in wrong:
        page = await people.client(given)
        answer = await page.get(f"/v1/spaces/{kitchen}")
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), given


def test_a_token_works_until_its_time_and_with_the_older_key():
    now = [1_000.0]
    keys = [("k1", b"1" * 32)]
    tokens = SpaceTokens(lambda: keys, lambda: now[0])
    grant = SpaceGrant("acme", "books", "spc_1", "ann", tokens.expiry(60))
    token = tokens.make(grant)
    keys.insert(0, ("k2", b"2" * 32))
    now[0] += 59
    assert tokens.read(token) == grant
    assert tokens.read(tokens.make(replace(grant, entity_id="bob"))).entity_id == "bob"
    now[0] += 1
    with pytest.raises(Exception, match="expired"):
        tokens.read(token)


async def test_a_page_of_a_named_origin_uses_a_token(people, kitchen, make):
    page = await people.client(await make())
    url = f"/v1/spaces/{kitchen}/messages"
    asked = await (await people.client()).options(
        url,
        headers={
            "Origin": ORIGIN,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type",
        },
    )
    assert asked.status_code == 204
    assert asked.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    assert "Access-Control-Allow-Credentials" not in asked.headers
    answer = await page.get(url, headers={"Origin": ORIGIN})
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert answer.headers["Vary"] == "Origin"


async def test_a_page_reaches_spaces_with_a_token_only(people, kitchen, make):
    page = await people.client(await make())
    with_key = await people.ann.get(f"/v1/spaces/{kitchen}", headers={"Origin": ORIGIN})
    assert (with_key.status_code, with_key.json()["code"]) == (403, "origin_refused")
    elsewhere = await page.get("/v1/runs", headers={"Origin": ORIGIN})
    assert "Access-Control-Allow-Origin" not in elsewhere.headers
    foreign = await page.get(f"/v1/spaces/{kitchen}", headers={"Origin": FOREIGN})
    assert "Access-Control-Allow-Origin" not in foreign.headers
    asked = {"Origin": FOREIGN, "Access-Control-Request-Method": "GET"}
    refused = await page.options(f"/v1/spaces/{kitchen}", headers=asked)
    assert "Access-Control-Allow-Origin" not in refused.headers
