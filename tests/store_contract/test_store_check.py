"""The check of records and files: each kind of damage is made, found, named, and repaired where it can be."""

import asyncio
import hashlib
import json
import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import text

from proofbox.cli import main
from proofbox.contracts.paths import FilePath
from proofbox.service.storage.check.store_check import StoreCheck
from tests.services.s3_server import client_of, objects_of
from tests.support.pipeline import SCOPE, opened_pipeline
from tests.support.store_check import assert_data_fits, assert_stores_fit

CONTENT = b"a,b\n1,2\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
TABLE = {"filename": "a.csv", "description": "a table", "visibility": "external"}
PATH = "fi:turn_1.files/a.csv"
STRAY = hashlib.sha256(b"stray").hexdigest()


@pytest.fixture
async def pipeline(tmp_path, database_url):
    """A conversation with a call that made a hosted file, one that made none, and one that failed."""
    async with opened_pipeline(tmp_path, url=database_url) as opened:
        opened.engine.program = lambda run: run.write("a.csv", CONTENT)
        assert (await opened.execute(TABLE))["ok"]
        opened.engine.program = lambda _run: None
        await opened.execute()
        await opened.answer("react.write", {"path": "b.md", "content": "text"})
        yield opened


@pytest.fixture
def check(pipeline):
    """Checks the stores of the pipeline as if nobody used them."""

    async def checked(*, repairs=False, is_idle=True):
        store = pipeline.artifacts
        check = StoreCheck(store._database, store._files, is_idle=is_idle)
        return [finding async for finding in check.run(repairs=repairs)]

    return checked


@pytest.fixture
def blob(tmp_path):
    return tmp_path / "data" / "blobs" / SHA256[:2] / SHA256


@pytest.fixture
def hosted(check, tmp_path):
    """The hosted copy of the table."""
    assert check is not None  # the call has ended
    [found] = (tmp_path / "data" / "hosted").rglob("a.csv")
    return found


async def change(pipeline, statement):
    await pipeline.database.write(lambda connection: connection.execute(text(statement)))


def replace_bytes(file, data):
    """Gives a name other bytes, and other names of the same file theirs."""
    file.unlink()
    file.write_bytes(data)


async def test_a_service_that_nothing_happened_to_has_nothing_wrong(pipeline, check):
    assert await check() == []
    await assert_stores_fit(pipeline.artifacts)


OF_CALL_1 = "WHERE tool_call_id = 'call_1'"
RETRYABLE = '{"code": "store_failed", "retryable": true}'


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE blocks SET block = '{}' WHERE position = 1", [("block_invalid", None)]),
        ("UPDATE blocks SET block = 'x' WHERE position = 2", [("block_invalid", None)]),
        (f"UPDATE calls SET answer = answer || ' ' {OF_CALL_1}", [("answer_changed", None)]),
        (f"UPDATE calls SET answer = 'x' {OF_CALL_1}", [("answer_invalid", None), ("answer_changed", None)]),
        (
            f"UPDATE calls SET state = 'failed', answer = '{RETRYABLE}' {OF_CALL_1}".replace(": ", "\\: "),
            [("answer_retryable", None), ("answer_changed", None), ("file_of_failed_call", PATH)],
        ),
        (f"UPDATE calls SET state = 'cancelled' {OF_CALL_1}", [("file_of_failed_call", PATH)]),
        (f"UPDATE artifacts SET tool_call_id = 'call_2' {OF_CALL_1}", [("file_not_audited", PATH)]),
        (f"UPDATE artifacts SET version = 7 {OF_CALL_1}", [("file_lost", None)]),
    ],
)
async def test_records_that_do_not_fit_each_other_are_named_and_left(pipeline, check, statement, expected):
    await change(pipeline, statement)
    found = await check(repairs=True)
    told = [(each.kind.value, each.path if each.path == PATH else None) for each in found]
    assert told == expected
    assert {each.scope.conversation_id for each in found} == {"conv-1"}
    assert not any(each.is_repaired for each in found)
    assert all("conversation conv-1" in each.as_text() and each.remedy in each.as_text() for each in found)


async def test_a_row_that_is_gone_loses_a_file_and_its_bytes_are_removed(pipeline, check, blob, hosted):
    await pipeline.save("turn_1/files/other.md")
    await change(pipeline, f"DELETE FROM artifacts {OF_CALL_1}")
    found = await check(repairs=True)
    assert [(each.kind.value, each.is_repaired) for each in found] == [
        ("file_lost", False),
        ("bytes_of_nothing", True),
        ("hosted_of_nothing", True),
    ]
    assert (blob.exists(), hosted.exists()) == (False, False)


async def test_records_of_another_service_remove_nothing(pipeline, check, blob, hosted):
    await change(pipeline, "DELETE FROM artifacts")
    *_, found = await check(repairs=True)
    assert (found.kind, found.is_repaired) == ("other_records", False)
    assert (blob.exists(), hosted.exists()) == (True, True)


