"""What every store of passages does: each block's passages once, found by target and time, never across scopes."""

import struct
from dataclasses import replace

from proofbox.service.react.memsearch.port import Passage


def passage(position, target="user", ts="2026-11-22T10:00:00.000Z", text="hello"):
    vector = struct.pack("<2f", position, 0.5)
    return Passage(position, "turn_1", target, ts, f"ar:turn_{position}.user.prompt", text, vector)


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
    found = await passage_store.vectors(scope, ["user", "attachment"], "2026-01-01T00:00:00.000Z")
    picked = await passage_store.pick(scope, [number for number, _, _ in found])
    assert [(ts, vector) for _, ts, vector in found] == [
        (given[0].ts, given[0].vector),
        (given[3].ts, given[3].vector),
    ]
    assert [picked[number] for number, _, _ in found] == [given[0], given[3]]


async def test_blocks_that_somebody_else_has_added_meanwhile_are_not_added_twice(passage_store, scope_of):
    assert await passage_store.add(scope_of(), [passage(1)], since=0, through=5)
    assert not await passage_store.add(scope_of(), [passage(1)], since=0, through=6)
    assert len(await passage_store.vectors(scope_of(), ["user"], "")) == 1
    assert await passage_store.through(scope_of()) == 5


async def test_no_other_scope_finds_a_passage(passage_store, scope, others):
    await passage_store.add(scope, [passage(1)], since=0, through=1)
    ((number, _, _),) = await passage_store.vectors(scope, ["user"], "")
    for other in others:
        assert await passage_store.vectors(other, ["user"], "") == []
        assert await passage_store.pick(other, [number]) == {}
        assert await passage_store.through(other) == 0


async def test_a_passage_without_a_vector_gets_it_later_and_no_other_scope_can_set_it(passage_store, scope, others):
    given = [replace(passage(1), vector=b""), passage(2)]
    await passage_store.add(scope, given, since=0, through=2)
    (first, _, empty), (_, _, whole) = await passage_store.vectors(scope, ["user"], "")
    assert (empty, whole) == (b"", given[1].vector)
    for other in others:
        await passage_store.set_vectors(other, {first: b"foreign!"})
    await passage_store.set_vectors(scope, {})
    await passage_store.set_vectors(scope, {first: b"eight by"})
    assert [vector for _, _, vector in await passage_store.vectors(scope, ["user"], "")] == [
        b"eight by",
        given[1].vector,
    ]
