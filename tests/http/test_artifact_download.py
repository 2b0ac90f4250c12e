import hashlib
import json
import os

import httpx
import pytest

from proofbox.contracts.paths import FilePath, Namespace

BASE = "/v1/conversations/c1/artifacts"
ABC = bytes(range(256)) * 4_000
PATH = FilePath("turn_1", Namespace.FILES, "charts/a.png")
URL = f"{BASE}/{PATH.logical}"
TAG = f'"{hashlib.sha256(ABC).hexdigest()}"'


@pytest.fixture
async def stored(saved):
    return await saved(PATH, ABC, "image/png")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_file_is_served_whole_with_headers_that_make_it_harmless(client, stored, method):
    answer = await client.request(method, URL)
    assert answer.status_code == 200
    assert answer.content == (ABC if method == "GET" else b"")
    shown = {name: value for name, value in answer.headers.items() if name not in {"x-request-id", "last-modified"}}
    assert shown == {
        "accept-ranges": "bytes",
        "artifact-version": "1",
        "cache-control": "private, no-cache",
        "content-disposition": "attachment; filename=\"a.png\"; filename*=UTF-8''a.png",
        "content-length": str(len(ABC)),
        "content-security-policy": "sandbox; default-src 'none'",
        "content-type": "image/png",
        "cross-origin-resource-policy": "same-origin",
        "etag": TAG,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
    year = stored.created[:4]
    assert (year in answer.headers["last-modified"], answer.headers["last-modified"][-4:]) == (True, " GMT")


@pytest.mark.usefixtures("stored")
async def test_the_latest_version_is_served(client, saved):
    await saved(PATH, b"newer", "image/png")
    assert (await client.get(URL)).content == b"newer"


@pytest.mark.usefixtures("stored")
async def test_every_version_is_served_by_its_number(client, saved):
    await saved(PATH, b"newer", "image/png")
    found = [await client.get(URL, params={"version": number}) for number in (1, 2, 3)]
    assert [answer.status_code for answer in found] == [200, 200, 404]
    assert [answer.content for answer in found[:2]] == [ABC, b"newer"]
    assert [answer.headers["artifact-version"] for answer in found[:2]] == ["1", "2"]
    assert found[2].json()["code"] == "unknown_artifact"
    assert (await client.get(URL, params={"version": 0})).status_code == 422
    other = await client.get(URL.replace("/c1/", "/c2/"), params={"version": 1})
    assert other.status_code == 404


@pytest.mark.usefixtures("stored")
async def test_another_conversation_has_no_such_file(client):
    answer = await client.get(URL.replace("/c1/", "/c2/"))
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")


@pytest.mark.parametrize("mime", ["text/html", "image/svg+xml", "application/pdf", "text/javascript"])
async def test_active_content_is_an_attachment_too(client, saved, mime):
    await saved(PATH, b"<script>alert(1)</script>", mime)
    answer = await client.get(URL)
    assert answer.headers["content-type"] == mime
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"


async def test_a_media_type_that_is_none_is_served_as_bytes(client, saved):
    await saved(PATH, b"x", "text/html\r\nX-Evil: 1")
    answer = await client.get(URL)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=10-19", 10, 20),
        ("bytes=1000000-", 1_000_000, len(ABC)),
        ("bytes=-7", len(ABC) - 7, len(ABC)),
        ("bytes=0-99999999", 0, len(ABC)),
        ("bytes=300000-900000", 300_000, 900_001),
    ],
)
@pytest.mark.usefixtures("stored")
async def test_one_range_is_served_in_part(client, asked, start, end):
    answer = await client.get(URL, headers={"Range": asked})
    assert answer.status_code == 206
    assert answer.content == ABC[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(ABC)}"
    assert answer.headers["content-length"] == str(end - start)
    assert answer.headers["etag"] == TAG


@pytest.mark.parametrize("asked", ["bytes=0-1,5-9", "lines=1-2", "bytes=9-5", "bytes=a-b", "bytes", "bytes=-", ""])
@pytest.mark.usefixtures("stored")
async def test_several_ranges_and_ranges_that_are_none_are_answered_with_the_whole(client, asked):
    answer = await client.get(URL, headers={"Range": asked})
    assert (answer.status_code, answer.content) == (200, ABC)
    assert "content-range" not in answer.headers


@pytest.mark.parametrize("asked", [f"bytes={len(ABC)}-", "bytes=-0", "bytes=" + ",".join(["0-0"] * 10_000)])
@pytest.mark.usefixtures("stored")
async def test_a_range_without_a_byte_and_a_flood_of_ranges_are_not_satisfiable(client, asked):
    answer = await client.get(URL, headers={"Range": asked})
    assert (answer.status_code, answer.json()["code"]) == (416, "range_not_satisfiable")
    assert answer.headers["content-range"] == f"bytes */{len(ABC)}"
    assert answer.headers["content-type"] == "application/problem+json"


async def test_an_empty_file_has_no_range(client, saved):
    await saved(PATH, b"")
    assert (await client.get(URL)).content == b""
    assert (await client.get(URL, headers={"Range": "bytes=0-"})).status_code == 416


@pytest.mark.parametrize(
    ("if_range", "expected"),
    [(TAG, 206), (f"W/{TAG}", 200), ('"other"', 200), ("Sat, 04 Jul 2026 13:18:14 GMT", 200)],
)
@pytest.mark.usefixtures("stored")
async def test_a_range_holds_only_for_the_version_that_the_client_has(client, if_range, expected):
    answer = await client.get(URL, headers={"Range": "bytes=0-3", "If-Range": if_range})
    assert answer.status_code == expected


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("known", [TAG, f"W/{TAG}", f'"x", {TAG}', "*"])
@pytest.mark.usefixtures("stored")
async def test_a_version_that_the_client_has_is_not_sent_again(client, method, known):
    answer = await client.request(method, URL, headers={"If-None-Match": known, "Range": "bytes=0-3"})
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == TAG
    assert "content-length" not in answer.headers


