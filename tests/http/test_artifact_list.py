"""The list of a conversation's files over HTTP."""

import hashlib

import pytest

from proofbox.contracts.artifact_lists import ArtifactPage
from proofbox.contracts.paths import FilePath

URL = "/v1/conversations/c1/artifacts"


async def listed(client, **query):
    answer = await client.get(URL, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    return ArtifactPage.model_validate_json(answer.content)


async def test_every_file_is_listed_in_its_latest_version_with_what_is_known_of_it(client, saved):
    path = FilePath.from_physical("turn_1/files/charts/a.png")
    await saved(path, b"old", "image/png")
    stored = await saved(path, b"newer", "image/png")
    page = await listed(client)
    assert [artifact.model_dump() for artifact in page.artifacts] == [
        {
            "logical_path": "fi:turn_1.files/charts/a.png",
            "physical_path": "turn_1/files/charts/a.png",
            "turn_id": "turn_1",
            "version": 2,
            "mime": "image/png",
            "size_bytes": 5,
            "sha256": hashlib.sha256(b"newer").hexdigest(),
            "visibility": "external",
            "description": "a file",
            "created": stored.created,
        }
    ]
    assert not page.more


async def test_an_uploaded_attachment_is_listed(client):
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.csv", content=b"a,b\n")
    [artifact] = (await listed(client)).artifacts
    assert (artifact.logical_path, artifact.size_bytes) == ("fi:turn_1.user.attachments/a.csv", 4)


async def test_pages_follow_one_another_without_gap_or_overlap(client, saved):
    names = [f"turn_{number}/files/a" for number in range(5)]
    for name in names:
        await saved(FilePath.from_physical(name), b"a")
    seen, after, more = [], 0, True
    while more:
        page = await listed(client, after=after, limit=2)
        seen += [artifact.physical_path for artifact in page.artifacts]
        after, more = page.last, page.more
    assert seen == names
    end = await listed(client, after=after)
    assert (end.artifacts, end.last, end.more) == ([], after, False)


async def test_a_conversation_without_files_and_another_one_list_nothing(client, saved):
    await saved(FilePath.from_physical("turn_1/files/a"), b"a", conversation="c2")
    assert (await listed(client)).artifacts == []


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1_001}, {"after": -1}, {"after": "a"}])
async def test_a_page_that_cannot_be_is_refused(client, query):
    assert (await client.get(URL, params=query)).status_code == 422
