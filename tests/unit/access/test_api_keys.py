"""How a key looks, what is kept of it, when it works, and who is let in with it."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from proofbox.service.access import authenticator as access
from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    USUAL_PERMISSIONS,
    ApiKey,
    Permission,
    key_id_of,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring, RequestCredentials
from proofbox.service.access_errors import MissingPermissionError, NotAuthenticatedError, WrongTenantError
from proofbox.service.errors import StoreFailedError, UnsafeNameError
from proofbox.service.identity import Principal

KEYLESS = Principal("default", "default", "registered", "local")
NOW = datetime.now(UTC)


def utc(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def made(**fields) -> tuple[ApiKey, str]:
    key_id = new_key_id()
    secret = new_secret(key_id)
    values = {
        "id": key_id,
        "name": "loop",
        "tenant": "acme",
        "project": "books",
        "user_type": None,
        "user": None,
        "permissions": USUAL_PERMISSIONS,
        "sha256": secret_sha256(secret),
        "created": utc(NOW),
    }
    return ApiKey(**{**values, **fields}), secret


class Kept:
    """A store of keys that says how often it was asked."""

    def __init__(self, *keys: ApiKey) -> None:
        self.keys = list(keys)
        self.asked = 0
        self.used: list[dict[str, str]] = []
        self.fails = False

    async def all(self) -> list[ApiKey]:
        self.asked += 1
        if self.fails:
            raise StoreFailedError("the database failed")
        return self.keys

    async def note_use(self, used) -> None:
        if self.fails:
            raise StoreFailedError("the database failed")
        self.used.append(dict(used))


def bearer(secret: str, **claims: str) -> RequestCredentials:
    return RequestCredentials((f"Bearer {secret}",), **claims)


def test_a_secret_has_a_form_that_scanners_find_an_id_and_256_random_bits():
    secrets = {new_secret("abcdefghijkm") for _ in range(1000)}
    assert len(secrets) == 1000
    assert all(re.fullmatch(r"pbx_abcdefghijkm_[0-9A-Za-z]{49}", secret) for secret in secrets)
    assert {key_id_of(secret) for secret in secrets} == {"abcdefghijkm"}
    assert 62**43 > 2**256


@pytest.mark.parametrize(
    "bend",
    [
        lambda s: s[:-1] + ("0" if s[-1] != "0" else "1"),
        lambda s: s[:20] + ("0" if s[20] != "0" else "1") + s[21:],
        lambda s: s.replace("pbx_a", "pbx_b", 1),
        lambda s: s + "0",
        lambda s: s[:-1],
        lambda s: s + "\n",
        lambda s: s.upper(),
        lambda _: "",
        lambda _: "pbx_",
        lambda s: s.replace("_", "-"),
        lambda s: s.replace("0", "\u0660") + "\u0660",
    ],
)
def test_a_look_alike_is_told_by_its_checksum_without_asking_the_store(bend):
    assert key_id_of(bend(new_secret("abcdefghijkm"))) is None


def test_nothing_of_a_secret_is_kept_but_its_hash():
    key, secret = made()
    assert secret not in repr(key)
    assert secret[17:] not in repr(key)
    assert key.has_secret(secret, NOW)
    assert not key.has_secret(new_secret(key.id), NOW)


def test_the_secret_before_a_rotation_works_until_its_time_and_not_with_another_key():
    key, old = made()
    fresh = new_secret(key.id)
    until = NOW + timedelta(hours=1)
    rotated = replace(key, sha256=secret_sha256(fresh), old_sha256=key.sha256, old_until=utc(until))
    assert rotated.has_secret(fresh, NOW)
    assert rotated.has_secret(old, NOW)
    assert not rotated.has_secret(old, until)
    assert rotated.has_secret(fresh, until)
    assert not replace(rotated, old_until=None).has_secret(old, NOW)
    assert not key.has_secret("", NOW), "the hash of nobody's secret is no secret"


def test_a_key_ends_when_it_expires_or_is_revoked():
    key, _ = made(expires=utc(NOW + timedelta(seconds=1)))
    assert key.works_at(NOW)
    assert not key.works_at(NOW + timedelta(seconds=1))
    assert not replace(key, revoked=utc(NOW)).works_at(NOW)


async def test_a_key_says_tenant_and_project_and_leaves_the_user_to_the_operator():
    key, secret = made()
    caller = await Authenticator(KEYLESS, Keyring(Kept(key)), required=True).authenticate(bearer(secret))
    assert caller.principal == Principal("acme", "books", "registered", "local")
    assert caller.principal.key_id == key.id
    assert caller.permissions == USUAL_PERMISSIONS
    named, secret = made(user_type="service", user="bot-7", limits={"calls_per_minute": 3})
    caller = await Authenticator(KEYLESS, Keyring(Kept(named))).authenticate(bearer(secret))
    assert caller.principal == Principal("acme", "books", "service", "bot-7")
    assert (caller.own.calls_per_minute, caller.own.requests_per_minute) == (3, None)


async def test_without_a_key_the_operator_speaks_or_nobody():
    key, _ = made()
    caller = await Authenticator(KEYLESS, Keyring(Kept(key))).authenticate(RequestCredentials())
    assert (caller.principal, caller.permissions) == (KEYLESS, ALL_PERMISSIONS)
    with pytest.raises(NotAuthenticatedError) as refused:
        await Authenticator(KEYLESS, Keyring(Kept(key)), required=True).authenticate(RequestCredentials())
    assert not refused.value.was_given


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize(
    "authorization",
    [
        ("Bearer nonsense",),
        ("Bearer",),
        ("",),
        ("Basic dTpw",),
        (f"Bearer {new_secret('abcdefghijkm')}",),
        ("Bearer a", "Bearer b"),
    ],
)
async def test_a_key_that_does_not_work_is_refused_also_where_none_is_needed(required, authorization):
    key, _ = made()
    with pytest.raises(NotAuthenticatedError) as refused:
        await Authenticator(KEYLESS, Keyring(Kept(key)), required=required).authenticate(
            RequestCredentials(authorization)
        )
    assert refused.value.was_given


async def test_where_auth_is_off_the_header_of_a_proxy_is_none_of_ours():
    caller = await Authenticator(KEYLESS, None).authenticate(RequestCredentials(("Basic dTpw",)))
    assert caller.principal == KEYLESS


@pytest.mark.parametrize(
    ("claims", "allowed"),
    [
        ({"tenant": "acme"}, True),
        ({"project": "books"}, True),
        ({"tenant": "acme", "project": "books"}, True),
        ({"tenant": "other"}, False),
        ({"project": "other"}, False),
        ({"tenant": "ACME"}, False),
        ({"tenant": ""}, False),
        ({"tenant": "acm\u00e9"}, False),
    ],
)
async def test_a_request_that_names_another_tenant_or_project_than_its_key_is_refused(claims, allowed):
    key, secret = made()
    asked = Authenticator(KEYLESS, Keyring(Kept(key)))
    if allowed:
        assert (await asked.authenticate(bearer(secret, **claims))).principal.tenant == "acme"
        return
    with pytest.raises(WrongTenantError):
        await asked.authenticate(bearer(secret, **claims))


async def test_without_a_key_a_request_can_name_no_other_tenant_either():
    with pytest.raises(WrongTenantError):
        await Authenticator(KEYLESS, Keyring(Kept())).authenticate(RequestCredentials(tenant="acme"))


async def test_a_key_of_any_project_speaks_for_the_one_that_the_request_names():
    key, secret = made(project=None)
    asked = Authenticator(KEYLESS, Keyring(Kept(key)))
    assert (await asked.authenticate(bearer(secret, project="sales"))).principal.project == "sales"
    assert (await asked.authenticate(bearer(secret))).principal.project == "default"
    for odd in ("", "a/b", "x" * 101, "a b", "a:b"):
        with pytest.raises(UnsafeNameError):
            await asked.authenticate(bearer(secret, project=odd))
    with pytest.raises(WrongTenantError):
        await asked.authenticate(bearer(secret, project="sales", tenant="other"))


async def test_a_scope_that_a_key_has_not_is_named():
    key, secret = made(permissions=frozenset({Permission.CALLS_READ}))
    caller = await Authenticator(KEYLESS, Keyring(Kept(key))).authenticate(bearer(secret))
    caller.require(Permission.CALLS_READ)
    with pytest.raises(MissingPermissionError, match="does not have the scope calls:run"):
        caller.require(Permission.CALLS_RUN)


async def test_keys_are_read_at_most_once_a_second_whoever_asks_how_often(monkeypatch):
    key, secret = made()
    kept = Kept(key)
    ring = Keyring(kept)
    for _ in range(50):
        assert await ring.find(secret) == key
        assert await ring.find(new_secret(new_key_id())) is None
    assert kept.asked == 1
    kept.keys = [replace(key, revoked=utc(NOW))]
    monkeypatch.setattr(access, "FRESH_S", 0.0)
    assert await ring.find(secret) is None
    assert kept.asked == 2


async def test_when_the_keys_cannot_be_read_nobody_comes_in(monkeypatch):
    monkeypatch.setattr(access, "FRESH_S", 0.0)
    key, secret = made()
    kept = Kept(key)
    ring = Keyring(kept)
    assert await ring.find(secret) == key
    kept.fails = True
    with pytest.raises(StoreFailedError):
        await ring.find(secret)


async def test_uses_are_written_down_together_and_again_if_the_store_failed():
    key, secret = made()
    kept = Kept(key)
    ring = Keyring(kept)
    ring.start()
    for _ in range(10):
        await ring.find(secret)
    assert kept.used == []
    kept.fails = True
    await ring.write_uses()
    kept.fails = False
    await ring.stop()
    assert [list(used) for used in kept.used] == [[key.id]]
    await ring.stop()
    assert len(kept.used) == 1


async def test_whether_any_key_works_is_known():
    key, _ = made()
    assert await Keyring(Kept(key)).has_any()
    assert not await Keyring(Kept()).has_any()
    assert not await Keyring(Kept(replace(key, revoked=utc(NOW)))).has_any()
    assert not await Keyring(Kept(replace(key, expires=utc(NOW)))).has_any()
