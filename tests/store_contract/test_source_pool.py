"""What every sources pool promises."""

import asyncio

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.port import NewPage, StoredArtifact
from proofbox.service.errors import SidConflictError
from proofbox.service.storage.sources import FILE_SID_MIN


def stored(physical, version=1, **more):
    fields = {"size_bytes": 3, "mime": "text/plain", "visibility": "external", "description": ""}
    hosted = {"hosted_uri": "file:///h/a", "rn": "ef:a", "key": "cb/a"}
    return StoredArtifact(
        path=FilePath.from_physical(physical),
        version=version,
        sha256="0" * 64,
        created="2026-01-01T00:00:00.000Z",
        **fields | hosted | more,
    )


def web(sid, url="https://example.com/a", **more):
    return SourceRow(sid=sid, source_type="web", url=url, **more)


async def test_a_fresh_pool_is_empty(source_pool, scope):
    assert await source_pool.rows(scope) == []


async def test_an_attachment_becomes_a_row_that_says_all_about_it(source_pool, scope):
    row = await source_pool.add_file(scope, stored("turn_1/attachments/in/q 1.csv", size_bytes=7, mime="text/csv"))
    assert row == SourceRow(
        sid=FILE_SID_MIN,
        source_type="attachment",
        title="q 1.csv",
        mime="text/csv",
        size_bytes=7,
        artifact_path="fi:turn_1.user.attachments/in/q 1.csv",
        physical_path="turn_1/attachments/in/q 1.csv",
        hosted_uri="file:///h/a",
        rn="ef:a",
        key="cb/a",
        turn_id="turn_1",
    )
    assert await source_pool.rows(scope) == [row]


async def test_a_produced_file_is_of_type_file(source_pool, scope):
    assert (await source_pool.add_file(scope, stored("turn_1/files/a"))).source_type == "file"


async def test_each_new_path_gets_the_next_sid(source_pool, scope):
    paths = ["turn_1/files/a", "turn_1/attachments/a", "turn_2/files/a"]
    assert [(await source_pool.add_file(scope, stored(path))).sid for path in paths] == [10_001, 10_002, 10_003]


async def test_a_new_version_keeps_the_sid_and_brings_size_and_type_up_to_date(source_pool, scope):
    await source_pool.add_file(scope, stored("turn_1/files/a"))
    await source_pool.add_file(scope, stored("turn_1/files/b"))
    row = await source_pool.add_file(scope, stored("turn_1/files/a", version=2, size_bytes=99, mime="text/html"))
    assert (row.sid, row.size_bytes, row.mime) == (10_001, 99, "text/html")
    assert [(each.sid, each.size_bytes) for each in await source_pool.rows(scope)] == [(10_001, 99), (10_002, 3)]


async def test_a_media_type_longer_than_the_wire_allows_is_left_out(source_pool, scope):
    row = await source_pool.add_file(scope, stored("turn_1/files/a", mime="text/" + "x" * 200))
    assert row.mime is None


async def test_concurrent_files_never_share_a_sid(source_pool, scope):
    rows = await asyncio.gather(
        *(source_pool.add_file(scope, stored(f"turn_1/files/{number}")) for number in range(30))
    )
    assert sorted(row.sid for row in rows) == list(range(FILE_SID_MIN, FILE_SID_MIN + 30))


async def test_one_file_added_concurrently_is_one_row(source_pool, scope):
    rows = await asyncio.gather(*(source_pool.add_file(scope, stored("turn_1/files/a")) for _ in range(20)))
    assert {row.sid for row in rows} == {FILE_SID_MIN}
    assert len(await source_pool.rows(scope)) == 1


async def test_conversations_have_pools_of_their_own(source_pool, scope, others):
    await source_pool.complete(scope, [web(5)])
    for other in others:
        assert await source_pool.rows(other) == []
        await source_pool.complete(other, [web(5, url="https://example.com/other")])
        assert (await source_pool.add_file(other, stored("turn_1/files/a"))).sid == FILE_SID_MIN
    assert await source_pool.rows(scope) == [web(5)]


