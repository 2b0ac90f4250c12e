"""Files that several processes save into one database and bucket: none undoes what another one is saving."""

import asyncio
import hashlib
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.access_errors import LinkUsedError
from proofbox.service.artifacts.attachments import Attachments, UploadTarget
from proofbox.service.artifacts.port import NewArtifact, NewSave
from proofbox.service.calls.claim import CURRENT_CLAIM, ClaimId, ClaimLostError
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.dispatch.effects import QueueCall
from proofbox.service.file_content import FileContent
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.removal import remove_some
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversation_rows import DELETED, lock_for_removal
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.effects import dispatch_effects
from proofbox.service.storage.sources import SqlSourcePool
from tests.services.s3_server import objects_of
from tests.support.cutting_relay import CuttingRelay
from tests.support.dispatching import SCOPE
from tests.support.gate import Gate
from tests.support.staging import save_together

DATA = b"made by a program"
SHA256 = hashlib.sha256(DATA).hexdigest()
EXPIRED_S, LONG_S = -1.0, 1_000.0
PLACED = rb"PUT [^ ]*/blobs/"
_IDLE = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"
)
_DELETE_CONVERSATION = (
    text("INSERT INTO principals (tenant, project, user_type, \"user\") VALUES (:tenant, '', '', '')"),
    text("UPDATE conversations SET principal = (SELECT id FROM principals WHERE tenant = :tenant)"),
)


def artifact(name="out.txt", data=DATA, visibility="internal"):
    return NewArtifact(
        path=FilePath("turn_1", Namespace.FILES, name),
        source=FileContent(data),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        mime="text/plain",
        visibility=visibility,
        description="",
        tool_call_id="call-1",
    )


@pytest.fixture
def opened(tmp_path, postgres_url, bucket):
    """Opens the stores of a process, with another way to the bucket if one is given."""

    @asynccontextmanager
    async def open_process(owner, way=None):
        database = Database(tmp_path / owner, postgres_url, shared=True)
        await database.open()
        try:
            there = bucket if way is None else replace(bucket, endpoint=way, attempts=1)
            blobs = S3BlobStore(there, tmp_path / owner / "staging", 5 * 1024 * 1024, 900)
            store = SqlArtifactStore(database, blobs, owner)
            await store.open()
            try:
                yield store, database
            finally:
                await store.close()
        finally:
            await database.close()

    return open_process


@pytest.fixture
async def relay(bucket):
    """A way to the bucket on which answers can be held."""
    async with CuttingRelay(urlsplit(bucket.endpoint).port) as relay:
        yield relay


@pytest.fixture
def gate(bucket):
    """A way to the bucket on which requests can be held."""
    with Gate(urlsplit(bucket.endpoint).port) as gate:
        gate.url = f"http://127.0.0.1:{gate.port}"
        yield gate


async def read(store, saved):
    return b"".join([piece async for piece in store.read(SCOPE, saved, 0, saved.size_bytes)])


async def claimed(database, lease_s):
    """The claim of a worker on a new call."""
    effect = QueueCall("key-1", "request-1", detached=False)
    new = NewCall(CallKey(SCOPE, "call-1"), "sha", '{"tool_id": "a.tool"}', "boot-1", None, (effect,))
    number = (await SqlCallStore(database, dispatch_effects()).claim(new))[0].number
    claim = await SqlDispatchStore(database).claim(number, "w1", lease_s, 5)
    return ClaimId(number, claim.claim, "w1")


def save_under(claim, store, *artifacts):
    """Begins a save of a call in a task of its own."""

    async def save():
        CURRENT_CLAIM.set(claim)
        return await store.save(SCOPE, artifacts)

    return asyncio.create_task(save())


async def unfinished(database):
    return await database.read(rows.unfinished_saves)


async def test_a_process_undoes_only_the_saves_of_processes_that_are_lost(opened):
    names = [f"blobs/{SHA256}"]
    async with opened("one") as (_, database):
        await database.write(lambda connection: rows.begin_save(connection, "one.save", names))
        async with opened("two") as (two, _):
            assert await unfinished(database) == {"one.save": names}
            await two.undo_lost({"one", "two"})
            assert await unfinished(database) == {"one.save": names}
            await two.undo_lost({"two"})
            assert await unfinished(database) == {}


async def test_bytes_that_another_process_is_about_to_save_are_not_removed(opened):
    async with opened("one") as (one, database), opened("two") as (two, _):
        await database.write(lambda connection: rows.begin_save(connection, "lost.save", [f"blobs/{SHA256}"]))
        [saved], _ = await asyncio.gather(one.save(SCOPE, [artifact()]), two.undo_lost({"one", "two"}))
        pieces = [piece async for piece in two.read(SCOPE, saved, 0, saved.size_bytes)]
        assert b"".join(pieces) == DATA
        assert await unfinished(database) == {}


