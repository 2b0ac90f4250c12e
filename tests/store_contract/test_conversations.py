"""What every store of conversations promises: they are listed, they vanish whole, and nothing else does."""

import asyncio
import hashlib
from dataclasses import replace

import pytest
from audited import draft
from disk_check import assert_disk_says_what_the_rows_say, path_of
from s3_check import assert_bucket_says_what_the_rows_say
from sqlalchemy import insert, text
from whole_conversations import CONTENT, NOTES, REPORT, AllStores, delete, draft_of, fill, new_call, prompt, under

from proofbox.contracts.paths import FilePath
from proofbox.service.access_errors import LinkRefusedError
from proofbox.service.artifacts.download_links import DownloadLinks, LinkKey
from proofbox.service.artifacts.port import NewSave, NewWorkspace
from proofbox.service.calls.audit.audit_chain import AuditCheck
from proofbox.service.calls.port import CallKey, CallState
from proofbox.service.errors import ConversationBusyError, UnknownArtifactError, UnknownConversationError
from proofbox.service.file_content import FileContent
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.rows import hosted_latest, unfinished_saves
from proofbox.service.storage.audit_export import audit_lines
from proofbox.service.storage.schema import calls
from tests.services.s3_server import objects_of
from tests.support.staging import save_together

AT = "2026-07-04T13:18:14.000Z"


@pytest.fixture(params=["sqlite-local", "postgres-local", "sqlite-s3"])
def kind(request):
    return request.param


@pytest.fixture
def server_url(kind, request):
    """The database on a server; None for the one in the folder."""
    return request.getfixturevalue("postgres_url") if kind == "postgres-local" else None


@pytest.fixture
def place(kind, request):
    """The bucket; None for the folder."""
    return request.getfixturevalue("bucket") if kind == "sqlite-s3" else None


@pytest.fixture
def opened(server_url, place, opened_artifacts, opened_on_s3, tmp_path):
    """Opens the store of artifacts on the database and the place under test."""
    data_dir = tmp_path / "data"
    if place is not None:
        return lambda: opened_on_s3(data_dir, place)
    return lambda: opened_artifacts(data_dir, server_url) if server_url else opened_artifacts(data_dir)


@pytest.fixture
async def stores(opened):
    async with opened() as artifacts:
        yield AllStores(artifacts._database, artifacts)


@pytest.fixture
def stored_bytes(place, tmp_path):
    """The hashes of all blobs, and the names of all hosted files."""

    def found():
        if place is not None:
            names = set(objects_of(place))
            return {n.removeprefix("blobs/") for n in names if n.startswith("blobs/")}, {
                n for n in names if not n.startswith("blobs/")
            }
        data = tmp_path / "data"
        return {file.name for file in (data / "blobs").rglob("*") if file.is_file()}, {
            str(file.relative_to(data / "hosted")) for file in (data / "hosted").rglob("*")
        }

    return found


@pytest.fixture
def assert_bytes_fit_rows(kind, place, tmp_path):
    """Compares the bytes with the rows of a database in the folder."""

    def check():
        if kind == "sqlite-s3":
            assert_bucket_says_what_the_rows_say(place, tmp_path / "data")
        elif kind == "sqlite-local":
            assert_disk_says_what_the_rows_say(tmp_path / "data")

    return check


# ---- deletion of a conversation ----


async def test_a_deleted_conversation_leaves_no_row_and_no_byte(stores, scope, save, stored_bytes):
    await fill(stores, scope, save)
    assert len(await stores.rows()) >= 9
    deletion = await delete(stores, scope)
    assert (deletion.counts.files, deletion.counts.versions, deletion.counts.calls) == (3, 4, 1)
    assert deletion.counts.size_bytes == len(b"older") + len(CONTENT) + len(b"notes") + len(b"inner")
    assert deletion.counts.blocks == 5
    assert await stores.rows() == {}
    assert stored_bytes() == (set(), set())


