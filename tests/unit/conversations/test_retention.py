"""The retention sweeper on real stores: what it deletes, what it spares, and that it ends what was begun."""

import asyncio
from dataclasses import replace

import pytest
from pydantic import SecretStr
from sqlalchemy import text

from proofbox.contracts.blocks import Block
from proofbox.contracts.deletions import DeletionLine
from proofbox.service.calls.port import AuditDraft
from proofbox.service.conversations import retention
from proofbox.service.conversations.ended_runs import ROWS_AT_ONCE
from proofbox.service.conversations.port import EndedRun, EndedRuns
from proofbox.service.conversations.retention import RetentionPolicy, RetentionSweeper
from proofbox.service.conversations.service import Conversations
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.storage.audit_export import audit_lines
from proofbox.service.storage.conversations import SqlConversationStore
from tests.support.pipeline import EXEC, SCOPE, opened_pipeline


@pytest.fixture
async def pipeline(tmp_path):
    async with opened_pipeline(tmp_path) as opened:
        yield opened


@pytest.fixture
def meter():
    return PrometheusMeter({})


@pytest.fixture
def conversations(pipeline, meter):
    store = SqlConversationStore(pipeline.database, pipeline.artifacts)
    audited = pipeline.conversations._audited
    return Conversations(store, pipeline.artifacts, pipeline.calls, pipeline.quotas, meter, audited)


def under(conversation_id):
    return replace(SCOPE, conversation_id=conversation_id)


async def begin(pipeline, *names, unused_days=0):
    """Conversations that were last used some days ago."""
    block = Block(
        type="user.prompt",
        author="user",
        turn_id="turn_1",
        ts="2026-01-01T00:00:00.000Z",
        mime="text/plain",
        path="ar:turn_1.user.prompt",
        text="hello",
    )
    statement = text("UPDATE conversations SET used = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', :ago) WHERE name = :n")
    for name in names:
        await pipeline.timelines.append(under(name), [block])
        values = {"ago": f"-{unused_days} days", "n": name}
        await pipeline.database.write(lambda connection, values=values: connection.execute(statement, values))


async def names_of(conversations):
    page = await conversations.page(SCOPE.principal, None, 500)
    return [conversation.conversation_id for conversation in page.conversations]


async def swept(conversations, meter, days, passes, *, is_busy=lambda: False):
    """Lets the sweeper make some passes."""
    sweeper = RetentionSweeper(conversations, RetentionPolicy(days, 0.001), is_busy, meter)
    sweeper.start()
    await until(meter, 'proofbox_retention_passes_total{result="done"}', passes)
    await sweeper.stop()


async def until(meter, name, at_least):
    """Waits until a metric has grown so far."""
    while count(meter, name) < at_least:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.005)


