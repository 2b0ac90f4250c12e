"""Backup and restore: all of it, at one moment, while the service writes; and nothing that was changed or cut."""

import asyncio
import io
import itertools
import json
import os
import socket
import sqlite3
import tarfile
from contextlib import closing
from dataclasses import replace

import pytest
from disk_check import assert_disk_says_what_the_rows_say, path_of
from test_local_disk_full import needs_mount, small_disk
from whole_conversations import CONTENT, REPORT, AllStores, delete, fill, under

from proofbox.cli import main
from proofbox.service.calls.port import AuditDraft
from proofbox.service.errors import StoreFailedError
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.identity import Principal
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.s3_client import Bucket
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import HeadSigner
from proofbox.service.storage.backup import Backup
from proofbox.service.storage.byte_check import check_bytes
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.link_keys import LinkKeyFile
from proofbox.service.storage.restoration import restore
from tests.services.s3_server import client_of
from tests.support.gateway_world import build_world


@pytest.fixture
async def stores(opened_artifacts, tmp_path):
    async with opened_artifacts(tmp_path / "data") as artifacts:
        yield AllStores(artifacts._database, artifacts)


@pytest.fixture
def backed_up(tmp_path):
    """Makes a backup of the data folder and answers its file and what it has."""
    numbers = itertools.count()

    async def back_up(file=None):
        data = tmp_path / "data"
        target = file or tmp_path / f"backup-{next(numbers)}.tar"
        made = Backup(data, data / "audit-heads.jsonl", "1.0", _ignore)
        return target, await asyncio.to_thread(made.write, target)

    return back_up


@pytest.fixture
async def backup(stores, scope, save, backed_up):
    """The file of a backup."""
    await fill(stores, scope, save)
    file, _ = await backed_up()
    return file


@pytest.fixture
def proofbox(tmp_path, monkeypatch, capsys):
    """Runs a command of the program; its status and what it printed."""

    async def run(*arguments, data_dir=tmp_path / "data", **environment):
        monkeypatch.setenv("PROOFBOX_DATA_DIR", str(data_dir))
        for name, value in environment.items():
            monkeypatch.setenv(f"PROOFBOX_{name.upper()}", value)
        capsys.readouterr()
        status = await asyncio.to_thread(main, [str(argument) for argument in arguments])
        for name in environment:
            monkeypatch.delenv(f"PROOFBOX_{name.upper()}")
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def rows_of(data_dir):
    """All rows of a database but those of the keys that sign heads."""
    with closing(sqlite3.connect(data_dir / "proofbox.sqlite3")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in tables
            if table not in {"audit_keys", "alembic_version"}
        }


async def test_a_restored_folder_has_all_that_was_backed_up(
    stores, opened_artifacts, scope, save, content, tmp_path
):
    saved = await fill(stores, scope, save)
    LinkKeyFile(tmp_path / "data").in_use()
    heads = HeadSigner(
        stores.database, HeadFiles(tmp_path / "data/audit-key.pem", tmp_path / "data/audit-heads.jsonl"), 1
    )
    heads.start()
    await heads.stop()
    made = Backup(tmp_path / "data", tmp_path / "data" / "audit-heads.jsonl", "1.0", _ignore)
    end = await asyncio.to_thread(made.write, tmp_path / "backup.tar")
    assert (end.blobs, end.damaged) == (5, ())
    assert (tmp_path / "backup.tar").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "backup.tar") as archive:
        names = archive.getnames()
    assert [name for name in names if not name.startswith("blobs/")] == [
        "backup.json",
        "audit-heads.jsonl",
        "database.sqlite3",
        "end.json",
    ]
    restore(tmp_path / "backup.tar", tmp_path / "new")
    assert rows_of(tmp_path / "new") == rows_of(tmp_path / "data")
    kept = {path.name for path in (tmp_path / "new").iterdir() if path.name.startswith("audit")}
    assert [name.startswith("audit-heads.jsonl.20") for name in kept] == [True]
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert_disk_says_what_the_rows_say(tmp_path / "new")
    async with opened_artifacts(tmp_path / "new") as artifacts:
        latest = await artifacts.latest(scope, REPORT)
        assert await content(artifacts, scope, latest) == CONTENT
        assert path_of(saved[0].hosted_uri, tmp_path / "new").read_bytes() == CONTENT
        again = HeadSigner(
            artifacts._database, HeadFiles(tmp_path / "new/audit-key.pem", tmp_path / "new/audit-heads.jsonl"), 1
        )
        again.start()
        await again.stop()
        assert again.is_signing


