"""The files of a call, a turn or a conversation as one archive over HTTP."""

import hashlib
import io
import zipfile

import pytest
from sqlalchemy import text

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewArtifact, NewSave
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from tests.http.conftest import PRINCIPAL

URL = "/v1/conversations/c1/archive"
_MANY = text(
    """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 6000)
    INSERT INTO artifacts (conversation, turn, namespace, rel, version, sha256, size_bytes, mime, visibility,
        description, created, removed)
    SELECT conversation, turn, namespace, n, 1, sha256, size_bytes, mime, 'internal', description, created, :gone
    FROM artifacts, numbers WHERE rel = :name"""
)
"""Adds 6,000 copies of a file."""


def names_and_bytes(answer):
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        return {info.filename: archive.read(info) for info in archive.infolist()}


@pytest.fixture
async def files(client, saved):
    await saved(FilePath.from_physical("turn_1/files/a.txt"), b"old")
    await saved(FilePath.from_physical("turn_1/files/a.txt"), b"new")
    await saved(FilePath.from_physical("turn_2/files/deep/b.bin"), bytes(range(256)) * 5_000)
    await client.put("/v1/conversations/c1/turns/turn_2/attachments/c.csv", content=b"a,b\n")


@pytest.mark.usefixtures("files")
async def test_a_conversation_is_one_archive_of_the_latest_versions_in_folders_of_their_turns(client):
    answer = await client.get(URL)
    assert names_and_bytes(answer) == {
        "turn_1/files/a.txt": b"new",
        "turn_2/files/deep/b.bin": bytes(range(256)) * 5_000,
        "turn_2/attachments/c.csv": b"a,b\n",
    }
    assert answer.headers["content-type"] == "application/zip"
    assert 'filename="c1.zip"' in answer.headers["content-disposition"]
    assert answer.headers["content-disposition"].startswith("attachment")


@pytest.mark.usefixtures("files")
async def test_an_archive_of_a_turn_has_its_files_only(client):
    assert list(names_and_bytes(await client.get(URL, params={"turn_id": "turn_1"}))) == ["turn_1/files/a.txt"]


@pytest.mark.usefixtures("files")
async def test_an_archive_of_a_call_has_the_versions_that_it_made(client, stores):
    path = FilePath.from_physical("turn_1/files/a.txt")
    content = b"of call 9"
    sha256 = hashlib.sha256(content).hexdigest()
    new = NewArtifact(path, FileContent(content), len(content), sha256, "text/plain", "internal", "d", "call-9")
    await stores.artifacts.save(ConversationKey(PRINCIPAL, "c1"), [new])
    answer = await client.get(URL, params={"tool_call_id": "call-9"})
    assert names_and_bytes(answer) == {"turn_1/files/a.txt": content}
    earlier = names_and_bytes(await client.get(URL, params={"tool_call_id": "t1"}))
    assert earlier["turn_1/files/a.txt"] == b"new"


async def test_hostile_names_stay_relative_in_the_archive(client, saved):
    names = ["turn_1/files/<img src=x onerror=alert(1)>.txt", "turn_1/files/..\u202egpj.exe", "turn_1/files/a b/ü"]
    for name in names:
        await saved(FilePath.from_physical(name), b"x")
    found = names_and_bytes(await client.get(URL))
    assert list(found) == names


@pytest.mark.usefixtures("files")
async def test_a_file_that_a_program_removed_is_left_out(client, stores, saved):
    artifact = await saved(FilePath.from_physical("turn_1/files/gone.txt"), b"gone")
    await (
        await stores.artifacts.prepare(NewSave(ConversationKey(PRINCIPAL, "c1"), (), removed=[artifact]))
    ).store()
    assert "turn_1/files/gone.txt" not in names_and_bytes(await client.get(URL, params={"turn_id": "turn_1"}))


@pytest.mark.usefixtures("files")
async def test_removed_files_do_not_count_against_the_limit(client, stores, saved):
    await saved(FilePath.from_physical("turn_1/files/z.txt"), b"z")
    await stores.database.write(lambda connection: connection.execute(_MANY, {"name": "z.txt", "gone": "now"}))
    await saved(FilePath.from_physical("turn_3/files/last.txt"), b"last")
    found = names_and_bytes(await client.get(URL))
    assert found["turn_3/files/last.txt"] == b"last"
    assert len(found) == 5
    await stores.database.write(lambda connection: connection.execute(_MANY, {"name": "last.txt", "gone": None}))
    answer = await client.get(URL)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert "more than 5000 files; ask for one turn" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"turn_id": "turn_9"}, 404, "unknown_artifact"),
        ({"tool_call_id": "none"}, 404, "unknown_artifact"),
        ({"turn_id": "turn_1", "tool_call_id": "t1"}, 422, "invalid_request"),
        ({"turn_id": "../x"}, 422, "invalid_request"),
    ],
)
@pytest.mark.usefixtures("files")
async def test_an_archive_of_nothing_or_of_two_things_is_refused(client, query, status, code):
    answer = await client.get(URL, params=query)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.usefixtures("files")
async def test_a_store_that_fails_at_the_first_file_is_a_problem_document(client, stores):
    await stores.database.close()
    answer = await client.get(URL)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")


@pytest.mark.usefixtures("files")
async def test_an_archive_of_another_conversation_has_no_files(client):
    assert (await client.get("/v1/conversations/c2/archive")).status_code == 404
