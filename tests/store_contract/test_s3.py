"""Artifacts on a real S3 server: what lies where, sums, links, and what is refused."""

import asyncio
import itertools
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest
from s3_check import assert_bucket_says_what_the_rows_say, sha256_of

from proofbox.contracts.paths import FilePath
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from tests.services.s3_server import client_of, objects_of
from tests.support.cutting_relay import CuttingRelay

MIB = 1024 * 1024
LARGE = bytes(range(256)) * (12 * 4096)  # 12 MiB: three parts of 5 MiB
PATH = FilePath.from_physical("turn_1/files/a")
KEY = "cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1"


@pytest.fixture
async def store(opened_on_s3, bucket, tmp_path):
    async with opened_on_s3(tmp_path, bucket) as opened:
        yield opened


# ---- what lies where ----


async def test_a_hosted_object_lies_at_prefix_and_key_and_bytes_lie_under_their_hash(store, bucket, scope, save):
    (saved,) = await save(store, scope, {"turn_1/files/a b/ü.txt": b"bytes"})
    assert saved.hosted_uri == f"s3://{bucket.name}/{bucket.prefix}/{saved.key}"
    assert objects_of(bucket) == {saved.key: b"bytes", f"blobs/{saved.sha256}": b"bytes"}


async def test_a_file_and_an_attachment_of_one_key_lie_apart(store, bucket, scope, save):
    await save(store, scope, {"turn_1/files/a": b"file", "turn_1/attachments/a": b"attachment"})
    found = {name: data for name, data in objects_of(bucket).items() if not name.startswith("blobs/")}
    assert found == {f"{KEY}/a": b"file", f"attachments/{KEY}/a": b"attachment"}


async def test_a_name_may_be_an_object_and_the_begin_of_others(store, bucket, scope, save):
    # One after the other: of two such copies at one moment SeaweedFS now and then loses one.
    await save(store, scope, {"turn_1/files/a": b"1"})
    await save(store, scope, {"turn_1/files/a/b": b"2"})
    await save(store, scope, {"turn_1/files/c/d": b"3"})
    await save(store, scope, {"turn_1/files/c": b"4"})
    found = {name: data for name, data in objects_of(bucket).items() if not name.startswith("blobs/")}
    assert found == {f"{KEY}/a": b"1", f"{KEY}/a/b": b"2", f"{KEY}/c/d": b"3", f"{KEY}/c": b"4"}


async def test_without_a_prefix_the_key_is_the_whole_name(s3_server, tmp_path, scope):
    files = S3BlobStore(s3_server, tmp_path, 5 * MIB, 900)
    name = files.hosted_name(scope, PATH)
    assert files.uri_of(name) == f"s3://{s3_server.name}/{KEY}/a"
    assert files.name_of_uri(files.uri_of(name)) == name


async def test_no_object_would_be_rendered_by_a_browser(store, bucket, scope, save):
    (saved,) = await save(store, scope, {"turn_1/files/x/ü.html": b"<script>"}, mime="text/html")
    s3 = client_of(bucket)
    heads = [
        s3.head_object(Bucket=bucket.name, Key=f"{bucket.prefix}/{name}")
        for name in (saved.key, f"blobs/{saved.sha256}")
    ]
    assert [(head["ContentType"], head["ContentDisposition"]) for head in heads] == [
        ("text/html", "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%BC.html"),
        ("application/octet-stream", "attachment"),
    ]


async def test_a_key_that_is_too_long_for_the_server_is_told_apart_by_a_hash(store, bucket, scope, save):
    folders = "/".join(["ü" * 100] * 4)
    paths = {f"turn_1/files/{folders}/{end}" + "x" * 180: end.encode() for end in "ab"}
    saved = await save(store, scope, paths)
    assert {len(artifact.key.encode()) > 1024 for artifact in saved} == {True}
    uris = [artifact.hosted_uri for artifact in saved]
    assert len(set(uris)) == 2
    head = f"s3://{bucket.name}/"
    assert max(len(uri.removeprefix(head).encode()) for uri in uris) <= 1024
    async with store.staging() as folder:
        assert [(await store.fetch_uri(scope, uri, folder)).read_bytes() for uri in uris] == [b"a", b"b"]


async def test_a_uri_is_the_name_as_it_is_and_opens_nothing_outside_the_prefix(store, bucket, scope, save):
    (saved,) = await save(store, scope, {"turn_1/files/é %41?.txt": b"bytes"})
    async with store.staging() as folder:
        for same in (saved.hosted_uri, saved.hosted_uri.replace("é", "e\u0301")):
            assert (await store.fetch_uri(scope, same, folder)).read_bytes() == b"bytes"
        for other in (
            saved.hosted_uri.replace("%41", "A"),
            saved.hosted_uri.replace("é", "%C3%A9"),
            saved.hosted_uri.replace(bucket.name, "other"),
            saved.hosted_uri.replace(bucket.prefix, "tests/other"),
            f"s3://{bucket.name}/{bucket.prefix}/blobs/{saved.sha256}",
            f"s3://{bucket.name}/ready",
        ):
            assert await store.fetch_uri(scope, other, folder) is None