async def test_a_worker_that_lost_its_claim_while_it_saved_stores_nothing(opened, relay, bucket):
    async with opened("one", relay.url) as (one, database), opened("two") as (two, _):
        claim = await claimed(database, EXPIRED_S)
        relay.hold_answer_to(PLACED)
        saving = save_under(claim, one, artifact(visibility="external"))
        await relay.waiting.wait()
        assert (await SqlDispatchStore(database).claim(claim.call, "w2", LONG_S, 5)).claim == 2
        relay.release()
        with pytest.raises(ClaimLostError):
            await saving
        assert await two.of_turn(SCOPE, "turn_1") == []
        assert await unfinished(database) == {}
        assert objects_of(bucket) == {}


async def test_a_worker_that_has_its_claim_stores_its_files(opened):
    async with opened("one") as (one, database):
        [saved] = await save_under(await claimed(database, LONG_S), one, artifact())
        assert await read(one, saved) == DATA


async def test_a_worker_that_lost_its_claim_marks_no_file_as_removed(opened):
    async with opened("one") as (one, database):
        [saved] = await one.save(SCOPE, [artifact()])
        claim = await claimed(database, EXPIRED_S)
        await SqlDispatchStore(database).claim(claim.call, "w2", LONG_S, 5)
        CURRENT_CLAIM.set(claim)
        with pytest.raises(ClaimLostError):
            await save_together(one, NewSave(SCOPE, (), removed=[saved]))
        assert not (await one.latest(SCOPE, saved.path)).removed


async def test_a_save_of_a_call_does_not_make_its_deleted_conversation_again(opened):
    async with opened("one") as (one, database):
        claim = await claimed(database, LONG_S)
        for statement in _DELETE_CONVERSATION:
            await database.write(lambda connection, one=statement: connection.execute(one, {"tenant": DELETED}))
        with pytest.raises(ClaimLostError):
            await save_under(claim, one, artifact())
        count = text("SELECT count(*) FROM conversations")
        assert await database.read(lambda connection: connection.scalar(count)) == 1


async def test_a_save_that_others_took_for_lost_places_its_bytes_again(opened, relay):
    async with opened("one", relay.url) as (one, database), opened("two") as (two, _):
        relay.hold_answer_to(DATA)  # not that to the header, which only invites the body
        saving = asyncio.create_task(one.save(SCOPE, [artifact()]))
        await relay.waiting.wait()
        await two.undo_lost({"two"})
        relay.release()
        [saved] = await saving
        assert await read(two, saved) == DATA
        assert await unfinished(database) == {}


async def test_no_transaction_waits_for_the_removal_of_bytes_and_saves_with_them_begin_after_it(opened, gate):
    async with opened("one") as (one, database), opened("two", gate.url) as (two, _):
        await one.save(SCOPE, [artifact("other.txt", b"other")])
        await database.write(lambda connection: rows.begin_save(connection, "lost.save", [f"blobs/{SHA256}"]))
        gate.hold(rb"DELETE ")
        undoing = asyncio.create_task(two.undo_lost({"one", "two"}))
        assert await asyncio.to_thread(gate.held.wait, 20)
        assert await database.read(lambda connection: connection.scalar(_IDLE)) == 0
        saving = asyncio.create_task(one.save(SCOPE, [artifact()]))
        await asyncio.wait([saving], timeout=0.5)  # time to go wrong
        gate.open()
        await undoing
        [saved] = await saving
        assert await read(one, saved) == DATA
        assert await unfinished(database) == {}


async def test_bytes_whose_removal_failed_can_be_saved_by_other_processes(opened, relay):
    async with opened("one") as (one, database), opened("two", relay.url) as (two, _):
        await database.write(lambda connection: rows.begin_save(connection, "lost.save", [f"blobs/{SHA256}"]))
        relay.cut_before(rb"DELETE ")
        await two.undo_lost({"one", "two"})
        [saved] = await one.save(SCOPE, [artifact()])
        relay.mend()
        await two.undo_lost({"one", "two"})
        await two.retry_removals()
        assert await read(one, saved) == DATA
        assert await unfinished(database) == {}


async def test_the_marks_of_a_process_that_was_lost_while_it_removed_bytes_are_undone(opened):
    async with opened("one") as (one, database):
        names = [f"removing/blobs/{SHA256}"]
        await database.write(lambda connection: rows.begin_save(connection, "lost.save", names))
        await one.undo_lost({"one"})
        [saved] = await one.save(SCOPE, [artifact()])
        assert await read(one, saved) == DATA
        assert await unfinished(database) == {}


async def test_a_hosted_file_is_the_latest_version_when_an_earlier_one_was_hosted_late(opened, gate, bucket):
    async with opened("one", gate.url) as (one, database), opened("two") as (two, _):
        gate.hold(rb"(?i)x-amz-copy-source")
        saving = asyncio.create_task(one.save(SCOPE, [artifact("a", b"first", "external")]))
        assert await asyncio.to_thread(gate.held.wait, 20)
        await two.save(SCOPE, [artifact("a", b"second", "external")])
        gate.open()
        await saving
        await assert_hosted_is_latest(two, bucket)
        assert await unfinished(database) == {}