async def test_what_belongs_to_others_stays_with_the_bytes_that_both_had(
    stores, scope, others, save, content, assert_bytes_fit_rows
):
    await fill(stores, scope, save)
    for number, other in enumerate(others):
        await fill(stores, other, save, f"other-{number}")
    await delete(stores, scope)
    for number, other in enumerate(others):
        latest = await stores.artifacts.latest(other, REPORT)
        assert await content(stores.artifacts, other, latest) == CONTENT
        assert await stores.timelines.last(other) == 5
        assert [call.answer for call in await stores.calls.find(other.principal, f"other-{number}")] == ["answer"]
        assert len(await stores.sources.rows(other)) == 3
        assert len(await stores.passages.candidates(other, ["user", "attachment"], "", "")) == 2
        assert await stores.artifacts.fetch_uri(other, latest.hosted_uri, stores.database.data_dir) is not None
    assert_bytes_fit_rows()


async def test_nothing_is_seen_of_a_conversation_as_soon_as_it_is_deleted(stores, scope, save, tmp_path):
    report, _ = await fill(stores, scope, save)
    number = await stores.artifacts.number_of(scope, report)
    links = DownloadLinks(lambda: [LinkKey("k1", b"1" * 32)], 600, lambda: 1_000_000.0)
    link = links.make(scope, report, number)
    await stores.conversations.delete(scope, draft_of(scope))  # and no purge: the process ended here
    assert len(await stores.rows()) > 5
    assert await stores.artifacts.latest(scope, REPORT) is None
    assert await stores.artifacts.listed(scope, 0, 10) == []
    assert await stores.artifacts.fetch_uri(scope, report.hosted_uri, tmp_path) is None
    assert await stores.artifacts.stored_bytes("acme", "books") == 0
    assert await stores.timelines.last(scope) == 0
    assert await stores.calls.find(scope.principal, "call-1") == []
    assert await stores.calls.left_open("boot-2") == []
    assert await stores.sources.rows(scope) == []
    assert await stores.passages.through(scope) == 0
    assert await stores.conversations.page(scope.principal, None, 10) == []
    assert await stores.conversations.unused("9999", 10) == []
    found = await stores.artifacts.numbered(number)
    with pytest.raises(LinkRefusedError):
        links.check(link, "GET", *found)
    with pytest.raises(UnknownConversationError):
        await stores.conversations.delete(scope, draft_of(scope))


async def test_an_interrupted_deletion_is_completed_by_the_next_process(stores, opened, scope, save, stored_bytes):
    await fill(stores, scope, save)
    await stores.conversations.delete(scope, draft_of(scope))
    await stores.artifacts.close()
    await stores.database.close()
    async with opened() as artifacts:
        again = AllStores(artifacts._database, artifacts)
        await again.conversations.purge_interrupted()
        assert await again.rows() == {}
    assert stored_bytes() == (set(), set())


async def test_a_purge_leaves_the_conversation_that_got_the_number_of_the_purged_one(
    stores, kind, scope, others, save, content
):
    await save(stores.artifacts, scope, {REPORT.physical: b"old"})
    deletion = await delete(stores, scope)
    other = others[0]
    await fill(stores, other, save)
    rows = await stores.rows()
    ((number, _),) = await numbers_and_names(stores)
    assert (number == deletion.number) is (kind != "postgres-local")
    await stores.conversations.purge(replace(deletion, number=number))
    assert await stores.rows() == rows
    assert await content(stores.artifacts, other, await stores.artifacts.latest(other, REPORT)) == CONTENT


async def test_purges_of_one_conversation_at_once_remove_it_once(stores, scope, save, stored_bytes):
    await fill(stores, scope, save)
    ((conversation, _),) = await numbers_and_names(stores)
    values = {
        "payload_sha256": "a",
        "state": "done",
        "boot_id": "b",
        "created": "",
        "request": "{}",
        "answer": "{}",
    }
    more = [{"conversation": conversation, "tool_call_id": f"more-{n}", **values} for n in range(2_000)]
    await stores.database.write(
        lambda connection: connection.execute(insert(calls), more)
    )  # many steps remove them
    deletion = await stores.conversations.delete(scope, draft_of(scope))
    await asyncio.gather(*(stores.conversations.purge(deletion) for _ in range(4)))
    assert await stores.rows() == {}
    assert stored_bytes() == (set(), set())


