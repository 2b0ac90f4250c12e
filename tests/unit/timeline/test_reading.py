"""What a model reads of any timeline: cuts fit, text only grows, what is hidden or summed up is gone."""

import asyncio
import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.contracts.react_tools import HideParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.react.hide import HideTool
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.timeline.cache_points import CachePolicy, cache_points
from proofbox.service.timeline.model_text import read_text, with_visibility
from proofbox.service.timeline.port import described_path
from proofbox.service.timeline.view import SuppliedTimelineView
from proofbox.service.timeline.visibility import compute_visibility
from tests.support.examples import examples
from tests.support.timelines import (
    block,
    call_block,
    content_block,
    digest_block,
    hiding_block,
    plan_block,
    prompt,
    summary_block,
)

POLICY = CachePolicy(min_rounds=3, offset_rounds=2, editable_tail_tokens=400)
SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
TURNS = [f"turn_{number}" for number in range(1, 5)]
PATHS = [f"fi:{turn}.files/{name}" for turn in TURNS[:2] for name in "ab"]


class Words:
    """The port ``TokenCounter`` by words."""

    def count(self, text):
        return len(text.split())


def read(blocks, after=0):
    return asyncio.run(read_text(SuppliedTimelineView(blocks), after))


def hide(blocks, path, call):
    """What the real tool adds to a timeline; nothing if it refuses."""
    request = ToolCallRequest(
        tool_id="react.hide",
        tool_call_id=call,
        conversation_id="conv-1",
        turn_id="turn_1",
        params={"path": path, "replacement": f"short {call}"},
        timeline=blocks,
    )
    story = HideTool(None, Words(), POLICY)
    try:
        told = asyncio.run(story.run(ReactCall(SCOPE, request, HideParams(**request.params))))
    except ToolRefusedError:
        return []
    return told.blocks


HIDDEN_PATHS = [*PATHS, "ar:turn_1.user.prompt", "ar:turn_2.user.prompt", "su:turn_3.conv.range.summary"]
OPERATIONS = st.one_of(
    st.tuples(st.just("prompt"), st.sampled_from(TURNS)),
    st.tuples(st.just("file"), st.sampled_from(PATHS), st.sampled_from(TURNS)),
    st.tuples(st.just("content"), st.sampled_from(PATHS), st.sampled_from(TURNS)),
    st.tuples(st.just("own"), st.sampled_from(TURNS), st.booleans()),
    st.tuples(st.just("attachment"), st.sampled_from(TURNS)),
    st.tuples(st.just("plan"), st.sampled_from(TURNS), st.booleans()),
    st.tuples(st.just("hide"), st.sampled_from(HIDDEN_PATHS)),
    st.tuples(st.just("hide"), st.sampled_from(HIDDEN_PATHS)),
    st.tuples(st.just("foreign hide"), st.sampled_from(HIDDEN_PATHS)),
    st.tuples(st.just("summary"), st.sets(st.sampled_from([*TURNS, "turn_7"]), min_size=1), st.sampled_from(TURNS)),
)


def added(operation, blocks):
    """The blocks that an operation adds; each has a word of its own."""
    kind, *values = operation
    word = f"w{len(blocks)}w"
    call = f"c{len(blocks)}"
    if kind == "prompt":
        return [prompt(word, values[0])]
    if kind == "file":
        path, turn = values
        return [
            call_block(call, turn=turn),
            digest_block(path, call, turn, description=f"d{word}"),
            content_block(path, word, call, turn),
        ]
    if kind == "content":  # of the call before, if there is one: its run goes on
        path, turn = values
        return [content_block(path, word, blocks[-1].call_id if blocks else None, turn)]
    if kind == "own":
        turn, has_line = values
        meta = {"hidden": True} | ({"replacement_text": f"line{word}"} if has_line else {})
        return [block("react.note", word, turn=turn, path=f"ar:{turn}.artifacts.n", **meta)]
    if kind == "plan":
        turn, is_done = values
        return [call_block(call, "react.plan", turn), plan_block(word, call, turn, is_done=is_done)]
    if kind == "attachment":
        path = f"fi:{values[0]}.user.attachments/x"
        meta = digest_block(path, None, values[0]).model_copy(update={"type": "user.attachment.meta", "path": path})
        return [meta, block("user.attachment", turn=values[0], path=path)]
    if kind == "hide":
        return hide(blocks, values[0], call)
    if kind == "foreign hide":
        return [hiding_block(values[0], f"foreign{word}", call)]
    return [summary_block(sorted(values[0]), word, values[1])]


def stays_covered(blocks, index):
    """Whether a block that a summary covers is the newest digest of its path, or the open plan."""
    item, later = blocks[index], list(enumerate(blocks))[index + 1 :]
    newest_summary = max(at for at, other in enumerate(blocks) if other.type == "conv.range.summary")
    if item.type == "react.plan":
        is_newest = not any(other.type == "react.plan" and at < newest_summary for at, other in later)
        return is_newest and "done" not in item.text
    path = described_path(item)
    ends = [
        max((n for n, summary in enumerate(blocks) if other.turn_id in covered_by(summary)), default=-1)
        for _, other in later
    ]
    again = [
        other for (at, other), end in zip(later, ends, strict=True) if at < end and described_path(other) == path
    ]
    return path is not None and not again