async def test_given_rows_are_kept_as_they_are_in_sid_order(source_pool, scope):
    rows = [
        web(9, title="nine", text="ü\0\n", mime="text/html", turn_id="turn_1", size_bytes=0),
        SourceRow(sid=2, source_type="manual", title="note", text="said"),
        SourceRow(sid=4, source_type="file", artifact_path="fi:turn_1.files/a", rn="ef:x"),
    ]
    await source_pool.complete(scope, rows)
    assert await source_pool.rows(scope) == [rows[1], rows[2], rows[0]]


async def test_completing_with_no_rows_changes_nothing(source_pool, scope):
    await source_pool.complete(scope, [])
    assert await source_pool.rows(scope) == []


async def test_a_loop_that_numbers_its_pages_from_1_never_meets_a_file(source_pool, scope):
    await source_pool.add_file(scope, stored("turn_1/files/a"))
    await source_pool.complete(scope, [web(sid, url=f"https://example.com/{sid}") for sid in range(1, 101)])
    await source_pool.add_file(scope, stored("turn_1/files/b"))
    [found] = await source_pool.add_pages(scope, [page("https://example.com/found")])
    assert found.sid == 101
    files = [row.sid for row in await source_pool.rows(scope) if row.file]
    assert files == [10_001, 10_002]


async def test_the_next_file_follows_the_highest_number_and_the_next_page_the_highest_of_a_page(source_pool, scope):
    await source_pool.complete(scope, [web(2), web(20_000)])
    assert (await source_pool.add_file(scope, stored("turn_1/files/a"))).sid == 20_001
    [found] = await source_pool.add_pages(scope, [page("https://example.com/found")])
    assert found.sid == 3


async def test_a_pool_whose_highest_numbers_are_taken_still_takes_files_and_pages(source_pool, scope):
    taken = [web(sid, url=f"https://e.org/{sid}") for sid in (10**9, 10_002, 10_000, 1, 3)]
    await source_pool.complete(scope, taken)
    sids = [(await source_pool.add_file(scope, stored(f"turn_1/files/{name}"))).sid for name in "abc"]
    assert sids == [10_001, 10_003, 10_004]
    pages = await source_pool.add_pages(scope, [page(f"https://e.org/{name}") for name in "abc"])
    assert [row.sid for row in pages] == [2, 4, 5]


async def test_a_file_that_a_caller_listed_keeps_the_callers_sid_and_words(source_pool, scope):
    given = SourceRow(sid=7, source_type="file", title="My report", physical_path="turn_1/files/a", text="short")
    await source_pool.complete(scope, [given])
    row = await source_pool.add_file(scope, stored("turn_1/files/a", size_bytes=9))
    assert (row.sid, row.title, row.text, row.size_bytes) == (7, "My report", "short", 9)
    assert await source_pool.rows(scope) == [row]


@pytest.mark.parametrize(
    ("known", "again", "filled"),
    [
        (web(1, title="old"), web(1, title="new"), {}),
        (web(1, title="old"), web(1, title="new", text="more"), {"text": "more"}),
        (web(1, text="said", size_bytes=0), web(1, text="other", size_bytes=5), {}),
        (
            web(1),
            web(1, title="T", text="said", mime="text/html", size_bytes=4, turn_id="turn_2"),
            {"title": "T", "text": "said", "mime": "text/html", "size_bytes": 4, "turn_id": "turn_2"},
        ),
        (
            SourceRow(sid=1, source_type="file", physical_path="turn_1/files/a", title="x"),
            SourceRow(sid=1, source_type="file", artifact_path="fi:turn_1.files/a", size_bytes=5, text="said"),
            {"size_bytes": 5, "text": "said"},
        ),
        (
            SourceRow(sid=1, source_type="manual", title="t", text="x"),
            SourceRow(sid=1, source_type="manual", title="t", text="x", mime="text/plain"),
            {"mime": "text/plain"},
        ),
        (
            SourceRow(sid=1, source_type="manual", artifact_path="ar:turn_1.user.prompt", title="x"),
            SourceRow(sid=1, source_type="manual", artifact_path="ar:turn_1.user.prompt", title="y"),
            {},
        ),
    ],
)
async def test_a_row_of_the_same_meaning_fills_what_the_stored_one_left_blank_and_changes_nothing_else(
    source_pool, scope, known, again, filled
):
    await source_pool.complete(scope, [known])
    await source_pool.complete(scope, [again])
    expected = [known.model_copy(update=filled)]
    assert await source_pool.rows(scope) == expected
    await source_pool.complete(scope, [known])
    assert await source_pool.rows(scope) == expected


