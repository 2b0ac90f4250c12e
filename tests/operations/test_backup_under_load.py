"""Backups while calls run: each call that had ended before is in them with its file, on both kinds of stores."""

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from load import Load, exec_request, find_losses
from psycopg import sql

from tests.services.s3_server import client_of, emptied

pytestmark = [pytest.mark.docker, pytest.mark.slow]
BEFORE, DURING = 6, 4


def start_long_call(process):
    """A call that runs until its service ends; returns when its program does."""
    code = "import time\nprint('the program runs', flush=True)\ntime.sleep(500)"
    body = {**exec_request("long", "long"), "code": code}
    with process.client(Prefer="respond-async") as client:
        assert client.post("/v1/tool-calls", json=body).status_code == 202
        with client.stream("GET", "/v1/tool-calls/long/events?conversation_id=long") as events:
            assert any("the program runs" in line for line in events.iter_lines())
    return body


def check_restored(process, ended, long_call):
    """A service on a restored backup: complete, whole, and able to go on."""
    for arguments in (("audit", "verify"), ("backup", "--check")):
        done = process.command(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    with process.client() as client:
        assert find_losses(client, ended) == []
        interrupted = client.post("/v1/tool-calls", json=long_call)
        assert (interrupted.status_code, interrupted.json()["error"]["code"]) == (200, "sandbox_failed")
        fresh = client.post("/v1/tool-calls", json=exec_request("fresh", "load-0"))
        assert (fresh.status_code, fresh.json()["ok"]) == (200, True)


def test_a_backup_of_a_data_folder_under_load_restores_every_ended_call(service, tmp_path):
    process = service()
    process.start()
    long_call = start_long_call(process)
    with Load(process.url) as load:
        ended = load.wait_for(BEFORE)
        made = process.command("backup", tmp_path / "backup.tar")
        assert made.returncode == 0, made.stderr
        load.wait_for(DURING)
    process.kill()
    restored = service("restored")
    done = restored.command("restore", tmp_path / "backup.tar")
    assert done.returncode == 0, done.stderr
    restored.start()
    check_restored(restored, ended, long_call)


def settings_of(bucket):
    """The settings of a service whose files are in a bucket."""
    return {
        "s3_endpoint": bucket.endpoint,
        "s3_bucket": bucket.name,
        "s3_prefix": bucket.prefix,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
    }


def programs_of_postgres():
    """The folder of pg_dump and pg_restore of the newest version that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_dump"), key=lambda path: int(path.parts[4]))
    return found[-1].parent


def run_on_database(program, *arguments):
    done = subprocess.run(
        [programs_of_postgres() / program, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def copy_objects(bucket, source, target):
    """Copy all objects below a prefix to another, as a copy job of the bucket does; how many."""
    s3 = client_of(bucket)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket.name, Prefix=f"{source}/")
    names = [each["Key"] for page in pages for each in page.get("Contents", [])]
    for name in names:
        into = f"{target}/{name.removeprefix(f'{source}/')}"
        s3.copy_object(Bucket=bucket.name, Key=into, CopySource={"Bucket": bucket.name, "Key": name})
    return len(names)


def test_a_dump_and_then_a_copy_of_the_bucket_under_load_restore_every_ended_call(
    service, database_url, administrator, bucket, tmp_path
):
    settings = {"database_url": database_url, **settings_of(bucket)}
    process, copied = service(**settings), replace(bucket, prefix=f"{bucket.prefix}-copy")
    process.start()
    long_call = start_long_call(process)
    try:
        with Load(process.url) as load:
            ended = load.wait_for(BEFORE)
            run_on_database("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}", database_url)
            load.wait_for(DURING)  # a copy takes its time: it has bytes that the dump does not know
            assert copy_objects(bucket, bucket.prefix, copied.prefix) > len(ended)
            load.wait_for(DURING)
        process.kill()
        # The loss of both, and of the data folder.
        emptied(bucket)
        name = sql.Identifier(urlsplit(database_url).path.strip("/"))
        administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
        administrator.execute(sql.SQL("CREATE DATABASE {}").format(name))
        run_on_database("pg_restore", "--exit-on-error", f"--dbname={database_url}", tmp_path / "dump")
        copy_objects(bucket, copied.prefix, bucket.prefix)
    finally:
        emptied(copied)
    restored = service("restored", **settings)
    begun = restored.command("audit", "begin-anew")
    assert begun.returncode == 0, begun.stdout + begun.stderr
    restored.start()
    check_restored(restored, ended, long_call)


def test_a_copy_of_the_bucket_before_the_dump_is_found_to_lack_files(service, database_url, bucket):
    """The order in docs/backup.md matters, and the check after a restore shows it."""
    settings = {"database_url": database_url, **settings_of(bucket)}
    process, copied = service(**settings), replace(bucket, prefix=f"{bucket.prefix}-copy")
    process.start()
    try:
        with Load(process.url) as load:
            load.wait_for(2)
            copy_objects(bucket, bucket.prefix, copied.prefix)
            *_, later = load.wait_for(2)
        process.stop()
        emptied(bucket)
        copy_objects(bucket, copied.prefix, bucket.prefix)
    finally:
        emptied(copied)
    done = process.command("backup", "--check")
    assert done.returncode == 1
    assert hashlib.sha256(later.content).hexdigest() in done.stderr