async def numbers_and_names(stores):
    query = text("SELECT id, name FROM conversations")
    return await stores.database.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def test_the_same_conversation_may_begin_anew_while_the_old_one_is_removed(
    stores, scope, save, content, assert_bytes_fit_rows
):
    await fill(stores, scope, save)
    deletion = await stores.conversations.delete(scope, draft_of(scope))
    (again,) = await save(stores.artifacts, scope, {REPORT.physical: b"another report"})
    assert again.version == 1
    _, is_new = await stores.calls.claim(new_call(scope, "call-1", "key of call-1"))
    assert is_new
    await stores.conversations.purge(deletion)
    latest = await stores.artifacts.latest(scope, REPORT)
    assert await content(stores.artifacts, scope, latest) == b"another report"
    assert [call.state for call in await stores.calls.find(scope.principal, "call-1")] == [CallState.OPEN]
    assert_bytes_fit_rows()


async def test_deletions_and_saves_of_the_same_bytes_at_once_leave_what_the_rows_say(
    stores, scope, save, content, stored_bytes, assert_bytes_fit_rows
):
    scopes = [under(scope, f"c{number}") for number in range(6)]
    files = {f"turn_1/files/{name}": name.encode() * 10 for name in "abcdefgh"}
    for each in scopes:
        await save(stores.artifacts, each, files)
    kept = under(scope, "kept")
    await asyncio.gather(*(delete(stores, each) for each in scopes), save(stores.artifacts, kept, files))
    for path, data in files.items():
        artifact = await stores.artifacts.latest(kept, FilePath.from_physical(path))
        assert await content(stores.artifacts, kept, artifact) == data
    assert_bytes_fit_rows()
    await delete(stores, kept)
    assert stored_bytes() == (set(), set())
    assert await stores.rows() == {}


@pytest.mark.slow
async def test_more_rows_than_one_transaction_removes_are_removed(stores, scope, save):
    await stores.timelines.append(scope, [prompt(str(number)) for number in range(450)])
    for number in range(45):
        await stores.calls.claim(new_call(scope, f"call-{number}"))
        await stores.calls.finish(CallKey(scope, f"call-{number}"), CallState.DONE, "answer")
    await save(stores.artifacts, scope, {f"turn_1/files/{n}": b"%d" % n for n in range(230)}, visibility="internal")
    await delete(stores, scope)
    assert await stores.rows() == {}


@pytest.mark.parametrize("of_file", [False, True])
async def test_a_conversation_with_an_open_call_is_left_as_it_is(stores, scope, save, of_file):
    await fill(stores, scope, save)
    await stores.calls.claim(new_call(scope, "call-2"))
    before = await stores.rows()
    store = stores.conversations
    deletion = (
        store.delete_file(scope, REPORT, AT, draft_of(scope)) if of_file else store.delete(scope, draft_of(scope))
    )
    with pytest.raises(ConversationBusyError, match="cancel them or wait"):
        await deletion
    assert await stores.rows() == before
    await stores.calls.finish(CallKey(scope, "call-2"), CallState.DONE, "answer")
    await delete(stores, scope)


async def test_nobody_else_can_delete_it(stores, scope, others, save):
    await fill(stores, scope, save)
    before = await stores.rows()
    for other in others:
        with pytest.raises(UnknownConversationError):
            await stores.conversations.delete(other, draft_of(other))
        with pytest.raises(UnknownArtifactError):
            await stores.conversations.delete_file(other, REPORT, AT, draft_of(other))
    assert await stores.rows() == before


async def test_a_deletion_whose_audit_line_cannot_be_added_deletes_nothing(stores, scope, save):
    await fill(stores, scope, save)
    before = await stores.rows()

    def refuse(_counts):
        raise ValueError("no line")

    with pytest.raises(ValueError, match="no line"):
        await stores.conversations.delete(scope, refuse)
    with pytest.raises(ValueError, match="no line"):
        await stores.conversations.delete_file(scope, REPORT, AT, refuse)
    assert await stores.rows() == before
    assert await stores.artifacts.latest(scope, REPORT) is not None


