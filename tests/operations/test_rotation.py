"""Keys and secrets are replaced while calls run: what needs no restart, and what goes on until there is one."""

import json
import re
import secrets
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from load import Load, find_losses, write_request
from psycopg import sql

from tests.services.s3_server import client_of, started, stopped

pytestmark = [pytest.mark.docker, pytest.mark.slow]
SOME = 8
_WAIT_S = 60.0


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def made_key(process, *arguments):
    done = process.command("keys", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- without a restart ----


def test_an_api_key_is_rotated_without_a_refused_call(service):
    process = service(auth="required", pool_size=0)
    key = made_key(process, "create", "--name", "loop")
    process.start()
    with process.client() as client:

        def status(secret):
            return client.get("/v1/caller", headers=bearer(secret)).status_code

        with Load(process.url, write_request, headers=bearer(key["secret"])) as load:
            load.wait_for(SOME)
            fresh = made_key(process, "rotate", key["id"], "--overlap", "1h")["secret"]
            until(lambda: status(fresh) == 200)
            load.wait_for(SOME)  # the old secret works on
            load.headers = bearer(fresh)
            load.wait_for(SOME)
        assert load.refusals == []
        last = made_key(process, "rotate", key["id"], "--overlap", "0s")["secret"]
        until(lambda: status(last) == 200)
        assert (status(key["secret"]), status(fresh)) == (401, 401)


def until(is_true):
    """Ask until it is true: changes of keys are noticed soon, not at once."""
    deadline = time.monotonic() + _WAIT_S
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_key_of_signed_heads_is_rotated_while_lines_are_signed(service):
    process = service(pool_size=0, audit_head_s=0.2)
    process.start()
    with Load(process.url, write_request) as load:
        load.wait_for(SOME)
        done = process.command("audit", "rotate-key")
        assert done.returncode == 0, done.stderr
        load.wait_for(SOME)
    with process.client() as client:
        assert re.search(r"^proofbox_audit_signing 1", client.get("/metrics").text, re.MULTILINE)
    process.stop()
    done = process.command("audit", "verify")
    assert done.returncode == 0, done.stdout
    heads = [json.loads(line) for line in (process.data_dir / "audit-heads.jsonl").read_text().splitlines()]
    assert len({head["key"] for head in heads if "key" in head}) == 2


def test_links_outlive_a_rotation_unless_it_is_at_once(service):
    process = service(pool_size=0)
    process.start()
    with Load(process.url, write_request) as load:
        [call, *_] = load.wait_for(SOME)
        with process.client() as client:
            link = client.get(f"{call.file}?link=1").headers["Location"]
            assert process.command("links", "rotate").returncode == 0
            assert client.get(link).content == call.content
            newer = client.get(f"{call.file}?link=1").headers["Location"]
            assert process.command("links", "rotate", "--at-once").returncode == 0
            until(lambda: client.get(newer).status_code == 403)
            assert client.get(link).status_code == 403
            assert client.get(client.get(f"{call.file}?link=1").headers["Location"]).content == call.content
        load.wait_for(SOME)


# ---- with a restart ----


@pytest.fixture
def roles(administrator, database_url):
    """The owner of the database, without rights beyond it, and a second role that acts as the owner."""
    names = [f"operations_{secrets.token_hex(4)}" for _ in range(2)]
    owner, second = map(sql.Identifier, names)
    database = sql.Identifier(urlsplit(database_url).path.strip("/"))
    for role in (owner, second):
        administrator.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'first'").format(role))
    administrator.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, owner))
    administrator.execute(sql.SQL("GRANT {} TO {}").format(owner, second))
    administrator.execute(sql.SQL("ALTER ROLE {} SET role = {}").format(second, sql.Literal(names[0])))
    yield names
    administrator.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
    for role in (second, owner):
        administrator.execute(sql.SQL("DROP ROLE {}").format(role))


def address(url, role, password):
    parts = urlsplit(url)
    return parts._replace(netloc=f"{role}:{password}@{parts.hostname}:{parts.port}").geturl()


def end_connections(administrator, role):
    administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role])


