import asyncio
import hashlib
import logging
from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from proofbox.contracts.media_types import guess_mime
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import Attachment
from proofbox.service.artifacts.attachments import _append, _open
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from tests.http.conftest import PRINCIPAL
from tests.support.waiting import until

BASE = "/v1/conversations/c1/turns/turn_1/attachments"


async def test_an_attachment_is_stored_with_its_hash_and_a_source_id(client, stores):
    content = bytes(range(256)) * 1_000
    answer = await client.put(
        f"{BASE}/notes.bin", content=content, headers={"Content-Type": "Application/X-Notes; v=1"}
    )
    assert answer.status_code == 201
    assert Attachment.model_validate_json(answer.content) == Attachment(
        logical_path="fi:turn_1.user.attachments/notes.bin",
        physical_path="turn_1/attachments/notes.bin",
        sid=10_001,
        sha256=hashlib.sha256(content).hexdigest(),
        size_bytes=len(content),
        mime="application/x-notes",
    )
    location = urljoin(f"https://a.example/prefix{BASE}/notes.bin", answer.headers["location"])
    read = await client.get(location.removeprefix("https://a.example/prefix"))
    assert read.content == content
    rows = await stores.sources.rows(ConversationKey(PRINCIPAL, "c1"))
    assert [(row.sid, row.source_type, row.physical_path) for row in rows] == [
        (10_001, "attachment", "turn_1/attachments/notes.bin")
    ]


async def test_the_very_same_bytes_again_are_no_new_version(client):
    first = await client.put(f"{BASE}/a.txt", content=b"same")
    again = await client.put(f"{BASE}/a.txt", content=b"same")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == first.json()
    assert "location" not in again.headers


async def test_other_bytes_under_the_name_are_a_new_version_of_the_same_source(client):
    first = await client.put(f"{BASE}/a.txt", content=b"one")
    second = await client.put(f"{BASE}/a.txt", content=b"two")
    assert second.status_code == 201
    assert second.json()["sid"] == first.json()["sid"]
    read = await client.get("/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/a.txt")
    assert read.content == b"two"


async def test_a_corrected_media_type_is_a_new_version(client):
    await client.put(f"{BASE}/a", content=b"x", headers={"Content-Type": "text/plain"})
    answer = await client.put(f"{BASE}/a", content=b"x", headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["mime"]) == (201, "text/csv")


async def test_an_empty_attachment_is_one(client):
    answer = await client.put(f"{BASE}/empty.txt", content=b"")
    assert (answer.status_code, answer.json()["size_bytes"]) == (201, 0)
    read = await client.get("/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/empty.txt")
    assert (read.status_code, read.content) == (200, b"")


@pytest.mark.parametrize("declared", [None, "", "application/octet-stream", "application/x-www-form-urlencoded"])
async def test_without_a_media_type_that_says_something_the_name_decides(client, declared):
    headers = {} if declared is None else {"Content-Type": declared}
    answer = await client.put(f"{BASE}/report.docx", content=b"x", headers=headers)
    assert answer.json()["mime"] == "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    "declared", ["text", "text/", "te xt/plain", "multipart/form-data; boundary=x", "a/" + "b" * 200]
)
async def test_a_media_type_that_is_none_or_a_form_is_refused(client, declared):
    answer = await client.put(f"{BASE}/a.txt", content=b"x", headers={"Content-Type": declared})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Content-Type")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.csv", "text/csv"),
        ("A.CSV", "text/csv"),
        ("table.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("notes.md", "text/markdown"),
        ("photo.webp", "image/webp"),
        ("code.ts", "text/x-typescript"),
        ("build.log", "text/plain"),
        ("rows.jsonl", "application/x-ndjson"),
        ("song.aiff", "audio/x-aiff"),
        ("page.html.br", "application/x-brotli"),
        ("logs.csv.gz", "application/gzip"),
        ("backup.tgz", "application/gzip"),
        ("noextension", "application/octet-stream"),
        (".bashrc", "application/octet-stream"),
        ("odd.\u202egpj", "application/octet-stream"),
        ("data:text/html,x.unknown", "application/octet-stream"),
    ],
)
def test_names_give_the_same_media_type_on_every_machine(name, expected):
    assert guess_mime(name) == expected