async def test_a_row_without_a_hash_is_named_and_does_not_end_the_check(pipeline, check):
    await change(pipeline, "UPDATE artifacts SET sha256 = '00'")
    await pipeline.save("turn_1/files/other.md")
    found = [(each.kind.value, each.path) for each in await check(repairs=True)]
    assert ("bytes_lost", PATH) in found


async def test_a_deleted_file_is_not_lost(pipeline, check):
    await pipeline.conversations.delete_file(SCOPE, FilePath.from_physical("turn_1/files/a.csv"))
    assert await check() == []


@pytest.mark.parametrize("damage", ["lost", "changed", "cut", "longer"])
async def test_bytes_are_restored_from_their_hosted_copy(check, blob, hosted, damage):
    if damage == "lost":
        blob.unlink()
    else:
        data = {"changed": CONTENT[:-1] + b"?", "cut": CONTENT[:-1], "longer": CONTENT + b"?"}[damage]
        replace_bytes(blob, data)
    [found, *more] = await check()
    assert ([], found.kind) == (more, "bytes_lost" if damage == "lost" else "bytes_changed")
    assert (found.path, found.tool_call_id, found.scope.conversation_id) == (PATH, "call_1", "conv-1")
    [repaired] = await check(repairs=True)
    assert (repaired.is_repaired, blob.read_bytes(), hosted.read_bytes()) == (True, CONTENT, CONTENT)
    assert await check() == []


async def test_bytes_whose_copy_is_damaged_too_are_named_with_what_to_do(check, blob):
    blob.chmod(0o600)
    blob.write_bytes(CONTENT[:-1] + b"?")  # one file under both names
    [found] = await check(repairs=True)
    assert (found.kind, found.is_repaired, found.path) == ("bytes_changed", False, PATH)
    assert "upload it again" in found.as_text()


@pytest.mark.parametrize("damage", ["lost", "changed"])
async def test_files_are_hosted_again(check, hosted, damage):
    if damage == "lost":
        hosted.unlink()
    else:
        replace_bytes(hosted, CONTENT[:-1] + b"?")
    [found] = await check(repairs=True)
    kind = "not_hosted" if damage == "lost" else "hosted_changed"
    assert (found.kind, found.path, found.is_repaired) == (kind, PATH, True)
    assert (hosted.read_bytes(), await check()) == (CONTENT, [])


async def test_what_belongs_to_nothing_is_removed_when_no_service_runs(check, tmp_path, hosted):
    stray = tmp_path / "data" / "blobs" / STRAY[:2] / STRAY
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"stray")
    other = hosted.with_name("stray")
    other.write_bytes(b"stray")
    beside = await check(repairs=True, is_idle=False)
    assert [(each.kind.value, each.is_repaired) for each in beside] == [
        ("bytes_of_nothing", False),
        ("hosted_of_nothing", False),
    ]
    assert [each.is_repaired for each in await check(repairs=True)] == [True, True]
    assert (stray.exists(), other.exists(), await check()) == (False, False, [])


async def test_a_save_that_was_cut_short_is_undone_when_no_service_runs(pipeline, check, tmp_path):
    stray = tmp_path / "data" / "blobs" / STRAY[:2] / STRAY
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"stray")
    await change(pipeline, f"INSERT INTO unfinished (save, name) VALUES ('s1', 'blobs/{STRAY}')")
    assert await check(is_idle=False) == []  # the service does it
    [found] = await check(repairs=True)
    assert (found.kind, found.is_repaired, stray.exists()) == ("unfinished", True, False)
    await change(pipeline, f"INSERT INTO unfinished (save, name) VALUES ('gone.s1', 'blobs/{STRAY}')")
    [lost] = await check(is_idle=False)
    assert (lost.kind, lost.path) == ("unfinished", f"blobs/{STRAY}")


# ---- in a bucket ----


@pytest.fixture
async def in_bucket(opened_on_s3, bucket, tmp_path):
    async with opened_on_s3(tmp_path / "data", bucket) as store:
        yield store


