"""The page of the console and its files: who gets them, under which policy, and how long they are cached."""

import gzip
import re
from dataclasses import replace

import httpx
import pytest

from proofbox.service.access.authenticator import Authenticator
from proofbox.service.api.app import create_app
from proofbox.service.console.assets import MEDIA_TYPES, read_asset, version
from proofbox.service.console.routes import console_routes
from tests.http.conftest import PRINCIPAL
from tests.http.test_access import keyring

__all__ = ["keyring"]

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def app_of(services):
    app = create_app(services)
    app.router.routes.extend(console_routes())
    return app


@pytest.fixture
async def browser(services, keyring):
    """A client without a key, of a service that requires keys."""
    closed = replace(services, authenticator=Authenticator(PRINCIPAL, keyring, required=True))
    transport = httpx.ASGITransport(app_of(closed), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox", headers=BROWSER) as client:
        yield client


def directives(answer):
    policy = answer.headers["content-security-policy"]
    return dict(part.strip().partition(" ")[::2] for part in policy.split(";"))


async def test_the_page_needs_no_key_and_is_not_stored(browser):
    answer = await browser.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store"
    assert (await browser.get("/v1/tools")).status_code == 401


async def test_only_the_script_of_the_page_runs_and_it_sends_to_this_service_only(browser):
    answer = await browser.get("/")
    policy = directives(answer)
    [nonce] = re.findall(r'<script type="module" nonce="([^"]+)"', answer.text)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == f"'nonce-{nonce}'"
    assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
    assert (policy["connect-src"], policy["img-src"]) == ("'self'", "'self' blob:")
    assert (policy["frame-ancestors"], policy["base-uri"], policy["form-action"]) == ("'none'", "'none'", "'none'")
    assert (policy["require-trusted-types-for"], policy["trusted-types"]) == ("'script'", "'none'")
    assert "unsafe" not in answer.headers["content-security-policy"]


async def test_every_page_has_another_nonce(browser):
    nonces = {directives(await browser.get("/"))["script-src"] for _ in range(20)}
    assert len(nonces) == 20


async def test_all_that_the_page_names_is_of_this_service_and_below_its_own_path(browser):
    page = (await browser.get("/")).text
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(named) == 3
    for address in named:
        assert not address.startswith(("/", "http", "//")), address
        assert (await browser.get(f"/{address}")).status_code == 200


@pytest.mark.parametrize(("path", "base"), [("/spaces", ""), ("/spaces/spc_1", "../")])
async def test_the_page_of_a_space_is_the_same_page_one_level_deeper(browser, path, base):
    answer = await browser.get(path)
    page = await browser.get("/")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert directives(answer).keys() == directives(page).keys()
    named = re.findall(r'(?:src|href)="([^"]+)"', answer.text)
    assert named == [f"{base}{each}" for each in re.findall(r'(?:src|href)="([^"]+)"', page.text)]
    assert "spc_1" not in answer.text
    assert (await browser.get(path, headers={"Accept": "application/json"})).status_code == 404
    assert (await browser.get("/spaces/spc_1/more")).status_code == 404


@pytest.mark.parametrize("name", MEDIA_TYPES)
async def test_a_file_comes_with_its_type_and_unchanged(browser, name):
    answer = await browser.get(f"/console/{name}", headers={"Accept-Encoding": "identity"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, MEDIA_TYPES[name])
    assert "content-encoding" not in answer.headers
    assert answer.content == read_asset(name).content
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_the_script_is_sent_compressed_where_the_client_accepts_it(browser):
    async with browser.stream("GET", "/console/console.js", headers={"Accept-Encoding": "gzip"}) as answer:
        sent = b"".join([piece async for piece in answer.aiter_raw()])
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(sent) == read_asset("console.js").content
    assert len(sent) < 400_000


async def test_a_file_is_cached_for_good_under_the_address_of_its_version_only(browser):
    current = await browser.get(f"/console/console.js?v={version()}")
    other = await browser.get("/console/console.js?v=0")
    assert "immutable" in current.headers["cache-control"]
    assert other.headers["cache-control"] == "no-cache"
    known = await browser.get("/console/console.js", headers={"If-None-Match": other.headers["etag"]})
    assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize("name", ["x.js", "..%2f__init__.py", "__init__.py", "page.html", "%2e%2e/routes.py"])
async def test_other_files_are_not_served(browser, name):
    assert (await browser.get(f"/console/{name}")).status_code in {401, 404}


async def test_a_client_that_accepts_no_html_gets_a_problem_as_before(browser):
    answer = await browser.get("/", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.headers["content-type"] == "application/problem+json"


async def test_the_page_is_for_reading_only(browser):
    assert (await browser.post("/")).status_code == 405
    head = await browser.head("/")
    assert (head.status_code, head.content) == (200, b"")


async def test_a_foreign_host_name_gets_no_page_of_a_local_service(services):
    transport = httpx.ASGITransport(app_of(replace(services, hosts=frozenset({"localhost"}))))
    async with httpx.AsyncClient(transport=transport, base_url="http://evil.example") as client:
        answer = await client.get("/", headers=BROWSER)
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_refused")