async def test_each_backup_of_a_service_that_saves_and_deletes_is_whole(stores, scope, save, backed_up, tmp_path):
    stop = asyncio.Event()

    async def write(name):
        number = 0
        while not stop.is_set():
            number += 1
            other = under(scope, f"{name}-{number}")
            data = {f"turn_1/files/{n}": os.urandom(2_000) for n in range(5)}
            await save(stores.artifacts, other, data)
            await save(stores.artifacts, under(scope, f"kept-{name}"), {"turn_1/files/a": b"%d" % number})
            await delete(stores, other)
        return number

    writers = [asyncio.create_task(write(name)) for name in "ab"]
    backups = [await backed_up() for _ in range(6)]
    stop.set()
    assert min(await asyncio.gather(*writers)) > 0
    for number, (file, end) in enumerate(backups):
        assert end.damaged == ()
        restore(file, tmp_path / f"new-{number}")
        data = tmp_path / f"new-{number}"
        with closing(sqlite3.connect(data / "proofbox.sqlite3")) as connection:
            hashes = {sha256 for (sha256,) in connection.execute("SELECT sha256 FROM artifacts")}
        assert {path.name for path in (data / "blobs").rglob("*") if path.is_file()} == hashes


async def test_the_database_of_a_backup_is_not_older_than_its_signed_heads(stores, scope, save, tmp_path):
    await fill(stores, scope, save)
    database = tmp_path / "data" / "proofbox.sqlite3"

    class Heads(type(tmp_path)):
        """Signed heads whose audit line was added just before they are read."""

        def read_bytes(self):
            with closing(sqlite3.connect(database)) as connection, connection:
                connection.execute("INSERT INTO chains (tenant, project) VALUES ('acme', 'signed')")
            return b"{}\n"

    Backup(tmp_path / "data", Heads("heads.jsonl"), "1.0", _ignore).write(tmp_path / "backup.tar")
    restore(tmp_path / "backup.tar", tmp_path / "new")
    assert "signed" in [project for _, _, project in rows_of(tmp_path / "new")["chains"]]


async def test_the_first_start_on_a_backup_ends_what_was_under_way(
    stores, opened_artifacts, scope, save, backed_up, tmp_path
):
    await fill(stores, scope, save)
    await stores.conversations.delete(scope, _draft_of)
    file, _ = await backed_up()
    restore(file, tmp_path / "new")
    async with opened_artifacts(tmp_path / "new") as artifacts:
        again = AllStores(artifacts._database, artifacts)
        await again.conversations.purge_interrupted()
        assert await again.rows() == {}
    assert_disk_says_what_the_rows_say(tmp_path / "new")


def _draft_of(_counts):
    return AuditDraft("2026-07-04T13:18:14.000Z", '{"principal":{}}')


def _ignore(_line):
    """Shows no progress."""


# ---- what is refused ----


async def test_a_folder_with_anything_in_it_is_not_restored_into(backup, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "notes").touch()
    for target in (tmp_path / "new", tmp_path / "data"):
        with pytest.raises(StoreFailedError, match="the folder is not empty"):
            restore(backup, target)
    (tmp_path / "new" / "notes").unlink()
    restore(backup, tmp_path / "new")


async def test_a_backup_never_replaces_a_file_and_leaves_nothing_when_it_fails(
    stores, scope, save, backed_up, tmp_path
):
    await fill(stores, scope, save)
    (tmp_path / "there").write_bytes(b"mine")
    with pytest.raises(StoreFailedError, match="the file exists"):
        await backed_up(tmp_path / "there")
    with pytest.raises(StoreFailedError, match="data_dir: the folder has no database"):
        Backup(tmp_path / "nothing", tmp_path / "x", "1.0", print).write(tmp_path / "b.tar")
    assert (tmp_path / "there").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "there"]


