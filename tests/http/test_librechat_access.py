"""LibreChat's API: every kind of credentials, the tenant and user that each stands for, and who is refused."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.access.quotas import Allowances, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.facades.librechat.access import Access
from proofbox.service.facades.librechat.routes import LibreChat
from proofbox.service.facades.librechat.tokens import TokenVerifier, read_public_keys
from proofbox.service.storage.api_keys import SqlApiKeys
from tests.http.conftest import PRINCIPAL

URL = "/librechat/v1"
ID = "A" * 21
LISTING = f"{URL}/files/{ID}"
ED25519 = Ed25519PrivateKey.generate()
RSA = generate_private_key(65_537, 2048)


def now() -> int:
    return int(time.time())


def claims(**changes: Any) -> dict[str, Any]:
    at = now()  # once: a second more between two of these is a longer lifetime than may be
    usual = {
        "iss": "librechat",
        "aud": "codeapi",
        "sub": "66f2a1",
        "iat": at,
        "nbf": at,
        "exp": at + 300,
        "jti": "b2c1",
        "tenant_id": "legacy",
        "role": "USER",
        "principal_source": "librechat_jwt",
        "auth_context_hash": "0" * 64,
    }
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def token(
    key: Any = ED25519, algorithm: str = "EdDSA", headers: dict[str, Any] | None = None, **changes: Any
) -> str:
    return jwt.encode(claims(**changes), key, algorithm, headers or {"kid": "lc-codeapi-2026-05"})


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def basic(user: str, password: str = "") -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.fixture
def verifier(tmp_path) -> TokenVerifier:
    file = tmp_path / "librechat.pem"
    file.write_bytes(ED25519.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return TokenVerifier(read_public_keys(file), "librechat", "codeapi", "sales")


@pytest.fixture
def client_of(services) -> Callable[..., httpx.AsyncClient]:
    """Makes a client of the facade behind an authenticator."""

    def make(
        authenticator: Authenticator, verifier: TokenVerifier | None = None, allowed: Allowances | None = None
    ) -> httpx.AsyncClient:
        quotas = services.quotas if allowed is None else Quotas(allowed)
        changed = replace(services, authenticator=authenticator, quotas=quotas)
        app = create_app(changed, facades=[LibreChat(changed, Access(authenticator, verifier))])
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://code.example.com")

    return make


@pytest.fixture
def keyring(stores) -> Keyring:
    return Keyring(SqlApiKeys(stores.database))


@pytest.fixture
def client(client_of, keyring, verifier) -> httpx.AsyncClient:
    """A client of the facade where a key is required."""
    return client_of(Authenticator(PRINCIPAL, keyring, required=True), verifier)


@pytest.fixture
def issued(stores, keyring):
    """Makes a key and returns its secret."""

    async def issue(**fields: Any) -> str:
        key_id = new_key_id()
        secret = new_secret(key_id)
        values = {
            "id": key_id,
            "name": "librechat",
            "tenant": "acme",
            "project": "sales",
            "user_type": None,
            "user": None,
            "permissions": ALL_PERMISSIONS,
            "sha256": secret_sha256(secret),
            "created": "2026-01-01T00:00:00.000Z",
        }
        await SqlApiKeys(stores.database).add(ApiKey(**{**values, **fields}))
        keyring._read_at = float("-inf")
        return secret

    return issue


async def upload(client: httpx.AsyncClient, headers: dict[str, str], text: bytes = b"x") -> httpx.Response:
    return await client.post(f"{URL}/upload", files={"file": ("a.txt", text)}, headers=headers)


async def names(client: httpx.AsyncClient, session: str, headers: dict[str, str]) -> list[Any]:
    response = await client.get(f"{URL}/files/{session}", params={"detail": "normalized"}, headers=headers)
    assert response.status_code == 200, response.text
    return [file["name"] for file in response.json()]


async def test_an_api_key_is_taken_from_each_of_three_headers(client, issued):
    secret = await issued()
    ways = [bearer(secret), basic(secret), {"X-API-Key": secret}, {"authorization": f"bearer {secret}"}]
    for headers in ways:
        assert (await client.get(LISTING, headers=headers)).status_code == 200, headers
    stored = (await upload(client, basic(secret))).json()
    for headers in ways:
        assert await names(client, stored["storage_session_id"], headers) == ["a.txt"]


async def test_without_credentials_every_route_but_health_is_refused_as_the_client_reads_it(client):
    for method, path in [
        ("POST", "/exec"),
        ("POST", "/exec/programmatic"),
        ("POST", "/exec/programmatic/cancel"),
        ("POST", "/upload"),
        ("POST", "/upload/batch"),
        ("GET", f"/download/{ID}/{ID}"),
        ("GET", f"/sessions/{ID}/objects/{ID}"),
        ("GET", f"/files/{ID}"),
        ("DELETE", f"/files/{ID}/{ID}"),
        ("GET", "/nothing"),
    ]:
        response = await client.request(method, URL + path)
        assert response.status_code == 401, (method, path)
        assert response.json()["error"] == "unauthorized"
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    health = await client.get(f"{URL}/health")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    "headers",
    [
        bearer("pbx_unknown"),
        {"X-API-Key": ""},
        {"X-API-Key": "undefined"},
        basic(""),
        basic("user", "password"),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe:").decode()},
        {"Authorization": "Digest x"},
        {"Authorization": "Bearer"},
        bearer("a.b.c"),
        bearer(".."),
    ],
)
@pytest.mark.shares_fixtures
async def test_credentials_that_are_none_are_refused(client, headers):
    response = await client.get(LISTING, headers=headers)
    assert response.status_code == 401
    assert response.json()["error"] == "unauthorized"


async def test_credentials_in_two_headers_are_a_bad_request(client, issued):
    secret = await issued()
    response = await client.get(LISTING, headers={**bearer(secret), "X-API-Key": secret})
    assert response.status_code == 400
    assert response.json()["error"].startswith("credentials: two headers")


async def test_where_no_key_is_required_nothing_is_sent_and_a_wrong_key_is_still_refused(client_of, keyring):
    client = client_of(Authenticator(PRINCIPAL, keyring))
    session = (await upload(client, {})).json()["storage_session_id"]
    assert await names(client, session, {}) == ["a.txt"]
    assert (await client.get(LISTING, headers=bearer("pbx_wrong"))).status_code == 401


async def test_a_token_stands_for_its_tenant_and_user(client):
    anna, ben = bearer(token(sub="anna")), bearer(token(sub="ben"))
    other = bearer(token(sub="anna", tenant_id="globex"))
    session = (await upload(client, anna)).json()["storage_session_id"]
    assert await names(client, session, anna) == ["a.txt"]
    assert await names(client, session, ben) == []
    assert await names(client, session, other) == []


async def test_a_token_without_a_tenant_is_one_of_the_tenant_legacy(client):
    session = (await upload(client, bearer(token(tenant_id=None)))).json()["storage_session_id"]
    assert await names(client, session, bearer(token(tenant_id="legacy"))) == ["a.txt"]


async def test_a_token_never_reaches_the_files_of_a_key_of_the_same_names(client, issued):
    """Also where LibreChat's tenant and user have the names of the operator's."""
    secret = await issued(user="u-17")
    session = (await upload(client, bearer(secret))).json()["storage_session_id"]
    assert await names(client, session, bearer(token(tenant_id="acme", sub="u-17"))) == []


async def test_a_token_signed_with_rsa_is_taken_where_the_key_is_one(client_of, keyring, tmp_path):
    file = tmp_path / "keys.json"
    key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))
    file.write_text(json.dumps({"keys": [{**key, "kid": "rsa-1"}]}))
    verifier = TokenVerifier(read_public_keys(file), "librechat", "codeapi", "sales")
    client = client_of(Authenticator(PRINCIPAL, keyring, required=True), verifier)
    good = token(RSA, "RS256", {"kid": "rsa-1"})
    assert (await client.get(LISTING, headers=bearer(good))).status_code == 200
    for wrong in (token(RSA, "RS256", {"kid": "rsa-2"}), token(RSA, "RS256", {"typ": "JWT"})):
        assert (await client.get(LISTING, headers=bearer(wrong))).status_code == 401


def signed_by(key: Any, algorithm: str, **changes: Any) -> str:
    return token(key, algorithm, **changes)


WRONG = {
    "another key": lambda: token(Ed25519PrivateKey.generate()),
    "another algorithm": lambda: token(RSA, "RS256"),
    "the public key as a secret": lambda: token("x" * 64, "HS256"),
    "no signature": lambda: jwt.encode(claims(), None, "none"),
    "another issuer": lambda: token(iss="other"),
    "another audience": lambda: token(aud="other"),
    "no issuer": lambda: token(iss=None),
    "no audience": lambda: token(aud=None),
    "no subject": lambda: token(sub=None),
    "no id": lambda: token(jti=None),
    "an empty id": lambda: token(jti=""),
    "a long id": lambda: token(jti="x" * 257),
    "no begin": lambda: token(nbf=None),
    "no end": lambda: token(exp=None),
    "no time of issue": lambda: token(iat=None),
    "expired": lambda: token(iat=now() - 400, nbf=now() - 400, exp=now() - 100),
    "not yet valid": lambda: token(nbf=now() + 200),
    "issued in the future": lambda: token(iat=now() + 200, exp=now() + 300),
    "too long a lifetime": lambda: token(exp=now() + 900),
    "an end before its begin": lambda: token(iat=now() + 20, exp=now() + 10),
    "a subject that is no name": lambda: token(sub="../other"),
    "a tenant that is no name": lambda: token(tenant_id="a/b"),
    "a tenant that is no text": lambda: token(tenant_id=["a"]),
    "a long subject": lambda: token(sub="x" * 129),
}


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
@pytest.mark.shares_fixtures
async def test_a_token_is_refused_with(client, made):
    response = await client.get(LISTING, headers=bearer(made()))
    assert response.status_code == 401
    assert response.json()["error"] == "unauthorized"


async def test_the_clock_of_librechat_may_differ_by_half_a_minute(client):
    at = now()
    late = token(iat=at + 20, nbf=at + 20, exp=at + 300)
    early = token(iat=at - 310, nbf=at - 310, exp=at - 10)
    for secret in (late, early):
        assert (await client.get(LISTING, headers=bearer(secret))).status_code == 200


async def test_a_token_is_verified_where_no_key_is_required_too(client_of, verifier):
    client = client_of(Authenticator(PRINCIPAL), verifier)
    assert (await client.get(LISTING, headers=bearer(token(aud="other")))).status_code == 401
    session = (await upload(client, bearer(token(sub="anna")))).json()["storage_session_id"]
    assert await names(client, session, {}) == []


async def test_a_token_is_refused_by_name_where_the_operator_gave_no_public_key(client_of, keyring):
    client = client_of(Authenticator(PRINCIPAL, keyring))
    response = await client.get(LISTING, headers=bearer(token()))
    assert response.status_code == 401
    assert "PROOFBOX_LIBRECHAT_KEY_FILE" in response.json()["message"]


async def test_each_route_asks_for_the_scope_that_it_needs(client, issued):
    reader = await issued(permissions=frozenset({Permission.ARTIFACTS_READ}))
    writer = await issued(permissions=frozenset({Permission.ARTIFACTS_WRITE}))
    runner = await issued(permissions=frozenset({Permission.CALLS_RUN}))
    assert (await client.get(LISTING, headers=bearer(reader))).status_code == 200
    assert (await upload(client, bearer(writer))).status_code == 200
    cancel = {"json": {"request_id": "r" * 16}, "headers": bearer(runner)}
    assert (await client.post(f"{URL}/exec/programmatic/cancel", **cancel)).status_code == 202
    body = {"lang": "py", "code": "1"}
    for response in [
        await upload(client, bearer(reader)),
        await client.get(LISTING, headers=bearer(writer)),
        await client.delete(f"{LISTING}/{ID}", headers=bearer(reader)),
        await client.post(f"{URL}/exec", json=body, headers=bearer(reader)),
        await client.post(f"{URL}/exec/programmatic", json=body, headers=bearer(writer)),
    ]:
        assert (response.status_code, response.json()["error"]) == (403, "forbidden")


async def test_requests_and_runs_beyond_the_limit_are_told_when_to_come_again(client_of, keyring):
    client = client_of(
        Authenticator(PRINCIPAL, keyring, without_key=Allowances()), allowed=Allowances(requests_per_minute=2)
    )
    for _ in range(2):
        assert (await client.get(LISTING)).status_code == 200
    refused = await client.get(LISTING)
    assert refused.status_code == 429
    body = refused.json()
    assert body["error"] == "rate_limited"
    assert 0 < body["retry_after_seconds"] <= 60
    assert refused.headers["Retry-After"] == str(body["retry_after_seconds"])


async def test_users_have_limits_of_their_own(client_of, keyring, verifier):
    client = client_of(Authenticator(PRINCIPAL, keyring), verifier, Allowances(requests_per_minute=1))
    statuses = [
        (await client.get(LISTING, headers=bearer(token(sub=user)))).status_code for user in ("anna", "anna", "ben")
    ]
    assert statuses == [200, 429, 200]


async def test_users_whose_names_read_alike_have_limits_of_their_own(client_of, keyring, verifier):
    client = client_of(Authenticator(PRINCIPAL, keyring), verifier, Allowances(requests_per_minute=1))
    users = [("a:b", "c"), ("a", "b:c"), ("a:b", "c")]
    statuses = [
        (await client.get(LISTING, headers=bearer(token(tenant_id=tenant, sub=user)))).status_code
        for tenant, user in users
    ]
    assert statuses == [200, 200, 429]


async def test_a_run_counts_as_a_call(client_of, keyring):
    allowed = Allowances(calls_per_minute=1)
    client = client_of(Authenticator(PRINCIPAL, keyring, without_key=Allowances()), allowed=allowed)
    first = await client.post(f"{URL}/exec", json={"lang": "cobol", "code": "x"})
    assert first.status_code == 400
    assert (await client.post(f"{URL}/exec", json={"lang": "cobol", "code": "x"})).status_code == 429
    assert (await client.get(LISTING)).status_code == 200


@pytest.mark.parametrize(
    "content", ["", "no key", "{}", '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}', '{"keys": 1}']
)
def test_a_file_without_a_public_key_is_refused_by_its_name(tmp_path, content):
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ValueError, match="not the public key of LibreChat"):
        read_public_keys(file)


def test_a_short_rsa_key_is_refused(tmp_path):
    file = tmp_path / "short.pem"
    short = generate_private_key(65_537, 1024).public_key()
    file.write_bytes(short.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(ValueError, match="2048 bits"):
        read_public_keys(file)
