"""What every store of passages does: each block's passages once, found by target and time, never across scopes."""

import struct
from dataclasses import replace

from proofbox.service.react.memsearch.port import Passage


def passage(position, target="user", ts="2026-11-22T10:00:00.000Z", text="hello"):
    vector = struct.pack("<2f", position, 0.5)
    return Passage(position, "turn_1", target, ts, f"ar:turn_{position}.user.prompt", text, vector, "new")


async def test_passages_come_back_by_target_and_time(passage_store, scope_of):
    scope = scope_of()
    given = [
        passage(1),
        passage(2, "assistant"),
        passage(3, ts="2025-01-01T00:00:00.000Z"),
        passage(4, "attachment", text="\u4f60\u597d"),
    ]
    assert await passage_store.through(scope) == 0
    assert await passage_store.add(scope, given, since=0, through=9)
    assert await passage_store.through(scope) == 9
    found = await passage_store.candidates(scope, ["user", "attachment"], "2026-01-01T00:00:00.000Z", "new")
    picked = await passage_store.pick(scope, [row.number for row in found])
    assert [(row.turn_id, row.target, row.ts, row.text, row.vector, row.is_outdated) for row in found] == [
        ("turn_1", row.target, row.ts, row.text, row.vector, False) for row in (given[0], given[3])
    ]
    assert [picked[row.number] for row in found] == [given[0], given[3]]


async def test_blocks_that_somebody_else_has_added_meanwhile_are_not_added_twice(passage_store, scope_of):
    assert await passage_store.add(scope_of(), [passage(1)], since=0, through=5)
    assert not await passage_store.add(scope_of(), [passage(1)], since=0, through=6)
    assert len(await passage_store.candidates(scope_of(), ["user"], "", "new")) == 1
    assert await passage_store.through(scope_of()) == 5


async def test_no_other_scope_finds_a_passage(passage_store, scope, others):
    await passage_store.add(scope, [passage(1)], since=0, through=1)
    [row] = await passage_store.candidates(scope, ["user"], "", "new")
    for other in others:
        assert await passage_store.candidates(other, ["user"], "", "new") == []
        assert await passage_store.pick(other, [row.number]) == {}
        assert await passage_store.through(other) == 0


async def test_a_passage_without_a_vector_gets_it_later_and_no_other_scope_can_set_it(passage_store, scope, others):
    given = [replace(passage(1), vector=b"", model=""), passage(2)]
    await passage_store.add(scope, given, since=0, through=2)
    first, second = await passage_store.candidates(scope, ["user"], "", "new")
    assert (first.vector, first.is_outdated, second.vector) == (b"", False, given[1].vector)
    for other in others:
        await passage_store.set_vectors(other, {first.number: b"foreign!"}, "new")
    await passage_store.set_vectors(scope, {}, "new")
    await passage_store.set_vectors(scope, {first.number: b"eight by"}, "new")
    found = await passage_store.candidates(scope, ["user"], "", "new")
    assert [row.vector for row in found] == [b"eight by", given[1].vector]


async def test_vectors_of_another_model_are_none_until_they_are_renewed(passage_store, scope, others):
    old = [replace(passage(number), model=model) for number, model in ((1, "old"), (2, "zold"), (3, "new"))]
    await passage_store.add(scope, [*old, replace(passage(4), vector=b"", model="")], since=0, through=4)
    await passage_store.add(others[0], [replace(passage(5, text="theirs"), model="old")], since=0, through=5)
    found = await passage_store.candidates(scope, ["user"], "", "new")
    assert [(row.vector, row.is_outdated) for row in found] == [
        (b"", True),
        (b"", True),
        (old[2].vector, False),
        (b"", False),
    ]
    outdated = await passage_store.outdated("new", 10)
    assert sorted(outdated.values()) == ["hello", "hello", "theirs"]
    assert len(await passage_store.outdated("new", 2)) == 2
    await passage_store.renew_vectors(dict.fromkeys([*outdated, 10**6], b"eight by"), "new")
    await passage_store.renew_vectors({}, "new")
    assert await passage_store.outdated("new", 10) == {}
    renewed = await passage_store.candidates(scope, ["user"], "", "new")
    assert [row.vector for row in renewed] == [b"eight by", b"eight by", old[2].vector, b""]
