"""What every store of timelines does: append all or nothing, keep order and bytes, never mix conversations."""

import asyncio
import base64

import pytest

from proofbox.contracts.blocks import Block
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.errors import StoreFailedError, TimelineMovedError


def block(text="hello", **fields):
    values = {
        "type": "user.prompt",
        "author": "user",
        "turn_id": "turn_1",
        "ts": "2026-11-22T10:00:00.000Z",
        "mime": "text/markdown",
        "path": "ar:turn_1.user.prompt",
        "text": text,
    }
    return Block(**{**values, **fields})


async def texts(store, scope, after=0, limit=1_000):
    return [placed.block.text for placed in await store.after(scope, after, limit, binaries=True)]


async def test_blocks_come_back_as_they_went_in_and_in_their_order(timeline_store, scope_of):
    scope = scope_of()
    given = [
        block("1"),
        block("2 \u4f60\u597d \U0001f389", call_id="c1", meta={"digest": "{}", "tool_call_id": "c1"}),
        block(None, mime="image/png", base64=base64.b64encode(b"\x00\xffpicture").decode()),
        block(None, mime="image/png", base64="bm8gcGFkZGluZw"),
    ]
    assert await timeline_store.append(scope, given) == 4
    found = await timeline_store.after(scope, 0, 10, binaries=True)
    assert [placed.position for placed in found] == [1, 2, 3, 4]
    assert [placed.block for placed in found] == given


async def test_without_binaries_only_their_length_is_told(timeline_store, scope_of):
    code = base64.b64encode(b"12345").decode()
    await timeline_store.append(scope_of(), [block(None, base64=code), block("t")])
    found = await timeline_store.after(scope_of(), 0, 10, binaries=False)
    assert [(placed.block.base64, placed.base64_chars) for placed in found] == [(None, len(code)), (None, 0)]


async def test_a_page_begins_after_a_position_and_ends_at_its_limit(timeline_store, scope_of):
    await timeline_store.append(scope_of(), [block(str(number)) for number in range(1, 8)])
    assert await texts(timeline_store, scope_of(), after=2, limit=3) == ["3", "4", "5"]
    assert await texts(timeline_store, scope_of(), after=7) == []


async def test_an_append_that_expects_another_end_adds_nothing(timeline_store, scope_of):
    await timeline_store.append(scope_of(), [block("1")], if_last=0)
    with pytest.raises(TimelineMovedError):
        await timeline_store.append(scope_of(), [block("again")], if_last=0)
    await timeline_store.append(scope_of(), [block("2")], if_last=1)
    assert await texts(timeline_store, scope_of()) == ["1", "2"]