def covered_by(item):
    return item.meta["covered_turn_ids"] if item.type == "conv.range.summary" else []


def is_seen(blocks, index):
    """Whether the block's own word is in view, told from the whole timeline block by block."""
    item, later = blocks[index], list(enumerate(blocks))[index + 1 :]
    covering = [(at, other.meta["covered_turn_ids"]) for at, other in later if other.type == "conv.range.summary"]
    began = {}
    for at, other in enumerate(blocks):
        began.setdefault(other.turn_id, at)
    if item.type == "conv.range.summary":
        mine = [turn for turn in item.meta["covered_turn_ids"] if began.get(turn, index) < index]
        if mine and all(any(turn in turns for _, turns in covering) for turn in mine):
            return False
    else:
        is_covered = any(item.turn_id in turns for _, turns in covering)
        if is_covered:
            return stays_covered(blocks, index)
    if item.meta.get("hidden"):
        return False
    paths = {item.path, described_path(item)} - {None}
    return not any(
        other.meta.get("hides") in paths and other.meta.get("hides_from", 1) <= index + 1 for _, other in later
    )


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=14))
def test_text_grows_at_its_end_until_the_revision_says_that_it_changed(operations):
    blocks, seen = [], [(0, read([]))]
    for operation in operations:
        blocks += added(operation, blocks)
        now = read(blocks)
        is_longer, is_same = now.text.startswith(seen[-1][1].text), now.revision == seen[-1][1].revision
        # What a summary stands for may have shown nothing before.
        assert is_longer == is_same or (is_longer and operation[0] == "summary")
        for last, before in seen:
            if now.revision == before.revision:
                assert now.text == before.text + read(blocks, last).text
        seen.append((len(blocks), now))


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=14))
def test_a_text_that_is_cut_at_any_block_is_whole_again(operations):
    blocks = []
    for operation in operations:
        blocks += added(operation, blocks)
    texts = [read(blocks, after).text for after in range(len(blocks) + 1)]
    assert [longer.endswith(shorter) for longer, shorter in pairwise(texts)] == [True] * len(blocks)
    assert texts[-1] == ""
    for index, item in enumerate(blocks):
        word = f"w{re.sub('[^0-9]', '', item.text or '')}w" if item.type != "react.tool.call" else None
        if word and item.text == word:
            assert (f"\n{word}\n" in texts[0]) == is_seen(blocks, index)
        if item.text and "dw" in item.text:
            description = json.loads(item.text)["description"]
            assert (description in texts[0]) == is_seen(blocks, index)
        if item.type == "react.plan":
            [step] = json.loads(item.text)["steps"]
            assert (f" 1) {step}\n" in texts[0]) == is_seen(blocks, index)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=12), st.sampled_from(HIDDEN_PATHS))
def test_a_hiding_never_changes_the_text_up_to_the_pre_tail_point(operations, path):
    blocks = []
    for operation in operations:
        blocks += added(operation, blocks)
    points = asyncio.run(cache_points(SuppliedTimelineView(blocks), POLICY, len(blocks)))
    told = hide(blocks, path, "h")
    if not told:
        return

    def head(those):
        return read(those).text.removesuffix(read(those, points.pre_tail).text)

    assert head([*blocks, *told]) == head(blocks)
    after = read([*blocks, *told]).text
    assert after.count("HIDDEN — short h. Retrieve with") == 1


FILE = PATHS[0]
SUMMARY_PATH = "su:turn_9.conv.range.summary"
CUT_CASES = {
    "a group with others between": [
        prompt("one"),
        prompt("two", "turn_2"),
        prompt("three"),
        hiding_block("ar:turn_1.user.prompt", "short", "h"),
    ],
    "a summary between the blocks of a call": [
        call_block("c"),
        summary_block(["turn_5"], turn="turn_1"),
        block("react.tool.result", "r", path="tc:turn_1.c.result", call="c"),
    ],
    "a covered turn within another": [
        prompt("old"),
        prompt("one", "turn_2"),
        block("react.note", "old too"),
        prompt("two", "turn_2"),
        summary_block(["turn_1"]),
    ],
    "a hidden summary that was read again": [
        prompt("old"),
        prompt("one", "turn_2"),
        prompt("two", "turn_3"),
        summary_block(["turn_1"]),
        content_block(SUMMARY_PATH, "read", "c", "turn_9"),
        hiding_block(SUMMARY_PATH, "short", "h", "turn_9"),
    ],
    "a hidden path that a summary covers in part": [
        content_block(FILE, "old", "c"),
        prompt("one", "turn_2"),
        content_block(FILE, "new", "d", "turn_2"),
        summary_block(["turn_1"]),
        hiding_block(FILE, "short", "h", "turn_9"),
    ],
    "summaries in a row at the beginning of a turn": [
        prompt("old"),
        summary_block(["turn_1"], turn="turn_2"),
        summary_block(["turn_1"], turn="turn_2"),
        prompt("new", "turn_2"),
        block("react.note", "more", turn="turn_2"),
    ],
}