@pytest.mark.parametrize(
    "name",
    [
        "a%2Fb.txt",
        "%2Fetc%2Fpasswd",
        "..%2Fa.txt",
        "%2e%2e",
        "%2e",
        "a%5Cb",
        "a%00b",
        "a%0A",
        "a%7F",
        "%FF.txt",
        "x" * 256,
        "",
    ],
)
@pytest.mark.shares_fixtures
async def test_a_name_that_is_no_plain_file_name_is_refused(client, name):
    answer = await client.put(f"{BASE}/{name}", content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")


async def test_a_name_of_two_lines_is_an_unsafe_path_and_makes_no_header(client):
    answer = await client.put(f"{BASE}/a%0D%0AX-Evil:%201", content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")
    assert "x-evil" not in answer.headers


@pytest.mark.parametrize("name", ["-rf", "~", "a b.txt", "trailing ", "ünï.txt", "x" * 255, "a?b#c.txt", "%25.txt"])
async def test_odd_but_harmless_names_are_kept_and_read_back(client, name):
    answer = await client.put(f"{BASE}/{quote(name)}", content=name.encode())
    assert answer.status_code == 201
    assert answer.json()["physical_path"] == f"turn_1/attachments/{name}"
    read = await client.get(answer.headers["location"])
    assert read.content == name.encode()


@pytest.mark.parametrize(
    "place", ["c1/turns/1", "%2e%2e/turns/turn_1", "c1/turns/turn_%20", "c1/turns/turn_" + "x" * 300]
)
async def test_a_conversation_or_turn_of_another_form_is_refused(client, place):
    answer = await client.put(f"/v1/conversations/{place}/attachments/a.txt", content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")


async def test_an_attachment_of_exactly_the_bound_is_taken_and_one_byte_more_is_not(client, services):
    bytes_max = services.attachments.bytes_max
    full = await client.put(f"{BASE}/full.bin", content=b"x" * bytes_max)
    over = await client.put(f"{BASE}/over.bin", content=b"x" * (bytes_max + 1))
    assert (full.status_code, full.json()["size_bytes"]) == (201, bytes_max)
    assert (over.status_code, over.json()["code"]) == (413, "body_too_large")


async def test_a_chunked_attachment_is_stopped_at_the_bound_and_leaves_nothing(client, tmp_path):
    async def endless():
        while True:
            yield b"x" * 65_536

    answer = await client.put(f"{BASE}/endless.bin", content=endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    read = await client.get("/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/endless.bin")
    assert read.status_code == 404
    left = [path for path in tmp_path.rglob("attachment") if path.is_file()]
    assert left == []


async def test_an_attachment_whose_blocks_cannot_be_stored_is_not_stored_either(stores, client):
    scope = ConversationKey(PRINCIPAL, "c1")
    given = NewArtifact(
        FilePath.from_physical("turn_1/attachments/a.txt"),
        FileContent(b"x"),
        1,
        hashlib.sha256(b"x").hexdigest(),
        "text/plain",
        "external",
        "",
        None,
    )

    def no_blocks(stored):
        raise StoreFullError(f"no room for the blocks of {stored[0].path.physical}")

    with pytest.raises(StoreFullError):
        await stores.artifacts.save(scope, [given], no_blocks)

    assert await stores.artifacts.latest(scope, given.path) is None
    assert (await stores.timelines.last(scope), await stores.sources.rows(scope)) == (0, [])
    answer = await client.put(f"{BASE}/a.txt", content=b"x")
    placed = await stores.timelines.after(scope, 0, 10, binaries=False)
    assert (answer.status_code, [block.block.type for block in placed]) == (
        201,
        ["user.attachment.meta", "user.attachment"],
    )


async def test_a_store_that_is_closed_is_our_failure(client, stores):
    await stores.artifacts.close()
    answer = await client.put(f"{BASE}/a.txt", content=b"x")
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (503, "store_failed", True)


def test_a_full_disk_and_a_folder_that_is_gone_are_told_apart(tmp_path):
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(StoreFullError):
        _append(full, hashlib.sha256(), b"x")
    with pytest.raises(StoreFailedError):
        _open(tmp_path / "gone" / "attachment")


async def test_an_upload_that_is_cut_short_stores_nothing_and_is_logged_as_such(server, client, tmp_path, caplog):
    parts = urlsplit(server)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    with caplog.at_level(logging.INFO, "proofbox.api"):
        writer.write(f"PUT {BASE}/cut.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf".encode())
        await writer.drain()
        staging = tmp_path / "data" / "staging"
        await until(lambda: any(staging.rglob("attachment")))
        writer.close()
        await until(lambda: caplog.records)
    assert " 499 " in caplog.records[0].getMessage()
    assert list(staging.rglob("attachment")) == []
    read = await client.get("/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/cut.txt")
    assert read.status_code == 404


@pytest.mark.parametrize("name", ["a%0Ab.csv", "a%00.csv", "%1Fa.csv", "a%7F.csv"])
async def test_a_name_with_a_control_character_is_an_unsafe_path(client, name):
    answer = await client.put(f"{BASE}/{name}", content=b"x")
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")
