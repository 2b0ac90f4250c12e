"""A loop that keeps its own timeline: runs and react.read find its files in the blocks that it hands in."""

import base64
import json

import pytest

from proofbox.contracts.tool_call_request import SourceRow, ToolCallRequest
from tests.support.conversations import (
    PNG,
    SCOPE,
    block,
    call_block,
    meta_block,
    opened_conversation,
    sha256,
    status,
    told,
)

CSV = "a,b\n1,2\n"
PATH = "fi:turn_1.files/a.csv"


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


def made(path=PATH, call_id="c1", turn_id="turn_1", mime="text/csv", digest=None, meta=None, **content):
    """What a run of another program's timeline leaves: call, digest, content."""
    told_of_it = {"artifact_path": path, "mime": mime, **(digest or {})}
    return [
        call_block(call_id, "exec_tools.execute_code_python", turn_id),
        meta_block(call_id, told_of_it, turn_id),
        block(path, turn_id=turn_id, call_id=call_id, mime=mime, meta=meta or {}, **content),
    ]


def ledger(gathered):
    return [(line.asked, line.source, line.physical_path) for line in gathered.ledger]


# ---- runs ----


@pytest.mark.parametrize("kept", [False, True], ids=["handed in", "added to the stored timeline"])
async def test_text_and_base64_of_blocks_are_put_where_the_code_names_them(conversation, kept):
    blocks = [
        *made(text=CSV),
        *made("fi:turn_1.user.attachments/p.png", "c2", mime="image/png", base64=base64.b64encode(PNG).decode()),
    ]
    if kept:
        await conversation.append(*blocks)
    got, gathered = await conversation.gather(
        "open('turn_1/files/a.csv'); open('turn_1/attachments/p.png')", timeline=None if kept else blocks
    )
    assert got == {"turn_1/files/a.csv": CSV.encode(), "turn_1/attachments/p.png": PNG}
    assert ledger(gathered) == [
        ("turn_1/files/a.csv", "timeline", "turn_1/files/a.csv"),
        ("turn_1/attachments/p.png", "timeline", "turn_1/attachments/p.png"),
    ]
    assert [line.sha256 for line in gathered.ledger] == [sha256(CSV.encode()), sha256(PNG)]
    assert {file.writable for file in gathered.files.values()} == {False}


async def test_the_artifact_store_comes_before_the_blocks(conversation):
    await conversation.save("turn_1/files/a.csv", b"stored")
    got, gathered = await conversation.gather("'turn_1/files/a.csv'", timeline=made(text=CSV))
    assert (got, ledger(gathered)[0][1]) == ({"turn_1/files/a.csv": b"stored"}, "store")


async def test_the_latest_version_of_the_blocks_is_meant_hidden_or_not(conversation):
    timeline = [*made(text="old"), *made(call_id="c2", text="new", meta={"hidden": True})]
    got, _ = await conversation.gather("'turn_1/files/a.csv'", timeline=timeline)
    assert got == {"turn_1/files/a.csv": b"new"}


@pytest.mark.parametrize("where", ["content", "digest", "asset"])
async def test_what_a_block_only_points_to_is_fetched_from_where_it_is_hosted(conversation, where):
    stored = await conversation.save("turn_7/files/b.csv", CSV.encode())
    (conversation.shared / "c.csv").write_text(CSV)
    uri = (conversation.shared / "c.csv").as_uri() if where == "asset" else stored.hosted_uri
    hosted = {"hosted_uri": uri}
    digest = {"sha256": sha256(CSV.encode()), **(hosted if where == "digest" else {})}
    timeline = made(text=None, digest=digest, meta={} if where == "digest" else hosted)
    got, gathered = await conversation.gather("'turn_1/files/a.csv'", timeline=timeline)
    assert got == {"turn_1/files/a.csv": CSV.encode()}
    assert ledger(gathered) == [("turn_1/files/a.csv", "uri", "turn_1/files/a.csv")]


async def test_a_cut_text_is_not_taken_for_the_file_and_its_host_is_asked(conversation):
    stored = await conversation.save("turn_7/files/b.csv", CSV.encode())
    cut = made(text="a,b\n...[truncated]", meta={"hosted_uri": stored.hosted_uri})
    got, _ = await conversation.gather("'turn_1/files/a.csv'", timeline=cut)
    assert got == {"turn_1/files/a.csv": CSV.encode()}


