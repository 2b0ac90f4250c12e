"""Gotenberg's API before anything runs: health, credentials, errors as text, and what it refuses."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from proofbox.contracts.provenance import AuditService
from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.api.app import create_app
from proofbox.service.api.services import Services
from proofbox.service.facades.gotenberg.facade import GotenbergFacade
from proofbox.service.jobs.one_shot import OneShotDependencies, OneShotJobs
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.audit import SqlAuditStore
from tests.http.conftest import LIMITS, PRINCIPAL, Flags, Stores
from tests.support.fake_engine import FakeSandboxEngine

FORM_BYTES_MAX = 500_000
# Nothing is run here: these requests are refused before.
NOTHING: Any = None
PAGE = {"index.html": ("index.html", b"<h1>x</h1>")}
PDF = {"files": ("a.pdf", b"%PDF-1.7")}


@pytest.fixture
def one_shot(stores: Stores) -> OneShotJobs:
    policy = CallPolicy(LIMITS, 1, 1, 0)
    audited = AuditService(version="0", boot_id="boot")
    audit = SqlAuditStore(stores.database)
    return OneShotJobs(OneShotDependencies(NOTHING, NOTHING, stores.artifacts, audit, policy, 10, audited))


async def client_of(services: Services, one_shot: OneShotJobs) -> AsyncIterator[httpx.AsyncClient]:
    app = create_app(services, facades=[GotenbergFacade(services, one_shot, FORM_BYTES_MAX)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox/gotenberg") as client:
        yield client


@pytest.fixture
async def gotenberg(services: Services, one_shot: OneShotJobs) -> AsyncIterator[httpx.AsyncClient]:
    async for client in client_of(services, one_shot):
        yield client


async def issue_key(stores: Stores, permissions: frozenset[Permission]) -> str:
    """Makes a key and returns its secret."""
    key_id = new_key_id()
    secret = new_secret(key_id)
    created = "2026-01-01T00:00:00.000Z"
    hashed = secret_sha256(secret)
    key = ApiKey(key_id, "print", PRINCIPAL.tenant, PRINCIPAL.project, None, None, permissions, hashed, created)
    await SqlApiKeys(stores.database).add(key)
    return secret


@pytest.fixture
async def secret(stores: Stores) -> str:
    return await issue_key(stores, frozenset({Permission.CALLS_RUN}))


@pytest.fixture
async def guarded(services: Services, one_shot: OneShotJobs, stores: Stores) -> AsyncIterator[httpx.AsyncClient]:
    keyring = Keyring(SqlApiKeys(stores.database))
    needed = Authenticator(PRINCIPAL, keyring, required=True)
    async for client in client_of(replace(services, authenticator=needed), one_shot):
        yield client


def is_text(answer: httpx.Response) -> bool:
    return answer.headers["Content-Type"] == "text/plain; charset=utf-8"


async def test_health_and_version_are_those_of_gotenberg(gotenberg: httpx.AsyncClient) -> None:
    health = await gotenberg.get("/health")
    assert (health.status_code, health.json()["status"]) == (200, "up")
    assert health.json()["details"]["chromium"]["status"] == "up"
    assert (await gotenberg.head("/health")).status_code == 200
    version = await gotenberg.get("/version")
    assert (version.text, is_text(version)) == ("8.36.0", True)


async def test_health_is_down_without_the_engine(gotenberg: httpx.AsyncClient, engine: FakeSandboxEngine) -> None:
    engine.is_down = True
    health = await gotenberg.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "down")


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/forms/chromium/convert/html", 405, "Method Not Allowed"),
        ("POST", "/health", 405, "Method Not Allowed"),
        ("POST", "/forms/chromium/convert/url", 404, "no outgoing network"),
        ("POST", "/forms/chromium/screenshot/url", 404, "no outgoing network"),
        ("POST", "/forms/libreoffice/convert", 404, "no LibreOffice"),
        ("POST", "/forms/pdfengines/convert", 404, "no PDF engine"),
        ("POST", "/forms/pdfengines/watermark", 404, "no PDF engine"),
        ("POST", "/forms/pdfengines/stamp", 404, "no PDF engine"),
        ("POST", "/forms/pdfengines/optimize", 404, "no PDF engine"),
        ("POST", "/forms/pdfengines/factur-x", 404, "no PDF engine"),
        ("GET", "/prometheus/metrics", 404, "Not Found"),
        ("POST", "/forms/nothing", 404, "Not Found"),
    ],
)
@pytest.mark.shares_fixtures
async def test_other_routes_answer_a_sentence(
    gotenberg: httpx.AsyncClient, method: str, path: str, status: int, sentence: str
) -> None:
    answer = await gotenberg.request(method, path)
    assert (answer.status_code, is_text(answer)) == (status, True)
    assert sentence in answer.text


@pytest.mark.parametrize("form", ["bearer", "password", "user"])
async def test_a_key_is_a_bearer_token_or_a_part_of_basic_credentials(
    guarded: httpx.AsyncClient, secret: str, form: str
) -> None:
    def basic(text: str) -> str:
        return f"Basic {base64.b64encode(text.encode()).decode()}"

    values = {"bearer": f"Bearer {secret}", "password": basic(f"me:{secret}"), "user": basic(f"{secret}:x")}
    answer = await guarded.get("/version", headers={"Authorization": values[form]})
    assert answer.status_code == 200


@pytest.mark.parametrize("value", ["", "Basic !!!", "Basic bWU6", "Bearer pbx_wrong", "Digest x"])
async def test_without_a_valid_key_the_answer_is_401(guarded: httpx.AsyncClient, value: str) -> None:
    headers = {"Authorization": value} if value else {}
    answer = await guarded.post("/forms/pdfengines/merge", headers=headers, files=PDF)
    assert (answer.status_code, is_text(answer)) == (401, True)
    assert answer.headers["WWW-Authenticate"].startswith("Basic")
    assert (await guarded.get("/health")).status_code == 200


async def test_a_key_without_the_scope_is_403(guarded: httpx.AsyncClient, stores: Stores) -> None:
    secret = await issue_key(stores, ALL_PERMISSIONS - {Permission.CALLS_RUN})
    headers = {"Authorization": f"Bearer {secret}"}
    answer = await guarded.post("/forms/pdfengines/merge", headers=headers, files=PDF)
    assert (answer.status_code, is_text(answer)) == (403, True)
    assert "calls:run" in answer.text


async def test_a_form_beyond_the_bound_is_413(gotenberg: httpx.AsyncClient) -> None:
    files = {"files": ("a.pdf", b"%PDF" + b"x" * FORM_BYTES_MAX)}
    answer = await gotenberg.post("/forms/pdfengines/flatten", files=files)
    assert (answer.status_code, is_text(answer)) == (413, True)
    assert str(FORM_BYTES_MAX) in answer.text


async def test_a_stopping_service_answers_503(gotenberg: httpx.AsyncClient, flags: Flags) -> None:
    flags.draining = True
    answer = await gotenberg.post("/forms/chromium/convert/html", files=PAGE)
    assert (answer.status_code, is_text(answer)) == (503, True)
    assert "Retry-After" in answer.headers


async def test_the_trace_is_echoed_or_made(gotenberg: httpx.AsyncClient) -> None:
    answer = await gotenberg.post("/forms/pdfengines/merge", headers={"Gotenberg-Trace": "my-trace"})
    assert answer.headers["Gotenberg-Trace"] == "my-trace"
    answer = await gotenberg.post("/forms/pdfengines/merge", headers={"Gotenberg-Trace": "a b"})
    assert answer.headers["Gotenberg-Trace"] == answer.headers["X-Request-ID"]


async def test_a_webhook_is_refused(gotenberg: httpx.AsyncClient) -> None:
    headers = {"Gotenberg-Webhook-Url": "http://example.org/hook"}
    answer = await gotenberg.post("/forms/chromium/convert/html", headers=headers, files=PAGE)
    assert (answer.status_code, is_text(answer)) == (400, True)
    assert answer.text.startswith("Gotenberg-Webhook-Url: ")


REFUSED_BY_BOTH = {
    "waitForExpression": "window.ready", "waitForSelector": "#ready", "waitWindowStatus": "done",
    "cookies": '[{"name":"a","value":"b","domain":"x"}]', "userAgent": "Mozilla", "extraHttpHeaders": '{"X-A":"b"}',
    "emulatedMediaFeatures": '[{"name":"prefers-color-scheme","value":"dark"}]', "failOnHttpStatusCodes": "[404]",
    "failOnResourceHttpStatusCodes": "[404]", "ignoreResourceHttpStatusDomains": '["example.org"]',
    "downloadFrom": '[{"url":"http://example.org/a.pdf"}]', "watermarkSource": "text", "stampExpression": "x",
    "emulatedMediaType": "tv", "failOnResourceLoadingFailed": "maybe",
}  # fmt: skip
REFUSED_BY_CONVERSIONS = {
    "paperWidth": "0.1mm", "paperHeight": "10m", "marginTop": "-1", "landscape": "sideways", "scale": "3",
    "nativePageRanges": "one", "pdfa": "PDF/A-1b", "emulatedMediaType": "screen", "omitBackground": "true",
    "metadata": "[]", "splitMode": "halves", "splitSpan": "2", "rotateAngle": "45", "allowPrinting": "false",
    "facturxConformanceLevel": "BASIC", "optimizeImages": "true", "bookmarks": '[{"title":1}]',
    "embedsMetadata": '{"a":1}', "userPassword": "x" * 200,
}  # fmt: skip
REFUSED_BY_SCREENSHOTS = {
    "width": "0", "height": "20000", "deviceScaleFactor": "0.5", "format": "gif", "quality": "101", "clip": "x",
    "emulatedMediaType": "print", "selector": "a" * 300,
}  # fmt: skip
REFUSED_BY_ENGINES = {
    "pdfa": "PDF/A-2b", "pdfua": "true", "watermarkSource": "text", "stampSource": "text", "metadata": "foo",
    "downloadFrom": '[{"url":"http://example.org/a.pdf"}]', "optimizeImages": "true", "rotateAngle": "45",
    "allowCopying": "false", "facturxVersion": "1", "bookmarks": '{"a.pdf": [{"title": "x"}]}',
}  # fmt: skip
CASES = [
    *(("/forms/chromium/convert/html", *item) for item in {**REFUSED_BY_BOTH, **REFUSED_BY_CONVERSIONS}.items()),
    *(("/forms/chromium/screenshot/html", *item) for item in {**REFUSED_BY_BOTH, **REFUSED_BY_SCREENSHOTS}.items()),
    *(("/forms/pdfengines/merge", *item) for item in REFUSED_BY_ENGINES.items()),
]


@pytest.mark.parametrize(("path", "name", "value"), CASES, ids=lambda value: value[:40])
@pytest.mark.shares_fixtures
async def test_a_field_that_cannot_be_honoured_is_refused_by_name(
    gotenberg: httpx.AsyncClient, path: str, name: str, value: str
) -> None:
    files = PDF if "pdfengines" in path else PAGE
    answer = await gotenberg.post(path, files=files, data={name: value})
    assert (answer.status_code, is_text(answer)) == (400, True)
    assert name in answer.text


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/forms/chromium/convert/html", "form file 'index.html' is required"),
        ("/forms/chromium/convert/markdown", "no form file found for extensions: [.md]"),
        ("/forms/chromium/screenshot/markdown", "form file 'index.html' is required"),
        ("/forms/pdfengines/merge", "no form file found for extensions: [.pdf]"),
        ("/forms/pdfengines/split", "form field 'splitMode' is required\nform field 'splitSpan' is required"),
        ("/forms/pdfengines/rotate", "form field 'rotateAngle' is required"),
        ("/forms/pdfengines/encrypt", "form field 'userPassword' is required"),
        ("/forms/pdfengines/embed", "form file 'embeds' is required"),
        ("/forms/pdfengines/metadata/read", "no form file found for extensions: [.pdf]"),
        ("/forms/pdfengines/metadata/write", "form field 'metadata' is required"),
        ("/forms/pdfengines/bookmarks/read", "no form file found for extensions: [.pdf]"),
        ("/forms/pdfengines/bookmarks/write", "form field 'bookmarks' is required"),
    ],
)
@pytest.mark.shares_fixtures
async def test_what_is_missing_is_named(gotenberg: httpx.AsyncClient, path: str, sentence: str) -> None:
    answer = await gotenberg.post(path, files={"files": ("a.txt", b"x")})
    assert (answer.status_code, is_text(answer)) == (400, True)
    assert sentence in answer.text


@pytest.mark.parametrize("field", ["watermark", "stamp", "facturxXml"])
async def test_a_file_that_is_not_used_is_refused(gotenberg: httpx.AsyncClient, field: str) -> None:
    answer = await gotenberg.post(
        "/forms/pdfengines/merge", files=[("files", PDF["files"]), (field, ("w.pdf", b"x"))]
    )
    assert answer.status_code == 400
    assert f"form file '{field}' is invalid" in answer.text


def files_below(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


async def test_the_folder_of_a_refused_request_is_removed(gotenberg: httpx.AsyncClient, tmp_path: Path) -> None:
    before = files_below(tmp_path)
    answer = await gotenberg.post("/forms/pdfengines/merge", files={"files": ("a.txt", b"x")})
    assert answer.status_code == 400
    assert files_below(tmp_path) <= before