def count(meter, name):
    lines = [line for line in meter.text().decode().splitlines() if line.startswith(name + " ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


async def test_what_was_unused_for_longer_is_deleted_and_the_rest_stays(pipeline, conversations, meter):
    await begin(pipeline, "new", "recent", unused_days=6)
    await begin(pipeline, "old", "older", unused_days=8)
    await swept(conversations, meter, 7, 1)
    assert sorted(await names_of(conversations)) == ["new", "recent"]
    assert count(meter, 'proofbox_deletions_total{kind="conversation",reason="retention"}') == 2


async def test_temporary_conversations_are_deleted_earlier_than_others(pipeline, conversations, meter):
    await begin(pipeline, "state:old", "other:old", "State:old", unused_days=2)
    await begin(pipeline, "state:new")
    policy = RetentionPolicy(0, 0.001, (("state:", 3_600.0),))
    sweeper = RetentionSweeper(conversations, policy, lambda: False, meter)
    sweeper.start()
    await until(meter, 'proofbox_retention_passes_total{result="done"}', 1)
    await sweeper.stop()
    assert sorted(await names_of(conversations)) == ["State:old", "other:old", "state:new"]


async def test_each_deletion_is_audited_with_its_reason(pipeline, conversations, meter):
    await pipeline.execute()
    await pipeline.save("turn_1/files/a", b"seven b")
    await begin(pipeline, "conv-1", unused_days=8)
    await swept(conversations, meter, 7, 1)
    with audit_lines(pipeline.folder / "data", SecretStr("")) as lines:
        *_, last = [line.text for line in lines]
    line = DeletionLine.model_validate_json(last)
    assert (line.deletion.reason, line.deletion.conversation_id, line.deletion.calls) == ("retention", "conv-1", 1)
    assert (line.deletion.files, line.deletion.size_bytes) == (1, 7)
    assert (line.principal.user, line.principal.key_id, line.request_id) == ("ann", None, None)
    assert count(meter, 'proofbox_deleted_bytes_total{reason="retention"}') == 7
    assert list((pipeline.folder / "data" / "blobs").rglob("?" * 64)) == []


async def test_a_conversation_whose_call_runs_is_spared(pipeline, conversations, meter):
    goes_on, runs = asyncio.Event(), asyncio.Event()

    async def wait(_run):
        runs.set()
        await goes_on.wait()

    pipeline.engine.program = wait
    ticket = await pipeline.submit(EXEC, {"explore": True}, code="print(1)")
    await runs.wait()
    await begin(pipeline, "conv-1", "idle", unused_days=8)
    await swept(conversations, meter, 7, 1)
    assert await names_of(conversations) == ["conv-1"]
    goes_on.set()
    await ticket.answer()


async def test_without_days_nothing_is_deleted_but_an_interrupted_deletion_is_completed(
    pipeline, conversations, meter
):
    await begin(pipeline, "old", "kept", unused_days=30_000)
    store = SqlConversationStore(pipeline.database, pipeline.artifacts)
    await pipeline.conversations._store.delete(under("old"), _draft())
    sweeper = RetentionSweeper(conversations, RetentionPolicy(0, 0.001), lambda: False, meter)
    sweeper.start()
    while await _count_rows(pipeline) > 1:  # noqa: ASYNC110 - there is no event for it
        await asyncio.sleep(0.005)
    await sweeper.stop()
    assert await names_of(conversations) == ["kept"]
    assert await store.unused("9999", 10) == [under("kept")]


async def test_one_pass_is_bounded_and_the_next_goes_on(pipeline, conversations):
    names = [f"c{number}" for number in range(retention.CONVERSATIONS_MAX + 5)]
    await begin(pipeline, *names, unused_days=8)
    deleted = await conversations.delete_unused("9999", retention.CONVERSATIONS_MAX, _at_once)
    assert deleted == retention.CONVERSATIONS_MAX
    assert len(await names_of(conversations)) == 5
    assert await conversations.delete_unused("9999", retention.CONVERSATIONS_MAX, _at_once) == 5


async def test_the_sweeper_stops_between_two_conversations(pipeline, conversations):
    await begin(pipeline, "a", "b", "c", unused_days=8)
    answers = iter([True, False])

    async def may_go_on():
        return next(answers)

    assert await conversations.delete_unused("9999", 10, may_go_on) == 1
    assert len(await names_of(conversations)) == 2


async def test_the_sweeper_waits_while_calls_wait_for_their_places(pipeline, conversations, meter):
    await begin(pipeline, "old", unused_days=8)
    asked = []
    waits = iter([True, True])

    def is_busy():
        asked.append(len(asked))
        return next(waits, False)

    await swept(conversations, meter, 7, 1, is_busy=is_busy)
    assert len(asked) == 3
    assert await names_of(conversations) == []


async def test_a_store_that_fails_ends_a_pass_and_not_the_sweeper(pipeline, conversations, meter):
    await begin(pipeline, "old", unused_days=8)
    await pipeline.database.close()
    sweeper = RetentionSweeper(conversations, RetentionPolicy(7, 0.001), lambda: False, meter)
    sweeper.start()
    await until(meter, 'proofbox_retention_passes_total{result="failed"}', 2)
    await pipeline.database.open()
    await until(meter, 'proofbox_retention_passes_total{result="done"}', 1)
    await sweeper.stop()
    assert await names_of(conversations) == []


async def _at_once():
    return True


def _draft():
    return lambda _counts: AuditDraft("2026-01-01T00:00:00.000Z", '{"principal":{}}')


async def _count_rows(pipeline):
    query = text("SELECT count(*) FROM conversations")
    return await pipeline.database.read(lambda connection: connection.execute(query).scalar_one())


class OldRuns:
    """Runs that a pass deletes in several steps."""

    def __init__(self, left):
        self.left = left
        self.asked = []

    async def delete_answers(self, _since, _limit):
        return 0

    async def ended(self, since, after, limit):
        first = 0 if after is None else after[1]
        due = [EndedRun(n, "t", "p", "a", f"run_{n}", since) for n in range(first, min(first + limit, self.left))]
        return EndedRuns(due, (since, first + limit) if first + limit < self.left else None)

    async def delete(self, _since, numbers):
        self.asked.append(len(numbers))
        self.left -= len(numbers)
        return len(numbers)


@pytest.mark.parametrize(("days", "left"), [(7, 0), (0, ROWS_AT_ONCE + 1)])
async def test_a_pass_deletes_ended_runs_if_anything_is_deleted_by_age(conversations, meter, days, left):
    runs = OldRuns(ROWS_AT_ONCE + 1)
    policy = RetentionPolicy(days, 60, (("state:", 3_600.0),))
    sweeper = RetentionSweeper(conversations, policy, lambda: False, meter, runs)
    sweeper.start()
    await until(meter, 'proofbox_retention_passes_total{result="done"}', 1)
    await sweeper.stop()
    assert runs.left == left
    assert runs.asked == ([ROWS_AT_ONCE, 1] if days else [])
    assert count(meter, 'proofbox_deletions_total{kind="run",reason="retention"}') == ROWS_AT_ONCE + 1 - left