async def test_audit_lines_stay_and_their_chain_is_whole(stores, scope, save, tmp_path, server_url):
    await fill(stores, scope, save)
    deletion = await delete(stores, scope)
    await stores.calls.claim(new_call(scope, "call-2"))
    await stores.calls.finish(CallKey(scope, "call-2"), CallState.DONE, "answer", audit=draft(scope, "after"))
    check = AuditCheck(from_the_first=True)
    url = server_url or type(stores.database._url)("")
    with audit_lines(tmp_path / "data", url) as lines:
        found = list(lines)
    for line in found:
        check.take(line.text, (line.tenant, line.project), (line.seq, line.sha256))
    assert [state.problem for state in check.chains.values()] == [None]
    assert [line.text for line in found][1] == deletion.audited.text
    assert len(found) == 3


# ---- deletion of a file ----


async def test_a_deleted_file_is_gone_with_all_versions_and_the_others_stay(
    stores, scope, save, content, assert_bytes_fit_rows
):
    await fill(stores, scope, save)
    deletion = await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))
    assert (deletion.counts.files, deletion.counts.versions) == (1, 2)
    assert deletion.counts.size_bytes == len(b"older") + len(CONTENT)
    assert deletion.counts.blocks == 3
    assert await stores.artifacts.latest(scope, REPORT) is None
    assert await stores.artifacts.version(scope, REPORT, 1) is None
    left = [artifact.path.rel for _, artifact in await stores.artifacts.listed(scope, 0, 10)]
    assert left == ["notes.txt", "deep/inner"]
    assert await content(stores.artifacts, scope, await stores.artifacts.latest(scope, NOTES)) == b"notes"
    assert_bytes_fit_rows()
    with pytest.raises(UnknownArtifactError, match=r"no file 'fi:turn_1\.files/report\.txt'"):
        await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))


async def test_blocks_of_a_deleted_file_stay_without_its_content(stores, scope, save):
    await fill(stores, scope, save)
    before = await stores.timelines.after(scope, 0, 100, binaries=True)
    await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))
    after = await stores.timelines.after(scope, 0, 100, binaries=True)
    assert [placed.position for placed in after] == [*(placed.position for placed in before), 6]
    assert after[0] == before[0]
    assert after[2] == before[2]
    for at in (1, 3, 4):
        emptied = after[at].block
        assert (emptied.text, emptied.base64, after[at].base64_chars) == (None, None, 0)
        assert emptied.meta == {"digest": before[at].block.meta["digest"], "deleted": AT}
        assert (emptied.type, emptied.path, emptied.ts) == (
            before[at].block.type,
            before[at].block.path,
            before[at].block.ts,
        )
    said = after[-1].block
    assert (said.meta["hides"], said.meta["deletes"], said.ts) == (REPORT.logical, True, AT)
    assert [placed.position for placed in await stores.timelines.hidings(scope, 0)] == [6]


async def test_sources_and_passages_of_a_deleted_file_lose_its_content(stores, scope, save):
    await fill(stores, scope, save)
    before = {row.sid: row for row in await stores.sources.rows(scope)}
    await stores.conversations.delete_file(scope, NOTES, AT, draft_of(scope))
    after = {row.sid: row for row in await stores.sources.rows(scope)}
    assert after.keys() == before.keys()
    changed = [sid for sid in after if after[sid] != before[sid]]
    assert [after[sid].title for sid in changed] == ["notes.txt"]
    assert [(after[sid].hosted_uri, after[sid].rn, after[sid].key) for sid in changed] == [(None, None, None)]
    assert len(await stores.passages.candidates(scope, ["user", "attachment"], "", "")) == 1