@pytest.mark.parametrize("size_bytes", [10, 6_000_000])
@pytest.mark.parametrize("damage", ["lost", "changed", "cut", "hosted_lost", "hosted_changed", "stray"])
async def test_a_bucket_is_checked_and_repaired(in_bucket, bucket, scope, save, damage, size_bytes):
    data, store = b"x" * size_bytes, in_bucket
    (saved,) = await save(store, scope, {"turn_1/files/a": data})
    s3, below = client_of(bucket), f"{bucket.prefix}/"
    before = objects_of(bucket)
    [hosted] = [name for name in before if not name.startswith("blobs/")]
    name = hosted if damage.startswith("hosted") else f"blobs/{saved.sha256}"
    if damage == "stray":
        for other in (f"blobs/{STRAY}", "cb/tenants/acme/x"):
            s3.put_object(Bucket=bucket.name, Key=below + other, Body=b"stray")
    elif damage.endswith("lost"):
        s3.delete_object(Bucket=bucket.name, Key=below + name)
    else:  # the name's own data about it stay, as where bytes rot
        known = s3.head_object(Bucket=bucket.name, Key=below + name)["Metadata"]
        changed = data[:-1] if damage == "cut" else data[:-1] + b"?"
        s3.put_object(Bucket=bucket.name, Key=below + name, Body=changed, Metadata=known)
    check = StoreCheck(store._database, store._files, is_idle=True)
    found = [each async for each in check.run(repairs=True)]
    assert [(each.kind.value, each.is_repaired) for each in found] == {
        "lost": [("bytes_lost", True)],
        "changed": [("bytes_changed", True)],
        "cut": [("bytes_changed", True)],
        "hosted_lost": [("not_hosted", True)],
        "hosted_changed": [("hosted_changed", True)],
        "stray": [("bytes_of_nothing", True), ("hosted_of_nothing", True)],
    }[damage]
    assert objects_of(bucket) == before


# ---- the database ----


async def test_a_damaged_page_of_sqlite_is_found_and_its_conversation_named(tmp_path, monkeypatch, capsys):
    data_dir = tmp_path / "data"
    async with opened_pipeline(tmp_path) as pipeline:
        for _ in range(30):
            await pipeline.answer("react.write", {"path": "b.md", "content": "word " * 2_000})
    file = data_dir / "proofbox.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        page = database.execute(
            "SELECT pageno FROM dbstat WHERE name = 'blocks' AND pagetype = 'leaf' ORDER BY pageno LIMIT 1 OFFSET 2"
        ).fetchone()[0]
        size = database.execute("PRAGMA page_size").fetchone()[0]
    with file.open("r+b") as stream:
        stream.seek((page - 1) * size)
        stream.write(b"\xff" * 200)
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(data_dir))
    status = await asyncio.to_thread(main, ["check", "--json", "-q"])
    told = json.loads(capsys.readouterr().out)
    assert (status, told["ok"], {each["kind"] for each in told["findings"]}) == (1, False, {"database_damaged"})
    assert "conv-1" in {each.get("conversation_id") for each in told["findings"]}


async def test_postgres_is_checked_with_and_without_amcheck(opened_artifacts, postgres_url, scope, save, tmp_path):
    async with opened_artifacts(tmp_path / "data", postgres_url) as store:
        await save(store, scope, {"turn_1/files/a": b"one"})
        assert await store._database.find_damage() == []
        try:
            await store._database.write(lambda connection: connection.execute(text("CREATE EXTENSION amcheck")))
        except Exception:  # noqa: BLE001 - the server of this machine has no such extension
            pytest.skip("the server has no amcheck")
        try:
            assert await store._database.find_damage() == []
        finally:
            await store._database.write(lambda connection: connection.execute(text("DROP EXTENSION amcheck")))


# ---- the command ----


async def test_the_command_checks_beside_a_service_and_repairs(pipeline, database_url, blob, monkeypatch, capsys):
    data_dir = pipeline.database.data_dir
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(data_dir))
    monkeypatch.setenv("PROOFBOX_DATABASE_URL", database_url.get_secret_value())

    async def run(*arguments):
        capsys.readouterr()
        status = await asyncio.to_thread(main, ["check", "-q", *arguments])
        return status, capsys.readouterr().out

    assert await run() == (0, "")
    blob.unlink()
    status, printed = await run()
    assert (status, f"conversation conv-1 (acme/books, registered ann), call call_1, {PATH}: " in printed) == (
        1,
        True,
    ), printed
    status, printed = await run("--repair", "--json")
    told = json.loads(printed)
    assert (status, told["ok"], told["left"], told["findings"][0]["repaired"]) == (0, True, 0, True)
    await asyncio.to_thread(assert_data_fits, data_dir, database_url=database_url)


async def test_a_bucket_that_does_not_answer_is_an_error_and_no_finding(
    pipeline, database_url, monkeypatch, capsys
):
    settings = {"s3_bucket": "b", "s3_endpoint": "http://127.0.0.1:9", "s3_access_key": "a", "s3_secret_key": "s"}
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(pipeline.database.data_dir))
    monkeypatch.setenv("PROOFBOX_DATABASE_URL", database_url.get_secret_value())
    for name, value in settings.items():
        monkeypatch.setenv(f"PROOFBOX_{name.upper()}", value)
    assert await asyncio.to_thread(main, ["check", "-q"]) == 2
    told = capsys.readouterr()
    assert (told.out, "s3_endpoint" in told.err) == ("", True)


async def test_a_folder_without_a_database_cannot_be_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path))
    assert await asyncio.to_thread(main, ["check"]) == 2
    assert "PROOFBOX_DATA_DIR" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
