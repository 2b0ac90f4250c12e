"""The shell of the console: keys, colours, the keyboard, the phone, and a service that does not answer."""

import itertools
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, overflow_px, violations
from tests.console.relay import Relay
from tests.console.served import serving

pytestmark = pytest.mark.docker
VIEWS = ("Run", "Conversations", "Spaces", "Operations", "Keys")
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))


def heading(page, text):
    return page.get_by_role("heading", name=text, level=1, exact=True)


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_a_service_without_keys_is_entered_at_once(open_page, service, scheme, size):
    page = open_page(service.url, scheme, size)
    expect(heading(page, "Run")).to_be_visible()
    assert violations(page) == []
    assert overflow_px(page) == 0


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_without_a_key_the_page_asks_for_one(open_page, guarded, scheme, size):
    page = open_page(guarded.url, scheme, size)
    page.expected.append("401")
    expect(heading(page, "Paste your key")).to_be_visible()
    assert violations(page) == []
    assert overflow_px(page) == 0


def test_a_wrong_key_is_refused_with_the_words_of_the_service(open_page, guarded):
    page = open_page(guarded.url)
    page.expected.append("401")
    page.get_by_label("API key").fill("pbx_wrong")
    page.get_by_role("button", name="Continue").click()
    expect(heading(page, "This key is not valid")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("unauthorized")
    assert violations(page) == []


def test_a_key_is_pasted_once_and_stays_in_its_tab(open_page, guarded):
    page = open_page(guarded.url)
    page.expected.append("401")
    page.get_by_label("API key").fill(f"  {guarded.key}\n")
    page.keyboard.press("Enter")
    expect(heading(page, "Run")).to_be_visible()
    page.reload()
    expect(heading(page, "Run")).to_be_visible()
    assert page.evaluate("Object.values(localStorage).concat(document.cookie).join()").find(guarded.key) == -1
    other = page.context.new_page()
    other.goto(guarded.url)
    expect(heading(other, "Paste your key")).to_be_visible()
    page.get_by_role("button", name="Forget the key").click()
    expect(heading(page, "Paste your key")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('proofbox.key')") is None


def test_a_service_that_does_not_answer_is_named_and_tried_again(open_page, service):
    with Relay(service.port) as relay:
        page = open_page(relay.url)
        page.expected.append("ERR_")
        expect(heading(page, "Run")).to_be_visible()
        page.evaluate("history.replaceState(null, '', '#/run')")
        page.route("**/v1/tools", lambda route: route.abort())
        page.reload()
        expect(heading(page, "The service does not answer")).to_be_visible()
        assert violations(page) == []
        page.unroute("**/v1/tools")
        page.get_by_role("button", name="Try again").click()
        expect(heading(page, "Run")).to_be_visible()


def test_the_keyboard_reaches_every_view(open_page, service):
    page = open_page(service.url)
    expect(heading(page, "Run")).to_be_visible()
    for name in (*VIEWS[1:], VIEWS[0]):
        page.keyboard.press("g")
        page.keyboard.press(name[0].lower())
        expect(page.get_by_role("link", name=name, exact=True)).to_have_attribute("aria-current", "page")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_letters_that_are_typed_are_no_shortcuts(open_page, service):
    page = open_page(service.url)
    page.get_by_label("Python program").click()
    page.keyboard.type("g o ?")
    expect(heading(page, "Run")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_shortcuts_of_one_letter_can_be_switched_off(open_page, service):
    page = open_page(service.url)
    expect(heading(page, "Run")).to_be_visible()
    page.keyboard.press("?")
    page.get_by_label("Shortcuts of one letter are on").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("k")
    expect(heading(page, "Run")).to_be_visible()


def test_the_first_stop_of_the_tab_key_skips_the_navigation(open_page, service):
    page = open_page(service.url)
    expect(heading(page, "Run")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_the_colours_follow_the_system_until_the_user_chooses(open_page, service):
    page = open_page(service.url, "dark")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(background)
    page.get_by_role("button", name=re.compile("Colours: system")).click()
    page.get_by_role("button", name=re.compile("Colours: dark")).click()
    light = page.evaluate(background)
    assert dark != light
    page.reload()
    expect(heading(page, "Run")).to_be_visible()
    assert page.evaluate(background) == light


def test_an_unknown_address_shows_the_first_view(open_page, service):
    page = open_page(f"{service.url}/#/constructor/x")
    expect(heading(page, "Run")).to_be_visible()


def test_the_console_can_be_switched_off(tmp_path):
    with serving(tmp_path, PROOFBOX_CONSOLE="false", PROOFBOX_POOL_SIZE="0") as served:
        answers = [httpx.get(f"{served.url}{path}", trust_env=False) for path in ("/", "/console/console.js")]
    assert [answer.status_code for answer in answers] == [404, 404]


def test_the_page_loads_nothing_from_elsewhere(open_page, service):
    page = open_page("about:blank")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(service.url)
    expect(heading(page, "Run")).to_be_visible()
    assert asked
    assert [url for url in asked if not url.startswith((service.url, "blob:"))] == []


def test_the_documentation_opens_in_a_new_tab(open_page, service):
    page = open_page(service.url)
    link = page.get_by_role("link", name="Documentation", exact=True)
    expect(link).to_have_attribute("href", f"{service.url}/docs/site")
    with page.context.expect_page() as opened:
        link.click()
    expect(opened.value).to_have_url(re.compile(re.escape(f"{service.url}/docs/site")))
