"""What every call store promises."""

import asyncio
import re
from dataclasses import replace

import pytest

from proofbox.contracts.blocks import Block
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.port import Alongside, CallKey, CallState, NewCall, StoredCall
from proofbox.service.errors import IdReusedError, StoreFailedError
from proofbox.service.timeline.block_writer import BlockWriter, Notice, now_text


def new_call(scope, tool_call_id="call-1", payload="a", boot_id="boot-1", idempotency_key=None):
    return NewCall(
        key=CallKey(scope, tool_call_id),
        payload_sha256=payload * 64,
        request=f"request of {tool_call_id}",
        boot_id=boot_id,
        idempotency_key=idempotency_key,
    )


async def test_a_new_call_is_stored_open(call_store, scope):
    call = new_call(scope)
    stored, is_new = await call_store.claim(call)
    assert is_new is True
    assert stored == StoredCall(
        key=call.key,
        payload_sha256="a" * 64,
        state=CallState.OPEN,
        boot_id="boot-1",
        created=stored.created,
        request=call.request,
        answer=None,
        number=stored.number,
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stored.created)
    assert await call_store.find(scope.principal, "call-1") == [stored]


async def test_the_same_call_again_is_the_stored_one(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    again = replace(new_call(scope, boot_id="boot-2"), request="{}")
    assert await call_store.claim(again) == (stored, False)
    done = await call_store.finish(stored.key, CallState.DONE, "answer")
    assert await call_store.claim(again) == (done, False)


async def test_another_payload_under_a_known_id_is_refused_with_the_way_out(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    with pytest.raises(IdReusedError, match=r"'call-1'.*'conv-1'.*new tool_call_id"):
        await call_store.claim(new_call(scope, payload="b"))
    assert await call_store.find(scope.principal, "call-1") == [stored]


async def test_of_twenty_claims_at_once_one_is_new(call_store, scope):
    results = await asyncio.gather(
        *(call_store.claim(new_call(scope, boot_id=f"boot-{number}")) for number in range(20))
    )
    assert sorted(is_new for _, is_new in results) == [False] * 19 + [True]
    assert {stored for stored, _ in results} == {stored for stored, is_new in results if is_new}


async def test_of_twenty_payloads_at_once_one_gets_the_id(call_store, scope):
    results = await asyncio.gather(
        *(call_store.claim(new_call(scope, payload=payload)) for payload in "0123456789abcdefghij"),
        return_exceptions=True,
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    assert [type(result) for result in results].count(IdReusedError) == 19
    assert await call_store.find(scope.principal, "call-1") == [won[0][0]]


async def test_of_twenty_calls_that_race_for_one_idempotency_key_one_is_new(call_store, scope):
    results = await asyncio.gather(
        *(call_store.claim(new_call(scope, f"call-{number}", idempotency_key="k")) for number in range(20))
    )
    assert sorted(is_new for _, is_new in results) == [False] * 19 + [True]
    assert len({stored.key for stored, _ in results}) == 1


# ---- idempotency keys ----


async def test_an_idempotency_key_finds_its_call_under_another_id(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope, idempotency_key="k"))
    assert await call_store.claim(new_call(scope, "call-2", idempotency_key="k")) == (stored, False)
    assert await call_store.find(scope.principal, "call-2") == []


async def test_an_idempotency_key_reaches_across_the_conversations_of_a_principal(call_store, scope, scope_of):
    stored, _ = await call_store.claim(new_call(scope, idempotency_key="k"))
    other = scope_of(conversation="conv-2")
    assert await call_store.claim(new_call(other, idempotency_key="k")) == (stored, False)


async def test_an_idempotency_key_with_another_payload_is_refused_with_the_way_out(call_store, scope):
    await call_store.claim(new_call(scope, idempotency_key="k"))
    with pytest.raises(IdReusedError, match=r"Idempotency-Key 'k'.*new Idempotency-Key"):
        await call_store.claim(new_call(scope, "call-2", payload="b", idempotency_key="k"))
    assert await call_store.find(scope.principal, "call-2") == []


async def test_a_second_idempotency_key_of_a_call_is_bound_to_it(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope, idempotency_key="k1"))
    assert await call_store.claim(new_call(scope, idempotency_key="k2")) == (stored, False)
    assert await call_store.claim(new_call(scope, "call-2", idempotency_key="k2")) == (stored, False)
    with pytest.raises(IdReusedError):
        await call_store.claim(new_call(scope, "call-3", payload="b", idempotency_key="k2"))


async def test_a_calls_own_id_counts_more_than_an_idempotency_key(call_store, scope):
    first, _ = await call_store.claim(new_call(scope, "call-1", idempotency_key="k1"))
    second, _ = await call_store.claim(new_call(scope, "call-2", idempotency_key="k2"))
    assert await call_store.claim(new_call(scope, "call-1", idempotency_key="k2")) == (first, False)
    assert await call_store.claim(new_call(scope, "call-9", idempotency_key="k2")) == (second, False)


async def test_calls_without_idempotency_keys_do_not_share_one(call_store, scope):
    results = [
        await call_store.claim(new_call(scope, f"call-{number}", payload="abc"[number])) for number in range(3)
    ]
    assert [is_new for _, is_new in results] == [True] * 3


# ---- apart ----


async def test_ids_and_idempotency_keys_of_others_are_never_seen(call_store, scope, others):
    mine, _ = await call_store.claim(new_call(scope, idempotency_key="k"))
    same_user = [other for other in others if other.principal == scope.principal]
    for other in others:
        key = None if other in same_user else "k"
        stored, is_new = await call_store.claim(new_call(other, payload="b", idempotency_key=key))
        assert (is_new, stored.key.scope) == (True, other)
    assert (await call_store.find(scope.principal, "call-1"))[0] == mine


async def test_find_gives_the_calls_of_all_conversations_of_one_principal(call_store, scope, others):
    for each in [scope, *others]:
        await call_store.claim(new_call(each))
        await call_store.claim(new_call(each, "call-2"))
    found = await call_store.find(scope.principal, "call-1")
    assert [(call.key.scope.conversation_id, call.key.tool_call_id) for call in found] == [
        ("conv-1", "call-1"),
        ("conv-2", "call-1"),
    ]
    assert {call.key.scope.principal for call in found} == {scope.principal}


async def test_an_unknown_call_is_not_found(call_store, scope):
    assert await call_store.find(scope.principal, "call-1") == []


# ---- answers ----


@pytest.mark.parametrize("state", [CallState.DONE, CallState.FAILED, CallState.CANCELLED])
async def test_an_open_call_takes_an_answer(call_store, scope, state):
    stored, _ = await call_store.claim(new_call(scope))
    answer = '{"text": "ünï \\u0000 answer"}'
    finished = await call_store.finish(stored.key, state, answer)
    assert finished == replace(stored, state=state, answer=answer)
    assert await call_store.find(scope.principal, "call-1") == [finished]


async def test_what_a_cancelled_call_had_done_is_stored_beside_its_answer(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    finished = await call_store.finish(
        stored.key, CallState.CANCELLED, "problem", also=Alongside(partial_response="done so far")
    )
    assert (finished.answer, finished.partial_response) == ("problem", "done so far")
    assert await call_store.find(scope.principal, "call-1") == [finished]
    assert (
        await call_store.finish(stored.key, CallState.DONE, "late", also=Alongside(partial_response="other"))
        == finished
    )


async def test_the_first_answer_stays(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    first = await call_store.finish(stored.key, CallState.CANCELLED, "first")
    assert await call_store.finish(stored.key, CallState.DONE, "second") == first


async def test_of_twenty_answers_at_once_all_are_told_the_same_one(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    told = await asyncio.gather(
        *(call_store.finish(stored.key, CallState.DONE, f"answer {number}") for number in range(20))
    )
    assert len(set(told)) == 1


async def test_a_call_that_is_not_there_takes_no_answer(call_store, scope):
    with pytest.raises(StoreFailedError):
        await call_store.finish(CallKey(scope, "call-1"), CallState.DONE, "answer")


async def test_an_answer_cannot_leave_a_call_open(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    with pytest.raises(StoreFailedError):
        await call_store.finish(stored.key, CallState.OPEN, "answer")
    assert await call_store.find(scope.principal, "call-1") == [stored]


async def test_requests_and_answers_of_tens_of_megabytes_come_back_whole(call_store, scope):
    request, answer = "r" * 20_000_000, "ä" * 10_000_000
    stored, _ = await call_store.claim(replace(new_call(scope), request=request))
    await call_store.finish(stored.key, CallState.DONE, answer)
    (found,) = await call_store.find(scope.principal, "call-1")
    assert (found.request == request, found.answer == answer) == (True, True)


# ---- forget, left open ----


async def test_a_forgotten_call_may_come_again_with_another_payload(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope, idempotency_key="k"))
    await call_store.forget(stored.key)
    assert await call_store.find(scope.principal, "call-1") == []
    _, is_new = await call_store.claim(new_call(scope, payload="b", idempotency_key="k"))
    assert is_new is True


async def test_a_call_with_an_answer_is_not_forgotten(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    done = await call_store.finish(stored.key, CallState.DONE, "answer")
    await call_store.forget(stored.key)
    assert await call_store.find(scope.principal, "call-1") == [done]


async def test_forgetting_touches_no_other_call(call_store, scope, others):
    for each in [scope, *others]:
        await call_store.claim(new_call(each))
    await call_store.forget(CallKey(scope, "call-1"))
    await call_store.forget(CallKey(scope, "call-unknown"))
    assert len(await call_store.left_open("none")) == 5


async def test_open_calls_of_other_lives_are_listed_oldest_first(call_store, scope, others):
    old, _ = await call_store.claim(new_call(scope, "call-1", boot_id="boot-1"))
    answered, _ = await call_store.claim(new_call(scope, "call-2", boot_id="boot-1"))
    older, _ = await call_store.claim(new_call(others[0], "call-3", boot_id="boot-0"))
    await call_store.claim(new_call(scope, "call-4", boot_id="boot-2"))
    await call_store.finish(answered.key, CallState.DONE, "answer")
    assert await call_store.left_open("boot-2") == [old, older]


async def test_the_newest_answered_requests_of_a_conversation_are_had_without_long_ones(call_store, scope, others):
    for number in range(4):
        call, _ = await call_store.claim(new_call(scope, f"call-{number}"))
        await call_store.finish(call.key, CallState.DONE, "answer")
    await call_store.claim(new_call(scope, "open"))
    other, _ = await call_store.claim(new_call(others[0], "call-9"))
    await call_store.finish(other.key, CallState.DONE, "answer")
    newest = [(f"call-{number}", f"request of call-{number}") for number in (3, 2)]
    assert await call_store.newest_requests(scope, 2, len(call.request)) == newest
    assert await call_store.newest_requests(scope, 2, len(call.request) - 1) == []


async def test_of_many_conversations_that_give_one_idempotency_key_at_once_one_has_the_call(call_store, scope_of):
    scopes = [scope_of(conversation=f"conv-{number}") for number in range(4)]
    for scope in scopes:
        await call_store.claim(new_call(scope, "first"))
    for number in range(10):
        results = await asyncio.gather(
            *(
                call_store.claim(new_call(scope, f"call-{number}", idempotency_key=f"once-{number}"))
                for scope in scopes
            )
        )
        assert [is_new for _, is_new in results].count(True) == 1
        assert len({stored.key for stored, _ in results}) == 1


async def test_answers_and_appends_at_once_leave_no_gap_in_the_timeline(calls_and_timelines, scope):
    calls, timelines = calls_and_timelines
    block = Block(type="note", author="user", turn_id="turn_1", ts="", mime="text/plain", path="", text="x")
    stored = [(await calls.claim(new_call(scope, f"call-{number}")))[0] for number in range(10)]
    await asyncio.gather(
        *(calls.finish(call.key, CallState.DONE, "answer", [block] * 3) for call in stored),
        *(timelines.append(scope, [block] * 2) for _ in range(10)),
    )
    placed = await timelines.after(scope, 0, 100, binaries=False)
    assert [each.position for each in placed] == list(range(1, 51))


async def test_a_refused_call_gives_its_id_away_and_leaves_its_notices(calls_and_timelines, scope):
    calls, timelines = calls_and_timelines
    write = BlockWriter("turn_1", "call-1", "react.write", now_text())
    before = await timelines.append(scope, [block_of("ar:turn_1.user.prompt")])
    blocks = write.opening({}, [Notice("c", "first"), Notice("c", "second")], notes="n")
    answer = ToolCallResponse(ok=False, report="r", blocks=blocks).model_dump_json()
    stored, _ = await calls.claim(new_call(scope, idempotency_key="once"))
    also = Alongside(is_refusal=True)
    refused = await calls.finish(stored.key, CallState.DONE, answer, blocks, also=also)
    last = await timelines.append(scope, [block_of("ar:turn_1.assistant.completion")])
    assert (await calls.find(scope.principal, "call-1"))[0].answer == refused.answer == answer

    new, is_new = await calls.claim(new_call(scope, payload="b", idempotency_key="once"))
    assert (is_new, new.state, new.payload_sha256[0]) == (True, CallState.OPEN, "b")
    assert await calls.find(scope.principal, "call-1") == [new]
    placed = [(each.position, each.block.text) for each in await timelines.after(scope, before, 9, binaries=False)]
    notices = [(before + 2, blocks[1].text), (before + 4, blocks[2].text)]
    assert placed == [*notices, (last, "x")]
    assert await timelines.last(scope) == last

    done = await calls.finish(new.key, CallState.DONE, "answer")
    assert await calls.claim(new_call(scope, payload="b", idempotency_key="once")) == (done, False)
    with pytest.raises(IdReusedError):
        await calls.claim(new_call(scope, payload="c"))


async def test_of_twenty_corrections_at_once_one_is_new(call_store, scope):
    stored, _ = await call_store.claim(new_call(scope))
    answer = ToolCallResponse(ok=False, report="r", blocks=[]).model_dump_json()
    await call_store.finish(stored.key, CallState.DONE, answer, also=Alongside(is_refusal=True))
    results = await asyncio.gather(
        *(call_store.claim(new_call(scope, payload="b", boot_id=f"boot-{number}")) for number in range(20))
    )
    assert [is_new for _, is_new in results].count(True) == 1
    assert len({claimed.boot_id for claimed, _ in results}) == 1


def block_of(path):
    return Block(type="note", author="user", turn_id="turn_1", ts="", mime="text/plain", path=path, text="x")