@pytest.fixture
def by_file(service, database_url, roles, tmp_path):
    """A service whose database URL is in a file."""
    file = tmp_path / "database_url"
    file.write_text(address(database_url, roles[0], "first"))
    return service(database_url_file=file, pool_size=0)


def test_a_new_password_of_the_database_holds_until_a_connection_is_lost(
    by_file, administrator, database_url, roles, tmp_path
):
    process, [owner, _] = by_file, roles
    process.start()
    with Load(process.url, write_request) as load:
        load.wait_for(SOME)
        administrator.execute(sql.SQL("ALTER ROLE {} PASSWORD 'second'").format(sql.Identifier(owner)))
        load.wait_for(SOME)  # over the connections that are open
    # No call is under way from here on: it would be cut off by the stop before its answer could be stored.
    end_connections(administrator, owner)
    with process.client() as client:
        until(lambda: client.get("/readyz").status_code == 503)
        assert client.get("/readyz").json()["code"] == "store_failed"
    (tmp_path / "database_url").write_text(address(database_url, owner, "second"))
    process.stop()
    process.start()
    with Load(process.url, lambda call_id, _: write_request(call_id, "after")) as after:
        after.wait_for(SOME)
    with process.client() as client:
        assert find_losses(client, [*load.ended(), *after.ended()]) == []


def test_a_second_role_replaces_the_first_without_a_failed_call(
    by_file, administrator, database_url, roles, tmp_path
):
    process, [owner, second] = by_file, roles
    process.start()
    with Load(process.url, write_request) as load:
        load.wait_for(SOME)
        (tmp_path / "database_url").write_text(address(database_url, second, "first"))
        process.stop()
        process.start()
        administrator.execute(sql.SQL("ALTER ROLE {} NOLOGIN").format(sql.Identifier(owner)))
        end_connections(administrator, owner)
        ended = load.wait_for(SOME)
        with process.client() as client:
            assert client.get("/readyz").status_code == 200
    with process.client() as client:
        assert find_losses(client, ended) == []
    with psycopg.connect(database_url) as connection:
        owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
        assert owners.fetchall() == [(owner,)]


@pytest.fixture
def own_s3(tmp_path):
    """The bucket of a server of the test's own, and its folder."""
    folder = tmp_path / "services"
    yield started(folder), folder
    stopped(folder)


def set_keys(folder, *keys):
    """Give the server these access keys, as an operator does: it reads them again."""
    identities = folder / "s3" / "identities.json"
    content = json.loads(identities.read_text())
    content["identities"][0]["credentials"] = [{"accessKey": name, "secretKey": secret} for name, secret in keys]
    identities.write_text(json.dumps(content))
    subprocess.run(["kill", f"-{signal.SIGHUP.name.removeprefix('SIG')}", pid_of(folder)], check=True)


def pid_of(folder: Path) -> str:
    return (folder / "s3" / "pid").read_text().strip()


def is_accepted(bucket):
    try:
        client_of(bucket).list_objects_v2(Bucket=bucket.name)
    except client_of(bucket).exceptions.ClientError:
        return False
    return True


def test_the_credentials_of_a_bucket_are_replaced_without_a_failed_call(service, own_s3):
    bucket, folder = own_s3
    old, fresh = (bucket.access_key, bucket.secret_key), ("fresh", secrets.token_hex(20))
    settings = {"s3_endpoint": bucket.endpoint, "s3_bucket": bucket.name, "pool_size": 0}
    process = service(s3_access_key=old[0], s3_secret_key=old[1], **settings)
    process.start()
    with Load(process.url, write_request) as load:
        load.wait_for(SOME)
        set_keys(folder, old, fresh)
        until(lambda: is_accepted(replace(bucket, access_key=fresh[0], secret_key=fresh[1])))
        load.wait_for(SOME)
        process.settings |= {"s3_access_key": fresh[0], "s3_secret_key": fresh[1]}
        process.stop()
        process.start()
        load.wait_for(SOME)
        set_keys(folder, fresh)
        until(lambda: not is_accepted(bucket))
        ended = load.wait_for(SOME)
    with process.client() as client:
        assert find_losses(client, ended) == []