async def test_of_many_that_expect_the_same_end_one_is_added(timeline_store, scope_of):
    outcomes = await asyncio.gather(
        *(timeline_store.append(scope_of(), [block(str(number))], if_last=0) for number in range(8)),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["TimelineMovedError"] * 7 + ["int"]


async def test_appends_at_once_are_each_whole(timeline_store, scope_of):
    await asyncio.gather(
        *(timeline_store.append(scope_of(), [block(f"{who}{n}") for n in range(5)]) for who in "abcdef")
    )
    found = await texts(timeline_store, scope_of())
    groups = [found[start : start + 5] for start in range(0, 30, 5)]
    assert sorted(groups) == [[f"{who}{n}" for n in range(5)] for who in "abcdef"]


async def test_conversations_and_principals_have_timelines_of_their_own(timeline_store, scope_of):
    scopes = [scope_of(), scope_of(conversation="conv-2"), scope_of(user="bob"), scope_of(tenant="other")]
    for number, scope in enumerate(scopes):
        assert await timeline_store.append(scope, [block(str(number))]) == 1
    assert [await texts(timeline_store, scope) for scope in scopes] == [["0"], ["1"], ["2"], ["3"]]


async def test_a_group_is_the_unbroken_run_of_one_call(timeline_store, scope_of):
    calls = [None, "a", "b", "b", "b", None, None]
    await timeline_store.append(scope_of(), [block(str(n), call_id=call) for n, call in enumerate(calls, 1)])

    async def group(position):
        return [placed.position for placed in await timeline_store.group_before(scope_of(), position)]

    assert [await group(position) for position in (1, 2, 4, 5, 6, 7)] == [[1], [2], [3, 4], [3, 4, 5], [6], [7]]
    assert await timeline_store.group_before(scope_of(conversation="none"), 3) == []


async def test_an_answer_and_its_blocks_are_kept_together_and_once(calls_and_timelines, scope_of):
    calls, timelines = calls_and_timelines
    key = CallKey(scope_of(), "call-1")
    await calls.claim(NewCall(key, "a" * 64, "{}", "boot-1", None))
    await calls.finish(key, CallState.DONE, "answer", [block("1"), block("2")])
    await calls.finish(key, CallState.CANCELLED, "late", [block("3")])
    assert await texts(timelines, scope_of()) == ["1", "2"]
    lost = CallKey(scope_of(), "never-claimed")
    with pytest.raises(StoreFailedError):
        await calls.finish(lost, CallState.DONE, "answer", [block("4")])
    assert await texts(timelines, scope_of()) == ["1", "2"]


def meta_of(path, turn="turn_1", call="c1"):
    digest = f'{{"artifact_path": "{path}", "mime": "text/csv"}}'
    return block(
        digest,
        type="react.tool.result",
        mime="application/json",
        path=f"tc:{turn}.{call}.result",
        turn_id=turn,
        call_id=call,
    )


async def test_blocks_are_found_by_their_path_and_by_what_their_digest_describes(timeline_store, scope_of):
    file = "fi:turn_1.files/a.csv"
    given = [
        block("p"),
        meta_of(file),
        block("1,2", type="react.tool.result", path=file, call_id="c1"),
        meta_of(file, call="c2"),
        block("3,4", type="react.tool.result", path=file, call_id="c2"),
    ]
    await timeline_store.append(scope_of(), given)
    found = await timeline_store.of_path(scope_of(), file, 10, binaries=True)
    assert [placed.position for placed in found] == [2, 3, 4, 5]
    assert [p.position for p in await timeline_store.of_path(scope_of(), file, 3, binaries=False)] == [3, 4, 5]
    assert [p.block for p in await timeline_store.of_call(scope_of(), "c2", 10)] == given[3:]
    assert await timeline_store.files_of_turn(scope_of(), "turn_1") == [file]
    assert await timeline_store.files_of_turn(scope_of(), "turn_2") == []


async def test_the_end_is_read_backwards(timeline_store, scope_of):
    assert await timeline_store.last(scope_of()) == 0
    await timeline_store.append(scope_of(), [block(str(number)) for number in range(1, 6)])
    assert await timeline_store.last(scope_of()) == 5
    assert [p.block.text for p in await timeline_store.before(scope_of(), 4, 2)] == ["4", "3"]


async def test_the_blocks_of_a_turn_are_found_wherever_they_lie(timeline_store, scope_of):
    second = block("2", turn_id="turn_2", path="ar:turn_2.user.prompt")
    plan = block("{}", path="ar:turn_1.react.plan.plan_1")
    ack = block("x", path="ar:turn_1.react.plan.ack.1")
    await timeline_store.append(scope_of(), [block("1"), second, meta_of("fi:turn_1.files/a.csv"), plan, ack])
    spans = await timeline_store.turns(scope_of())
    assert [(span.turn_id, span.first, span.last) for span in spans] == [("turn_1", 1, 5), ("turn_2", 2, 2)]
    both = await timeline_store.of_turns(scope_of(), ["turn_2", "turn_1"], described=False)
    assert [placed.position for placed in both] == [1, 2, 3, 4, 5]
    assert [p.position for p in await timeline_store.of_turns(scope_of(), ["turn_1"], described=True)] == [3, 4]


async def test_blocks_that_hide_others_are_found_after_a_position(timeline_store, scope_of):
    hiding = block(
        "{}", type="react.tool.result", path="tc:turn_1.h.result", meta={"hides": "ar:turn_1.user.prompt"}
    )
    await timeline_store.append(scope_of(), [block("1"), hiding, block("2", meta={"hides": "x"})])
    assert [placed.position for placed in await timeline_store.hidings(scope_of(), 0)] == [2]
    assert await timeline_store.hidings(scope_of(), 2) == []


async def test_summaries_are_found_and_what_was_read_of_them_is_none(timeline_store, scope_of):
    fields = {"type": "conv.range.summary", "path": "su:turn_2.conv.range.summary", "turn_id": "turn_2"}
    first, second = block("s1", **fields), block("s2", **{**fields, "path": "su:turn_3.conv.range.summary"})
    read = block("s1", **{**fields, "type": "react.tool.result"})
    await timeline_store.append(scope_of(), [block("1"), second, read, block("2"), first])
    found = await timeline_store.summaries(scope_of())
    assert [(placed.position, placed.block) for placed in found] == [(2, second), (5, first)]
    assert await timeline_store.summaries(scope_of(conversation="none")) == []
