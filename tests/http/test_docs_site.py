"""The documentation site that the service serves, or the way to it."""

import json
import re
import zipfile
from pathlib import Path

import httpx
import pytest

import proofbox
from proofbox.service.api.app import create_app
from proofbox.service.api.docs_site import ARCHIVE

INLINE = "__scope = 1"
PAGE = f"<!doctype html><script>{INLINE}</script><script src='a.js'></script><p>Tides"
FILES = {
    "index.html": PAGE,
    "exec.html": PAGE.replace("Tides", "Programs"),
    "assets/bundle.0123456789abcdef.min.js": "1",
    "assets/plain.css": "p {}",
    "bench/speed.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "adr/index.html": "<p>Decisions",
}


def write_site(archive, files):
    with zipfile.ZipFile(archive, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)


@pytest.fixture
def site(tmp_path):
    (tmp_path / "secret.html").write_text("secret")
    write_site(tmp_path / "docs_site.zip", FILES)
    return tmp_path / "docs_site.zip"


@pytest.fixture
async def visitor(services, site):
    transport = httpx.ASGITransport(create_app(services, site=site), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


async def test_the_address_without_a_slash_leads_to_the_first_page_below_any_prefix(visitor):
    answer = await visitor.get("/docs/site")
    assert (answer.status_code, answer.headers["location"]) == (308, "site/")
    page = await visitor.get("/docs/site", follow_redirects=True)
    assert (page.status_code, page.text, page.url.path) == (200, PAGE, "/docs/site/")


@pytest.mark.parametrize(
    ("name", "media_type"),
    [
        ("exec.html", "text/html; charset=utf-8"),
        ("adr/index.html", "text/html; charset=utf-8"),
        ("assets/plain.css", "text/css; charset=utf-8"),
        ("bench/speed.svg", "image/svg+xml"),
        ("assets/bundle.0123456789abcdef.min.js", "text/javascript; charset=utf-8"),
    ],
)
async def test_every_file_is_served_as_what_it_is(visitor, name, media_type):
    answer = await visitor.get(f"/docs/site/{name}")
    assert (answer.status_code, answer.text) == (200, FILES[name])
    assert answer.headers["content-type"] == media_type
    assert answer.headers["x-content-type-options"] == "nosniff"
    head = await visitor.head(f"/docs/site/{name}")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]


async def test_a_page_runs_its_own_scripts_and_asks_this_host_alone(visitor):
    headers = (await visitor.get("/docs/site/exec.html")).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    # Of `__scope = 1`, by: printf '__scope = 1' | openssl dgst -sha256 -binary | base64
    assert policy["script-src"] == "'self' 'sha256-GTRc0Sg/UBLf6WmUWGrvUCPg5ATUxgOLbGM8mdVZYTU='"
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == policy["font-src"] == policy["worker-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not re.search(r"https?:|\*", headers["content-security-policy"])


async def test_pages_are_asked_for_again_and_named_by_their_content(visitor):
    first = await visitor.get("/docs/site/exec.html")
    assert first.headers["cache-control"] == "no-cache"
    tag = {"If-None-Match": first.headers["etag"]}
    unchanged = await visitor.get("/docs/site/exec.html", headers=tag)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert unchanged.headers["etag"] == first.headers["etag"]
    hashed = await visitor.get("/docs/site/assets/bundle.0123456789abcdef.min.js")
    assert hashed.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_a_site_that_is_built_again_is_served_at_once(visitor, site):
    first = await visitor.get("/docs/site/exec.html")
    write_site(site, {**FILES, "exec.html": "<p>new", "more.html": "<p>more"})
    changed = await visitor.get("/docs/site/exec.html", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.text) == (200, "<p>new")
    assert (await visitor.get("/docs/site/more.html")).text == "<p>more"


async def raw_get(app, path):
    """The status and body of a path as a client sends it that does not tidy it; the server has decoded it."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "http_version": "1.1", "method": "GET", "path": path, "raw_path": path.encode()}
    await app({**scope, "query_string": b"", "headers": [], "scheme": "http", "root_path": ""}, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.html",
        "..\\secret.html",
        "assets/../../secret.html",
        "assets//plain.css",
        "/exec.html",
        "./exec.html",
        "assets",
        "assets/",
        "EXEC.html",
        "exec.html\0",
        "exec.html\n",
        "%2e%2e/secret.html",
    ],
)
async def test_nothing_but_the_files_of_the_site_is_served(services, site, name):
    status, body = await raw_get(create_app(services, site=site), f"/docs/site/{name}")
    assert status in {400, 404}
    assert json.loads(body)["code"] in {"not_found", "unsafe_path"}


async def test_a_page_that_does_not_exist_is_a_problem_that_names_the_contents(visitor):
    answer = await visitor.get("/docs/site/nowhere.html")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "GET /docs/site/ has the contents" in answer.json()["detail"]


async def test_without_a_built_site_the_answer_names_the_command(services, tmp_path):
    transport = httpx.ASGITransport(create_app(services, site=tmp_path / "none"), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        answer = await client.get("/docs/site/")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "run 'make docs-site'" in answer.json()["detail"]


async def test_other_methods_are_refused(visitor):
    answer = await visitor.post("/docs/site/exec.html")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_site_of_an_installation_is_data_of_the_package():
    assert Path(proofbox.__file__).parent / "docs_site.zip" == ARCHIVE
