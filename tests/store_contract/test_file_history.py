"""What every history of files promises, and the list of recent calls."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, event, text

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewSave
from proofbox.service.calls.port import AuditDraft, CallKey, CallState, NewCall
from proofbox.service.storage.artifacts.history import SqlFileHistory
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversation_rows import time_text
from proofbox.service.storage.recent_calls import SqlRecentCalls
from tests.support.staging import save_together

PATH = FilePath.from_physical("turn_1/files/a.txt")
LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
async def database(tmp_path, database_url, opened_database):
    async with opened_database(tmp_path / "data", database_url) as database:
        yield database


@pytest.fixture
async def artifacts(tmp_path, database):
    store = SqlArtifactStore(database, LocalBlobStore(tmp_path / "data"))
    await store.open()
    yield store
    await store.close()


async def test_versions_come_newest_first_and_only_those_below_a_number(artifacts, database, scope, save):
    for content in (b"1", b"22", b"333"):
        await save(artifacts, scope, {PATH.physical: content, "turn_1/files/other.txt": content})
    history = SqlFileHistory(database)
    found = await history.versions(scope, PATH, None, 10)
    assert [(each.version, each.size_bytes) for each in found] == [(3, 3), (2, 2), (1, 1)]
    assert [each.version for each in await history.versions(scope, PATH, 3, 1)] == [2]
    assert await history.versions(scope, PATH, 1, 10) == []


async def test_the_files_of_a_call_are_those_that_it_made_by_their_paths(artifacts, database, scope, save):
    await save(artifacts, scope, {"turn_1/files/b": b"b", "turn_1/files/a": b"a"}, tool_call_id="call-1")
    await save(artifacts, scope, {"turn_1/files/a": b"later"}, tool_call_id="call-2")
    history = SqlFileHistory(database)
    found = await history.of_call(scope, "call-1", 10)
    assert [(each.path.rel, each.version) for each in found] == [("a", 1), ("b", 1)]
    assert [each.path.rel for each in await history.of_call(scope, "call-1", 1)] == ["a"]


async def test_the_limit_of_a_call_counts_paths_and_neither_older_versions_nor_removed_files(
    artifacts, database, scope, save
):
    for content in (b"1", b"22", b"333"):
        await save(artifacts, scope, {PATH.physical: content}, tool_call_id="call-1")
    [gone] = await save(artifacts, scope, {"turn_1/files/b": b"b"}, tool_call_id="call-1")
    await save(artifacts, scope, {"turn_1/files/c": b"c"}, tool_call_id="call-1")
    await save_together(artifacts, NewSave(scope, (), removed=[gone]))
    found = await SqlFileHistory(database).of_call(scope, "call-1", 2)
    assert [(each.path.rel, each.version) for each in found] == [("a.txt", 3), ("c", 1)]


async def test_another_principal_or_conversation_has_no_history_of_it(artifacts, database, scope, save):
    await save(artifacts, scope, {PATH.physical: b"1"}, tool_call_id="call-1")
    history = SqlFileHistory(database)
    strangers = [
        replace(scope, principal=replace(scope.principal, tenant="other")),
        replace(scope, conversation_id="x"),
    ]
    for stranger in strangers:
        assert await history.versions(stranger, PATH, None, 10) == []
        assert await history.of_call(stranger, "call-1", 10) == []


def call_of(scope, name, request="{}"):
    return NewCall(CallKey(scope, name), "a" * 64, request, "boot-1", None)


async def test_recent_calls_come_newest_first_with_line_or_request(database, scope):
    calls, recent = SqlCallStore(database), SqlRecentCalls(database)
    await calls.claim(call_of(scope, "one"))
    await calls.finish(CallKey(scope, "one"), CallState.DONE, "{}", audit=AuditDraft(LONG_AGO, '{"x":1}'))
    await calls.claim(call_of(scope, "two", '{"tool_id": "t"}'))
    newest, oldest = await recent.recent(scope.principal, LONG_AGO, None, 10)
    assert (newest.tool_call_id, newest.state, newest.audit_line) == ("two", CallState.OPEN, None)
    assert newest.request == '{"tool_id": "t"}'
    assert (oldest.tool_call_id, oldest.state, oldest.request) == ("one", CallState.DONE, None)
    assert oldest.audit_line is not None
    assert '"x":1' in oldest.audit_line
    assert newest.conversation_id == scope.conversation_id


async def test_recent_calls_are_bounded_by_time_number_and_count(database, scope):
    calls, recent = SqlCallStore(database), SqlRecentCalls(database)
    for name in ("one", "two", "three"):
        await calls.claim(call_of(scope, name))
    names = [call.tool_call_id for call in await recent.recent(scope.principal, LONG_AGO, None, 2)]
    assert names == ["three", "two"]
    newest = (await recent.recent(scope.principal, LONG_AGO, None, 1))[0]
    below = await recent.recent(scope.principal, LONG_AGO, newest.number, 10)
    assert [call.tool_call_id for call in below] == ["two", "one"]
    assert await recent.recent(scope.principal, "2999-01-01T00:00:00.000Z", None, 10) == []


async def test_the_request_of_an_open_call_is_left_out_if_it_is_large(database, scope):
    calls, recent = SqlCallStore(database), SqlRecentCalls(database)
    await calls.claim(call_of(scope, "one", "x" * 100_000))
    assert [call.request for call in await recent.recent(scope.principal, LONG_AGO, None, 10)] == [None]


async def test_recent_calls_of_another_principal_are_not_listed(database, scope):
    await SqlCallStore(database).claim(call_of(scope, "one"))
    other = replace(scope.principal, user="someone")
    assert await SqlRecentCalls(database).recent(other, LONG_AGO, None, 10) == []


_MANY_CALLS = text(
    """WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
    INSERT INTO calls (conversation, tool_call_id, payload_sha256, state, boot_id, created, request, answer)
    SELECT conversation, 'old-' || CAST(n AS TEXT), payload_sha256, 'done', boot_id, '2020-01-01T00:00:00.000Z',
        request, '{}'
    FROM calls, numbers WHERE tool_call_id = 'one'"""
)


async def test_recent_calls_are_found_without_the_older_ones_of_their_conversation(database, scope):
    await SqlCallStore(database).claim(call_of(scope, "one"))
    await database.write(lambda connection: connection.execute(_MANY_CALLS))
    await database.write(lambda connection: connection.execute(text("ANALYZE")))
    sent = []

    def record(_connection, _cursor, statement, values, *_):
        sent.append((statement, values))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        an_hour_ago = time_text(datetime.now(UTC) - timedelta(hours=1))
        found = await SqlRecentCalls(database).recent(scope.principal, an_hour_ago, None, 50)
    finally:
        event.remove(Engine, "before_cursor_execute", record)
    assert [call.tool_call_id for call in found] == ["one"]

    def explain(connection):
        word = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
        [(statement, values)] = [each for each in sent if "FROM conversations JOIN calls" in each[0]]
        return "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{word} {statement}", values))

    plan = await database.read(explain)
    assert "calls_recent" in plan, plan
