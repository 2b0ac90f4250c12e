"""Names with characters that a reader cannot see: escaped wherever a model reads them, stored as they are."""

import unicodedata
from urllib.parse import quote

import pytest

from proofbox.contracts.react_tools import FileParams, PatchParams, SearchFilesParams
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.react.patch import PatchTool
from proofbox.service.react.search_files import SearchFilesTool
from proofbox.service.react.text_file import TextFiles
from proofbox.service.react.write import WriteTool
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.visible_text import visible_text
from tests.http.reacting import Agent

HIDDEN = [
    "\u202e", "\u2066", "\u200b", "\u061c", "\u00ad", "\ufeff", "\U000e0041", "\U000e0100", "\ufe0f", "\ufff9",
    "\u3164", "\u0378", "\U000fffff",
]  # fmt: skip
TIMELINE = "/v1/conversations/c1/timeline"
ATTACHMENTS = "/v1/conversations/c1/turns/turn_1/attachments"


@pytest.fixture
def calls(stores, skills_dir):
    files = ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(()))
    texts = TextFiles(files, stores.sources, BpeTokenCounter(), 100_000)
    paths = LogicalPathResolver(files, stores.sources, FolderSkills(skills_dir))
    tools = {
        "react.file": DirectTool(FileParams, WriteTool(texts).file),
        "react.patch": DirectTool(PatchParams, PatchTool(texts, paths).patch),
        "react.search_files": DirectTool(SearchFilesParams, SearchFilesTool(files, 5).search),
    }
    return Calls(
        tools, Admission(running_max=4, queue_max=10), SqlCallStore(stores.database), CallSettings(0, "boot-1")
    )


@pytest.fixture
def agent(client):
    return Agent(client)


def read_by_a_model(answer):
    """All texts of an answer that a model may read."""
    messages = [answer["error"]["message"]] if answer["error"] else []
    digests = [block["meta"].get("digest") or "" for block in answer["blocks"]]
    return [answer["report"], *messages, *(block.get("text") or "" for block in answer["blocks"]), *digests]


def assert_shows(texts, name):
    assert [text for text in texts if name in text] == []
    assert visible_text(name) in "\n".join(texts)
    assert {unicodedata.category(c) for c in "".join(texts) if c not in "\n\t"}.isdisjoint(
        {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
    )


@pytest.mark.parametrize("hidden", HIDDEN)
async def test_a_written_file_is_reported_and_viewed_with_escapes_and_keeps_its_name(agent, client, hidden):
    name = f"a{hidden}b.txt"
    for answer in (
        await agent("react.file", path=name, content="one\n"),
        await agent("react.patch", path=name, channel="canvas", patch="@@ -1 +1 @@\n-one\n+two\n", kind="file"),
        await agent("react.search_files", name_regex="a.b", content_regex="two", max_hits=5),
    ):
        assert answer["ok"] is True, answer
        texts = [text for text in read_by_a_model(answer) if text not in {"one\n", "two\n"}]
        if not answer["report"].startswith("Found"):
            assert_shows([answer["report"]], name)
        assert_shows(texts, name)
    view = (await client.get(TIMELINE, params={"view": "rendered"})).text
    assert_shows([view], name)
    assert await agent.stored(f"fi:turn_1.files/{quote(name)}") == b"two\n"


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.shares_fixtures
async def test_a_refused_name_is_shown_with_escapes(agent, hidden):
    name = f"a{hidden}b.exe"
    answer = await agent("react.patch", path=name, channel="canvas", patch="@@ -1 +1 @@\n-a\n+b\n", kind="file")
    assert answer["ok"] is False
    assert_shows(read_by_a_model(answer), name)


@pytest.mark.parametrize("hidden", HIDDEN)
async def test_an_attachment_has_escapes_in_its_head_and_digest_and_keeps_its_name(client, hidden):
    name = f"a{hidden}b.txt"
    answer = await client.put(f"{ATTACHMENTS}/{quote(name)}", content=b"x")
    assert (answer.status_code, answer.json()["physical_path"]) == (201, f"turn_1/attachments/{name}")
    view = (await client.get(TIMELINE, params={"view": "rendered"})).text
    assert_shows([view], name)
    head = view.partition("[USER ATTACHMENT]")[2].partition("\n")[0]
    assert visible_text(name) in head
    blocks = (await client.get(TIMELINE)).json()["blocks"]
    assert_shows([blocks[0]["text"]], name)
    served = await client.get(f"/v1/conversations/c1/artifacts/fi:turn_1.user.attachments/{quote(name)}")
    assert quote("a_b.txt") in served.headers["content-disposition"]
    assert quote(hidden) not in served.headers["content-disposition"]
