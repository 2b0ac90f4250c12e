"""The route of artifacts on a real S3 server: streamed by the service, or by the server through a link."""

import hashlib
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from urllib.parse import quote, urljoin

import httpx
import pytest
from fastapi import Request

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.api.routes.artifacts import link_response
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from tests.http.conftest import PRINCIPAL
from tests.services.s3_server import STATE, client_of, objects_of, started

PART_BYTES = 5 * 1024 * 1024
PATH = FilePath("turn_1", Namespace.FILES, "charts/ü.html")
URL = f"/v1/conversations/c1/artifacts/{PATH.logical}"
DISPOSITION = "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%BC.html"
DATA = bytes(range(256)) * 24_000  # more than a part, and more than one piece that is read


@pytest.fixture(scope="session")
def server_bucket():
    return started(STATE)


@pytest.fixture
def bucket(server_bucket):
    return replace(server_bucket, prefix=f"tests/api-{uuid.uuid4().hex}")


@pytest.fixture
async def stores(stores, bucket, tmp_path) -> AsyncIterator:
    artifacts = SqlArtifactStore(stores.database, S3BlobStore(bucket, tmp_path / "s3-staging", PART_BYTES, 900))
    await artifacts.open()
    yield replace(stores, artifacts=artifacts)
    await artifacts.close()
    s3 = client_of(bucket)
    for each in s3.list_objects_v2(Bucket=bucket.name, Prefix=bucket.prefix).get("Contents", []):
        s3.delete_object(Bucket=bucket.name, Key=each["Key"])


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        (None, 200, 0, None),
        ("bytes=5-9", 206, 5, 10),
        ("bytes=-7", 206, -7, None),
        ("bytes=4000000-", 206, 4_000_000, None),
    ],
)
async def test_the_service_streams_the_whole_and_ranges(client, saved, asked, status, start, end):
    await saved(PATH, DATA, "text/html")
    answer = await client.get(URL, headers={} if asked is None else {"Range": asked})
    assert (answer.status_code, answer.content) == (status, DATA[start:end])
    assert answer.headers["etag"] == f'"{hashlib.sha256(DATA).hexdigest()}"'
    assert answer.headers["content-disposition"] == DISPOSITION


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_link_leads_to_the_same_bytes_and_is_kept_by_nobody(client, saved, bucket, method):
    await saved(PATH, DATA, "text/html")
    answer = await client.request(method, URL, params={"link": 1})
    assert (answer.status_code, answer.content) == (303, b"")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    assert answer.headers["location"].startswith(f"{bucket.endpoint}/{bucket.name}/{bucket.prefix}/blobs/")
    async with httpx.AsyncClient(trust_env=False) as outside:
        followed = await outside.get(answer.headers["location"])
    assert (followed.status_code, followed.content) == (200, DATA)
    assert followed.headers["content-type"] == "text/html"
    assert followed.headers["content-disposition"] == DISPOSITION


async def test_a_page_that_may_ask_no_other_server_gets_a_link_of_this_one(client, services, saved):
    stored = await saved(PATH, DATA, "text/html")
    asked = Request({"type": "http", "path": URL, "raw_path": quote(URL).encode(), "headers": []})
    answer = await link_response(services, ConversationKey(PRINCIPAL, "c1"), stored, asked)
    followed = await client.get(urljoin(URL, answer.headers["location"]))
    assert (followed.status_code, followed.content) == (200, DATA)


async def test_bytes_that_the_server_has_lost_are_a_problem_and_no_empty_file(client, saved, bucket):
    stored = await saved(PATH, b"bytes", "text/html")
    client_of(bucket).delete_object(Bucket=bucket.name, Key=f"{bucket.prefix}/blobs/{stored.sha256}")
    answer = await client.get(URL)
    assert (answer.status_code, answer.json()["code"], answer.json()["detail"]) == (
        503,
        "store_failed",
        "the stored bytes of an artifact are missing",
    )


@pytest.mark.parametrize("damage", [lambda data: data[:-1] + b"?", lambda data: data[:-1]], ids=["changed", "cut"])
async def test_a_download_of_damaged_bytes_never_ends_well(client, saved, bucket, damage):
    stored = await saved(PATH, DATA, "text/html")
    key = f"{bucket.prefix}/blobs/{stored.sha256}"
    client_of(bucket).put_object(Bucket=bucket.name, Key=key, Body=damage(DATA))
    answer = await client.get(URL, headers={"Range": "bytes=0-3"})
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
    whole = await client.get(URL)  # a real server breaks the connection
    assert (whole.status_code, len(whole.content) < int(whole.headers["content-length"])) == (200, True)


@pytest.mark.parametrize("url", [URL, "/v1/conversations/c1"])
async def test_a_deletion_removes_the_objects_and_with_them_the_links_of_the_server(client, saved, bucket, url):
    await saved(PATH, DATA, "text/html")
    other = await saved(FilePath("turn_1", Namespace.FILES, "x"), b"other", conversation="c2")
    link = (await client.get(URL, params={"link": 1})).headers["location"]
    async with httpx.AsyncClient(trust_env=False) as anybody:
        assert (await anybody.get(link)).status_code == 200
        assert (await client.delete(url)).status_code == 204
        assert (await anybody.get(link)).status_code == 404
    assert (await client.get(URL)).status_code == 404
    assert set(objects_of(bucket)) == {other.key, f"blobs/{other.sha256}"}
