"""External files become sources in the step that stores them."""

from dataclasses import replace

import pytest

from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.sources import SqlSourcePool


@pytest.fixture
def pool(artifact_store):
    """The sources of the same conversations."""
    return SqlSourcePool(artifact_store._database)


async def named(pool, scope):
    return {row.sid: (row.physical_path, row.size_bytes) for row in await pool.rows(scope)}


async def test_external_files_are_sources_in_their_order_and_internal_ones_are_none(
    artifact_store, pool, scope, save
):
    await save(artifact_store, scope, {"turn_1/files/i": b"x"}, visibility="internal")
    assert await named(pool, scope) == {}
    await save(artifact_store, scope, {"turn_1/files/b": b"x", "turn_1/attachments/a": b"yy"})
    assert await named(pool, scope) == {
        10_001: ("turn_1/files/b", 1),
        10_002: ("turn_1/attachments/a", 2),
    }


async def test_a_saved_version_carries_its_source_id_and_an_internal_one_has_none(
    artifact_store, scope, save, stage
):
    await save(artifact_store, scope, {"turn_1/files/a": b"1"})
    async with artifact_store.staging() as folder:
        new = [
            stage(folder, "turn_1/files/i", b"x", visibility="internal"),
            stage(folder, "turn_1/files/b", b"22"),
            stage(folder, "turn_1/files/a", b"333"),
        ]
        stored = await artifact_store.save(scope, new)
    assert [(one.path.rel, one.sid) for one in stored] == [("i", None), ("b", 10_002), ("a", 10_001)]


async def test_a_new_version_brings_its_row_up_to_date_beside_new_rows(artifact_store, pool, scope, save):
    given = SourceRow(sid=7, source_type="file", title="Mine", physical_path="turn_1/files/b", text="said")
    await pool.complete(scope, [given])
    await save(artifact_store, scope, {"turn_1/files/a": b"1", "turn_1/files/b": b"22"})
    await save(artifact_store, scope, {"turn_1/files/b": b"333", "turn_1/files/c": b"4444"})
    assert await named(pool, scope) == {
        7: ("turn_1/files/b", 3),
        10_001: ("turn_1/files/a", 1),
        10_002: ("turn_1/files/c", 4),
    }
    (kept,) = [row for row in await pool.rows(scope) if row.sid == 7]
    assert (kept.title, kept.text) == ("Mine", "said")


async def test_one_path_twice_in_one_save_is_one_row_of_the_later_version(artifact_store, pool, scope, stage):
    async with artifact_store.staging() as folder:
        first = stage(folder, "turn_1/files/a", b"1")
        (folder / "second").mkdir()
        await artifact_store.save(scope, [first, stage(folder / "second", "turn_1/files/a", b"22")])
    assert await named(pool, scope) == {10_001: ("turn_1/files/a", 2)}


async def test_long_paths_and_short_ones_are_found_again(artifact_store, pool, scope, save):
    names = ["turn_1/files/" + "/".join(["n" * 200] * folders) for folders in (1, 4)]
    for content in (b"1", b"22"):
        await save(artifact_store, scope, dict.fromkeys(names, content))
    assert await named(pool, scope) == {10_001: (names[0], 2), 10_002: (names[1], 2)}


@pytest.mark.slow
async def test_more_files_than_a_statement_takes_become_sources(artifact_store, pool, scope, save):
    names = [f"turn_1/files/{number:04}" for number in range(1_100)]
    await save(artifact_store, scope, dict.fromkeys(names, b"x"))
    assert [path for path, _ in (await named(pool, scope)).values()] == names


async def test_above_the_highest_number_the_lowest_free_ones_of_files_are_given(artifact_store, pool, scope, save):
    taken = [SourceRow(sid=sid, source_type="web", url=f"https://e.org/{sid}") for sid in (2, 10_002, 10**9 - 1)]
    await pool.complete(scope, taken)
    await save(artifact_store, scope, {f"turn_1/files/{name}": b"x" for name in "abc"})
    made = {sid: path for sid, (path, _) in (await named(pool, scope)).items() if path}
    assert made == {10**9: "turn_1/files/a", 10_001: "turn_1/files/b", 10_003: "turn_1/files/c"}


async def test_a_save_that_fails_makes_no_source(artifact_store, pool, scope, stage):
    async with artifact_store.staging() as folder:
        good, bad = (stage(folder, f"turn_1/files/{name}", name.encode()) for name in ("good", "bad"))
        with pytest.raises(StoreFailedError):
            await artifact_store.save(scope, [good, replace(bad, size_bytes=9)])
    assert await named(pool, scope) == {}
