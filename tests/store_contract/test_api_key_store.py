"""Keys in the database, on both kinds of it, and the command that makes them while the service runs."""

import json
import sqlite3
from contextlib import closing

import pytest

from proofbox import cli
from proofbox.service.access.api_keys import ALL_PERMISSIONS, ApiKey, Permission, key_id_of, secret_sha256
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.api_keys import SqlApiKeys, UnknownKeyError
from proofbox.service.storage.database import Database

KEY = ApiKey(
    id="abcdefghijkm",
    name="loop",
    tenant="acme",
    project=None,
    user_type=None,
    user="ann",
    permissions=frozenset({Permission.CALLS_RUN, Permission.TIMELINE_READ}),
    sha256="a" * 64,
    created="2026-01-01T00:00:00.000Z",
    limits={"calls_per_minute": 5, "stored_bytes": 0},
    network=("pypi.org:443",),
    packages=("scikit-image", "tiny"),
    expires="2030-01-01T00:00:00.000Z",
)
OTHER = ApiKey("zzzzzzzzzzzz", "b", "t", "p", "bot", None, ALL_PERMISSIONS, "b" * 64, "2026-01-02T00:00:00.000Z")


@pytest.fixture
def keys(database):
    return SqlApiKeys(database)


async def test_keys_are_kept_as_they_are_made_the_oldest_first(keys):
    await keys.add(OTHER)
    await keys.add(KEY)
    assert await keys.all() == [KEY, OTHER]


async def test_an_id_is_taken_once(keys):
    await keys.add(KEY)
    with pytest.raises(StoreFailedError):
        await keys.add(KEY)


async def test_a_rotation_keeps_the_secret_before_it_and_no_older_one(keys):
    await keys.add(KEY)
    once = await keys.rotate(KEY.id, "c" * 64, "2026-02-01T00:00:00.000Z")
    assert (once.sha256, once.old_sha256, once.old_until) == ("c" * 64, "a" * 64, "2026-02-01T00:00:00.000Z")
    twice = await keys.rotate(KEY.id, "d" * 64, "2026-03-01T00:00:00.000Z")
    assert (twice.sha256, twice.old_sha256) == ("d" * 64, "c" * 64)
    assert await keys.all() == [twice]


async def test_a_key_that_was_revoked_stays_so(keys):
    await keys.add(KEY)
    revoked = await keys.revoke(KEY.id)
    assert revoked.revoked is not None
    for again in (keys.revoke(KEY.id), keys.rotate(KEY.id, "c" * 64, "2026-02-01T00:00:00.000Z")):
        with pytest.raises(UnknownKeyError, match="was revoked at"):
            await again
    with pytest.raises(UnknownKeyError, match="key 'nobody' does not exist"):
        await keys.revoke("nobody")
    assert await keys.all() == [revoked]


async def test_uses_of_many_keys_are_written_together(keys):
    for key in (KEY, OTHER):
        await keys.add(key)
    await keys.note_use({})
    await keys.note_use({OTHER.id: "2026-01-03T00:00:00Z", KEY.id: "2026-01-04T00:00:00Z", "gone": "x"})
    assert [key.used for key in await keys.all()] == ["2026-01-04T00:00:00Z", "2026-01-03T00:00:00Z"]


async def test_a_scope_of_a_newer_release_gives_nothing(opened_database, tmp_path):
    async with opened_database(tmp_path) as database:
        await SqlApiKeys(database).add(KEY)
        with closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
            direct.execute("UPDATE api_keys SET permissions = 'calls:run moon:land'")
        [key] = await SqlApiKeys(database).all()
    assert key.permissions == {Permission.CALLS_RUN}


# ---- beside a service that runs ----


async def test_a_command_changes_keys_while_the_service_has_the_database(database_url, opened_database, tmp_path):
    async with opened_database(tmp_path, database_url) as running:
        beside = Database(tmp_path, database_url)
        await beside.open_beside()
        await SqlApiKeys(beside).add(KEY)
        await beside.close()
        assert await SqlApiKeys(running).all() == [KEY]
        await SqlApiKeys(running).revoke(KEY.id)
        with pytest.raises(StoreFailedError, match="in use by another process"):
            await Database(tmp_path, database_url).open()


async def test_without_a_service_the_command_makes_the_database(database_url, opened_database, tmp_path):
    alone = Database(tmp_path / "new", database_url)
    await alone.open_beside()
    await SqlApiKeys(alone).add(KEY)
    await alone.close()
    async with opened_database(tmp_path / "new", database_url) as later:
        assert await SqlApiKeys(later).all() == [KEY]


async def test_beside_a_service_of_another_release_nothing_is_changed(opened_database, tmp_path):
    async with opened_database(tmp_path):
        with closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
            direct.execute("UPDATE alembic_version SET version_num = '0099'")
        with pytest.raises(StoreFailedError, match=r"has schema 99 and this command knows \d+; use the command"):
            await Database(tmp_path).open_beside()
        with closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
            assert direct.execute("SELECT version_num FROM alembic_version").fetchall() == [("0099",)]


# ---- the command ----