@pytest.mark.parametrize(
    "blocks",
    [
        made(text="changed", digest={"sha256": sha256(CSV.encode())}),
        made(text="changed", digest={"size_bytes": 8}),
        made(text="a,b\n...[truncated]"),
        made(text=None, base64="no base64!"),
        made(text=None),
        made(text=None, meta={"hosted_uri": "file:///etc/passwd"}),
        made(text=None, meta={"hosted_uri": "s3://elsewhere/x"}),
        [call_block("c1", "react.patch"), block(PATH, "--- a\n+++ b\n", call_id="c1")],
        [block(PATH, "[lines 1-2 of 9]\na", call_id="c1", meta={"lines": [1, 2]})],
    ],
    ids=["sha256", "size", "cut", "base64", "nothing", "not allowed", "not ours", "a patch", "a stretch"],
)
async def test_bytes_that_are_not_the_files_are_missing(conversation, blocks):
    got, gathered = await conversation.gather("'turn_1/files/a.csv'", timeline=blocks)
    assert (got, gathered.missing, gathered.ledger) == ({}, ["turn_1/files/a.csv"], [])
    assert (await conversation.read(PATH, timeline=wire(blocks))).error.code == "missing"


async def test_a_hosted_file_that_changed_since_is_missing(conversation):
    stored = await conversation.save("turn_7/files/b.csv", b"another")
    blocks = made(text=None, digest={"sha256": sha256(b"b")}, meta={"hosted_uri": stored.hosted_uri})
    _, gathered = await conversation.gather("'turn_1/files/a.csv'", timeline=blocks)
    assert gathered.missing == ["turn_1/files/a.csv"]


async def test_folders_and_patterns_find_files_of_the_store_and_of_the_blocks(conversation):
    await conversation.save("turn_1/files/x/b.csv", b"b")
    timeline = [*made("fi:turn_1.files/x/a.csv", text="a"), *made("fi:turn_1.files/y.csv", "c2", text="y")]
    got, _ = await conversation.gather("os.listdir('turn_1/files/x')", timeline=timeline)
    assert got == {"turn_1/files/x/a.csv": b"a", "turn_1/files/x/b.csv": b"b"}
    got, _ = await conversation.gather("glob('turn_1/files/*.csv')", timeline=timeline)
    assert list(got) == ["turn_1/files/x/a.csv", "turn_1/files/x/b.csv", "turn_1/files/y.csv"]


async def test_a_cited_file_is_found_in_the_blocks(conversation):
    row = SourceRow(sid=3, source_type="file", artifact_path=PATH)
    await conversation.sources.complete(SCOPE, [row])
    got, gathered = await conversation.gather("see [[S:3]]", timeline=made(text=CSV))
    assert (got, ledger(gathered)[0][:2]) == ({"turn_1/files/a.csv": CSV.encode()}, ("[[S:3]]", "timeline"))


async def test_a_file_that_only_a_later_read_brought_is_found_where_its_own_turn_was_dropped(conversation):
    timeline = [
        call_block("r1", "react.read", "turn_5"),
        meta_block("r1", {"artifact_path": PATH}, "turn_5"),
        block(PATH, CSV, turn_id="turn_5", call_id="r1"),
    ]
    got, _ = await conversation.gather("'turn_1/files/a.csv'", timeline=timeline)
    assert got == {"turn_1/files/a.csv": CSV.encode()}


async def test_the_turns_own_files_of_the_blocks_are_there_unasked_and_writable(conversation):
    timeline = [*made("fi:turn_9.files/mine.csv", turn_id="turn_9", text=CSV), *made(call_id="c2", text="not mine")]
    got, gathered = await conversation.gather(timeline=timeline)
    assert (got, ledger(gathered)[0][0]) == ({"turn_9/files/mine.csv": CSV.encode()}, "workspace")
    assert gathered.files["turn_9/files/mine.csv"].writable


async def test_a_file_of_the_turn_whose_bytes_are_gone_may_be_about_to_be_written(conversation):
    timeline = made("fi:turn_9.files/mine.csv", turn_id="turn_9", meta={"hosted_uri": "s3://gone/x"})
    got, gathered = await conversation.gather("open('turn_9/files/mine.csv', 'w')", timeline=timeline)
    assert (got, gathered.missing) == ({}, [])


async def test_a_handed_in_timeline_stands_in_place_of_the_stored_one(conversation):
    await conversation.append(*made(text=CSV))
    _, gathered = await conversation.gather("'turn_1/files/a.csv'", timeline=[])
    assert gathered.missing == ["turn_1/files/a.csv"]


# ---- what react.read brought in ----


async def test_what_was_read_in_a_turn_is_there_for_its_later_runs_read_only(conversation):
    await conversation.save("turn_1/files/a.csv", b"a")
    await conversation.save("turn_9/files/own.csv", b"own")
    await conversation.read(PATH)
    got, gathered = await conversation.gather()
    assert got == {"turn_9/files/own.csv": b"own", "turn_1/files/a.csv": b"a"}
    assert [file.writable for file in gathered.files.values()] == [True, False]
    assert (await conversation.gather(turn_id="turn_8"))[0] == {}


async def test_lines_that_were_read_bring_the_whole_file(conversation):
    await conversation.save("turn_1/files/a.csv", b"1\n2\n3\n")
    await conversation.read(f"{PATH}#L2-2")
    got, _ = await conversation.gather()
    assert got == {"turn_1/files/a.csv": b"1\n2\n3\n"}


