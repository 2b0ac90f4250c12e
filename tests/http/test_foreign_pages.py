"""A browser on the service's own machine: pages of strangers reach the port, and get nothing done there."""

from dataclasses import replace

import httpx
import pytest

from proofbox.service.access.authenticator import Authenticator
from proofbox.service.api.app import create_app
from proofbox.service.facades.gotenberg.facade import GotenbergFacade
from proofbox.service.facades.librechat.access import Access
from proofbox.service.facades.librechat.routes import LibreChat
from tests.http.conftest import PRINCIPAL

NAMES = frozenset({"localhost", "127.0.0.1", "box.local"})


@pytest.fixture
async def local(services):
    transport = httpx.ASGITransport(create_app(replace(services, hosts=NAMES)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
        yield client


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("LOCALHOST:1", True),
        ("127.0.0.1:8080", True),
        ("127.3.2.1", True),
        ("[::1]:8080", True),
        ("proofbox.localhost", True),
        ("box.local:99", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("evil.example:8080", False),
        ("localhost@evil.example", False),
        ("192.168.1.5", False),
        ("0.0.0.0:8080", False),
        ("169.254.169.254", False),
        ("2130706433", False),
        ("[::ffff:10.0.0.1]", False),
        ("[::1", False),
        ("localhost/.evil", False),
        ("evil@localhost", False),
        ("localhost#x", False),
        ("localhost?x", False),
        ("localhost:evil", False),
        ("localhost:8080:1", False),
        ("localhost:65535", True),
        ("localhost:65536", False),
        ("localhost:99999", False),
        ("localhost:-1", False),
        ("localhost:", True),
        ("localhost:8080/", False),
        ("localhost:8080#x", False),
        ("user:pass@localhost:8080", False),
        ("localhost%00.evil", False),
        ("localhost,evil.example", False),
        (".localhost", False),
        ("a..localhost", False),
        ("[127.0.0.1]", False),
        ("[localhost]", False),
        ("[::1%25lo]", False),
        ("[::1]x", False),
        ("[::1]:", True),
        ("[0:0:0:0:0:0:0:1]:80", True),
        ("::1", False),
        ("127.1", False),
        ("0177.0.0.1", False),
        ("local host", False),
        ("", False),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_name_that_was_made_to_lead_here_is_refused(local, host, allowed):
    answer = await local.get("/v1/tools", headers={"Host": host})
    assert (answer.status_code == 200) == allowed
    if not allowed:
        assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:8080", True),
        ("http://LOCALHOST:8080", True),
        ("http://localhost:8081", False),
        ("http://localhost", False),
        ("https://evil.example", False),
        ("http://localhost:8080.evil.example", False),
        ("http://localhost:8080@evil.example", False),
        ("null", False),
        ("", False),
        ("file://", False),
        ("chrome-extension://abc", False),
        ("https://localhost:8080", True),
        ("http://localhost:8080/", False),
        ("http://localhost:8080#x", False),
        ("ftp://localhost:8080", False),
        ("localhost:8080", False),
        ("//localhost:8080", False),
        ("http://[", False),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
@pytest.mark.shares_fixtures
async def test_a_page_of_another_origin_is_refused_whatever_it_asks(local, origin, allowed, method):
    answer = await local.request(method, "/v1/tool-calls/t1", headers={"Origin": origin})
    assert (answer.status_code != 403) == allowed


async def test_two_hosts_are_refused(local):
    answer = await local.get("/v1/tools", headers=[(b"Host", b"localhost"), (b"Host", b"evil.example")])
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Host", "localhost:8080", 403),
        ("Origin", "http://localhost:8080", 403),
        ("Authorization", "Bearer x", 401),
        ("Content-Type", "application/json", 400),
        ("content-type", "application/json", 400),
        ("Content-Length", "0", 400),
        ("Proofbox-Tenant", "acme", 400),
        ("Proofbox-Project", "sales", 400),
        ("Proofbox-Later", "x", 400),
    ],
)
@pytest.mark.parametrize("names", [NAMES, None])
@pytest.mark.parametrize("path", ["/v1/tools", "/livez", "/v1/links/1"])
async def test_a_header_that_says_who_asks_for_what_stands_once(services, names, name, value, status, path):
    transport = httpx.ASGITransport(create_app(replace(services, hosts=names)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8080") as client:
        answer = await client.get(path, headers=[(name, value), (name.upper(), value)])
    assert answer.status_code == status
    assert "more than once" in answer.json()["detail"]


async def test_a_second_origin_is_looked_at_too(local):
    headers = [(b"Origin", b"http://localhost:8080"), (b"Origin", b"https://evil.example")]
    answer = await local.get("/v1/tools", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")


async def test_probes_may_ask_for_health_by_any_name(local):
    assert (await local.get("/livez", headers={"Host": "10.1.2.3:8080"})).status_code == 200


async def test_what_is_refused_was_not_read(local, call_body):
    answer = await local.post("/v1/tool-calls", json=call_body, headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert (await local.get("/v1/tool-calls/t1")).status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/livez", "/v1/tools", "/nowhere", "/v1/tool-calls/x", "/metrics", "/openapi.json", "/docs", "/v1/links/1"],
)
@pytest.mark.shares_fixtures
async def test_every_answer_tells_a_browser_to_run_frame_sniff_and_keep_nothing(local, path):
    headers = (await local.get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers


async def test_the_page_of_documentation_may_run_its_own_scripts_and_no_others(local):
    page = await local.get("/docs")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert policy["script-src"].startswith("'self' 'sha256-")
    assert "unsafe" not in policy["script-src"]
    assert policy["connect-src"] == "'self'"
    script = await local.get("/static-offline-docs/swagger-ui-bundle.js")
    assert script.headers["content-type"].startswith(("text/javascript", "application/javascript"))


async def test_the_documentation_has_no_files_but_its_own(local):
    for path in ("/static-offline-docs/../core.py", "/static-offline-docs/%2e%2e/core.py", "/static-offline-docs/"):
        assert (await local.get(path)).status_code == 404


@pytest.fixture
async def with_facades(services):
    """The APIs of other products without keys and with any host name, as behind a proxy that authenticates."""
    reached = replace(services, public_url="https://files.example.com/box")
    facades = [
        GotenbergFacade(reached, None, 1_000),
        LibreChat(reached, Access(Authenticator(PRINCIPAL), None)),
    ]
    transport = httpx.ASGITransport(create_app(reached, facades=facades), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        ("/gotenberg/forms/chromium/convert/url", "text/plain; charset=utf-8"),
        ("/librechat/v1/upload", "application/json"),
    ],
)
@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        (None, True),
        ("http://proofbox", True),
        ("https://proofbox", True),
        ("https://files.example.com", True),
        ("http://files.example.com", False),
        ("http://evil.example", False),
        ("http://proofbox:8081", False),
        ("null", False),
        ("", False),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_foreign_page_posts_no_form_to_a_facade(with_facades, path, media_type, origin, is_own):
    given = {} if origin is None else {"Origin": origin}
    answer = await with_facades.post(path, files={"file": ("a.txt", b"x")}, headers=given)
    if is_own:
        assert answer.status_code != 403
    else:
        assert (answer.status_code, answer.headers["Content-Type"]) == (403, media_type)
        assert "may not use this service" in answer.text
