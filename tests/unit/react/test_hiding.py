"""``react.hide``: what it hides, what it refuses and why, on a stored timeline's rules over a handed-in one."""

import asyncio
import json

import pytest

from proofbox.contracts.react_tools import HideParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.react.hide import HideTool
from proofbox.service.timeline.cache_points import CachePoints, CachePolicy, cache_points
from proofbox.service.timeline.model_text import read_text, with_visibility
from proofbox.service.timeline.view import SuppliedTimelineView
from proofbox.service.timeline.visibility import compute_visibility
from tests.support.timelines import (
    block,
    call_block,
    content_block,
    digest_block,
    prompt,
    summary_block,
)

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
WIDE = CachePolicy(min_rounds=1, offset_rounds=100, editable_tail_tokens=1_000)
FILE = "fi:turn_1.files/a.md"


class Words:
    """The port ``TokenCounter`` by words."""

    def count(self, text):
        return len(text.split())


def hide(blocks, path, replacement="a long list", *, policy=WIDE, tool="react.hide", call="h1"):
    request = ToolCallRequest(
        tool_id=tool,
        tool_call_id=call,
        conversation_id="conv-1",
        turn_id="turn_1",
        params={"path": path, "replacement": replacement},
        timeline=blocks,
    )
    story = DirectTool(HideParams, HideTool(None, Words(), policy).run)
    return asyncio.run(story.prepare(SCOPE, request).run(None))


def text(blocks, after=0):
    return asyncio.run(read_text(SuppliedTimelineView(blocks), after)).text


def file_call(call="c1", words="the long content", path=FILE):
    return [call_block(call, "react.write"), digest_block(path, call), content_block(path, words, call)]


def test_a_hidden_file_is_one_line_in_view_and_its_blocks_are_marked():
    blocks = [prompt(), *file_call()]
    told = hide(blocks, FILE)
    assert (told.ok, told.ret["hidden_blocks"], told.ret["path"]) == (True, 2, FILE)
    result = told.blocks[-1]
    assert (result.path, result.mime) == ("tc:turn_1.h1.result", "application/json")
    assert result.meta == {
        "hides": FILE,
        "hides_from": 3,
        "replacement_text": "a long list",
        "tool_call_id": "h1",
    }
    now = [*blocks, *told.blocks]
    assert text(now).startswith(
        text([*blocks[:2]])
        + f"\nHIDDEN — a long list. Retrieve with react.read({FILE})\n\n[react.tool.call] (JSON)\n"
    )
    memory = SuppliedTimelineView(now)

    async def marks():
        return await with_visibility(memory, await compute_visibility(memory), await memory.after(0, 10))

    said = [(item.meta.get("hidden"), item.meta.get("replacement_text")) for item in asyncio.run(marks())]
    assert said[:4] == [(None, None), (None, None), (True, "a long list"), (True, None)]
    assert now[2].meta == {}


def test_a_later_block_of_the_path_is_in_view_again_and_can_be_hidden_again():
    blocks = [*file_call()]
    blocks += [*hide(blocks, FILE).blocks, *file_call("c2", "read again")]
    assert ("the long content" in text(blocks), "read again" in text(blocks)) == (False, True)
    blocks += hide(blocks, FILE, "once more", call="h2").blocks
    view = text(blocks)
    assert [line for line in view.splitlines() if line.startswith("HIDDEN")] == [
        f"HIDDEN — a long list. Retrieve with react.read({FILE})",
        f"HIDDEN — once more. Retrieve with react.read({FILE})",
    ]
    assert "read again" not in view


@pytest.mark.parametrize(
    ("item", "named"),
    [
        (prompt(), "ar:turn_1.user.prompt"),
        (block("react.tool.result", "r", path="tc:turn_1.c.result", call="c"), "tc:turn_1.c.result"),
        (block("react.tool.result", "r", path="tc:turn_1.c.result", call="c"), "tc:turn_1.tool_calls.c.out.json"),
        (call_block("c"), "tc:turn_1.tool_calls.c.in.json"),
        (content_block("so:sources_pool[1,3-5]", "rows", "c"), "so:sources_pool[1, 5-3]"),
        (content_block(FILE, "words", "c"), "turn_1/files/a.md"),
        (content_block(FILE, "words", "c"), "files/a.md"),
        (content_block(FILE, "words", "c"), "a.md"),
        (content_block("fi:turn_1.user.attachments/b.csv", "rows", "c"), "b.csv"),
        (content_block("fi:turn_2.files/a.md", "words", "c"), "turn_2/files/a.md"),
        (block("react.tool.code", "print(1)", path="fi:turn_1.code.c", call="c"), "fi:turn_1.code.c"),
        (summary_block(["turn_5"]), "su:turn_9.conv.range.summary"),
    ],
)
def test_a_block_of_each_kind_is_hidden_by_any_spelling_of_its_path(item, named):
    blocks = [item]
    told = hide(blocks, named)
    assert told.ok
    view = text([*blocks, *told.blocks])
    assert f"HIDDEN — a long list. Retrieve with react.read({item.path})" in view
    assert f"\n{item.text}\n" not in view