async def test_a_path_that_is_used_again_goes_on_with_the_next_version(stores, scope, save):
    await fill(stores, scope, save)
    await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))
    assert set(await stores.artifacts.deletions(scope)) == {REPORT}
    (again,) = await save(stores.artifacts, scope, {REPORT.physical: b"again"})
    assert again.version == 3
    await stores.conversations.delete_file(scope, REPORT, "2026-07-05T00:00:00.000Z", draft_of(scope))
    deletions = await stores.artifacts.deletions(scope)
    assert deletions[REPORT].deleted == "2026-07-05T00:00:00.000Z"
    assert deletions[REPORT].position == 7
    (once_more,) = await save(stores.artifacts, scope, {REPORT.physical: b"once more"})
    assert once_more.version == 4
    await delete(stores, scope)
    assert await stores.rows() == {}


async def test_bytes_that_another_file_has_too_stay(stores, scope, save, content, stored_bytes):
    (saved, _) = await save(stores.artifacts, scope, {REPORT.physical: CONTENT, "turn_1/files/copy": CONTENT})
    await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))
    copy = await stores.artifacts.latest(scope, FilePath.from_physical("turn_1/files/copy"))
    assert await content(stores.artifacts, scope, copy) == CONTENT
    blobs, hosted = stored_bytes()
    assert blobs == {saved.sha256}
    assert [name for name in hosted if name.endswith("report.txt")] == []


async def test_a_file_after_a_deletion_is_newer_than_the_workspace_that_covered_the_deleted_one(
    stores, scope, save
):
    await save(stores.artifacts, scope, {REPORT.physical: CONTENT})
    covers = await stores.artifacts.newest_number(scope)
    workspace = NewWorkspace("turn_1", FileContent(b"w"), 1, hashlib.sha256(b"w").hexdigest(), 1, covers, "call-2")
    await save_together(stores.artifacts, NewSave(scope, [], workspace=workspace))
    await stores.conversations.delete_file(scope, REPORT, AT, draft_of(scope))
    await save(stores.artifacts, scope, {"turn_2/files/new": b"new"}, tool_call_id="call-3")
    new = await stores.artifacts.latest(scope, FilePath.from_physical("turn_2/files/new"))
    assert (await stores.artifacts.workspace(scope)).is_older(new)


# ---- bytes that cannot be removed ----


async def test_bytes_that_cannot_be_removed_stop_no_save_and_no_start_and_are_removed_later(
    opened_artifacts, scope, save, tmp_path, caplog
):
    async with opened_artifacts(tmp_path / "data") as artifacts:
        stores = AllStores(artifacts._database, artifacts)
        (report, *_) = await save(
            artifacts, scope, {REPORT.physical: CONTENT, **{f"turn_1/files/{n}": b"%d" % n for n in range(9)}}
        )
        stuck = artifacts._files.blob(report.sha256)
        stuck.unlink()
        stuck.mkdir()  # so that not even root can unlink it
        await delete(stores, scope)
        assert "could not be removed yet" in caplog.text
        assert [path.name for path in (tmp_path / "data/blobs").rglob("*") if len(path.name) > 2] == [stuck.name]
        for number in range(2):
            await save(artifacts, under(scope, "other"), {NOTES.physical: b"%d" % number})
    async with opened_artifacts(tmp_path / "data") as artifacts:
        stores = AllStores(artifacts._database, artifacts)
        await save(artifacts, under(scope, "other"), {NOTES.physical: b"after the start"})
        await stores.conversations.purge_interrupted()
        assert [set(names) for names in (await stores.database.read(unfinished_saves)).values()] == [
            {f"blobs/{stuck.name}"}
        ]
        stuck.rmdir()
        await stores.conversations.purge_interrupted()
        assert await stores.database.read(unfinished_saves) == {}
    assert_disk_says_what_the_rows_say(tmp_path / "data")