@pytest.fixture
def proofbox(database_url, tmp_path, monkeypatch, capsys):
    """Runs the command on a database; its status, what it prints, what it says."""
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path / "cli"))
    monkeypatch.setenv("PROOFBOX_DATABASE_URL", database_url.get_secret_value())

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            status = cli.main(list(arguments))
        except SystemExit as exc:
            status = int(exc.code or 0)
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def test_a_secret_is_shown_once_alone_on_standard_output_and_never_again(proofbox):
    status, secret, said = proofbox("keys", "create", "--name", "loop", "--tenant", "acme", "--project", "books")
    secret = secret.removesuffix("\n")
    key_id = key_id_of(secret)
    assert (status, key_id is not None, secret in said) == (0, True, False)
    later = [proofbox("keys", "list"), proofbox("keys", "list", "--json"), proofbox("keys", "revoke", str(key_id))]
    assert [status for status, _, _ in later] == [0, 0, 0]
    assert [secret[17:] in out + err for _, out, err in later] == [False, False, False]


def test_json_has_all_of_a_key_and_its_rotation_gives_another_secret(proofbox):
    made = json.loads(
        proofbox(
            *("keys", "create", "--name", "ci", "--tenant", "acme", "--any-project", "--user", "bot", "--json"),
            *("--scopes", "calls:run,metrics:read", "--expires", "30d", "--limit", "calls_per_minute=5"),
        )[1]
    )
    assert {name: made[name] for name in ("name", "tenant", "project", "user", "scopes", "limits", "state")} == {
        "name": "ci",
        "tenant": "acme",
        "project": "*",
        "user": "bot",
        "scopes": "calls:run,metrics:read",
        "limits": {"calls_per_minute": 5},
        "state": "works",
    }
    rotated = json.loads(proofbox("keys", "rotate", made["id"], "--overlap", "1h", "--json")[1])
    assert key_id_of(rotated["secret"]) == key_id_of(made["secret"]) == made["id"]
    assert rotated["secret"] != made["secret"]
    assert rotated["old_secret"].startswith("works until 20")
    assert json.loads(proofbox("keys", "revoke", made["id"], "--json")[1])["state"] == "revoked"
    [listed] = json.loads(proofbox("keys", "list", "--json")[1])
    assert (listed["state"], listed["old_secret"], "secret" in listed) == ("revoked", "-", False)


@pytest.mark.parametrize(
    ("options", "network"),
    [
        ((), None),
        (("--network", "PyPI.org", "--network", "*.example.com:80"), ["*.example.com:80", "pypi.org:443"]),
        (("--network", "none"), []),
    ],
)
def test_a_key_can_have_fewer_hosts_than_the_operator_allows(proofbox, options, network):
    made = json.loads(proofbox("keys", "create", "--name", "ci", "--json", *options)[1])
    assert made["network"] == network
    [listed] = json.loads(proofbox("keys", "list", "--json")[1])
    assert listed["network"] == network


@pytest.mark.parametrize(
    ("options", "packages", "limits"),
    [
        ((), None, {}),
        (("--package", "Scikit.Image", "--package", "a"), ["a", "scikit-image"], {}),
        (("--package", "none"), [], {}),
        (
            ("--limit", "package_count=3", "--limit", "package_bytes=9"),
            None,
            {"package_count": 3, "package_bytes": 9},
        ),
    ],
)
def test_a_key_can_have_fewer_packages_than_the_operator_allows(proofbox, options, packages, limits):
    made = json.loads(proofbox("keys", "create", "--name", "ci", "--json", *options)[1])
    assert (made["packages"], made["limits"]) == (packages, limits)
    [listed] = json.loads(proofbox("keys", "list", "--json")[1])
    assert (listed["packages"], listed["limits"]) == (packages, limits)


def test_a_package_of_a_key_is_a_name_without_versions(proofbox):
    status, _, said = proofbox("keys", "create", "--name", "ci", "--package", "tiny==1.0")
    assert (status, "'tiny==1.0' is not the name of a package" in said) == (2, True)


def test_only_a_hash_lies_in_the_database(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path))
    assert cli.main(["keys", "create", "--name", "loop"]) == 0
    secret = capsys.readouterr().out.strip()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert secret.encode() not in kept
    assert secret.rpartition("_")[2].encode() not in kept
    assert secret_sha256(secret).encode() in kept


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "--name", "a b"), "1 to 100 characters"),
        (("create", "--name", "a", "--tenant", "../x"), "1 to 100 characters"),
        (("create", "--name", "a", "--scopes", "calls:run,all"), "'all' is not a valid Permission"),
        (("create", "--name", "a", "--expires", "soon"), "a number and s, m, h or d"),
        (("create", "--name", "a", "--limit", "calls=5"), "write NAME=NUMBER"),
        (("create", "--name", "a", "--limit", "calls_per_minute=-1"), "write NAME=NUMBER"),
        (("create",), "--name"),
        (("rotate", "nobody"), "key 'nobody' does not exist"),
        (("revoke", "nobody"), "key 'nobody' does not exist"),
    ],
)
def test_a_command_that_cannot_be_done_says_why_and_makes_nothing(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path))
    try:
        status = cli.main(["keys", *arguments])
    except SystemExit as exc:
        status = exc.code
    assert (status, said in capsys.readouterr().err) == (2, True)
    assert cli.main(["keys", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