@pytest.mark.usefixtures("stored")
async def test_another_version_is_sent(client):
    answer = await client.get(URL, headers={"If-None-Match": '"other"'})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "fi:turn_1.files/none.txt",
        "fi:turn_1.user.attachments/none.txt",
        "fi:turn_1.code.t1",
        "tc:turn_1.t1.result",
        "ar:turn_1.user.prompt",
        "so:sources_pool[9]",
        "sk:pdf",
    ],
)
@pytest.mark.usefixtures("stored")
async def test_what_is_not_stored_as_a_file_is_unknown(client, path):
    answer = await client.get(f"{BASE}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")


@pytest.mark.parametrize(
    "path",
    [
        "report.pdf",
        "turn_1/files/charts/a.png",
        "fi:turn_1.files/../x",
        "fi:turn_1.files/%2e%2e/%2e%2e/etc/passwd",
        "fi:turn_1.files//charts/a.png",
        "fi:turn_1.files/%2Fetc%2Fpasswd",
        "fi:turn_1.files/a%00b",
        "fi:turn_1.files/charts/a.png%0A",
        "fi:turn_1.files/a%5Cb",
        "fi:nope.files/a",
        "fi:turn_1.files/" + "x" * 256,
        "%FF",
        "fi:",
    ],
)
@pytest.mark.usefixtures("stored")
@pytest.mark.shares_fixtures
async def test_what_has_no_form_of_a_path_is_refused(client, path):
    answer = await client.get(f"{BASE}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")


@pytest.mark.usefixtures("stored")
async def test_an_encoded_slash_inside_a_path_is_the_slash_that_it_encodes(client):
    answer = await client.get(f"{BASE}/fi%3Aturn_1.files%2Fcharts%2Fa.png")
    assert answer.content == ABC


@pytest.mark.usefixtures("stored")
async def test_bytes_that_the_store_lost_are_our_failure_and_no_empty_file(client, tmp_path):
    for blob in (tmp_path / "data" / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    answer = await client.get(URL)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")


@pytest.mark.usefixtures("stored")
async def test_a_real_server_sends_the_same_bytes_and_survives_readers_that_leave(web):
    async with web.stream("GET", URL) as answer:
        first = await anext(answer.aiter_raw(10))
    whole = await web.get(URL)
    head = await web.head(URL)
    assert (first, whole.content) == (ABC[:10], ABC)
    assert (head.content, head.headers["content-length"]) == (b"", str(len(ABC)))


@pytest.mark.usefixtures("stored")
async def test_a_store_that_fails_in_the_middle_breaks_the_connection(web, saved, tmp_path):
    await saved(PATH, os.urandom(20_000_000))
    async with web.stream("GET", URL) as answer:
        assert answer.status_code == 200
        for blob in (tmp_path / "data" / "blobs").rglob("*"):
            if blob.is_file():
                blob.unlink()
        with pytest.raises(httpx.RemoteProtocolError):
            await answer.aread()


@pytest.mark.parametrize("damage", [lambda data: data[:-1] + b"?", lambda data: data[:-1]], ids=["changed", "cut"])
@pytest.mark.parametrize("size_bytes", [10, 2_000_000])
@pytest.mark.parametrize("asked", [None, "bytes=0-3"])
async def test_a_download_of_damaged_bytes_never_ends_well(web, saved, tmp_path, damage, size_bytes, asked):
    data = os.urandom(size_bytes)
    stored = await saved(PATH, data)
    blob = tmp_path / "data" / "blobs" / stored.sha256[:2] / stored.sha256
    blob.unlink()
    blob.write_bytes(damage(data))
    async with web.stream("GET", URL, headers={} if asked is None else {"Range": asked}) as answer:
        if answer.status_code == 200:
            with pytest.raises(httpx.RemoteProtocolError):
                await answer.aread()
        else:
            assert (answer.status_code, json.loads(await answer.aread())["code"]) == (503, "store_failed")


async def test_bytes_that_change_after_a_range_of_them_was_served_break_the_next_range(web, saved, tmp_path):
    data = os.urandom(1_000_000)
    stored = await saved(PATH, data)
    blob = tmp_path / "data" / "blobs" / stored.sha256[:2] / stored.sha256
    assert (await web.get(URL, headers={"Range": "bytes=0-9"})).content == data[:10]
    status = blob.stat()
    blob.chmod(0o600)
    with blob.open("r+b") as file:
        file.seek(600_000)
        file.write(b"changed")
    os.utime(blob, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (await web.get(URL, headers={"Range": "bytes=0-9"})).content == data[:10]
    async with web.stream("GET", URL, headers={"Range": "bytes=10-"}) as answer:
        with pytest.raises(httpx.RemoteProtocolError):
            await answer.aread()
    assert (await web.get(URL, headers={"Range": "bytes=600000-600009"})).status_code == 503


# ---- links ----


@pytest.mark.usefixtures("stored")
async def test_what_is_no_answer_to_the_question_for_a_link_is_refused(client):
    answer = await client.get(URL, params={"link": "maybe"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_a_link_is_asked_for_what_is_there_only(client):
    answer = await client.get(URL, params={"link": 1})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")