async def test_a_backup_that_was_cut_anywhere_is_refused_and_leaves_nothing(backup, tmp_path):
    whole = backup.read_bytes()
    cut = tmp_path / "cut.tar"
    end = whole.rindex(b"ustar")  # of the last member: behind it are only zeros
    for size in [0, 1, 511, 512, 513, 1024, *range(2_000, end, max(1, end // 25)), end]:
        cut.write_bytes(whole[:size])
        with pytest.raises(StoreFailedError, match="backup"):
            restore(cut, tmp_path / "new")
    assert not [path.name for path in tmp_path.iterdir() if "new" in path.name]


async def test_a_backup_in_which_a_byte_was_changed_is_refused(backup, tmp_path):
    whole = backup.read_bytes()
    for at in (whole.index(CONTENT), whole.index(b"answer"), whole.rindex(b'"blobs": 5') + 9):
        backup.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(StoreFailedError, match="damaged or was changed"):
            restore(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    backup.write_bytes(whole)
    restore(backup, tmp_path / "new")


def rewritten(file, change):
    """Writes an archive anew, each member as ``change`` gives it."""
    with tarfile.open(file) as archive:
        members = [(member, archive.extractfile(member).read()) for member in archive]
    with tarfile.open(file, "w") as archive:
        for member, data in change(members):
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def member(name, **fields):
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda members: members[1:], "not a backup of the service"),
        (
            lambda members: [*members[:-1], (member("blobs/../../escaped"), b"x"), members[-1]],
            "belongs to no backup",
        ),
        (lambda members: [*members[:-1], (member("/tmp/escaped"), b"x"), members[-1]], "belongs to no backup"),
        (lambda members: [members[0], *members[1:2], *members[1:]], "out of place"),
        (lambda members: [*members, (member("blobs/" + "0" * 64), b"x")], "out of place"),
        (lambda members: [members[0], *members[2:]], "files are missing"),
        (lambda members: [members[0], (member("blobs/" + "0" * 64), b"x"), *members[1:]], "have changed"),
        (
            lambda members: [members[0], (member("blobs/" + "0" * 64, type=tarfile.SYMTYPE, linkname="/"), b"")],
            "out of place",
        ),
        (lambda members: [*members[:-1], (members[-1][0], b"[]")], "end.json cannot be read"),
    ],
)
async def test_an_archive_that_is_no_backup_is_refused(backup, tmp_path, change, why):
    rewritten(backup, change)
    with pytest.raises(StoreFailedError, match=why):
        restore(backup, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup-0.tar", "data"]


async def test_a_backup_of_a_newer_release_is_refused_before_anything_is_unpacked(backup, tmp_path):

    def newer(members):
        (first, data), *others = members
        return [(first, json.dumps({**json.loads(data), "schema": "0987", "release": "9.9"}).encode()), *others]

    rewritten(backup, newer)
    with pytest.raises(StoreFailedError, match=r"release 9\.9 with schema 987, and this release knows \d"):
        restore(backup, tmp_path / "new")
    assert not (tmp_path / "new").exists()


# ---- the commands ----


async def test_the_commands_back_up_a_running_service_and_restore(stores, scope, save, proofbox, tmp_path):
    await fill(stores, scope, save)
    status, printed = await proofbox("backup", tmp_path / "b.tar")
    assert (status, "5 files of" in printed) == (0, True)
    status, printed = await proofbox("backup", tmp_path / "b.tar")
    assert (status, "the file exists" in printed) == (2, True)
    status, printed = await proofbox("restore", tmp_path / "b.tar", data_dir=tmp_path / "new")
    assert (status, "restored 5 files" in printed) == (0, True)
    status, printed = await proofbox("restore", tmp_path / "b.tar", data_dir=tmp_path / "new")
    assert (status, "not empty" in printed) == (2, True)
    status, printed = await proofbox("restore", tmp_path / "missing.tar", data_dir=tmp_path / "other")
    assert (status, (tmp_path / "other").exists()) == (2, False)
    status, printed = await proofbox("backup", "--check", "--json", "-q", data_dir=tmp_path / "new")
    assert (status, json.loads(printed)["damaged"]) == (0, [])
    status, printed = await proofbox("backup", "--json", "-q", tmp_path / "c.tar", data_dir=tmp_path / "new")
    assert (status, json.loads(printed)["files"]) == (0, 5)
    status, printed = await proofbox("restore", "--json", tmp_path / "c.tar", data_dir=tmp_path / "new")
    assert (status, "not empty" in json.dumps(json.loads(printed))) == (2, True)
    status, printed = await proofbox("audit", "verify", data_dir=tmp_path / "new")
    assert (status, "are whole" in printed) == (0, True)


@pytest.mark.parametrize("has_agents", [True, False])
async def test_restore_warns_that_webhook_secrets_change(stores, proofbox, tmp_path, has_agents):
    if has_agents:
        new = NewVersion("helper", '{"agent": {"name": "helper"}}', "a" * 64)
        principal = Principal("acme", "books", "registered", "ann")
        await SqlAgentStore(stores.database).write(principal, "helper", new, None)
    await proofbox("backup", tmp_path / "b.tar")
    status, printed = await proofbox("restore", tmp_path / "b.tar", data_dir=tmp_path / "new")
    assert (status, "the webhook secrets of 1 agents change" in printed) == (0, has_agents)


async def test_files_that_are_damaged_already_are_named_and_all_others_restored(
    stores, scope, save, proofbox, tmp_path
):
    (report, notes) = await fill(stores, scope, save)
    blobs = tmp_path / "data" / "blobs"
    (blobs / report.sha256[:2] / report.sha256).unlink()
    damaged = blobs / notes.sha256[:2] / notes.sha256
    damaged.chmod(0o600)
    damaged.write_bytes(b"other")
    status, printed = await proofbox("backup", "--check")
    assert (status, "2 missing or damaged" in printed) == (1, True)
    assert all(f"conversation conv-1, {path.logical}\n" in printed for path in (report.path, notes.path))
    status, printed = await proofbox("backup", tmp_path / "b.tar")
    assert status == 1
    assert all(each.sha256 in printed for each in (report, notes))
    status, printed = await proofbox("restore", tmp_path / "b.tar", data_dir=tmp_path / "new")
    assert status == 1
    assert all(each.sha256 in printed for each in (report, notes))
    assert len([path for path in (tmp_path / "new" / "blobs").rglob("*") if path.is_file()]) == 3


async def test_a_server_is_not_backed_up_by_the_command_which_says_what_does(proofbox, postgres_url, tmp_path):
    for environment in ({"database_url": postgres_url.get_secret_value()}, {"s3_bucket": "b"}):
        status, printed = await proofbox("backup", tmp_path / "b.tar", **environment)
        assert status == 2
        assert "pg_dump" in printed
        status, printed = await proofbox("restore", tmp_path / "b.tar", **environment)
        assert (status, "their own tools" in printed) == (2, True)
    assert not (tmp_path / "b.tar").exists()


async def test_the_check_reads_the_records_of_a_server(
    opened_artifacts, postgres_url, scope, save, proofbox, tmp_path
):
    async with opened_artifacts(tmp_path / "data", postgres_url) as artifacts:
        await save(artifacts, scope, {"turn_1/files/a": b"one"})
        status, printed = await proofbox("backup", "--check", database_url=postgres_url.get_secret_value())
        assert (status, "1 files checked, 0 damaged" in printed) == (0, True)
        assert "1 files of 3 bytes, 0 missing or damaged" in printed


async def test_the_check_reads_the_files_of_a_bucket(opened_on_s3, bucket, scope, save, proofbox, tmp_path):
    settings = {
        "s3_bucket": bucket.name,
        "s3_prefix": bucket.prefix,
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
    }
    async with opened_on_s3(tmp_path / "on-s3", bucket) as artifacts:
        (saved, _) = await save(artifacts, scope, {"turn_1/files/a": b"one", "turn_1/files/b": b"two"})
        status, printed = await proofbox("backup", "--check", data_dir=tmp_path / "on-s3", **settings)
        assert (status, "2 files of 6 bytes, 0 missing" in printed) == (0, True)
        client_of(bucket).delete_object(Bucket=bucket.name, Key=f"{bucket.prefix}/blobs/{saved.sha256}")
        status, printed = await proofbox("backup", "--check", data_dir=tmp_path / "on-s3", **settings)
        assert (status, f"missing or damaged: {saved.sha256}" in printed) == (1, True)


# ---- gc ----


async def test_gc_lists_beside_the_service_and_deletes_without_it(
    opened_artifacts, scope, save, proofbox, tmp_path
):
    async with opened_artifacts(tmp_path / "data") as artifacts:
        stores = AllStores(artifacts._database, artifacts)
        await fill(stores, scope, save)
        await fill(stores, replace(scope, conversation_id="new"), save, "call-2")
        await change(stores.database, "UPDATE conversations SET used = '2025-01-01' WHERE name = 'conv-1'")
        await build_world(stores.database)
        await change(stores.database, "UPDATE runs SET status = 'completed', ended = '2025-01-01'")
        status, printed = await proofbox("gc", "--dry-run", "--days", "30")
        assert status == 0
        assert "acme  books  registered  ann  conv-1\nacme  books  helper  run_1  2025-01-01\n" in printed
        assert "1 conversations were not used since" in printed
        assert "1 runs ended before" in printed
        status, printed = await proofbox("gc", "--dry-run", "--days", "30", "--json", "--quiet")
        assert [each["conversation_id"] for each in json.loads(printed)["conversations"]] == ["conv-1"]
        listed = json.loads(printed)["runs"]
        assert [(run["agent_id"], run["run_id"]) for run in listed] == [("helper", "run_1")]
        status, printed = await proofbox("gc", "--days", "30")
        assert (status, "in use by another process" in printed) == (2, True)
        assert len(await stores.conversations.page(scope.principal, None, 10)) == 2
    status, printed = await proofbox("gc", "--days", "30")
    assert (status, "1 conversations were deleted" in printed) == (0, True)
    assert "1 runs were deleted" in printed
    async with opened_artifacts(tmp_path / "data") as artifacts:
        stores = AllStores(artifacts._database, artifacts)
        [left] = await stores.conversations.page(scope.principal, None, 10)
        assert left.conversation_id == "new"
    assert_disk_says_what_the_rows_say(tmp_path / "data")
    status, printed = await proofbox("gc", "--dry-run")
    assert (status, "retention_days: no conversation is ever deleted" in printed) == (2, True)


async def change(database, statement):
    await database.write(lambda connection: connection.exec_driver_sql(statement))


async def test_a_bucket_that_does_not_answer_is_not_damage(stores, scope, save, tmp_path):
    await fill(stores, scope, save)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        bucket = Bucket("proofbox", endpoint=endpoint, access_key="a", secret_key="b", attempts=1)
        with pytest.raises(StoreFailedError, match="does not answer"):
            await check_bytes(stores.database, S3BlobStore(bucket, tmp_path / "staging", 5_000_000, 900), _ignore)


# ---- a mounted folder ----


@needs_mount
@pytest.mark.parametrize("there", [(), ("lost+found",)])
async def test_a_backup_is_restored_into_an_empty_mount(backup, opened_artifacts, scope, content, tmp_path, there):
    with small_disk(tmp_path / "new", "size=8m,mode=755") as data:
        for name in there:
            (data / name).mkdir()
        restore(backup, data)
        assert not [path.name for path in (*data.iterdir(), *tmp_path.iterdir()) if "restoring" in path.name]
        assert data.stat().st_mode & 0o777 == 0o700
        async with opened_artifacts(data) as artifacts:
            latest = await artifacts.latest(scope, REPORT)
            assert await content(artifacts, scope, latest) == CONTENT
        with pytest.raises(StoreFailedError, match="the folder is not empty"):
            restore(backup, data)


@needs_mount
async def test_a_restoration_that_fails_leaves_a_mount_empty(backup, tmp_path):
    backup.write_bytes(backup.read_bytes()[:5_000])
    with small_disk(tmp_path / "new", "size=8m") as data:
        with pytest.raises(StoreFailedError, match="backup"):
            restore(backup, data)
        assert list(data.iterdir()) == []
