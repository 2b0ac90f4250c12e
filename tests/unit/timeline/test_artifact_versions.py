"""Artifacts are found in blocks, whoever wrote them: stored or handed in, complete or in pieces."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.blocks import Block
from proofbox.contracts.logical_paths import TurnPath
from proofbox.service.timeline.artifact_versions import (
    find_latest_blocks,
    find_versions,
    has_path,
    pick_main_block,
    redact_text,
)
from proofbox.service.timeline.view import StoredTimelineView, SuppliedTimelineView
from tests.support.conversations import SCOPE, block, call_block, meta_block, opened_conversation, sha256

PATH = "fi:turn_1.files/report.pdf"


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


@pytest.fixture(params=["stored", "handed in"])
def remember(request, conversation):
    """A memory of blocks, of both kinds."""

    async def remembered(*blocks):
        if request.param == "handed in":
            return SuppliedTimelineView(blocks)
        await conversation.append(*blocks)
        return StoredTimelineView(conversation.timelines, SCOPE)

    return remembered


async def carried(memory, version):
    return (await memory.at(version.content.position)).block.base64


def exec_blocks(call_id="c1a2", payload="one", **digest):
    told = {
        "artifact_path": PATH,
        "physical_path": "turn_1/files/report.pdf",
        "mime": "application/pdf",
        "kind": "file",
        "visibility": "external",
        "tool_call_id": call_id,
        **digest,
    }
    encoded = base64.b64encode(payload.encode()).decode()
    meta = {"digest": json.dumps(told), "tool_call_id": call_id}
    content = block(PATH, None, mime="application/pdf", base64=encoded, call_id=call_id, meta=meta)
    return [call_block(call_id, "exec_tools.execute_code_python"), meta_block(call_id, told), content]


# ---- the documents' examples ----


async def test_a_file_of_a_run_is_put_together_from_its_pieces(remember):
    hosting = {"hosted_uri": "s3://bucket/report.pdf", "rn": "ef:x", "key": "cb/x"}
    memory = await remember(*exec_blocks(**hosting))
    [version] = await find_versions(memory, PATH)
    assert version.digest == {
        "artifact_path": PATH,
        "physical_path": "turn_1/files/report.pdf",
        "mime": "application/pdf",
        "kind": "file",
        "visibility": "external",
        "tool_call_id": "c1a2",
    }
    assert (version.tool_call_id, version.tool_id) == ("c1a2", "exec_tools.execute_code_python")
    assert (version.hosted_uri, version.edited, version.has_payload) == ("s3://bucket/report.pdf", False, True)


async def test_a_display_artifact_is_put_together_from_its_pieces(remember):
    path = "fi:turn_abc.files/summary.md"
    digest = {
        "artifact_path": path,
        "physical_path": "turn_abc/files/summary.md",
        "kind": "display",
        "tool_call_id": "c1a2",
        "sources_used": [1, 2],
    }
    memory = await remember(
        call_block("c1a2", "react.write", "turn_abc"),
        meta_block("c1a2", digest, "turn_abc"),
        block(path, "# S", turn_id="turn_abc", call_id="c1a2", meta={"tool_call_id": "c1a2"}),
    )
    [version] = await find_versions(memory, path)
    assert (version.digest, version.tool_id, version.mime) == (digest, "react.write", "text/markdown")
    assert (version.content.block.text, version.is_whole_text) == ("# S", True)


async def test_the_meta_block_says_what_the_file_is_and_not_the_content_block(remember):
    memory = await remember(
        meta_block("c1", {"artifact_path": PATH, "mime": "application/pdf", "visibility": "internal"}),
        block(PATH, None, mime="application/octet-stream", call_id="c1", meta={"digest": '{"mime": "x/y"}'}),
    )
    [version] = await find_versions(memory, PATH)
    assert (version.mime, version.digest["visibility"]) == ("application/pdf", "internal")


async def test_a_user_attachment_has_its_digest_in_a_block_of_its_own(remember):
    path = "fi:turn_1.user.attachments/menu.pdf"
    digest = {"artifact_path": path, "mime": "application/pdf"}
    pieces = [
        block(path, json.dumps(digest), type="user.attachment.meta", mime="application/json"),
        block(path, None, type="user.attachment", mime="application/pdf", base64="QUJD"),
    ]
    memory = await remember(*pieces, *pieces)
    first, second = await find_versions(memory, path)
    assert (first.digest, await carried(memory, first)) == (digest, "QUJD")
    assert (second.digest, second.edited, second.tool_call_id) == ({**digest, "edited": True}, True, None)


async def test_a_meta_block_of_words_is_no_content(remember):
    path = "fi:turn_1.user.attachments/menu.pdf"
    memory = await remember(
        block(path, "2-page menu", type="user.attachment.meta"),
        block(path, None, type="user.attachment", mime="application/pdf", base64="QUJD"),
    )
    [version] = await find_versions(memory, path)
    assert (version.digest, version.mime, version.has_payload) == ({}, "application/pdf", True)


# ---- the documents' rules ----


async def test_all_versions_are_kept_and_the_latest_is_the_last(remember):
    memory = await remember(*exec_blocks("c1", "one"), *exec_blocks("c2", "two"), *exec_blocks("c3", "two"))
    found = await find_versions(memory, PATH)
    assert [(version.tool_call_id, version.edited) for version in found] == [
        ("c1", False),
        ("c2", True),
        ("c3", True),
    ]
    assert ["edited" in version.digest for version in found] == [False, True, True]


async def test_blocks_of_one_call_are_one_version_however_they_lie(remember):
    one, two = exec_blocks("c1", "one"), exec_blocks("c2", "two")
    memory = await remember(one[0], two[0], one[2], two[1], two[2], one[1])
    found = await find_versions(memory, PATH)
    contents = [base64.b64decode(await carried(memory, version)) for version in found]
    assert ([version.tool_call_id for version in found], contents) == (["c1", "c2"], [b"one", b"two"])


async def test_a_hidden_version_is_still_the_latest(remember):
    hidden = [item.model_copy(update={"meta": {**item.meta, "hidden": True}}) for item in exec_blocks("c2", "two")]
    memory = await remember(*exec_blocks("c1", "one"), *hidden)
    assert (await find_versions(memory, PATH))[-1].tool_call_id == "c2"


async def test_the_call_block_says_the_tool_and_not_the_digest(remember):
    blocks = exec_blocks("c1", tool_id="react.write")
    [version] = await find_versions(await remember(*blocks), PATH)
    assert version.tool_id == "exec_tools.execute_code_python"


async def test_without_its_call_block_the_digest_says_the_tool(remember):
    [version] = await find_versions(await remember(*exec_blocks("c1", tool_id="react.write")[1:]), PATH)
    assert version.tool_id == "react.write"


async def test_what_react_read_brought_back_is_a_copy_and_no_version(remember):
    again = [
        call_block("r1", "react.read", "turn_5"),
        meta_block("r1", {"artifact_path": PATH, "tool_call_id": "c1", "tool_id": "x"}, "turn_5"),
        block(PATH, None, mime="application/pdf", turn_id="turn_5", call_id="r1"),
    ]
    found = await find_versions(await remember(*exec_blocks("c1"), *again), PATH)
    assert [(version.tool_call_id, version.edited) for version in found] == [("c1", False)]


async def test_a_copy_stands_for_the_version_that_the_loop_no_longer_has(remember):
    memory = await remember(
        call_block("r1", "react.read", "turn_5"),
        meta_block("r1", {"artifact_path": PATH, "tool_call_id": "c1", "tool_id": "x"}, "turn_5"),
        block(PATH, "all of it", turn_id="turn_5", call_id="r1"),
    )
    [version] = await find_versions(memory, PATH)
    assert (version.tool_call_id, version.tool_id, version.edited) == ("c1", "x", False)
    assert version.has_payload


# ---- other programs' blocks ----

# Handed in: the door of the timeline writes the one spelling before anything is stored.


async def test_old_spellings_and_calls_that_only_the_meta_names_are_understood():
    old = "tc:turn_1.tool_calls.c1.{}.json"
    digest = {"artifact_path": old.format("out"), "tool_call_id": "c1"}
    blocks = [
        call_block("c1", "web_tools.web_search", path="tc:turn_1.c1.call").model_copy(update={"call_id": None}),
        block(old.format("out"), json.dumps(digest), mime="application/json", meta={"tool_call_id": "c1"}),
        block(old.format("out"), "[]", mime="application/x", meta={"tool_call_id": "c1"}),
    ]
    [version] = await find_versions(SuppliedTimelineView(blocks), "tc:turn_1.c1.result")
    assert (version.tool_call_id, version.tool_id) == ("c1", "web_tools.web_search")
    assert (version.content.block.text, version.digest["artifact_path"]) == ("[]", "tc:turn_1.c1.result")


async def test_the_call_of_an_old_spelling_is_found():
    blocks = [
        call_block("c1", "exec_tools.execute_code_python", path="tc:turn_1.tool_calls.c1.in.json"),
        *exec_blocks("c1")[1:],
    ]
    assert (await find_versions(SuppliedTimelineView(blocks), PATH))[0].tool_id == "exec_tools.execute_code_python"


@pytest.mark.parametrize(
    "pieces",
    [
        [meta_block("c1", {"artifact_path": PATH})],
        [block(PATH, None, call_id="c1")],
        [block(PATH, "text", meta={"digest": "{broken"})],
        [block(PATH, "text", meta={"digest": [1, 2], "physical_path": 3, "hosted_uri": 4, "tool_call_id": {}})],
        [block(PATH, "text", meta={"digest": {"sha256": 7, "size_bytes": -1, "mime": 0, "tool_id": 5}})],
        [block("tc:turn_1.c1.result", "[" * 100_000, mime="application/json"), block(PATH, "text")],
        [block("tc:turn_1.c1.call", "nonsense", type="react.tool.call"), block(PATH, "text", call_id="c1")],
        [block(PATH, "text", turn_id="no turn", call_id="no call/")],
    ],
)
async def test_missing_and_broken_pieces_leave_what_there_is(remember, pieces):
    [version] = await find_versions(await remember(*pieces), PATH)
    assert (version.path, version.tool_id, version.sha256, version.size_bytes) == (PATH, None, None, None)
    assert version.hosted_uri is None


async def test_a_path_that_no_block_has_is_no_artifact(remember):
    assert await find_versions(await remember(*exec_blocks()), "fi:turn_1.files/other.pdf") == []


_texts = st.sampled_from(["", "{}", "[]", "{broken", f'{{"artifact_path": "{PATH}"}}', '{"tool_id": "react.read"}'])
_blocks = st.builds(
    Block,
    type=st.sampled_from(["react.tool.call", "react.tool.result", "user.attachment.meta", "user.attachment"]),
    author=st.just("x"),
    turn_id=st.sampled_from(["turn_1", "bad"]),
    ts=st.just("t"),
    mime=st.sampled_from(["application/json", "text/plain"]),
    path=st.sampled_from([PATH, "tc:turn_1.c1.call", "tc:turn_1.tool_calls.c1.out.json", "", "x"]),
    text=st.none() | _texts,
    base64=st.none() | st.sampled_from(["QUJD", "?"]),
    call_id=st.sampled_from([None, "c1", "c2", ""]),
    meta=st.dictionaries(
        st.sampled_from(["digest", "hosted_uri", "rn", "key", "tool_call_id", "physical_path", "hidden", "lines"]),
        st.none() | _texts | st.integers() | st.dictionaries(st.sampled_from(["key", "rn", "mime"]), _texts),
    ),
)


@given(st.lists(_blocks, max_size=12))
async def test_of_any_blocks_the_versions_are_in_order_and_their_digests_are_safe(blocks):
    versions = await find_versions(SuppliedTimelineView(blocks), PATH)
    assert len({version.position for version in versions}) == len(versions)
    assert [version.edited for version in versions[1:]] == [True] * (len(versions) - 1)
    calls = [version.tool_call_id for version in versions if version.tool_call_id]
    assert len(calls) == len(set(calls)) or "react.read" in str(blocks)
    assert not {"hosted_uri", "rn", "key", "local_path"} & {name for v in versions for name in v.digest}
    assert bool(versions) <= has_path(blocks, PATH)


# ---- what stands at the path of a block ----


async def test_the_blocks_of_the_last_call_stand_at_an_artifacts_path(remember):
    path = TurnPath("artifact", "turn_1", "notes")
    memory = await remember(
        call_block("r1", "react.read"),
        block(str(path), "old", call_id="c1"),
        block(str(path), "new 1", call_id="c2"),
        block(str(path), "new 2", call_id="c2"),
        block(str(path), "old again", call_id="r1"),
    )
    found = await find_latest_blocks(memory, path)
    assert [item.block.text for item in found] == ["new 1", "new 2"]


async def test_the_report_says_more_of_a_result_than_the_digests_behind_it(remember):
    memory = await remember(block("tc:turn_1.c1a2.result", "Produced files:", call_id="c1a2"), *exec_blocks())
    found = await find_latest_blocks(memory, TurnPath("result", "turn_1", "c1a2"))
    assert (len(found), pick_main_block(found).block.text) == (2, "Produced files:")


def test_hosting_fields_leave_the_text_of_a_json_block_and_nothing_else_changes():
    digest = {"artifact_path": PATH, "hosted_uri": "s3://x", "rn": "r", "key": "k", "n": 1}
    assert json.loads(redact_text(meta_block("c1", digest))) == {"artifact_path": PATH, "n": 1}
    for text in ('{ "a":1 }', "[1]", "{broken", None):
        assert redact_text(block(PATH, text, mime="application/json")) == text


async def test_bytes_are_held_against_what_the_digest_says():
    data = b"payload"
    for said, holds in [
        ({}, True),
        ({"sha256": sha256(data)}, True),
        ({"sha256": sha256(data).upper(), "size_bytes": 7}, True),
        ({"sha256": sha256(b"other")}, False),
        ({"size_bytes": 8}, False),
    ]:
        [version] = await find_versions(
            SuppliedTimelineView([meta_block("c1", {"artifact_path": PATH, **said})]), PATH
        )
        assert version.holds(data) is holds