@pytest.mark.parametrize("case", CUT_CASES)
def test_a_cut_fits_in_the_rare_cases_too(case):
    blocks = CUT_CASES[case]
    texts = [read(blocks, after).text for after in range(len(blocks) + 1)]
    assert [longer.endswith(shorter) for longer, shorter in pairwise(texts)] == [True] * len(blocks)
    assert texts[0].count("HIDDEN") == sum("hides" in item.meta for item in blocks)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=14), st.integers(1, 5))
def test_blocks_read_in_pages_are_marked_as_in_one_and_each_group_has_one_replacement(operations, size):
    blocks = []
    for operation in operations:
        blocks += added(operation, blocks)
    memory = SuppliedTimelineView(blocks)

    async def pages(size):
        visibility = await compute_visibility(memory)
        return [
            item
            for start in range(0, len(blocks), size)
            for item in await with_visibility(memory, visibility, await memory.after(start, size))
        ]

    whole = asyncio.run(pages(len(blocks) or 1))
    assert asyncio.run(pages(size)) == whole
    assert [item.model_copy(update={"meta": {}}) for item in whole] == [
        item.model_copy(update={"meta": {}}) for item in blocks
    ]
    said = [
        item.meta["replacement_text"]
        for item in whole
        if item.meta.get("hidden") and "replacement_text" in item.meta
    ]
    assert len(said) == len(set(said))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=14))
def test_cache_points_move_forward_only(operations):
    blocks, before = [], (0, 0)
    for operation in operations:
        for item in added(operation, blocks):
            blocks.append(item)
            points = asyncio.run(cache_points(SuppliedTimelineView(blocks), POLICY, len(blocks)))
            assert (points.pre_tail >= before[0], points.tail >= before[1]) == (True, True)
            assert points.pre_tail <= points.tail or not points.pre_tail or points.tail < len(blocks)
            before = (points.pre_tail, points.tail)


def test_after_a_summary_each_artifact_is_one_line_of_its_newest_version_and_the_open_plan_is_whole():
    path = "fi:turn_1.files/summary.csv"
    about = {
        "mime": "text/csv",
        "tool_id": "react.read",
        "physical_path": "turn_1/files/summary.csv",
        "sid": 10_002,
    }
    steps = {"plan_id": "plan_1", "steps": ["Read the data", "Draw it"], "status": {"1": "done", "2": "pending"}}
    blocks = [
        call_block("c1", "exec_tools.execute_code_python"),
        digest_block(path, "c1", **about, size_bytes=12, description="by region"),
        call_block("p1", "react.plan"),
        block(
            "react.plan",
            json.dumps(steps),
            path="ar:turn_1.react.plan.plan_1",
            call="p1",
            mime="application/json",
        ),
        block("react.plan.ack", "✓ 1. Read the data", path="ar:turn_1.react.plan.ack.1", call="p1"),
        digest_block("tc:turn_1.s1.result", "s1", tool_id="web_tools.web_search", sources_used=[1, 2]),
        digest_block(path, "r1", "turn_2", **about, size_bytes=35, description="by region"),
        digest_block("fi:turn_2.files/n.md", "w1", "turn_2", visibility="internal", size_bytes=3),
        summary_block(["turn_1", "turn_2"], "They made a table."),
        digest_block(path, "r2", "turn_9", **about, size_bytes=35),
    ]
    covered = read(blocks[:-1]).text
    assert covered == (
        "[SUMMARY OF EARLIER TURNS]\n[path: su:turn_9.conv.range.summary]\nThey made a table.\n\n"
        "[REACT.PLAN]\nid=plan_1\n✓ 1) Read the data\n□ 2) Draw it\n\n"
        "tc:turn_1.s1.result | text/plain | web_tools.web_search | sources 1, 2\n\n"
        "fi:turn_1.files/summary.csv | text/csv | 35 bytes | sid 10002 | by region\n\n"
        "fi:turn_2.files/n.md | text/plain | 3 bytes | internal\n"
    )
    assert read(blocks).text.startswith(covered)
    line = "fi:turn_1.files/summary.csv | text/csv | 35 bytes | sid 10002 | by region\n\n"
    assert BpeTokenCounter().count(line) <= 36


def test_a_deleted_file_and_a_plan_that_is_done_or_replaced_are_gone_after_a_summary():
    path = "fi:turn_1.files/a.csv"
    gone = hiding_block(path, "a.csv was deleted", None)
    gone = gone.model_copy(update={"type": "react.notice", "meta": {**gone.meta, "deletes": True}})
    summary = summary_block(["turn_1"], "so far")
    blocks = [digest_block(path, "c1"), plan_block("old"), plan_block("new", is_done=True)]
    assert "a.csv |" in read([*blocks, summary]).text
    assert "[REACT.PLAN]" not in read([*blocks, summary]).text
    assert "a.csv |" not in read([*blocks, gone, summary]).text
    kept = read([blocks[0], blocks[1], plan_block("later", turn="turn_2"), summary]).text
    assert (kept.count("[REACT.PLAN]"), "later" in kept) == (1, True)