async def test_a_call_whose_rows_conflict_fills_nothing(source_pool, scope):
    await source_pool.complete(scope, [web(1)])
    with pytest.raises(SidConflictError):
        await source_pool.complete(scope, [web(1, text="said"), web(1, url="https://example.com/b")])
    assert await source_pool.rows(scope) == [web(1)]


@pytest.mark.parametrize(
    ("known", "other"),
    [
        (web(1), web(1, url="https://example.com/b")),
        (web(1), SourceRow(sid=1, source_type="file", physical_path="turn_1/files/a")),
        (
            SourceRow(sid=1, source_type="file", physical_path="turn_1/files/a"),
            SourceRow(sid=1, source_type="attachment", physical_path="turn_1/attachments/a"),
        ),
        (
            SourceRow(sid=1, source_type="manual", title="t", text="x"),
            SourceRow(sid=1, source_type="manual", title="t", text="y"),
        ),
        (
            SourceRow(sid=1, source_type="manual", artifact_path="ar:turn_1.user.prompt"),
            SourceRow(sid=1, source_type="manual", artifact_path="ar:turn_2.user.prompt"),
        ),
    ],
)
async def test_another_meaning_is_refused_and_nothing_of_the_call_is_added(source_pool, scope, known, other):
    await source_pool.complete(scope, [known])
    with pytest.raises(SidConflictError):
        await source_pool.complete(scope, [web(2), other, web(3)])
    assert await source_pool.rows(scope) == [known]


async def test_the_refusal_names_the_sid_and_both_meanings(source_pool, scope):
    await source_pool.add_file(scope, stored("turn_1/files/a"))
    with pytest.raises(SidConflictError) as caught:
        await source_pool.complete(scope, [web(10_001)])
    assert caught.value.message == (
        "source 10001 is the file 'fi:turn_1.files/a' in this conversation and the page 'https://example.com/a' in "
        "sources_pool; give the new source another sid"
    )


async def test_rows_of_one_call_must_agree_with_each_other(source_pool, scope):
    with pytest.raises(SidConflictError):
        await source_pool.complete(scope, [web(1), web(1, url="https://example.com/b")])
    assert await source_pool.rows(scope) == []
    await source_pool.complete(scope, [web(1), web(1)])
    assert await source_pool.rows(scope) == [web(1)]


async def test_of_two_calls_that_give_one_sid_two_meanings_one_wins_as_a_whole(source_pool, scope):
    calls = [[web(sid, url=f"https://example.com/{name}") for sid in range(1, 50)] for name in "abcdef"]
    results = await asyncio.gather(*(source_pool.complete(scope, rows) for rows in calls), return_exceptions=True)
    assert [type(result) for result in results].count(SidConflictError) == 5
    assert await source_pool.rows(scope) == calls[results.index(None)]


def page(url, title="", text=None):
    return NewPage(url, title, text, None, "turn_1")


async def test_a_page_keeps_its_sid_and_gets_the_newer_text(source_pool, scope_of):
    first = await source_pool.add_pages(scope_of(), [page("https://a.example/", "A"), page("https://b.example/")])
    again = await source_pool.add_pages(scope_of(), [page("https://b.example/", "B", "words")])
    assert [row.sid for row in first] == [1, 2]
    assert [(row.sid, row.title, row.text, row.url) for row in again] == [(2, "B", "words", "https://b.example/")]
    assert [row.title for row in await source_pool.rows(scope_of())] == ["A", "B"]
    kept = await source_pool.add_pages(scope_of(), [page("https://b.example/")])
    assert [(row.title, row.text) for row in kept] == [("B", "words")]


async def test_rows_are_picked_by_ranges_within_a_bound(source_pool, scope_of):
    await source_pool.add_pages(scope_of(), [page(f"https://a.example/{number}") for number in range(1, 8)])
    assert await source_pool.sids(scope_of()) == frozenset(range(1, 8))
    picked = await source_pool.pick(scope_of(), [(5, 999_999_999), (1, 2)], 4)
    assert [row.sid for row in picked] == [1, 2, 5, 6]
    assert await source_pool.pick(scope_of(conversation="conv-2"), [(1, 9)], 4) == []