async def test_a_failed_save_whose_bytes_cannot_be_removed_stops_no_other_save_and_no_start(
    opened_artifacts, scope, save, stage, tmp_path
):
    async with opened_artifacts(tmp_path / "data") as artifacts:
        (old,) = await save(artifacts, scope, {REPORT.physical: b"old"})

        def fail(stored):
            for one in stored:
                stuck = artifacts._files.blob(one.sha256)
                stuck.unlink()
                stuck.mkdir()
            raise LookupError

        async with artifacts.staging() as folder:
            new = stage(folder, REPORT.physical, CONTENT)
            with pytest.raises(LookupError):
                await artifacts.save(scope, [new], fail)
        assert path_of(old.hosted_uri, tmp_path / "data").read_bytes() == b"old"
        await save(artifacts, under(scope, "other"), {NOTES.physical: b"1"})
    stuck = tmp_path / "data" / "blobs" / new.sha256[:2] / new.sha256
    async with opened_artifacts(tmp_path / "data") as artifacts:
        await save(artifacts, under(scope, "other"), {NOTES.physical: b"2"})
        stuck.rmdir()
        await AllStores(artifacts._database, artifacts).conversations.purge_interrupted()
        assert await artifacts._database.read(unfinished_saves) == {}
    assert_disk_says_what_the_rows_say(tmp_path / "data")


# ---- the list ----


async def test_conversations_are_listed_page_by_page_the_newest_first(stores, scope, others):
    for number in range(7):
        await stores.timelines.append(under(scope, f"c{number}"), [prompt()])
    for other in others[:-1]:
        await stores.timelines.append(other, [prompt()])
    found, before = [], None
    while page := await stores.conversations.page(scope.principal, before, 3):
        found += [summary.conversation_id for summary in page]
        before = page[-1].number
        if before is not None and len(found) == 3:  # one that comes meanwhile moves no page
            await stores.timelines.append(under(scope, "late"), [prompt()])
    assert found == [f"c{number}" for number in reversed(range(7))]


async def test_a_listed_conversation_says_what_it_holds(stores, scope, save):
    await fill(stores, scope, save)
    await stores.timelines.append(under(scope, "empty"), [prompt()])
    empty, full = await stores.conversations.page(scope.principal, None, 10)
    assert (full.turns, full.files, full.size_bytes) == (1, 3, 5 + len(CONTENT) + 5 + 5)
    assert (empty.turns, empty.files, empty.size_bytes) == (1, 0, 0)
    assert full.created <= full.last_used <= empty.created


# ---- use ----


async def used_at(stores, scope, moment):
    statement = text("UPDATE conversations SET used = :at WHERE name = :name")
    await stores.database.write(
        lambda connection: connection.execute(statement, {"at": moment, "name": scope.conversation_id})
    )


async def test_unused_conversations_are_found_by_their_last_use(stores, scope, others):
    for each in (scope, *others):
        await stores.timelines.append(each, [prompt()])
    await used_at(stores, scope, "2025-01-02T00:00:00.000Z")  # of all that have this id
    assert len(await stores.conversations.unused("2025-01-03T00:00:00.000Z", 10)) == 5
    assert len(await stores.conversations.unused("2025-01-03T00:00:00.000Z", 2)) == 2
    assert await stores.conversations.unused("2025-01-02T00:00:00.000Z", 10) == []


async def test_unused_conversations_are_found_by_the_beginning_of_their_id(stores, scope):
    names = ("state:1", "state:", "State:2", "stat", "a state:3", "state_4")
    for name in names:
        await stores.timelines.append(under(scope, name), [prompt()])
    found = await stores.conversations.unused("9999", 10, "state:")
    assert sorted(each.conversation_id for each in found) == ["state:", "state:1"]
    assert len(await stores.conversations.unused("9999", 10)) == len(names)


async def test_use_is_recorded_again_after_a_while(stores, scope, save):
    await fill(stores, scope, save)
    for use in (
        lambda: stores.calls.claim(new_call(scope, "call-2")),
        lambda: stores.timelines.append(scope, [prompt()]),
        lambda: save(stores.artifacts, scope, {"turn_1/files/new": b"x"}),
    ):
        await used_at(stores, scope, "2025-01-02T00:00:00.000Z")
        await use()
        (summary,) = await stores.conversations.page(scope.principal, None, 1)
        assert summary.last_used > "2026"


async def test_the_end_and_the_waits_of_a_call_are_uses(stores, scope):
    await stores.calls.claim(call := new_call(scope, "call-1"))
    for use in (
        lambda: stores.calls.suspend(call.key, []),
        lambda: stores.calls.resume(call.key, "boot-1", []),
        lambda: stores.calls.finish(call.key, CallState.DONE, "{}"),
    ):
        await used_at(stores, scope, "2025-01-02T00:00:00.000Z")
        await use()
        (summary,) = await stores.conversations.page(scope.principal, None, 1)
        assert summary.last_used > "2026"


