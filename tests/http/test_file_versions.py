"""The versions of a file over HTTP, and which differences cannot be made."""

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.previews import VersionPage
from proofbox.service.artifacts.port import NewSave
from proofbox.service.identity import ConversationKey
from tests.http.conftest import PRINCIPAL

FILE = "fi:turn_1.files/a.txt"
VERSIONS = f"/v1/conversations/c1/versions/{FILE}"
DIFFERENCES = f"/v1/conversations/c1/differences/{FILE}"
PATH = FilePath.from_physical("turn_1/files/a.txt")


@pytest.fixture
async def three_versions(saved):
    return [await saved(PATH, content) for content in (b"one", b"two", b"three")]


async def test_versions_are_listed_newest_first_with_what_is_known_of_each(client, three_versions):
    page = VersionPage.model_validate_json((await client.get(VERSIONS)).content)
    assert (page.logical_path, page.physical_path, page.more) == (FILE, "turn_1/files/a.txt", False)
    assert [entry.version for entry in page.versions] == [3, 2, 1]
    newest = page.versions[0]
    assert (newest.size_bytes, newest.sha256, newest.tool_call_id, newest.removed) == (
        5,
        three_versions[2].sha256,
        "t1",
        False,
    )


@pytest.mark.usefixtures("three_versions")
async def test_pages_of_versions_follow_one_another(client):
    first = (await client.get(VERSIONS, params={"limit": 2})).json()
    assert ([entry["version"] for entry in first["versions"]], first["more"]) == ([3, 2], True)
    second = (await client.get(VERSIONS, params={"limit": 2, "before": 2})).json()
    assert ([entry["version"] for entry in second["versions"]], second["more"]) == ([1], False)
    end = (await client.get(VERSIONS, params={"before": 1})).json()
    assert (end["versions"], end["more"]) == ([], False)


async def test_a_version_that_a_program_removed_is_marked(client, stores, saved):
    artifact = await saved(PATH, b"one")
    await (
        await stores.artifacts.prepare(NewSave(ConversationKey(PRINCIPAL, "c1"), (), removed=[artifact]))
    ).store()
    assert [entry["removed"] for entry in (await client.get(VERSIONS)).json()["versions"]] == [True]


@pytest.mark.parametrize("kind", ["versions", "differences", "previews"])
@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("fi:turn_1.files/other.txt", 404, "unknown_artifact"),
        ("so:sources_pool[1]", 404, "unknown_artifact"),
        ("fi:turn_1.files/../a", 400, "unsafe_path"),
        ("nonsense", 400, "unsafe_path"),
    ],
)
@pytest.mark.usefixtures("three_versions")
@pytest.mark.shares_fixtures
async def test_what_is_not_a_file_of_the_conversation_has_neither(client, kind, path, status, code):
    answer = await client.get(f"/v1/conversations/c1/{kind}/{path.replace('../', '%2E%2E/')}")
    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.usefixtures("three_versions")
async def test_another_conversation_has_no_versions_of_it(client):
    answer = await client.get(f"/v1/conversations/c2/versions/{FILE}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"from_version": 3, "to_version": 2}, 422),
        ({"to_version": 1}, 422),
        ({"to_version": 9}, 404),
        ({"from_version": 0}, 422),
    ],
)
@pytest.mark.usefixtures("three_versions")
async def test_versions_that_cannot_be_compared_are_refused(client, query, status):
    answer = await client.get(DIFFERENCES, params=query)
    assert answer.status_code == status
    if query == {"from_version": 3, "to_version": 2}:
        [error] = answer.json()["errors"]
        assert error["field"] == "from_version"
        assert "give a number from 1 to 2" in error["message"]


async def test_versions_with_the_same_bytes_do_not_differ_and_nothing_runs(client, saved):
    await saved(PATH, b"same")
    await saved(PATH, b"same")
    found = (await client.get(DIFFERENCES)).json()
    assert (found["from_version"], found["to_version"], found["identical"], found["text"]) == (1, 2, True, "")


async def test_files_without_text_have_no_difference(client, saved):
    path = FilePath.from_physical("turn_1/files/a.zip")
    for content in (b"one", b"two"):
        await saved(path, content, "application/zip")
    answer = await client.get("/v1/conversations/c1/differences/fi:turn_1.files/a.zip")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")
    assert "application/zip has no text to compare; download both versions" in answer.json()["detail"]
