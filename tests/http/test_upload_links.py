"""Uploading by link: one name in one conversation, without a key, within its size and time."""

import asyncio
from dataclasses import replace

import httpx
import pytest

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.access.quotas import NO_LIMITS, Allowances, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.artifacts.attachments import UploadTarget
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.api_keys import SqlApiKeys
from tests.http.conftest import LINK_S, PRINCIPAL

SCOPE = ConversationKey(PRINCIPAL, "c1")
PATH = FilePath("turn_1", Namespace.ATTACHMENTS, "data.csv")


@pytest.fixture
def target() -> UploadTarget:
    return UploadTarget(SCOPE, "turn_1", "data.csv", 1_000)


@pytest.fixture
def link(services, target) -> str:
    return f"/v1/uploads/{services.uploads.make(target)}"


@pytest.fixture
async def outside(services, stores):
    """A client without a key, at a service that requires keys."""
    keyring = Keyring(SqlApiKeys(stores.database))
    app = create_app(replace(services, authenticator=Authenticator(PRINCIPAL, keyring, required=True)))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://files.example.com") as client:
        yield client


async def stored(services) -> bytes | None:
    artifact = await services.artifacts.latest(SCOPE, PATH)
    return None if artifact is None else (await services.artifacts.contents(SCOPE, [artifact]))[0]


async def test_a_link_stores_the_file_without_a_key(outside, services, link):
    assert (await outside.put("/v1/conversations/c1/turns/turn_1/attachments/a", content=b"x")).status_code == 401
    answer = await outside.put(link, content=b"a,b\n1,2\n")
    assert (answer.status_code, answer.json()["physical_path"]) == (201, "turn_1/attachments/data.csv")
    assert await stored(services) == b"a,b\n1,2\n"
    again = await outside.put(link, content=b"a,b\n1,2\n")
    assert again.status_code == 200


async def test_a_file_beyond_the_size_of_the_link_is_not_stored(outside, services, link):
    async def pieces():
        for _ in range(11):
            yield b"x" * 100

    for content in (b"x" * 1_001, pieces()):
        answer = await outside.put(link, content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert await stored(services) is None
    assert (await outside.put(link, content=b"x" * 1_000)).status_code == 201


async def test_a_changed_or_expired_link_stores_nothing(outside, services, link, flags):
    for changed in (f"{link}A", link[:-4], "/v1/uploads/x", link.replace("k1.", "k2.")):
        answer = await outside.put(changed, content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (403, "link_refused")
    flags.now += LINK_S
    assert (await outside.put(link, content=b"x")).status_code == 403
    assert await stored(services) is None


async def test_a_link_is_for_uploads_only(outside, link):
    for method in ("GET", "POST", "DELETE"):
        assert (await outside.request(method, link)).status_code == 405


async def test_the_storage_quota_of_the_caller_holds_for_its_links(services, stores, saved, target):
    await saved(FilePath("turn_1", Namespace.FILES, "old.bin"), b"x" * 200)
    app = create_app(replace(services, quotas=Quotas(NO_LIMITS, stores.artifacts.stored_bytes)))
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        full = services.uploads.make(replace(target, stored_bytes_max=100))
        answer = await client.put(f"/v1/uploads/{full}", content=b"x")
        assert (answer.status_code, answer.json()["code"]) == (403, "storage_quota")
        free = services.uploads.make(replace(target, stored_bytes_max=10_000))
        assert (await client.put(f"/v1/uploads/{free}", content=b"x")).status_code == 201


async def test_a_used_link_takes_the_same_bytes_again_and_no_others(outside, services, link, target):
    assert (await outside.put(link, content=b"one")).status_code == 201
    for content, media_type in ((b"two", None), (b"one", "text/plain")):
        headers = {} if media_type is None else {"Content-Type": media_type}
        answer = await outside.put(link, content=content, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (409, "id_reused")
        assert "request a new link" in answer.json()["detail"]
    assert (await outside.put(link, content=b"one")).status_code == 200
    assert await stored(services) == b"one"
    first = await services.artifacts.latest(SCOPE, PATH)
    second = f"/v1/uploads/{services.uploads.make(replace(target, replaces=first.number))}"
    assert (await outside.put(second, content=b"two")).status_code == 201
    assert (await outside.put(link, content=b"one")).status_code == 409
    assert await stored(services) == b"two"


async def test_of_requests_at_the_same_time_one_stores_its_bytes(outside, services, link):
    answers = await asyncio.gather(*(outside.put(link, content=b"%d" % (number % 4)) for number in range(12)))
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(201), statuses.count(200), statuses.count(409)) == (1, 2, 9)
    assert (await services.artifacts.latest(SCOPE, PATH)).version == 1


async def test_an_upload_by_link_is_counted_for_the_caller_of_the_link(services, target):
    quotas = Quotas(NO_LIMITS)
    own = Allowances(requests_per_minute=3, upload_bytes_per_minute=500)
    meter = quotas.meter(PRINCIPAL.caller, own)
    transport = httpx.ASGITransport(create_app(replace(services, quotas=quotas)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
        link = f"/v1/uploads/{services.uploads.make(replace(target, own=Allowances()))}"

        async def pieces():
            for _ in range(6):
                yield b"x" * 100

        assert (await client.put(link, content=b"x" * 900)).status_code == 201
        assert meter.allowed.requests_per_minute == 3, "the limits of the key stay"
        for content in (b"x" * 900, pieces()):
            answer = await client.put(link, content=content)
            assert (answer.status_code, answer.headers["connection"]) == (429, "close")
            assert answer.json()["errors"][0]["field"] == "upload_bytes_per_minute"
        answer = await client.put(link, content=b"")
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (429, "requests_per_minute")


async def test_after_a_restart_the_limits_of_the_link_are_those_of_its_key(services, target):
    app = create_app(replace(services, quotas=Quotas(NO_LIMITS)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        own = Allowances(requests_per_minute=1)
        link = f"/v1/uploads/{services.uploads.make(replace(target, own=own))}"
        assert [(await client.put(link, content=b"x")).status_code for _ in range(2)] == [201, 429]