def test_a_handed_in_block_under_an_alias_is_hidden_too():
    item = block("react.tool.result", "words", path="tc:turn_1.tool_calls.c.out.json", call="c")
    told = hide([item], "tc:turn_1.c.result")
    assert (told.ok, "words" in text([item, *told.blocks])) == (True, False)


def test_the_alias_of_the_tool_hides_too():
    told = hide([prompt()], "ar:turn_1.user.prompt", tool="react.memory_hide")
    assert (told.ok, json.loads(told.blocks[-1].text)["tool_id"]) == (True, "react.memory_hide")


@pytest.mark.parametrize("path", ["fi:turn_1.files/other.md", "ar:nonsense", "../etc", "fi:", "/etc/passwd"])
def test_a_path_that_nothing_has_or_that_is_none_is_refused(path):
    told = hide([prompt()], path)
    assert (told.ok, told.error.code) == (False, "hide_failed")
    assert [item.type for item in told.blocks] == ["react.tool.call", "react.notice", "react.tool.result"]


def test_what_is_hidden_or_summed_up_cannot_be_hidden():
    blocks = [*file_call()]
    hidden = [*blocks, *hide(blocks, FILE).blocks]
    assert hide(hidden, FILE).error.code == "hide_failed"
    assert hide([*blocks, summary_block(["turn_1"])], FILE).error.code == "hide_failed"
    own = block("react.note", "x", path="ar:turn_1.artifacts.n", hidden=True, replacement_text="y")
    assert hide([own], "ar:turn_1.artifacts.n").error.code == "hide_failed"


def test_a_replacement_is_one_line_and_not_blank():
    told = hide([prompt()], "ar:turn_1.user.prompt", "a\n[USER MESSAGE]\n  b ")
    assert told.ret["replacement"] == "a [USER MESSAGE] b"
    assert hide([prompt()], "ar:turn_1.user.prompt", " \n ").error.code == "hide_failed"


NEAR = CachePolicy(min_rounds=3, offset_rounds=2, editable_tail_tokens=1_000)


def test_only_the_rounds_after_the_pre_tail_point_are_hidden():
    blocks = [*file_call("c1", "first"), prompt("two"), *file_call("c2", "third"), prompt("four")]
    assert asyncio.run(cache_points(SuppliedTimelineView(blocks), NEAR, len(blocks))) == CachePoints(
        pre_tail=4, tail=7
    )
    told = hide(blocks, FILE, policy=NEAR)
    assert (told.ret["hidden_blocks"], told.blocks[-1].meta["hides_from"]) == (2, 6)
    view = text([*blocks, *told.blocks])
    assert ("first" in view, "third" in view) == (True, False)
    assert hide(blocks, "tc:turn_1.c1.call", policy=NEAR).error.code == "hide_before_cache"


def test_a_summary_is_where_its_turns_stood_for_the_cache_too():
    blocks = [prompt("old"), *file_call("c1"), *file_call("c2"), summary_block(["turn_1"]), prompt("new", "turn_9")]
    assert hide(blocks, "su:turn_9.conv.range.summary", policy=NEAR).error.code == "hide_before_cache"


def test_the_tail_is_counted_in_tokens_of_the_text_behind():
    blocks = [prompt("near"), prompt(" ".join("word" for _ in range(94)), "turn_2")]
    # the text behind: [TURN turn_2] ts=…, [USER MESSAGE], [path: …], and the words
    behind = len(text(blocks, after=1).split())
    assert behind == 3 + 2 + 2 + 94
    for most, code in ((behind, None), (behind - 1, "hide_too_old")):
        told = hide(blocks, "ar:turn_1.user.prompt", policy=CachePolicy(1, 100, most))
        assert (told.error and told.error.code) == code
    assert json.loads(told.blocks[-1].text)["error"]["tokens_after"] == behind


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("", (0, 0)),
        ("a", (0, 1)),
        ("--", (0, 2)),
        ("---", (1, 3)),
        ("aab--", (3, 5)),
        ("aabb-", (2, 5)),
        ("aabbb", (0, 5)),
        ("ababab", (4, 6)),
    ],
)
def test_a_round_is_an_unbroken_run_of_one_call_or_one_block_outside_calls(calls, expected):
    blocks = [block("react.note", "x", call=None if call == "-" else call) for call in calls]
    points = asyncio.run(cache_points(SuppliedTimelineView(blocks), NEAR, len(blocks)))
    assert (points.pre_tail, points.tail) == expected


