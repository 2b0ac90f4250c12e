"""The console below the path prefix of a real nginx and a real Caddy, with the examples of deploy/reverse-proxy."""

import re

import pytest
from playwright.sync_api import expect

from tests.console.served import EVERY_SCOPE, serving
from tests.console.space_seeding import Stage, card, opened
from tests.deploy.proxies import caddy, make_certificate, nginx
from tests.services.free_ports import choose_ports

pytestmark = pytest.mark.docker
_TLS = {"ignore_https_errors": True}  # the certificate is the test's own


@pytest.fixture(scope="module", params=[nginx, caddy], ids=["nginx", "caddy"])
def site(request, tmp_path_factory):
    """The address of the service behind a proxy, without a slash at the end, and a key."""
    folder = tmp_path_factory.mktemp("proxied")
    make_certificate(folder)
    port = choose_ports(["proxy"], {})["proxy"]
    url = f"https://localhost:{port}/proofbox"
    proxied = {"PROOFBOX_PUBLIC_URL": url}
    with (
        serving(folder, needs_key=True, **proxied) as served,
        request.param(folder, port, served.port),
    ):
        yield url, served.add_key("proxied", *EVERY_SCOPE)


@pytest.fixture
def page(open_page, site):
    """The console after its user has signed in; nothing was asked outside the prefix."""
    url, key = site
    page = open_page("about:blank", **_TLS)
    page.expected.append("401")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(url)
    assert page.url == f"{url}/"
    page.get_by_label("API key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Run", level=1)).to_be_visible()
    yield page
    assert [each for each in asked if not each.startswith((f"{url}/", f"blob:{url[:-9]}", url))] == []


def test_a_program_runs_and_its_files_are_shown(page):
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.locator(".call-head .badge", has_text="Succeeded")).to_be_visible()
    file = page.locator(".file", has_text="sales.png")
    file.get_by_role("button", name="Preview").click()
    expect(page.get_by_alt_text(re.compile("sales.png"))).to_be_visible()


def test_every_view_and_the_documents_are_below_the_prefix(page, site):
    url, _ = site
    for name in ("Conversations", "Spaces", "Operations", "Keys"):
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
    documentation = page.get_by_role("link", name="Documentation", exact=True)
    assert documentation.evaluate("each => each.href") == f"{url}/docs/site"
    page.get_by_role("link", name="API", exact=True).click()
    expect(page).to_have_title(re.compile("Proofbox"))
    assert page.url == f"{url}/docs"


def test_a_shared_space_is_live_and_answered_behind_the_prefix(open_page, page, site):
    url, key = site
    with Stage(url, key) as stage:
        page.goto(stage.page)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        page.get_by_role("button", name="Share").click()
        page.get_by_label("Person").select_option("Ben")
        page.get_by_role("button", name="Make the link").click()
        link = page.get_by_label("Link").input_value()
        assert link.startswith(f"{url}/spaces/{stage.space}#token=")
        page.get_by_role("button", name="Close").click()
        page.get_by_label("Path").get_by_role("link", name="Spaces").click()
        expect(page.get_by_role("heading", name="Spaces", level=1)).to_be_visible()
        guest = opened(open_page, stage, "ben", **_TLS)
        call = stage.new_call_id()
        stage.call("guarded", {"amount": 3}, call)
        card(guest, "guarded").get_by_role("button", name="Approve").click()
        expect(card(guest, "guarded").locator(".badge", has_text="done")).to_be_visible()
        assert stage.result(call)["ret"] == {"amount": 3}
        stage.draw()
        picture = card(guest, "draw").get_by_role("img", name=re.compile("Picture of draw"))
        expect(picture).to_be_visible()
        assert picture.evaluate("each => each.naturalWidth") == 60