@pytest.mark.parametrize(("bytes_max", "left_out"), [(20, []), (19, ["turn_1/files/a.csv"])])
async def test_what_was_read_gives_way_to_the_turns_own_files(conversation, bytes_max, left_out):
    await conversation.save("turn_1/files/a.csv", b"x" * 10)
    await conversation.save("turn_9/files/own.csv", b"x" * 10)
    await conversation.read(PATH)
    got, gathered = await conversation.gather(bounds=(bytes_max, 10))
    assert list(got) == ["turn_9/files/own.csv", *(["turn_1/files/a.csv"] if not left_out else [])]
    assert [notice.details["left_out"] for notice in gathered.notices] == ([left_out] if left_out else [])


async def test_a_citation_of_one_row_reads_no_other(conversation):
    rows = [SourceRow(sid=sid, source_type="web", url=f"https://e.org/{sid}") for sid in range(1, 30)]
    await conversation.sources.complete(SCOPE, rows)
    _, gathered = await conversation.gather("[[S:9,3-5]] [[S:28-99]]")
    assert [row.sid for row in gathered.cited] == [9, 3, 4, 5, 28, 29]


# ---- react.read ----


def wire(blocks):
    return [item.model_dump(exclude_none=True) for item in blocks]


async def test_react_read_finds_files_and_blocks_of_a_handed_in_timeline(conversation):
    stored = await conversation.save("turn_7/files/b.csv", CSV.encode())
    hosting = {"hosted_uri": stored.hosted_uri, "rn": "ef:secret", "key": "cb/secret"}
    timeline = [
        block("ar:turn_1.user.prompt", "please", type="user.prompt", meta={"hidden": True}),
        *made(text=None, digest={"description": "the rows", **hosting}),
    ]
    response = await conversation.read(PATH, "ar:turn_1.user.prompt", timeline=wire(timeline), keep=False)
    assert told(response)[2:] == [
        ("react.tool.result", "tc:turn_9.r1.result", "text"),
        ("react.tool.result", PATH, "text"),
        ("react.tool.result", "ar:turn_1.user.prompt", "text"),
    ]
    digest = json.loads(response.blocks[2].text)
    assert digest == {
        "artifact_path": PATH,
        "physical_path": "turn_1/files/a.csv",
        "mime": "text/csv",
        "kind": "file",
        "description": "the rows",
        "size_bytes": 8,
        "sha256": sha256(CSV.encode()),
        "tokens": digest["tokens"],
    }
    assert response.blocks[3].text == CSV
    assert response.blocks[3].meta["hosted_uri"] == stored.hosted_uri
    texts = "".join(item.text or "" for item in response.blocks)
    assert ("secret" in texts, stored.hosted_uri in texts) == (False, False)


async def test_what_a_handed_in_timeline_shows_is_in_view(conversation):
    timeline = [block("ar:turn_1.user.prompt", "please", type="user.prompt")]
    response = await conversation.read("ar:turn_1.user.prompt", timeline=wire(timeline), keep=False)
    assert status(response)["exists_in_visible_context"] == ["ar:turn_1.user.prompt"]


async def test_handed_in_blocks_need_a_type_alone_and_other_fields_are_ignored(conversation):
    given = [
        {
            "type": "react.tool.call",
            "call_id": "c1",
            "path": "tc:turn_1.c1.call",
            "text": '{"tool_id": "react.write"}',
        },
        {
            "type": "react.tool.result",
            "call_id": "c1",
            "path": "tc:turn_1.c1.result",
            "text": json.dumps({"artifact_path": PATH, "mime": "text/csv"}),
            "meta": None,
            "reasoning": "why",
        },
        {"type": "react.tool.result", "call_id": "c1", "path": PATH, "text": CSV, "ts": None, "id": 3},
        {"type": "stage.gate"},
        {"type": "another.programs.own"},
    ]
    response = await conversation.read(PATH, timeline=given)
    assert status(response)["missing"] == []
    assert [item.text for item in response.blocks if item.path == PATH] in ([], [CSV])
    request = ToolCallRequest.model_validate(
        {"tool_id": "t", "tool_call_id": "c", "conversation_id": "c", "params": {}, "timeline": given}
    )
    got, _ = await conversation.gather("open('turn_1/files/a.csv')", timeline=request.timeline)
    assert got == {"turn_1/files/a.csv": CSV.encode()}


def test_the_same_incomplete_block_is_the_same_payload_each_time():
    fields = {"tool_id": "t", "tool_call_id": "c", "conversation_id": "c", "params": {}}
    given = {**fields, "timeline": [{"type": "user.prompt", "path": "ar:turn_1.user.prompt", "text": "a"}]}
    first, second = (ToolCallRequest.model_validate(given).model_dump_json() for _ in range(2))
    assert first == second
    [block] = json.loads(first)["timeline"]
    assert (block["author"], block["turn_id"], block["ts"], block["mime"]) == (
        "user",
        "turn_1",
        "",
        "text/markdown",
    )