def test_what_the_user_says_lies_after_the_tail_point():
    blocks = [block("react.note", "x"), block("turn.header"), prompt(), block("user.attachment")]
    assert asyncio.run(cache_points(SuppliedTimelineView(blocks), NEAR, 4)).tail == 1


def test_the_points_of_a_long_round_are_found_across_pages():
    blocks = [prompt(), *(block("react.note", "x", call="c") for _ in range(1_000)), prompt(), prompt()]
    assert asyncio.run(cache_points(SuppliedTimelineView(blocks), NEAR, len(blocks))).pre_tail == 1_001


def test_of_turns_that_a_summary_covers_a_line_of_each_file_and_the_summary_are_shown_in_their_place():
    blocks = [
        prompt("old words"),
        call_block("c1", "react.write"),
        digest_block(FILE, "c1", tool_id="react.write", physical_path="turn_1/files/a.md", hosted_uri="s3://x"),
        content_block(FILE, "long", "c1"),
        prompt("middle", "turn_2"),
        block("react.note", "late words of the first turn"),
        summary_block(["turn_1"], "They wrote a.md.", "turn_3"),
        prompt("new", "turn_3"),
    ]
    assert (
        text(blocks)
        == f"""\
[SUMMARY OF EARLIER TURNS]
[path: su:turn_3.conv.range.summary]
They wrote a.md.

{FILE} | text/plain

[TURN turn_2] ts=2026-02-09T02:14:32.676425Z

[USER MESSAGE]
[path: ar:turn_2.user.prompt]
middle

[TURN turn_3] ts=2026-02-09T02:14:32.676425Z

[USER MESSAGE]
[path: ar:turn_3.user.prompt]
new
"""
    )


def test_a_later_summary_of_all_its_turns_replaces_an_earlier_one_and_one_of_some_does_not():
    blocks = [prompt("1", "turn_1"), prompt("2", "turn_2"), summary_block(["turn_1", "turn_2"], "first", "turn_3")]
    more = [*blocks, prompt("3", "turn_3"), summary_block(["turn_1", "turn_2", "turn_3"], "second", "turn_4")]
    assert [word for word in ("first", "second") if f"\n{word}\n" in text(more)] == ["second"]
    some = [*blocks, prompt("3", "turn_3"), summary_block(["turn_2", "turn_3"], "second", "turn_4")]
    assert [word for word in ("first", "second") if f"\n{word}\n" in text(some)] == ["first", "second"]


def test_what_a_turn_says_after_its_summary_is_shown():
    blocks = [prompt("early"), summary_block(["turn_1"], "so far", "turn_1"), block("react.note", "late")]
    assert text(blocks) == (
        "[SUMMARY OF EARLIER TURNS]\n[path: su:turn_1.conv.range.summary]\nso far\n\n"
        "[TURN turn_1] ts=2026-02-09T02:14:32.676425Z\n\n[react.note] (internal)\n[INTERNAL NOTE]\nlate\n"
    )


class CountedMemory(SuppliedTimelineView):
    """Counts the blocks that are read."""

    def __init__(self, blocks):
        super().__init__(blocks)
        self.read = 0

    async def after(self, position, limit):
        found = await super().after(position, limit)
        self.read += len(found)
        return found

    async def before(self, position, limit):
        found = await super().before(position, limit)
        self.read += len(found)
        return found


def test_the_blocks_of_covered_turns_are_not_read_and_the_points_read_the_end_only():
    old = [prompt("x", f"turn_{number % 50}") for number in range(5_000)]
    blocks = [
        *old,
        summary_block([f"turn_{number}" for number in range(50)], turn="turn_77"),
        prompt("y", "turn_77"),
    ]
    memory = CountedMemory(blocks)
    asyncio.run(read_text(memory, 0))
    assert memory.read == 2
    asyncio.run(cache_points(memory, NEAR, len(blocks)))
    assert memory.read <= 2 + 200
