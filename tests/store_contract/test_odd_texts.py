"""Texts that one database or the other cannot write or index: nothing is lost by them."""

import random
import struct

import pytest

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.port import NewPage
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.react.memsearch.port import Passage
from proofbox.service.storage.artifacts import rows as artifact_rows

# Compressed, a text of one letter would fit into any index.
LONG = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyzäöü你好", k=8_000))


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


async def test_nul_in_what_a_block_says_comes_back(timeline_store, scope):
    given = block("a\0b", meta={"nul\0": ["\0", "\\u0000"]})
    await timeline_store.append(scope, [given])
    (placed,) = await timeline_store.after(scope, 0, 10, binaries=True)
    assert placed.block == given


async def test_half_of_a_surrogate_pair_in_a_block_becomes_a_question_mark(timeline_store, scope):
    await timeline_store.append(scope, [block(meta={"half \ud83d": ["\udc00", "\U0001f389", "\0"]})])
    (placed,) = await timeline_store.after(scope, 0, 10, binaries=True)
    assert placed.block == block(meta={"half ?": ["?", "\U0001f389", "\0"]})


async def test_a_block_with_nul_in_its_names_is_found_by_them(timeline_store, scope):
    path, call_id = "ar:turn_1.nul\0", "call\0\ud83d"
    await timeline_store.append(scope, [block(path=path, call_id=call_id.encode(errors="replace").decode())])
    assert len(await timeline_store.of_path(scope, path, 10, binaries=False)) == 1
    assert len(await timeline_store.of_call(scope, call_id, 10)) == 1
    assert await timeline_store.of_path(scope, "ar:turn_1.nul", 10, binaries=False) == []


async def test_a_call_is_finished_whatever_its_blocks_hold(calls_and_timelines, scope):
    calls, timelines = calls_and_timelines
    key = CallKey(scope, "call-1")
    await calls.claim(NewCall(key, "a" * 64, '{"code": "\\u0000"}', "boot-1", "nul \0"))
    odd = block("\0", path=LONG, call_id=LONG, meta={"half": "\ud83d"})
    done = await calls.finish(key, CallState.DONE, '{"text": "\\u0000"}', [odd])
    assert (done.request, done.answer) == ('{"code": "\\u0000"}', '{"text": "\\u0000"}')
    assert await calls.claim(NewCall(key, "a" * 64, "", "boot-2", "nul \0")) == (done, False)
    assert await timelines.last(scope) == 1


async def test_blocks_with_names_of_any_length_are_found(timeline_store, scope):
    digest = f'{{"artifact_path": "{LONG}"}}'
    given = [
        block(path=LONG, call_id=LONG),
        block(digest, path=f"tc:{LONG}", mime="application/json", call_id=LONG + "x"),
        block(path=LONG + "x"),
    ]
    await timeline_store.append(scope, given)
    found = await timeline_store.of_path(scope, LONG, 10, binaries=False)
    assert [placed.block for placed in found] == given[:2]
    assert [placed.position for placed in await timeline_store.of_call(scope, LONG, 10)] == [1]


@pytest.mark.parametrize("length", [599, 600, 601])
async def test_paths_are_found_at_the_length_where_the_index_ends(timeline_store, scope, length):
    await timeline_store.append(scope, [block(path=LONG[:length]), block(path=LONG[: length + 1])])
    found = await timeline_store.of_path(scope, LONG[:length], 10, binaries=False)
    assert [placed.position for placed in found] == [1]


async def test_pages_with_urls_of_any_length_keep_their_sids(source_pool, scope):
    for _ in range(2):
        rows = await source_pool.add_pages(
            scope, [NewPage(url, "t\0", "\0", None, "turn_1") for url in (LONG, LONG + "x", "short\0")]
        )
        assert [row.sid for row in rows] == [1, 2, 3]
    assert [row.url for row in await source_pool.rows(scope)] == [LONG, LONG + "x", "short\0"]


async def test_half_of_a_surrogate_pair_in_a_source_becomes_a_question_mark(source_pool, scope):
    # A row that was checked has none; one that our own code has changed may.
    row = SourceRow(sid=1, source_type="manual").model_copy(update={"title": "half \ud83d", "text": "\0 ü"})
    await source_pool.complete(scope, [row])
    assert [(row.title, row.text) for row in await source_pool.rows(scope)] == [("half ?", "\0 ü")]


async def test_a_range_of_sids_beyond_any_number_is_picked(source_pool, scope):
    row = SourceRow(sid=10**9, source_type="manual", title="t")
    await source_pool.complete(scope, [row])
    assert await source_pool.pick(scope, [(1, 10**30), (10**30, 10**31)], 10) == [row]


async def test_nul_and_half_of_a_surrogate_pair_in_a_passage_become_question_marks(passage_store, scope):
    given = Passage(1, "turn_1", "user", "2026-11-22T10:00:00.000Z", LONG, "a\0b \ud83d ü", struct.pack("<f", 1))
    assert await passage_store.add(scope, [given], since=0, through=1)
    [row] = await passage_store.candidates(scope, ["user"], "", "")
    picked = await passage_store.pick(scope, [row.number])
    assert (picked[row.number].text, picked[row.number].path) == ("a?b ? ü", LONG)


async def test_a_file_with_the_longest_path_and_an_odd_description_is_kept(artifact_store, scope, save):
    physical = "turn_1/files/" + "/".join(LONG[at : at + 60] for at in range(0, 540, 60))
    (saved,) = await save(artifact_store, scope, {physical: b"x"}, description="a\0b \ud83d")
    assert (await artifact_store.latest(scope, FilePath.from_physical(physical))) == saved
    assert saved.description == "a?b ?"
    async with artifact_store.staging() as folder:
        assert (await artifact_store.fetch_uri(scope, saved.hosted_uri, folder)).read_bytes() == b"x"


async def test_names_of_any_length_are_put_down_for_a_save_and_found(database):
    names = [f"hosted/{LONG}", f"blobs/{'a' * 64}"]
    await database.write(lambda connection: artifact_rows.begin_save(connection, "save-1", names))
    assert await database.read(artifact_rows.unfinished_saves) == {"save-1": sorted(names)}
    assert await database.read(lambda connection: artifact_rows.is_wanted(connection, "a" * 64, "save-2"))
    assert not await database.read(lambda connection: artifact_rows.is_wanted(connection, "a" * 64, "save-1"))