async def test_conversations_with_calls_that_run_or_wait_keep_no_other_from_being_unused(stores, scope):
    keys = []
    for name in ("runs", "waits"):
        call = new_call(under(scope, name), "call-1")
        await stores.calls.claim(call)
        keys.append(call.key)
    await stores.calls.suspend(keys[1], [])
    await stores.timelines.append(under(scope, "idle"), [prompt()])
    for name in ("runs", "waits"):
        await used_at(stores, under(scope, name), "2025-01-02T00:00:00.000Z")
    assert await stores.conversations.unused("9999", 1) == [under(scope, "idle")]
    await stores.calls.finish(keys[0], CallState.DONE, "{}")
    assert sorted(one.conversation_id for one in await stores.conversations.unused("9999", 10)) == ["idle", "runs"]


async def test_a_conversation_that_was_used_meanwhile_is_not_deleted_as_unused(stores, scope):
    await stores.timelines.append(scope, [prompt()])
    with pytest.raises(UnknownConversationError):
        await stores.conversations.delete(scope, draft_of(scope), "2025-01-01T00:00:00.000Z")
    assert await stores.timelines.last(scope) == 1
    await delete(stores, scope, unused_since="9999-01-01T00:00:00.000Z")
    assert await stores.timelines.last(scope) == 0


def test_folders_of_removed_hosted_files_are_removed_and_made_again(tmp_path):
    store = LocalBlobStore(tmp_path)
    store.prepare()
    (tmp_path / "hosted" / "files" / "1" / "a").mkdir(parents=True)
    (tmp_path / "hosted" / "files" / "1" / "a" / "x").touch()
    store.remove_hosted("files/1/a/x")
    assert list((tmp_path / "hosted").iterdir()) == []
    store.remove_hosted("files/1/a/x")


async def test_a_removal_that_stopped_half_way_hosts_nothing_of_the_old_conversation(stores, scope, save):
    await save(stores.artifacts, scope, {REPORT.physical: b"old"})
    await save(stores.artifacts, scope, {f"turn_1/files/{n}": b"%d" % n for n in range(120)}, visibility="internal")
    (old,) = await save(stores.artifacts, scope, {REPORT.physical: b"older, in a later step"})
    deletion = await stores.conversations.delete(scope, draft_of(scope))
    (new,) = await save(stores.artifacts, scope, {REPORT.physical: b"new"})
    assert (new.hosted_uri, new.version) == (old.hosted_uri, 1)
    stores.conversations.stop_purging()
    await stores.conversations.purge(deletion)
    assert (await stores.rows())["artifacts"] == 23
    async with stores.artifacts.staging() as folder:
        fetched = await stores.artifacts.fetch_uri(scope, new.hosted_uri, folder)
        assert fetched.read_bytes() == b"new"
    hosted = await stores.database.read(lambda connection: hosted_latest(connection, new_name(stores, scope)))
    assert (hosted.version, hosted.sha256) == (1, new.sha256)


def new_name(stores, scope):
    return stores.artifacts._files.hosted_name(scope, REPORT)


async def test_of_two_removals_of_the_same_bytes_at_once_the_last_one_removes_them(opened_artifacts, tmp_path):
    async with opened_artifacts(tmp_path / "data") as artifacts:
        database, files = artifacts._database, artifacts._files
        journal = artifacts._journal
        for number in range(20):
            name = hashlib.sha256(b"%d" % number).hexdigest()
            blob = files.blob(name)
            blob.parent.mkdir(parents=True, exist_ok=True)
            blob.write_bytes(b"%d" % number)
            for save in ("a", "b"):
                await journal.begin(save, [f"blobs/{name}"])
            await asyncio.gather(*(journal.remove(save, [f"blobs/{name}"]) for save in ("a", "b")))
            assert not blob.exists()
            assert await database.read(unfinished_saves) == {}