async def test_a_new_version_replaces_the_hosted_object_and_keeps_the_old_blob(
    store, bucket, scope, save, tmp_path
):
    await save(store, scope, {"turn_1/files/a": b"old"})
    await save(store, scope, {"turn_1/files/a": b"new", "turn_1/files/b": b"old"})
    assert_bucket_says_what_the_rows_say(bucket, tmp_path)
    assert objects_of(bucket)[f"{KEY}/a"] == b"new"


async def test_of_many_that_write_one_path_at_once_the_latest_row_is_what_is_hosted(
    store, bucket, scope, save, tmp_path
):
    contents = [f"writer {number}".encode() * 1_000 for number in range(10)]
    await asyncio.gather(*(save(store, scope, {PATH.physical: data}) for data in contents))
    newest = await store.latest(scope, PATH)
    assert newest.version == 10
    assert sha256_of(objects_of(bucket)[f"{KEY}/a"]) == newest.sha256
    assert_bucket_says_what_the_rows_say(bucket, tmp_path)


# ---- large files and sums ----


async def test_a_large_file_goes_in_parts_and_comes_back_whole(store, bucket, scope, save, content):
    (saved,) = await save(store, scope, {"turn_1/files/a": LARGE})
    head = client_of(bucket).head_object(Bucket=bucket.name, Key=f"{bucket.prefix}/blobs/{saved.sha256}")
    assert head["ETag"].endswith('-3"')
    assert await content(store, scope, saved) == LARGE
    async with store.staging() as folder:
        assert (await store.fetch(scope, saved, folder)).read_bytes() == LARGE


async def test_large_bytes_that_are_there_are_not_sent_again(opened_on_s3, bucket, scope, save, tmp_path):
    async with (
        CuttingRelay(urlsplit(bucket.endpoint).port) as relay,
        opened_on_s3(tmp_path, replace(bucket, endpoint=relay.url)) as store,
    ):
        await save(store, scope, {"turn_1/files/a": LARGE})
        assert relay.sent > len(LARGE)
        before = relay.sent
        await save(store, scope, {"turn_2/files/b": LARGE})
        assert relay.sent - before < 20_000
    assert_bucket_says_what_the_rows_say(bucket, tmp_path)


@pytest.mark.parametrize("data", [b"small", LARGE])
async def test_a_source_with_another_hash_than_it_is_said_to_have_is_not_stored(
    store, bucket, scope, stage, tmp_path, data
):
    async with store.staging() as folder:
        bad = replace(stage(folder, PATH.physical, data), sha256=sha256_of(b"other"))
        with pytest.raises(StoreFailedError, match="have changed on their way"):
            await store.save(scope, [bad])
    assert await store.latest(scope, PATH) is None
    assert objects_of(bucket) == {}
    assert_bucket_says_what_the_rows_say(bucket, tmp_path)


@pytest.mark.parametrize("damaged", [*itertools.product([b"12345", LARGE], ["changed", "cut", "gone"])])
async def test_damaged_bytes_are_never_given_out_as_whole_and_a_save_heals_them(
    store, bucket, scope, save, content, damaged
):
    data, damage = damaged
    (saved,) = await save(store, scope, {"turn_1/files/a": data})
    where = {"Bucket": bucket.name, "Key": f"{bucket.prefix}/blobs/{saved.sha256}"}
    s3 = client_of(bucket)
    s3.delete_object(**where)
    if damage != "gone":
        s3.put_object(**where, Body={"changed": data[:-1] + b"X", "cut": data[:3]}[damage])
    async with store.staging() as folder:
        for fetched in (store.fetch(scope, saved, folder), store.fetch_uri(scope, saved.hosted_uri, folder)):
            with pytest.raises(StoreFailedError, match=r"stored bytes of an artifact are (damaged|missing)"):
                await fetched
    with pytest.raises(StoreFailedError, match=r"stored bytes of an artifact are (cut off|missing|damaged)"):
        await content(store, scope, saved)
    await save(store, scope, {"turn_1/files/b": data})
    assert await content(store, scope, saved) == data


async def test_the_server_refuses_bytes_that_are_not_those_of_their_checksum(bucket):
    s3 = client_of(bucket)
    with pytest.raises(s3.exceptions.ClientError, match="BadDigest"):
        s3.put_object(
            Bucket=bucket.name,
            Key=f"{bucket.prefix}/x",
            Body=b"bytes",
            ChecksumSHA256="ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
        )
    assert objects_of(bucket) == {}


@pytest.mark.parametrize("name", ["../x", "a/../../other/x", "a/../b"])
async def test_the_server_refuses_names_that_climb(bucket, name):
    s3 = client_of(bucket)
    with pytest.raises(s3.exceptions.ClientError, match="InvalidRequest"):
        s3.put_object(Bucket=bucket.name, Key=f"{bucket.prefix}/{name}", Body=b"x")


# ---- links ----


async def get(url, **more):
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(url, **more)