async def test_a_hosted_file_is_the_latest_version_when_the_answer_of_its_server_was_late(opened, relay, bucket):
    async with opened("one", relay.url) as (one, database), opened("two") as (two, _):
        relay.hold_answer_to(rb"(?i)x-amz-copy-source")
        saving = asyncio.create_task(one.save(SCOPE, [artifact("a", b"first", "external")]))
        await relay.waiting.wait()
        await two.save(SCOPE, [artifact("a", b"second", "external")])
        relay.release()
        await saving
        await assert_hosted_is_latest(two, bucket)
        assert await unfinished(database) == {}


async def test_after_its_rows_a_hosted_file_costs_one_transaction_that_finds_it_the_latest(opened):
    async with opened("one") as (one, database):
        await one.save(SCOPE, [artifact("other", b"other", "external")])
        operations = []
        database.observer = lambda operation, _seconds: operations.append(operation)
        await one.save(SCOPE, [artifact("a", b"first", "external")])
        assert operations == ["database_write"] * 3  # the journal, the rows, the end of the journal
        assert await unfinished(database) == {}


async def test_files_of_one_save_of_which_one_cannot_be_hosted_at_first_are_all_hosted(opened, relay, bucket):
    async with opened("one", relay.url) as (one, database):
        await one.save(SCOPE, [artifact("a", b"old", "external")])
        relay.cut_before(rb"(?i)x-amz-copy-source", once=True)
        names = {"a": b"new", "b": b"other"}
        await one.save(SCOPE, [artifact(name, data, "external") for name, data in names.items()])
        hosted = {data for name, data in objects_of(bucket).items() if not name.startswith("blobs/")}
        assert hosted == set(names.values())
        assert await unfinished(database) == {}


async def test_a_file_that_cannot_be_hosted_stays_in_the_journal_until_it_can(opened, relay, bucket):
    async with opened("one", relay.url) as (one, database):
        await one.save(SCOPE, [artifact("a", b"first", "external")])
        relay.cut_before(rb"(?i)x-amz-copy-source")
        [saved] = await one.save(SCOPE, [artifact("a", b"second", "external")])
        [names] = (await unfinished(database)).values()
        assert [name.startswith("hosted/") for name in names] == [True]
        relay.mend()
        await one.retry_removals()
        await assert_hosted_is_latest(one, bucket)
        assert await read(one, saved) == b"second"
        assert await unfinished(database) == {}


async def test_a_file_that_is_deleted_before_it_is_hosted_leaves_no_bytes(opened, gate, bucket):
    async with opened("one", gate.url) as (one, database), opened("two") as (two, _):
        gate.hold(rb"(?i)x-amz-copy-source")
        saving = asyncio.create_task(one.save(SCOPE, [artifact("a", b"first", "external")]))
        assert await asyncio.to_thread(gate.held.wait, 20)
        await two.remove_after(delete_files)
        gate.open()
        await saving
        assert objects_of(bucket) == {}
        assert await unfinished(database) == {}


def delete_files(connection, save):
    return None, remove_some(connection, lock_for_removal(connection, SCOPE).id, save, 10)


async def assert_hosted_is_latest(store, bucket):
    latest = await store.latest(SCOPE, artifact("a").path)
    [hosted] = [data for name, data in objects_of(bucket).items() if not name.startswith("blobs/")]
    assert (latest.version, hosted) == (2, await read(store, latest))


async def test_a_link_that_two_processes_get_at_once_stores_one_of_two_contents(opened, relay):
    async with opened("one", relay.url) as (one, database), opened("two") as (two, other):
        target = UploadTarget(SCOPE, "turn_1", "a.txt", 1_000, 1_000_000)
        relay.hold_answer_to(PLACED)
        first = asyncio.create_task(taking(one, database).store_linked(target, pieces(b"first"), None))
        await relay.waiting.wait()
        stored = await taking(two, other).store_linked(target, pieces(b"second"), None)
        relay.release()
        with pytest.raises(LinkUsedError):
            await first
        latest = await two.latest(SCOPE, FilePath("turn_1", Namespace.ATTACHMENTS, "a.txt"))
        assert (stored.created, latest.version, await read(two, latest)) == (True, 1, b"second")


async def test_a_link_that_two_processes_get_at_once_stores_the_same_content_once(opened, relay):
    async with opened("one", relay.url) as (one, database), opened("two") as (two, other):
        target = UploadTarget(SCOPE, "turn_1", "a.txt", 1_000, 1_000_000)
        relay.hold_answer_to(PLACED)
        first = asyncio.create_task(taking(one, database).store_linked(target, pieces(b"same"), None))
        await relay.waiting.wait()
        stored = await taking(two, other).store_linked(target, pieces(b"same"), None)
        relay.release()
        assert (stored.created, (await first).created) == (True, False)


def taking(store, database):
    return Attachments(store, SqlSourcePool(database), bytes_max=10**6, inline_bytes_max=0)


async def pieces(data):
    yield data
