"""react.write, react.stream, react.file, react.patch and react.search_files, over HTTP and on real local stores."""

import base64
import json

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.react_tools import FileParams, PatchParams, ReadParams, SearchFilesParams, WriteParams
from proofbox.contracts.tool_call_request import Asset
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import NewSave
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.param_references import References
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.identity import ConversationKey
from proofbox.service.react.patch import PatchTool
from proofbox.service.react.read import ReadBounds, ReadTool
from proofbox.service.react.search_files import SearchFilesTool
from proofbox.service.react.text_file import TextFiles
from proofbox.service.react.write import WriteTool
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.http.conftest import PRINCIPAL
from tests.http.reacting import Agent, masked, meta, notices

SEARCH_S = 0.3

OUTDATED = (
    "the copy that the user has is an older version; give kind file and a channel other than internal to renew it"
)


class FailingStore:
    """The artifact store, until it is told to fail: then it takes nothing."""

    def __init__(self, store):
        self.store = store
        self.error = None

    def __getattr__(self, name):
        return getattr(self.store, name)

    async def prepare(self, new):
        if self.error is not None:
            raise self.error
        return await self.store.prepare(new)


@pytest.fixture
def failing(stores):
    return FailingStore(stores.artifacts)


@pytest.fixture
def shared(tmp_path):
    """A folder that callers may name files in by URI."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


@pytest.fixture
def calls(stores, failing, shared, skills_dir):
    files = ConversationFiles(failing, stores.timelines, AssetFolders((shared,)))
    texts = TextFiles(files, stores.sources, BpeTokenCounter(), 100_000)
    writing = WriteTool(texts)
    paths = LogicalPathResolver(files, stores.sources, FolderSkills(skills_dir))
    searching = SearchFilesTool(files, SEARCH_S)
    references = References(files)
    write = DirectTool(WriteParams, writing.write, stores.sources, references)
    reading = ReadTool(paths, BpeTokenCounter(), ReadBounds(100_000))
    tools = {
        "react.read": DirectTool(ReadParams, reading.run, stores.sources),
        "react.write": write,
        "react.stream": write,
        "react.file": DirectTool(FileParams, writing.file, stores.sources, references),
        "react.patch": DirectTool(PatchParams, PatchTool(texts, paths).patch, stores.sources, references),
        "react.search_files": DirectTool(SearchFilesParams, searching.search, stores.sources),
    }
    admission = Admission(running_max=4, queue_max=10)
    return Calls(tools, admission, SqlCallStore(stores.database), CallSettings(0, "boot-1"))


@pytest.fixture
def agent(client):
    return Agent(client)


def write(agent, path, content, channel="canvas", kind="display", **more):
    params = {"path": path, "channel": channel, "content": content, "kind": kind}
    return agent.send("react.write", params, **more)


def patch(agent, path, text, kind="display"):
    return agent("react.patch", path=path, channel="canvas", patch=text, kind=kind)


# ---- the blocks of the documents' examples ----


def result(tool_call_id="t1", **fields):
    return {
        "type": "react.tool.result",
        "author": "proofbox",
        "turn_id": "turn_1",
        "ts": "TS",
        "call_id": tool_call_id,
        "meta": {"tool_call_id": tool_call_id},
        **fields,
    }


def call_block(tool_id, params, tool_call_id="t1"):
    payload = {"tool_id": tool_id, "tool_call_id": tool_call_id, "params": params, "ts": "TS"}
    return result(
        tool_call_id,
        type="react.tool.call",
        author="react",
        mime="application/json",
        path=f"tc:turn_1.{tool_call_id}.call",
        text=payload,
    )


def digest(tool_id="react.write", name="report.md", tool_call_id="t1", visibility="external", **fields):
    sid = {"sid": 10_001} if visibility == "external" else {}
    return {
        "artifact_path": f"fi:turn_1.files/{name}",
        "physical_path": f"turn_1/files/{name}",
        "mime": "text/markdown",
        "kind": "display",
        "visibility": visibility,
        "channel": "canvas",
        "tool_call_id": tool_call_id,
        "tool_id": tool_id,
        "ts": "TS",
        "sha256": "SHA",
        **sid,
        **fields,
    }


def meta_block(said, tool_call_id="t1"):
    return result(tool_call_id, mime="application/json", path=f"tc:turn_1.{tool_call_id}.result", text=said)


def content_block(said, text, hosted=True, tool_call_id="t1", **more):
    hosting = {"hosted_uri": "URI", "rn": "RN", "key": "KEY"} if hosted else {}
    told = {"digest": said, **hosting, **more, "physical_path": said["physical_path"], "tool_call_id": tool_call_id}
    return result(tool_call_id, mime=said["mime"], path=said["artifact_path"], text=text, meta=told)


LONG = "# Report\n\n" + "The numbers add up [[S:1]]. " * 5 + "\n"
SOURCE = {"sid": 1, "source_type": "web", "title": "A page", "url": "https://example.org/a"}


async def test_write_tells_notes_call_digest_and_content(agent):
    answer = await write(agent, "report.md", LONG, notes="Drafting summary", sources_pool=[SOURCE])

    shown = LONG[:100] + "... [see fi:turn_1.files/report.md]"
    said = digest(size_bytes=len(LONG), sources_used=[1], tokens=BpeTokenCounter().count(LONG))
    assert masked(answer["blocks"]) == [
        result(
            type="react.notes",
            author="react",
            mime="text/markdown",
            path="ar:turn_1.react.notes.t1",
            text="Drafting summary",
            meta={"channel": "timeline_text", "tool_call_id": "t1"},
        ),
        call_block("react.write", {"path": "report.md", "channel": "canvas", "content": shown, "kind": "display"}),
        meta_block(said),
        content_block(said, LONG),
    ]
    assert await agent.stored("fi:turn_1.files/report.md") == LONG.encode()


@pytest.mark.parametrize(
    ("tool", "params", "fields"),
    [
        ("react.write", {"channel": "canvas", "kind": "file"}, {"kind": "file"}),
        ("react.stream", {"channel": "timeline_text", "kind": "display"}, {"channel": "timeline_text"}),
        ("react.file", {}, {"kind": "file", "channel": None}),
    ],
)
async def test_file_and_stream_have_the_same_blocks_with_their_own_kind(agent, tool, params, fields):
    params = {"path": "report.md", **params, "content": "# Hi\n"}

    answer = await agent.send(tool, params)

    said = digest(tool, size_bytes=5, tokens=BpeTokenCounter().count("# Hi\n"), **fields)
    said = {name: value for name, value in said.items() if value is not None}
    assert masked(answer["blocks"]) == [call_block(tool, params), meta_block(said), content_block(said, "# Hi\n")]


async def test_an_internal_note_is_not_hosted_and_is_for_agents_only(agent):
    note = "[D] Wanderlog is the primary source"
    params = {"path": "notes.md", "channel": "internal", "content": note, "kind": "display"}

    answer = await agent.send("react.write", params)

    said = digest(
        name="notes.md",
        channel="internal",
        visibility="internal",
        size_bytes=len(note),
        tokens=BpeTokenCounter().count(note),
    )
    assert masked(answer["blocks"]) == [
        call_block("react.write", params),
        meta_block(said),
        result(
            type="react.note",
            author="react",
            mime="text/markdown",
            path="fi:turn_1.files/notes.md",
            text=note,
            meta={
                "channel": "internal",
                "digest": said,
                "physical_path": "turn_1/files/notes.md",
                "tool_call_id": "t1",
            },
        ),
    ]
    assert [answer["artifacts"][0].get(name) for name in ("hosted_uri", "rn", "key")] == [None] * 3
    assert (await agent.client.get("/v1/conversations/c1/sources")).json()["sources"] == []
    view = await agent.client.get("/v1/conversations/c1/timeline", params={"view": "rendered"})
    assert f"[INTERNAL NOTE]\n{note}" in view.text


async def test_a_patch_tells_digest_change_and_summary(agent):
    await write(agent, "draft.md", "# Draft\n\nOld.\n")
    change = "@@ -1,3 +1,3 @@\n # Draft\n \n-Old.\n+New [[S:10001]].\n"

    answer = await patch(agent, "turn_1/files/draft.md", change)

    new = "# Draft\n\nNew [[S:10001]].\n"
    said = digest(
        "react.patch",
        "draft.md",
        "t2",
        visibility="internal",
        edited=True,
        size_bytes=len(new),
        sources_used=[10_001],
        tokens=BpeTokenCounter().count(new),
    )
    params = {"path": "turn_1/files/draft.md", "channel": "canvas", "patch": change, "kind": "display"}
    summary = {
        "status": "patched",
        "path": "turn_1/files/draft.md",
        "mode": "diff",
        "hunks": 1,
        "added": 1,
        "removed": 1,
        "size_bytes": said["size_bytes"],
        "note": f"draft.md: {OUTDATED}",
    }
    assert masked(answer["blocks"]) == [
        call_block("react.patch", params, "t2"),
        meta_block(said, "t2"),
        content_block(said, change, hosted=False, tool_call_id="t2", patch="diff"),
        result("t2", mime="application/json", path="tc:turn_1.t2.result", text=summary),
    ]
    assert answer["ret"] == summary
    assert await agent.stored("fi:turn_1.files/draft.md") == new.encode()


async def test_a_search_tells_call_and_paths(agent):
    await write(agent, "data/a.csv", "city,height\nLyon,173\n")
    await write(agent, "b.md", "# Lyon\n")

    answer = await agent("react.search_files", name_regex=r"\.csv$", content_regex="^Lyon")

    found = {
        "paths": ["turn_1/files/data/a.csv"],
        "hits": [
            {
                "path": "turn_1/files/data/a.csv",
                "size_bytes": 21,
                "mime": "text/csv",
                "lines": [2],
                "texts": ["Lyon,173"],
            }
        ],
        "total": 1,
        "truncated": False,
    }
    assert masked(answer["blocks"]) == [
        call_block("react.search_files", {"name_regex": r"\.csv$", "content_regex": "^Lyon"}, "t3"),
        result("t3", mime="application/json", path="tc:turn_1.t3.result", text=found),
    ]
    assert answer["ret"] == found
    assert answer["report"] == "Found: 1 files\nturn_1/files/data/a.csv:2: Lyon,173"


# ---- react.write ----


async def test_a_written_file_is_hosted_and_becomes_a_source_that_keeps_its_number(agent):
    first = await write(agent, "a.md", "one")
    second = await write(agent, "a.md", "two")

    rows = (await agent.client.get("/v1/conversations/c1/sources")).json()["sources"]
    assert [(row["sid"], row["artifact_path"]) for row in rows] == [(10_001, "fi:turn_1.files/a.md")]
    told = [(meta(answer)["sid"], answer["artifacts"][0]["sid"]) for answer in (first, second)]
    assert told == [(10_001, 10_001)] * 2
    assert [meta(answer).get("edited") for answer in (first, second)] == [None, True]
    assert [answer["artifacts"][0]["rn"] for answer in (first, second)] == [
        "ef:acme:sales:chatbot:file:u-17:c1:turn_1:artifact:a.md"
    ] * 2
    assert await agent.stored("fi:turn_1.files/a.md") == b"two"


async def test_a_file_that_the_handed_in_timeline_knows_counts_as_edited(agent):
    block = {
        "type": "react.tool.result",
        "author": "react",
        "turn_id": "turn_1",
        "ts": "2026-07-04T13:18:11.048Z",
        "mime": "text/markdown",
        "path": "fi:turn_1.files/a.md",
        "text": "old",
    }

    assert meta(await write(agent, "a.md", "new", timeline=[block]))["edited"] is True


@pytest.mark.parametrize(
    ("path", "rewritten"),
    [
        ("a.md", False),
        (" files/a.md ", False),
        ("./a.md", False),
        ("turn_1/files/a.md", False),
        ("fi:turn_1.files/a.md", False),
        ("turn_0/files/a.md", True),
        ("fi:turn_0.files/a.md", True),
        ("turn_1/attachments/a.md", True),
        ("fi:turn_0.user.attachments/a.md", True),
    ],
)
async def test_every_spelling_of_a_path_is_a_file_of_the_current_turn(agent, path, rewritten):
    answer = await write(agent, path, "text")

    assert meta(answer)["physical_path"] == "turn_1/files/a.md"
    code = {"code": "protocol_violation.path_rewritten"}
    told = {**code, "original": path, "rewritten": "turn_1/files/a.md"}
    assert notices(answer) == ([told] if rewritten else [])


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "missing_artifact_name"),
        ("  ", "missing_artifact_name"),
        ("reports/", "missing_artifact_name"),
        ("files", "missing_artifact_name"),
        ("files/", "missing_artifact_name"),
        ("turn_1", "missing_artifact_name"),
        ("turn_1/files", "missing_artifact_name"),
        ("turn_0/attachments/", "missing_artifact_name"),
        ("fi:turn_1.files/", "unsafe_path"),
        ("/", "unsafe_path"),
        ("/etc/passwd", "unsafe_path"),
        ("../a.md", "unsafe_path"),
        ("a/../b.md", "unsafe_path"),
        ("a//b.md", "unsafe_path"),
        ("a\\b.md", "unsafe_path"),
        ("a\u0000.md", "unsafe_path"),
        ("é" * 130 + ".md", "unsafe_path"),
        ("a/" * 600 + "b.md", "unsafe_path"),
        ("report.pdf", "binary_format"),
        ("deck.PPTX", "binary_format"),
        ("photo.jpeg", "binary_format"),
        ("data.tar.gz", "binary_format"),
        ("book.xls", "binary_format"),
    ],
)
@pytest.mark.parametrize("tool", ["react.write", "react.file"])
@pytest.mark.shares_fixtures
async def test_a_path_that_cannot_be_written_is_refused_and_nothing_is_stored(agent, tool, path, code):
    more = {"channel": "canvas", "kind": "file"} if tool == "react.write" else {}

    answer = await agent.send(tool, {"path": path, "content": "text", **more})

    assert (answer["ok"], answer["error"]["code"], answer["artifacts"]) == (False, code, [])
    assert [block["type"] for block in answer["blocks"]] == ["react.tool.call", "react.notice", "react.tool.result"]
    assert [(told["code"], told["error"]) for told in notices(answer)] == [("tool_call_error", code)]
    assert (await agent("react.search_files"))["ret"]["paths"] == []


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("a.pdf", "rendering_tools.write_pdf"),
        ("a.docx", "rendering_tools.write_docx"),
        ("a.pptx", "rendering_tools.write_pptx"),
        ("a.png", "rendering_tools.write_png"),
        ("a.xlsx", "exec_tools.execute_code_python"),
        ("a.zip", "exec_tools.execute_code_python"),
    ],
)
async def test_a_binary_format_is_refused_with_the_tool_that_makes_it(agent, name, tool):
    assert notices(await write(agent, name, "text"))[0]["tool"] == tool


@pytest.mark.parametrize(
    ("name", "kind", "mime"),
    [
        ("a.md", "display", "text/markdown"),
        ("a.html", "display", "text/html"),
        ("a.json", "display", "application/json"),
        ("a.yml", "display", "application/yaml"),
        ("a.xml", "display", "application/xml"),
        ("a.csv", "display", "text/csv"),
        ("a.mermaid", "display", "text/vnd.mermaid"),
        ("a.go", "display", "text/plain"),
        ("notes", "display", "text/markdown"),
        ("Makefile", "file", "text/plain"),
        (".env", "file", "text/plain"),
    ],
)
async def test_text_formats_and_source_code_are_written_under_their_own_names(agent, name, kind, mime):
    answer = await write(agent, name, "text\n", kind=kind)

    assert (meta(answer)["physical_path"], meta(answer)["mime"]) == (f"turn_1/files/{name}", mime)
    assert answer["blocks"][-1]["text"] == "text\n"


async def test_an_svg_which_apis_of_models_refuse_as_an_image_is_its_digest(agent):
    block = (await write(agent, "a.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>'))["blocks"][-1]

    assert (block["mime"], block.get("base64"), block.get("text")) == ("image/svg+xml", None, None)


@pytest.mark.parametrize(("kind", "code"), [("display", "channel_format"), ("file", None)])
async def test_timeline_text_shows_markdown_and_plain_text_only(agent, kind, code):
    answer = await write(agent, "a.csv", "a,b\n", channel="timeline_text", kind=kind)

    assert (answer["error"] or {}).get("code") == code


async def test_a_file_and_a_folder_cannot_have_one_name(agent):
    await write(agent, "a/b.md", "text")

    onto_folder = await write(agent, "a", "text")
    below_file = await write(agent, "a/b.md/c.md", "text")

    assert (onto_folder["error"]["code"], below_file["error"]["code"]) == ("missing_artifact_name", "unsafe_path")


async def test_a_folder_whose_files_a_program_removed_gives_its_name_to_a_file(agent, stores):
    await write(agent, "a/b.md", "text")
    scope = ConversationKey(PRINCIPAL, "c1")
    await (
        await stores.artifacts.prepare(NewSave(scope, (), removed=await stores.artifacts.of_turn(scope, "turn_1")))
    ).store()

    assert (await write(agent, "a", "text"))["ok"]


async def test_an_empty_text_is_no_file(agent):
    answer = await write(agent, "a.md", "")

    assert (answer["ok"], answer["error"]["code"]) == (False, "empty_file")
    assert [block["type"] for block in answer["blocks"]] == ["react.tool.call", "react.notice", "react.tool.result"]
    assert notices(answer) == [{"code": "tool_result_error", "error": "empty_file"}]
    message = "turn_1/files/a.md: file is empty; nothing was written. Give the text as content"
    assert (meta(answer)["error"], answer["error"]["message"]) == (f"empty_file: {message}", message)
    assert await agent.stored("fi:turn_1.files/a.md") is None


@pytest.mark.parametrize("tool", ["react.write", "react.patch"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoreFailedError("/secret/place is gone"), "store_failed"),
        (StoreFullError("/secret is full"), "store_full"),
    ],
)
async def test_a_store_that_fails_is_told_and_the_text_is_not_lost(agent, failing, tool, error, code):
    await write(agent, "a.md", "old\n")
    failing.error = error
    field = {"react.write": "content", "react.patch": "patch"}[tool]
    params = {"path": "a.md", "channel": "canvas", field: "new " * 1_000, "kind": "file"}

    answer = await agent.send(tool, params, tool_call_id="again")

    assert (answer["ok"], answer["error"]["code"], answer["artifacts"]) == (False, "hosting_failed", [])
    assert [block["type"] for block in answer["blocks"]] == ["react.tool.call", "react.notice", "react.tool.result"]
    told = {"code": "react.write.hosting_failed", "error": code, "path": "turn_1/files/a.md", "retryable": True}
    assert notices(answer) == [told]
    assert meta(answer)["error"] == f"hosting_failed: {code}"
    assert json.loads(answer["blocks"][0]["text"])["params"] == params
    assert "secret" not in json.dumps(answer)
    assert await agent.stored("fi:turn_1.files/a.md") == b"old\n"
    failing.error = None
    assert (await agent.send(tool, params, tool_call_id="again"))["ok"] is True
    assert await agent.stored("fi:turn_1.files/a.md") == ("new " * 1_000).encode()


async def test_sources_that_nobody_knows_are_told_and_not_counted(agent):
    answer = await write(
        agent,
        "a.md",
        "See [[S:1,3-4]] and [[S:9]].",
        sources_pool=[SOURCE, {**SOURCE, "sid": 4, "url": "https://example.org/b"}],
    )

    assert meta(answer)["sources_used"] == [1, 4]
    assert notices(answer) == [{"code": "tool_call_warning.missing_sources", "missing_sids": [3, 9]}]


async def test_a_large_text_is_stored_whole_and_shown_in_part(agent):
    text = "ünï " * 20_000

    answer = await write(agent, "a.md", text)

    shown = answer["blocks"][-1]["text"]
    assert (len(shown.removesuffix("\n...[truncated]").encode()) <= 20_480, shown.endswith("\n...[truncated]")) == (
        True,
        True,
    )
    assert meta(answer)["size_bytes"] == len(text.encode())
    assert await agent.stored("fi:turn_1.files/a.md") == text.encode()


async def test_a_refused_text_is_kept_in_its_call_block_up_to_a_bound(agent):
    answer = await write(agent, "a.pdf", "x" * 100_000)

    shown = json.loads(answer["blocks"][0]["text"])["params"]["content"]
    assert shown == "x" * 20_480 + "\n...[truncated]"


async def test_no_block_and_no_report_shows_where_a_file_is_hosted(agent):
    answer = await write(agent, "a.md", "text")

    hosted = [answer["artifacts"][0][name] for name in ("hosted_uri", "rn", "key")]
    shown = json.dumps([answer["report"], answer["ret"], [block.get("text") for block in answer["blocks"]]])
    assert [value for value in hosted if value in shown] == []


async def test_conversations_do_not_see_each_other(agent, client):
    await write(agent, "a.md", "text")
    other = Agent(client, conversation="c2")

    assert (await other("react.search_files"))["ret"]["paths"] == []
    assert (await patch(other, "a.md", "new"))["error"]["code"] == "patch_target_missing"


# ---- react.patch ----


async def test_a_patch_that_is_no_diff_is_the_whole_new_text(agent):
    await write(agent, "a.md", "old\n")

    answer = await patch(agent, "a.md", "new\n", kind="file")

    assert (answer["ret"]["mode"], meta(answer)["visibility"]) == ("replacement", "external")
    assert answer["blocks"][-2]["meta"]["hosted_uri"] == answer["artifacts"][0]["hosted_uri"]
    assert await agent.stored("fi:turn_1.files/a.md") == b"new\n"


@pytest.mark.parametrize(
    "path",
    [
        "turn_1/files/a.md",
        "fi:turn_1.files/a.md",
        "/out/turn_1/files/a.md",
        "/mnt/data/turn_1/files/a.md",
        "sandbox:/mnt/data/turn_1/files/a.md",
        "$OUT_DIR/turn_1/files/a.md",
    ],
)
async def test_a_file_of_an_earlier_turn_is_copied_and_the_copy_is_patched(agent, path):
    await write(agent, "a.md", "one\ntwo\n")
    agent.turn = "turn_2"

    answer = await patch(agent, path, "@@ -2 +2 @@\n-two\n+2\n")

    assert notices(answer) == [
        {"code": "protocol_violation.path_rewritten", "original": path, "rewritten": "turn_2/files/a.md"}
    ]
    assert (answer["ret"]["copied_from"], meta(answer)["edited"]) == (path, True)
    assert await agent.stored("fi:turn_1.files/a.md") == b"one\ntwo\n"
    assert await agent.stored("fi:turn_2.files/a.md") == b"one\n2\n"


async def test_an_attachment_is_copied_and_stays_as_it_was(agent):
    await agent.client.put(
        "/v1/conversations/c1/turns/turn_1/attachments/a.csv",
        content=b"a\r\n1\r\n",
        headers={"content-type": "text/csv"},
    )

    answer = await patch(agent, "turn_1/attachments/a.csv", "@@ -2 +2 @@\n-1\n+2\n")

    assert (answer["ok"], meta(answer)["mime"]) == (True, "text/csv")
    assert await agent.stored("fi:turn_1.files/a.csv") == b"a\r\n2\r\n"
    assert await agent.stored("fi:turn_1.user.attachments/a.csv") == b"a\r\n1\r\n"


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("  \n", {"error": "missing_patch"}),
        ("@@ -x @@\n", {"error": "invalid_hunk_header", "line": 1, "text": "@@ -x @@"}),
        (
            "@@ -1,2 +1,2 @@\n one\n-zwei\n+2\n",
            {"error": "hunk_mismatch", "hunk": 1, "line": 2, "expected": "zwei", "found": "two"},
        ),
        (
            "@@ -1 +1 @@\n-one\n+1\n@@ -9 +9 @@\n-nine\n+9\n",
            {"error": "hunk_mismatch", "hunk": 2, "line": 9, "expected": "nine", "found": None},
        ),
    ],
)
@pytest.mark.parametrize("turn", ["turn_1", "turn_2"])
async def test_a_patch_that_does_not_fit_changes_nothing(agent, turn, text, details):
    await write(agent, "a.md", "one\ntwo\n")
    agent.turn = turn

    answer = await patch(agent, "turn_1/files/a.md", text)

    assert (answer["ok"], answer["error"]["code"]) == (False, details["error"])
    assert notices(answer) == [{"code": "tool_call_error", **details}]
    assert await agent.stored("fi:turn_1.files/a.md") == b"one\ntwo\n"
    assert await agent.stored("fi:turn_2.files/a.md") is None


@pytest.mark.parametrize(
    "head",
    [
        "\n",
        "diff --git a/a.txt b/a.txt\n",
        "Index: a.txt\n",
        "```diff\n",
        "  ",
        "*** Begin Patch\n*** Update File: a.txt\n",
    ],
)
async def test_a_diff_below_whatever_models_write_is_applied_and_replaces_nothing(agent, head):
    await agent("react.file", path="a.txt", content="1\n2\n")
    diff = (
        "@@ -1 +1 @@\n-1\n+one\n"
        if head in {"  ", "*** Begin Patch\n*** Update File: a.txt\n"}
        else ("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+one\n")
    )

    answer = await patch(agent, "a.txt", head + diff, kind="file")

    assert (answer["ok"], answer["ret"]["mode"]) == (True, "diff")
    assert await agent.stored("fi:turn_1.files/a.txt") == b"one\n2\n"


async def test_what_looks_like_a_diff_and_cannot_be_read_replaces_nothing(agent):
    await agent("react.file", path="a.txt", content="1\n2\n")

    answer = await patch(agent, "a.txt", "I changed the first line.\n\n@@ -1 +1 @@\n-1\n+one\n", kind="file")

    assert answer["error"]["code"] == "invalid_hunk_header"
    assert await agent.stored("fi:turn_1.files/a.txt") == b"1\n2\n"


@pytest.mark.parametrize("data", [b"\xff\xfe\x00\xd8", b"a\x00b", b"x" * (10 * 1024 * 1024 + 1)])
async def test_what_is_no_text_cannot_be_patched(agent, saved, data):
    await saved(FilePath.from_physical("turn_1/files/a.md"), data)

    assert (await patch(agent, "a.md", "new"))["error"]["code"] == "patch_target_unreadable"


async def test_a_file_that_grows_too_large_is_refused(agent, saved):
    await saved(FilePath.from_physical("turn_1/files/a.txt"), b"x" * (10 * 1024 * 1024 - 100))

    answer = await patch(agent, "a.txt", "@@ -0,0 +1 @@\n+" + "y" * 200 + "\n")

    assert answer["error"]["code"] == "content_too_large"


async def test_a_patch_that_breaks_a_format_is_kept_with_a_warning(agent):
    await write(agent, "a.json", '{"a": 1}\n')

    answer = await patch(agent, "a.json", '{"a": 1,}\n')

    warning = meta(answer)["write_warning"]
    assert (answer["ok"], answer["ret"]["write_warning"], warning.startswith("does not parse: ")) == (
        True,
        warning,
        True,
    )
    assert await agent.stored("fi:turn_1.files/a.json") == b'{"a": 1,}\n'


async def test_the_byte_order_mark_of_a_file_survives_a_diff_that_has_none(agent):
    await write(agent, "a.csv", "\ufeffa,b\n")

    await patch(agent, "a.csv", "@@ -1 +1 @@\n-a,b\n+a,c\n")

    assert await agent.stored("fi:turn_1.files/a.csv") == "\ufeffa,c\n".encode()


# ---- react.search_files ----


async def paths(agent, **params):
    answer = await agent("react.search_files", **params)
    return answer["ret"]["paths"] if answer["ok"] else answer["error"]["code"]


async def test_files_are_found_by_their_path_or_their_bare_name(agent):
    for name in ("a.md", "data/b.csv", "data/c.txt"):
        await write(agent, name, "text")

    assert await paths(agent, name_regex=r"^b\.") == ["turn_1/files/data/b.csv"]
    assert await paths(agent, name_regex="^data/") == ["turn_1/files/data/b.csv", "turn_1/files/data/c.txt"]
    assert await paths(agent, name_regex="^turn_1/files/a") == ["turn_1/files/a.md"]
    assert await paths(agent, name_regex="nothing") == []
    assert await paths(agent, name_regex="", content_regex="") == [
        "turn_1/files/a.md",
        "turn_1/files/data/b.csv",
        "turn_1/files/data/c.txt",
    ]


async def test_a_search_that_takes_too_long_to_count_lists_what_it_has(agent):
    await write(agent, "a.md", "b")
    await write(agent, "b.md", "a" * 5_000 + "!\n")

    answer = await agent("react.search_files", content_regex="^b$|(a+)+$", max_hits=1)

    assert (answer["ok"], answer["ret"]["paths"]) == (True, ["turn_1/files/a.md"])
    assert (answer["ret"]["truncated"], answer["ret"]["more_than_total"]) == (True, True)


@pytest.mark.parametrize("patterns", [{}, {"name_regex": "md"}, {"content_regex": "text"}])
async def test_only_the_asked_number_of_files_is_listed_and_all_are_counted(agent, patterns):
    for name in ("a.md", "b.md", "c.md"):
        await write(agent, name, "text")

    some = (await agent("react.search_files", max_hits=2, **patterns))["ret"]
    all_of_them = (await agent("react.search_files", max_hits=3, **patterns))["ret"]

    assert (some["paths"], some["total"], some["truncated"]) == (
        ["turn_1/files/a.md", "turn_1/files/b.md"],
        3,
        True,
    )
    assert (all_of_them["total"], all_of_them["truncated"]) == (3, False)


async def test_files_of_other_turns_are_searched_but_for_what_this_one_has_newer(agent):
    await write(agent, "a.py", "TODO first\n")
    await write(agent, "b.py", "TODO second\n")
    agent.turn = "turn_2"
    await write(agent, "b.py", "done\n")
    agent.turn = "turn_3"
    await write(agent, "c.py", "TODO third\n")

    answer = await agent("react.search_files", content_regex="TODO")

    assert answer["ret"]["paths"] == ["turn_3/files/c.py", "turn_1/files/a.py"]
    assert "turn_1/files/a.py:1: TODO first" in answer["report"]


async def test_an_older_version_that_was_read_hides_no_newer_one(agent, client):
    await write(agent, "a.py", "TODO first\n")
    agent.turn = "turn_2"
    await write(agent, "a.py", "TODO second\n")
    agent.turn = "turn_3"
    block = read_in("fi:turn_1.files/a.py", "TODO first\n", turn="turn_3")
    await client.post("/v1/conversations/c1/timeline", json={"blocks": block})

    assert await paths(agent, content_regex="TODO") == ["turn_2/files/a.py"]


async def test_the_workspace_holds_attachments_and_the_files_of_other_turns(agent, client):
    await write(agent, "old.md", "text")
    await write(agent, "older.md", "text")
    agent.turn = "turn_2"
    await client.put("/v1/conversations/c1/turns/turn_2/attachments/x.txt", content=b"text")
    block = {
        "type": "react.tool.result",
        "author": "proofbox",
        "turn_id": "turn_2",
        "ts": "2026-07-04T13:18:11.048Z",
        "mime": "text/markdown",
        "path": "fi:turn_1.files/old.md",
        "text": "text",
    }
    await client.post("/v1/conversations/c1/timeline", json={"blocks": [block]})

    found = await paths(agent, content_regex="text")
    assert found == ["turn_2/attachments/x.txt", "turn_1/files/older.md", "turn_1/files/old.md"]


async def test_a_binary_file_has_no_text_to_search(agent, saved):
    await saved(FilePath.from_physical("turn_1/files/a.bin"), b"text\x00text")
    await saved(FilePath.from_physical("turn_1/files/b.txt"), "text ünï".encode("latin-1"))

    found = (await agent("react.search_files", content_regex="text"))["ret"]

    assert (found["paths"], found["binary_skipped"]) == (["turn_1/files/b.txt"], 1)


async def test_the_first_lines_that_match_are_told(agent):
    await write(agent, "a.txt", "x\n\nx y x\nz\nx\nx\nx\nx\n")

    answer = await agent("react.search_files", content_regex="x$")

    assert (hit := answer["ret"]["hits"][0])["lines"] == [1, 3, 5, 6, 7]
    assert hit["more_lines"] == 1
    assert answer["text"].endswith("turn_1/files/a.txt:7: x\nturn_1/files/a.txt: 1 more line matches")


async def test_how_many_more_lines_match_is_told(agent):
    await write(agent, "a.txt", "x\n" * 505)
    await write(agent, "b.txt", "x\n" * 5)

    answer = await agent("react.search_files", content_regex="x")

    assert answer["text"].count(" match") == answer["report"].count("turn_1/files/a.txt: 500 more lines match") == 1


async def test_a_byte_order_mark_stands_before_no_line(agent, saved):
    await saved(FilePath.from_physical("turn_1/files/a.csv"), b"\xef\xbb\xbfa,b\n1,2\n")

    answer = await agent("react.search_files", content_regex="^a,b")

    assert answer["text"].endswith("\nturn_1/files/a.csv:1: a,b")


async def test_a_huge_file_is_searched_in_its_first_part_and_that_is_said(agent, saved):
    data = b"needle\n" + b"x\n" * (5 * 1024 * 1024) + b"late\n"
    await saved(FilePath.from_physical("turn_1/files/a.log"), data)

    early = (await agent("react.search_files", content_regex="^needle"))["ret"]
    late = (await agent("react.search_files", content_regex="^late"))["ret"]

    assert (early["paths"], late["paths"], late["partly_searched"]) == (
        ["turn_1/files/a.log"],
        [],
        ["turn_1/files/a.log"],
    )


@pytest.mark.parametrize("field", ["name_regex", "content_regex"])
@pytest.mark.parametrize(("pattern", "position"), [("(a", 2), ("a[z-a]", 5), ("a{2,1}", 2), ("ab(?<=a", 7)])
async def test_a_pattern_that_cannot_be_read_is_refused_with_its_place(agent, field, pattern, position):
    answer = await agent("react.search_files", **{field: pattern})

    told = notices(answer)[0]
    assert (told["error"], told["field"], told["position"]) == ("invalid_regex", field, position)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:(?:(?:a{1000}){1000}){1000}){1000}",
        "(?:a{,400}){400}",
        "(?x)a{1 0 0 0 0 0 0}",
        "(?ix:a)",
        "(" * 490 + ")" * 490,
    ],
)
async def test_a_pattern_that_would_fill_the_memory_is_refused_before_it_is_read(agent, pattern):
    assert await paths(agent, content_regex=pattern) == "invalid_regex"


@pytest.mark.parametrize(
    "pattern",
    [r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", r"\p{L}{3,}", r"(?P<x>a)", r".{0,200}"],
)
async def test_ordinary_repeats_are_taken(agent, pattern):
    assert await paths(agent, content_regex=pattern) == []


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*a){25}b", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
async def test_a_pattern_that_would_run_for_ever_is_ended_and_the_next_search_works(agent, pattern):
    await write(agent, "a.txt", "a" * 5_000 + "!\n")

    answer = await agent("react.search_files", content_regex=pattern)

    assert (answer["error"]["code"], notices(answer)[0]["field"]) == ("regex_timeout", "content_regex")
    assert await paths(agent, content_regex="a+!") == ["turn_1/files/a.txt"]


async def test_a_name_that_a_pattern_cannot_get_through_ends_the_search(agent):
    await write(agent, "a" * 200 + "!", "text")

    assert await paths(agent, name_regex="(.*a){25}b") == "regex_timeout"


# ---- files that only a handed-in timeline has ----

DIFF = "@@ -1 +1 @@\n-old\n+new\n"


def known_text(path, text):
    return {
        "type": "react.tool.result",
        "author": "react",
        "turn_id": "turn_1",
        "ts": "2026-07-04T13:18:11.048Z",
        "mime": "text/markdown",
        "path": path,
        "text": text,
    }


async def test_a_text_that_only_the_handed_in_timeline_has_is_patched(agent):
    params = {"path": "files/a.md", "channel": "canvas", "patch": DIFF, "kind": "file"}

    answer = await agent.send("react.patch", params, timeline=[known_text("fi:turn_1.files/a.md", "old\n")])

    assert (answer["ok"], meta(answer)["edited"]) == (True, True)
    assert await agent.stored("fi:turn_1.files/a.md") == b"new\n"


async def test_a_handed_in_text_of_another_turn_is_copied_below_the_patched_one(agent):
    params = {"path": "fi:turn_0.files/a.md", "channel": "canvas", "patch": DIFF, "kind": "file"}

    await agent.send("react.patch", params, timeline=[known_text("fi:turn_0.files/a.md", "old\n")])

    versions = [await agent.stored(f"fi:turn_1.files/a.md?version={number}") for number in (1, 2)]
    assert versions == [b"old\n", b"new\n"]


async def test_texts_of_a_handed_in_timeline_are_searched_beside_those_of_the_store(agent):
    await write(agent, "stored.md", "a needle\n")
    block = known_text("fi:turn_1.files/handed.md", "hay\nanother needle\n")

    answer = await agent.send("react.search_files", {"content_regex": "needle"}, timeline=[block])

    found = [(hit["path"], hit["lines"]) for hit in answer["ret"]["hits"]]
    assert found == [("turn_1/files/handed.md", [2]), ("turn_1/files/stored.md", [1])]


def described(path, uri, turn="turn_1", **digest):
    """The blocks of a file that a timeline only points to: a digest, no content."""
    fields = {"artifact_path": path, "mime": "text/markdown", "hosted_uri": uri, **digest}
    block = {"mime": "application/json", "path": f"tc:{turn}.c1.result", "text": json.dumps(fields)}
    return [{**known_text("", ""), "turn_id": turn, **block}]


def attached(path, data, turn="turn_1"):
    """An attachment as its content block carries it."""
    content = {"type": "user.attachment", "author": "user", "text": None, "base64": base64.b64encode(data).decode()}
    return [{**known_text(path, None), "turn_id": turn, "mime": "text/csv", **content}]


def read_in(path, text, turn="turn_1"):
    """A file of another turn that react.read showed in a turn."""
    return [{**known_text(path, text), "turn_id": turn, "call_id": "r1"}]


@pytest.mark.parametrize(
    ("path", "physical"),
    [
        ("a.md", "turn_1/files/a.md"),
        ("/out/turn_0/files/a.md", "turn_0/files/a.md"),
        ("/mnt/data/turn_0/files/a.md", "turn_0/files/a.md"),
        ("sandbox:/mnt/data/a.md", "turn_1/files/a.md"),
        ("turn_0/attachments/a.md", "turn_0/attachments/a.md"),
        ("/mnt/user-data/uploads/a.md", "turn_1/attachments/a.md"),
        ("attachments/a.md", "turn_1/attachments/a.md"),
        ("ar:turn_0.artifacts.a.md", "turn_0/files/a.md"),
        ("so:sources_pool[7]", "turn_0/files/a.md"),
        ("my%20notes.md", "turn_1/files/my notes.md"),
    ],
)
@pytest.mark.parametrize("carries", ["content", "uri"])
async def test_a_patch_finds_a_file_of_a_handed_in_timeline_by_any_of_its_paths(
    agent, shared, path, physical, carries
):
    file = FilePath.from_physical(physical)
    (shared / "old.md").write_text("old\n")
    timeline = [known_text(file.logical, "old\n")]
    if carries == "uri":
        timeline = described(file.logical, (shared / "old.md").as_uri(), file.turn_id)
    row = {"sid": 7, "source_type": "file", "physical_path": "turn_0/files/a.md"}
    params = {"path": path, "channel": "canvas", "patch": DIFF, "kind": "file"}

    answer = await agent.send("react.patch", params, timeline=timeline, sources_pool=[row])

    target = FilePath.from_physical(f"turn_1/files/{file.rel}")
    assert (answer["ok"], await agent.stored(target.logical)) == (True, b"new\n")
    changed = [{"code": "protocol_violation.path_rewritten", "original": path, "rewritten": target.physical}]
    assert notices(answer) == ([] if file == target else changed)


async def test_a_source_that_is_not_a_file_or_that_is_several_is_no_target_of_a_patch(agent):
    rows = [
        {"sid": 1, "source_type": "web", "url": "https://e.org"},
        {"sid": 2, "source_type": "file", "physical_path": "turn_0/files/a.md"},
    ]
    timeline = [known_text("fi:turn_0.files/a.md", "old\n")]
    for path in ("so:sources_pool[1]", "so:sources_pool[1,2]", "so:sources_pool[9]"):
        params = {"path": path, "channel": "canvas", "patch": DIFF, "kind": "file"}
        answer = await agent.send("react.patch", params, timeline=timeline, sources_pool=rows)
        assert answer["error"]["code"] == "patch_target_missing"


async def test_a_file_whose_path_is_too_long_in_the_current_turn_is_not_patched(agent):
    name = "/".join(["x" * 200] * 5)
    agent.turn = "turn_" + "y" * 60
    params = {"path": f"turn_1/files/{name}", "channel": "canvas", "patch": DIFF, "kind": "file"}

    answer = await agent.send("react.patch", params, timeline=[known_text(f"fi:turn_1.files/{name}", "old\n")])

    assert answer["error"]["code"] == "unsafe_path"


@pytest.mark.parametrize("tool", ["react.write", "react.patch"])
async def test_a_name_that_is_a_folder_of_a_handed_in_timeline_is_not_written(agent, tool):
    timeline = [known_text("fi:turn_1.files/a/b.md", "text\n"), known_text("fi:turn_0.files/a", "old\n")]
    content = {"content": "new"} if tool == "react.write" else {"patch": DIFF}
    path = "a" if tool == "react.write" else "turn_0/files/a"
    answer = await agent.send(
        tool, {"path": path, "channel": "canvas", "kind": "display", **content}, timeline=timeline
    )
    assert (answer["error"]["code"], await agent.stored("fi:turn_1.files/a")) == ("missing_artifact_name", None)


async def test_every_file_of_a_handed_in_timeline_is_searched_wherever_its_bytes_are(agent, shared):
    (shared / "hosted.md").write_text("needle\n")
    uri = (shared / "hosted.md").as_uri()
    timeline = [
        *described("fi:turn_1.files/described.md", uri),
        *attached("fi:turn_1.user.attachments/sent.csv", b"hay\nneedle\n"),
        *read_in("fi:turn_0.files/read.md", "needle\n"),
        *described("fi:turn_0.files/elsewhere.md", uri, turn="turn_0"),
    ]

    answer = await agent.send("react.search_files", {"content_regex": "needle"}, timeline=timeline)

    assert [(hit["path"], hit["lines"]) for hit in answer["ret"]["hits"]] == [
        ("turn_1/attachments/sent.csv", [2]),
        ("turn_1/files/described.md", [1]),
        ("turn_0/files/read.md", [1]),
        ("turn_0/files/elsewhere.md", [1]),
    ]


async def test_a_described_file_whose_bytes_are_not_those_of_its_digest_is_neither_searched_nor_patched(
    agent, shared
):
    (shared / "a.md").write_text("needle\n")
    timeline = described("fi:turn_1.files/a.md", (shared / "a.md").as_uri(), size_bytes=3)

    searched = await agent.send("react.search_files", {"content_regex": "needle"}, timeline=timeline)
    params = {"path": "a.md", "channel": "canvas", "patch": DIFF, "kind": "file"}
    patched = await agent.send("react.patch", params, timeline=timeline)

    assert (searched["ret"]["hits"], searched["ret"]["not_to_be_had"]) == ([], 1)
    assert patched["error"]["code"] == "patch_target_unreadable"


@pytest.mark.parametrize("size", [100, 30_000])  # the first is shown as a whole
@pytest.mark.parametrize("damage", ["gone", "changed", "cut"])
async def test_a_lost_or_damaged_file_costs_itself_alone_in_every_tool(
    agent, stores, tmp_path, caplog, damage, size
):
    await write(agent, "la.md", f"needle a\n{'a' * size}\n")
    await write(agent, "lb.md", f"needle b\n{'b' * size}\n")
    [saved] = [
        each
        for each in await stores.artifacts.of_turn(ConversationKey(PRINCIPAL, "c1"), "turn_1")
        if each.path.rel == "lb.md"
    ]
    [blob] = (tmp_path / "data" / "blobs").rglob(saved.sha256)
    data = blob.read_bytes()
    blob.unlink()
    if damage != "gone":
        blob.write_bytes(data.replace(b"needle", b"forged") if damage == "changed" else data[:50])

    agent.turn = "turn_2"
    read = await agent("react.read", paths=["lb.md", "la.md", "turn_1/files/lb.md#L1-2"])
    reason = "its stored bytes are missing or damaged"
    assert read["ret"]["reasons"] == dict.fromkeys(["lb.md", "turn_1/files/lb.md#L1-2"], reason)
    assert "needle a" in read["text"]
    found = await agent("react.search_files", content_regex="needle|forged")
    assert found["ret"]["paths"] == ["turn_1/files/la.md"]
    assert "Note: Not searched, because their bytes are missing or damaged: turn_1/files/lb.md" in found["text"]
    patched = await patch(agent, "lb.md", "new")
    assert (patched["error"]["code"], reason in patched["text"]) == ("patch_target_missing", True)
    given = await write(agent, "c.md", "turn_1/files/lb.md")
    assert (given["error"]["code"], reason in given["text"]) == ("param_ref_not_visible", True)
    assert "forged" not in json.dumps([read, found["ret"], patched, given])
    [warning] = [record.getMessage() for record in caplog.records if "lb.md" in record.getMessage()]
    assert warning == (
        "conversation c1: the stored bytes of turn_1/files/lb.md, version 1, are missing or damaged; "
        "calls go on without it"
    )


async def test_each_change_that_is_not_hosted_says_that_the_user_has_an_older_version(agent):
    note = f"\nNote: rep.md: {OUTDATED}"
    await write(agent, "rep.md", "one\n", kind="file")
    patched = [await patch(agent, "rep.md", f"{number}\n") for number in range(2)]
    agent.turn = "turn_2"
    internal = await write(agent, "rep.md", "three\n", channel="internal")
    for answer in (*patched, internal):
        assert answer["text"].count(note) == answer["report"].count(note) == 1
    assert patched[1]["ret"]["note"] == meta(internal)["write_warning"] == note.removeprefix("\nNote: ")
    hosted = await patch(agent, "rep.md", "four\n", kind="file")
    other = await write(agent, "other.md", "five\n", channel="internal")
    assert not any("Note:" in answer["text"] for answer in (hosted, other))


# ---- texts by reference ----


@pytest.mark.parametrize("tool", ["react.write", "react.stream", "react.file"])
@pytest.mark.parametrize("before", ["", "ref:"])
async def test_a_content_that_is_a_path_stands_for_the_text_behind_it(agent, tool, before):
    await write(agent, "a.md", LONG, sources_pool=[SOURCE])
    given = f"{before}fi:turn_1.files/a.md"
    more = {} if tool == "react.file" else {"channel": "canvas", "kind": "file"}
    answer = await agent.send(tool, {"path": "b.md", "content": given, **more})
    assert await agent.stored("fi:turn_1.files/b.md") == LONG.encode()
    assert (meta(answer)["size_bytes"], meta(answer)["sources_used"]) == (len(LONG), [1])
    [call] = [block for block in answer["blocks"] if block["type"] == "react.tool.call"]
    assert json.loads(call["text"])["params"]["content"] == given
    assert answer["blocks"][-1]["text"] == LONG


async def test_a_patch_that_is_a_path_is_the_diff_behind_it(agent):
    await write(agent, "a.md", "old\n")
    await write(agent, "change.diff", "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n", kind="file")
    answer = await patch(agent, "a.md", "fi:turn_1.files/change.diff")
    assert answer["ret"]["mode"] == "diff"
    assert await agent.stored("fi:turn_1.files/a.md") == b"new\n"


@pytest.mark.parametrize("given", ["fi:turn_1.files/none.md", "ref:turn_1/files/none.md", "ar:turn_1.user.prompt"])
async def test_a_path_that_leads_to_no_text_is_refused_and_nothing_changes(agent, given):
    await write(agent, "a.md", "old")
    for answer in (await write(agent, "a.md", given), await patch(agent, "a.md", given)):
        assert (answer["ok"], answer["error"]["code"]) == (False, "param_ref_not_visible")
        [notice] = notices(answer)
        assert (notice["code"], notice["ref"]) == (
            "protocol_violation.param_ref_not_visible",
            given.removeprefix("ref:"),
        )
    assert await agent.stored("fi:turn_1.files/a.md") == b"old"


# ---- sources that come with a call ----


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("react.search_files", {}),
        ("react.file", {"path": "a.txt", "content": "x"}),
        ("react.patch", {"path": "none.txt", "channel": "canvas", "patch": "x", "kind": "file"}),
    ],
)
async def test_sources_of_a_call_complete_the_pool_or_conflict_whatever_the_tool(agent, tool, params):
    await agent.send(tool, params, sources_pool=[SOURCE])
    rows = (await agent.client.get("/v1/conversations/c1/sources")).json()["sources"]
    assert [row["sid"] for row in rows if row["source_type"] == "web"] == [1]
    body = {
        "tool_id": tool,
        "tool_call_id": "other",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": params,
    }
    other = [{**SOURCE, "url": "https://example.org/other"}]
    refused = await agent.client.post("/v1/tool-calls", json={**body, "sources_pool": other})
    assert (refused.status_code, refused.json()["code"]) == (409, "sid_conflict")


# ---- assets ----


@pytest.mark.parametrize("wrong", ["!!", "aGVs!!bG8=", "aGVsbG8", "aGVsbG8=x", "aGVs-bG8", "\u00fc"])
async def test_an_asset_that_is_not_base64_is_refused_by_field(agent, wrong):
    body = {
        "tool_id": "react.search_files",
        "tool_call_id": "c",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {},
        "assets": [{"physical_path": "turn_1/files/a", "base64": wrong}],
    }
    answer = await agent.client.post("/v1/tool-calls", json=body)
    assert answer.status_code == 422
    [error] = answer.json()["errors"]
    assert (error["field"], error["code"]) == ("assets[0].base64", "base64_decode")


@pytest.mark.parametrize(("given", "content"), [("", b""), ("aGVsbG8=", b"hello"), ("aGVs\r\nbG8=\n", b"hello")])
def test_base64_with_line_breaks_is_read_and_written_on_one_line(given, content):
    asset = Asset(physical_path="turn_1/files/a", base64=given)
    assert asset.base64 == content
    assert Asset.model_validate_json(asset.model_dump_json()) == asset


# ---- names and encodings, in every tool ----

SPELLINGS = ["{}", "./{}", "files/{}", "attachments/{}", "/mnt/data/{}", "sandbox:/mnt/data/{}", "~/{}"]
SPELLINGS += ["turn_3/files/{}", "fi:turn_3.files/{}", "/mnt/user-data/uploads/{}"]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("places", [("turn_1/attachments", "turn_2/files"), ("turn_1/files", "turn_2/attachments")])
async def test_a_name_is_its_newest_version_in_every_tool(agent, saved, spelling, places):
    name = "own list (1).csv"
    path = spelling.format(name)
    for place in places:
        await saved(FilePath.from_physical(f"{place}/{name}"), f"of {place}\n".encode())
    newest = FilePath.from_physical(f"{places[1]}/{name}")
    agent.turn = "turn_3"
    read = await agent.send("react.read", {"paths": [path]})
    found = await agent.send("react.search_files", {"content_regex": "^of "})
    patched = await patch(agent, path, "@@ -1 +1 @@\n-of " + places[1] + "\n+new\n")
    assert [item["text"] for item in read["blocks"] if item["path"] == newest.logical] == [f"of {places[1]}\n"]
    assert found["ret"]["paths"] == [newest.physical]
    assert patched["ret"]["copied_from"] == path
    assert await agent.stored(f"fi:turn_3.files/{name}") == b"new\n"


@pytest.mark.parametrize("path", ["turn_1/files/d.txt", "d.txt", "fi:turn_1.files/d.txt"])
async def test_a_second_patch_of_an_old_file_goes_on_with_the_first_one(agent, path):
    await write(agent, "d.txt", "one\ntwo\nthree\n", channel="internal")
    agent.turn = "turn_2"
    first = await patch(agent, path, "@@ -1 +1 @@\n-one\n+1\n")
    second = await patch(agent, path, "@@ -3 +3 @@\n-three\n+3\n")
    assert await agent.stored("fi:turn_2.files/d.txt") == b"1\ntwo\n3\n"
    assert first["report"] == f"Patched: turn_2/files/d.txt, from {path}"
    started = {} if path == "d.txt" else {"started_from": "turn_2/files/d.txt"}
    assert {
        name: value for name, value in second["ret"].items() if name in {"copied_from", "started_from"}
    } == started
    agent.turn = "turn_3"
    third = await patch(agent, path, "@@ -2 +2 @@\n-two\n+2\n")
    assert third["report"].startswith("Patched: turn_3/files/d.txt, from ")
    assert await agent.stored("fi:turn_3.files/d.txt") == b"1\n2\n3\n"


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (
            "fi:turn_1.files/sub",
            "it is a folder with files/sub/a.txt, files/sub/b.csv; give one of them",
        ),
        ("sub/", "it is a folder with files/sub/a.txt, files/sub/b.csv; give one of them"),
        ("SUB/A.TXT", "the conversation has files/sub/a.txt"),
        ("fi:turn_1.files/SUB/a.txt", "the conversation has files/sub/a.txt"),
        ("a.txt", "the conversation has files/sub/a.txt"),
        ("turn_1/files/sub/*.csv", "it is a pattern for files/sub/b.csv; give one of them"),
        ("sub/?.txt", "it is a pattern for files/sub/a.txt; give one of them"),
        ("repport.md", "the conversation has files/report.md"),
    ],
)
async def test_a_path_that_is_not_there_gets_the_hint_of_what_is(agent, saved, asked, hint):
    for physical in ("turn_1/files/sub/a.txt", "turn_1/files/sub/b.csv", "turn_2/files/report.md"):
        await saved(FilePath.from_physical(physical), b"x")
    agent.turn = "turn_3"
    answer = await agent.send("react.read", {"paths": [asked]})
    assert answer["ret"]["reasons"][asked] == f"the conversation has nothing at this path; {hint}"
    if not asked.endswith(("/", "sub")):
        assert hint in (await patch(agent, asked, "x"))["error"]["message"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "cp1252", "cp1251", "cp932", "gb18030"])
async def test_a_text_in_another_encoding_is_read_searched_patched_and_referred_to(agent, client, encoding):
    words = {"cp1251": "Иванов;Москва", "cp932": "山田太郎;東京都", "gb18030": "王伟;北京市"}.get(
        encoding, "Müller;Köln"
    )
    data = f"name;ort\r\n{words}\r\n".encode(encoding)
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/k.csv", content=data)
    read = await agent.send("react.read", {"paths": ["k.csv", "k.csv#L2"]})
    texts = [item["text"] for item in read["blocks"] if (item["path"] or "").startswith("fi:")]
    said = [json.loads(item["text"]) for item in read["blocks"] if '"artifact_path"' in (item["text"] or "")]
    assert texts == [f"name;ort\r\n{words}\r\n", f"[lines 2-2 of 2]\n{words}\r\n"]
    assert [item["encoding"] for item in said] == [encoding] * 2
    found = await agent.send("react.search_files", {"content_regex": words[:4]})
    assert found["ret"]["hits"][0]["texts"] == [words]
    await write(agent, "copy.txt", "ref:k.csv")
    assert await agent.stored("fi:turn_1.files/copy.txt") == f"name;ort\r\n{words}\r\n".encode()
    patched = await patch(agent, "k.csv", "@@ -1 +1 @@\n-name;ort\n+name;city\n")
    assert meta(patched)["encoding"] == encoding
    assert await agent.stored("fi:turn_1.files/k.csv") == f"name;city\r\n{words}\r\n".encode(encoding)


async def test_a_patch_with_what_an_encoding_lacks_makes_the_file_utf_8_and_says_so(agent, saved):
    await saved(FilePath.from_physical("turn_1/files/k.txt"), "Müller\n".encode("cp1252"))
    answer = await patch(agent, "k.txt", "@@ -1 +1 @@\n-Müller\n+Müller → 王\n")
    assert answer["ret"]["write_warning"] == "cp1252 has no '→': the file is UTF-8 now"
    assert await agent.stored("fi:turn_1.files/k.txt") == "Müller → 王\n".encode()