async def test_a_link_gives_the_bytes_of_its_version_as_an_attachment(store, scope, save):
    (old,) = await save(store, scope, {"turn_1/files/x/ü.html": b"<script>"}, mime="text/html")
    await save(store, scope, {"turn_1/files/x/ü.html": b"newer"}, mime="text/html")
    answer = await get(await store.link(scope, old))
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"<script>", "text/html")
    assert answer.headers["content-disposition"] == "attachment; filename=\"_.html\"; filename*=UTF-8''%C3%BC.html"


async def test_a_link_takes_ranges(store, scope, save):
    (saved,) = await save(store, scope, {"turn_1/files/a": b"0123456789"})
    answer = await get(await store.link(scope, saved), headers={"Range": "bytes=2-4"})
    assert (answer.status_code, answer.content) == (206, b"234")


@pytest.mark.parametrize(
    "bend",
    [
        lambda url, _: url.replace("attachment", "inline"),
        lambda url, _: url.replace("text%2Fplain", "text%2Fhtml"),
        lambda url, _: url.replace("X-Amz-Expires=900", "X-Amz-Expires=90000"),
        lambda url, _: url.partition("?")[0],
        lambda url, other: other.partition("?")[0] + "?" + url.partition("?")[2],
    ],
)
async def test_a_bent_link_is_refused(store, scope, save, bend):
    saved, secret = await save(store, scope, {"turn_1/files/a": b"a", "turn_1/files/b": b"secret"})
    links = [await store.link(scope, artifact) for artifact in (saved, secret)]
    bent = bend(*links)
    assert (bent in links, (await get(bent)).status_code) == (False, 403)


async def test_a_link_reads_and_does_nothing_else(store, scope, save, content):
    (saved,) = await save(store, scope, {"turn_1/files/a": b"bytes"})
    url = await store.link(scope, saved)
    async with httpx.AsyncClient(trust_env=False) as client:
        answers = [await client.put(url, content=b"other"), await client.delete(url)]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert await content(store, scope, saved) == b"bytes"


async def test_a_link_expires(opened_on_s3, bucket, scope, save, tmp_path):
    async with opened_on_s3(tmp_path, bucket, link_s=1) as store:
        (saved,) = await save(store, scope, {"turn_1/files/a": b"bytes"})
        url = await store.link(scope, saved)
        while (answer := await get(url)).status_code == 200:  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.1)
        assert (answer.status_code, "expired" in answer.text) == (403, True)


async def test_no_link_is_made_to_what_the_conversation_does_not_have(store, scope, others, save):
    (saved,) = await save(store, scope, {"turn_1/files/a": b"secret"})
    for other in others:
        with pytest.raises(StoreFailedError, match="not stored in this conversation"):
            await store.link(other, saved)


async def test_links_lead_to_where_clients_reach_the_server(opened_on_s3, bucket, scope, save, tmp_path):
    seen_as = bucket.endpoint.replace("127.0.0.1", "localhost")
    async with opened_on_s3(tmp_path, replace(bucket, link_endpoint=seen_as)) as store:
        (saved,) = await save(store, scope, {"turn_1/files/a": b"bytes"})
        url = await store.link(scope, saved)
        assert (url.startswith(seen_as), (await get(url)).content) == (True, b"bytes")


# ---- refused ----


async def test_a_server_that_does_not_answer_stops_the_start_and_the_setting_is_named(
    opened_on_s3, bucket, unused_tcp_port, tmp_path
):
    with pytest.raises(StoreFailedError, match="does not answer; its address is the setting s3_endpoint"):
        async with opened_on_s3(tmp_path, replace(bucket, endpoint=f"http://127.0.0.1:{unused_tcp_port}")):
            pass


@pytest.mark.parametrize("wrong", ["access_key", "secret_key"])
async def test_credentials_that_are_refused_stop_the_start_and_the_settings_are_named(
    opened_on_s3, bucket, tmp_path, wrong
):
    with pytest.raises(StoreFailedError, match="refuses the settings s3_access_key and s3_secret_key") as caught:
        async with opened_on_s3(tmp_path, replace(bucket, **{wrong: "wrong" * 4})):
            pass
    assert bucket.secret_key not in repr(caught.value.__cause__)


async def test_a_bucket_that_is_not_there_stops_the_start_and_the_setting_is_named(opened_on_s3, bucket, tmp_path):
    with pytest.raises(StoreFailedError, match=r"no bucket 'not-there'.*setting s3_bucket"):
        async with opened_on_s3(tmp_path, replace(bucket, name="not-there")):
            pass


async def test_credentials_come_from_the_machine_if_none_are_set(
    opened_on_s3, bucket, scope, save, tmp_path, monkeypatch
):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.secret_key)
    async with opened_on_s3(tmp_path, replace(bucket, access_key="", secret_key="")) as store:
        await save(store, scope, {"turn_1/files/a": b"x"})
    assert objects_of(bucket)[f"{KEY}/a"] == b"x"


def test_the_secret_is_not_shown_with_the_bucket(bucket):
    assert bucket.secret_key not in repr(bucket)
