"""The built documentation site as the running service serves it: `make test-docs-site`, with Debian's chromium.

Every page and every file that a page names is there, every anchor exists, nothing is asked of another host, no
script is refused, the search finds codes, no page is wider than a phone, and every page passes axe.
"""

import os
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import httpx
import pytest
from playwright.sync_api import sync_playwright

from proofbox.service.api.docs_site import ARCHIVE
from tests.support.served import served

CHROMIUM = os.environ.get("PROOFBOX_TEST_CHROMIUM", "/usr/bin/chromium")
AXE = Path(os.environ.get("PROOFBOX_TEST_AXE", ".console/node_modules/axe-core/axe.min.js"))
AXE_MS = 200_000  # the longest page has 10,000 elements
WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SCROLLING = ".md-typeset__scrollwrap, pre > code"
START = "/docs/site/"
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
PAGES = sorted(name for name in zipfile.ZipFile(ARCHIVE).namelist() if name.endswith(".html"))


class Page(HTMLParser):
    """What a page names: links and loaded files; and its anchors."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag == "link" and values.get("href"):
            is_loaded = values.get("rel") not in {"canonical", "prev", "next", "edit"}
            (self.loaded if is_loaded else self.links).append(values["href"])
        elif values.get("src"):
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service"), pool_size=0) as url:
        yield url


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def crawl(service):
    """Every address below the site, followed from its first page: status, and what it names."""
    answers, pages, waiting = {}, {}, [f"{service}{START}"]
    with httpx.Client(trust_env=False) as client:
        while waiting:
            address = waiting.pop()
            if address in answers:
                continue
            answer = client.get(address)
            answers[address] = answer.status_code
            if not answer.headers["content-type"].startswith("text/html"):
                continue
            pages[address] = page = Page(answer.text)
            named = (urldefrag(urljoin(address, each)).url for each in page.links + page.loaded)
            waiting += [each for each in named if each.startswith(service)]
    return answers, pages


def test_every_address_of_the_site_is_there(crawl):
    answers, _ = crawl
    assert {address: status for address, status in answers.items() if status != 200} == {}
    assert len(answers) > len(PAGES)


def test_every_page_is_reached_from_the_first_one(crawl, service):
    _, pages = crawl
    found = {address.removeprefix(f"{service}{START}") or "index.html" for address in pages}
    assert set(PAGES) - found == set()


def test_every_anchor_of_a_link_exists(crawl, service):
    _, pages = crawl
    missing = []
    for address, page in pages.items():
        for link in page.links:
            goal, anchor = urldefrag(urljoin(address, link))
            if anchor and goal in pages and unquote(anchor) not in pages[goal].anchors:
                missing.append((address.removeprefix(service), link))
    assert missing == []


def test_nothing_that_a_page_loads_is_on_another_host(crawl, service):
    _, pages = crawl
    loaded = {urljoin(address, each) for address, page in pages.items() for each in page.loaded}
    assert {each for each in loaded if not each.startswith((f"{service}{START}", "data:"))} == set()


@pytest.fixture(scope="module")
def visits(browser, service):
    """Every page opened at the width of a phone: requests, messages of the console, and its width."""
    context = browser.new_context(viewport=PHONE)
    seen = {}
    for name in PAGES:
        requests, messages = [], []
        tab = context.new_page()
        tab.on("request", lambda request, to=requests: to.append(request.url))
        tab.on("console", lambda message, to=messages: to.append(message.text))
        tab.on("pageerror", lambda error, to=messages: to.append(str(error)))
        tab.goto(f"{service}{START}{name}", wait_until="networkidle")
        seen[name] = requests, messages, tab.evaluate("document.scrollingElement.scrollWidth")
        tab.close()
    context.close()
    return seen


def test_a_browser_asks_no_other_host(visits, service):
    hosts = {urlsplit(url).netloc for requests, _, _ in visits.values() for url in requests if url[:5] != "data:"}
    assert hosts == {urlsplit(service).netloc}


def test_no_page_has_an_error_or_a_refused_script(visits):
    assert {name: messages for name, (_, messages, _) in visits.items() if messages} == {}


def test_no_page_is_wider_than_a_phone(visits):
    assert {name: width for name, (_, _, width) in visits.items() if width > PHONE["width"]} == {}


@pytest.mark.parametrize(
    ("words", "goal"),
    [
        ("disk_limit", "a[href*='troubleshooting.html'][href*='disk_limit']"),
        ("retention", "a[href*='retention.html']"),
    ],
)
def test_the_search_finds_sections_and_pages(browser, service, words, goal):
    tab = browser.new_page(viewport=DESKTOP)
    tab.goto(f"{service}{START}tutorial.html", wait_until="networkidle")
    assert tab.locator(f"{goal}:visible").count() == 0
    tab.locator(".md-search__button").click()
    tab.locator("input:visible").first.fill(words)
    tab.locator(f"{goal}:visible").first.wait_for()
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_follows_the_scheme_of_the_system(browser, service, scheme):
    tab = browser.new_page(viewport=DESKTOP, color_scheme=scheme)
    tab.goto(f"{service}{START}tutorial.html", wait_until="networkidle")
    colour = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
    assert (brightness < 128) == (scheme == "dark")
    tab.close()


# A phone cannot hover: there the theme itself never lets code be reached.
DEVICES = {"phone": {"viewport": PHONE, "is_mobile": True, "has_touch": True}, "desktop": {"viewport": DESKTOP}}
WRAPPED = "document.querySelectorAll('article :not(.md-typeset__table) > table').length === 0"
FADED_IN = """() => {
  const trees = [...document.querySelectorAll("*")].map(each => each.shadowRoot).filter(Boolean);
  const animations = trees.flatMap(tree => tree.getAnimations());
  return Promise.allSettled(animations.map(each => each.finished)).then(() => null);
}"""
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_passes_axe(browser, service, name, device, scheme):
    context = browser.new_context(color_scheme=scheme, **DEVICES[device])
    context.set_default_timeout(AXE_MS)
    tab = context.new_page()
    tab.goto(f"{service}{START}{name}")
    tab.wait_for_function(WRAPPED)
    tab.evaluate(TWO_FRAMES)
    tab.evaluate(AXE.read_text())
    report = tab.evaluate("tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})", WCAG_AA)
    context.close()
    assert [(rule["id"], node["html"][:160]) for rule in report["violations"] for node in rule["nodes"]] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_results_of_the_search_have_contrast(browser, service, scheme):
    tab = browser.new_page(viewport=DESKTOP, color_scheme=scheme)
    tab.goto(f"{service}{START}tutorial.html")
    tab.locator(".md-search__button").click()
    tab.locator("input:visible").first.fill("retention")
    tab.locator("a[href*='retention.html']:visible").first.wait_for()
    tab.evaluate(FADED_IN)
    tab.evaluate(AXE.read_text())
    report = tab.evaluate("axe.run(document, {runOnly: ['color-contrast'], resultTypes: ['violations']})")
    tab.close()
    assert [node["html"][:160] for rule in report["violations"] for node in rule["nodes"]] == []


@pytest.fixture
def scrolling(browser, service):
    """Opens a page, and lists what scrolls sideways in it and what has a stop of the Tab key."""
    tab = browser.new_page()

    def scrolling(name, size):
        tab.set_viewport_size(size)
        if not tab.url.endswith(name):
            tab.goto(f"{service}{START}{name}", wait_until="networkidle")
        tab.evaluate(TWO_FRAMES)  # observers report a new size between them
        return tab.locator(SCROLLING).evaluate_all(
            """all => all.map(each => ({
              scrolls: each.scrollWidth > each.clientWidth,
              stops: each.tabIndex === 0 && each.getAttribute("role") === "region",
              name: each.getAttribute("aria-label"),
            }))"""
        )

    scrolling.tab = tab
    yield scrolling
    tab.close()


@pytest.mark.parametrize("page", ["comparison.html", "operations.html", "tutorial.html"])
def test_what_scrolls_sideways_and_nothing_else_has_a_stop_of_the_tab_key_and_a_name(scrolling, page):
    stops = {}
    for size in (DESKTOP, PHONE, DESKTOP):
        seen = scrolling(page, size)
        assert [each for each in seen if each["scrolls"] != each["stops"]] == []
        assert [each for each in seen if each["stops"] != bool(each["name"])] == []
        names = [each["name"] for each in seen if each["stops"]]
        assert len(set(names)) == len(names)
        assert stops.setdefault(size["width"], names) == names
    assert len(stops[PHONE["width"]]) > len(stops[DESKTOP["width"]])


def test_the_arrow_keys_scroll_a_wide_table(scrolling):
    scrolling("comparison.html", PHONE)
    table = scrolling.tab.get_by_role("region", name=re.compile("^Table: ")).first
    scrolling.tab.evaluate("document.querySelector('article h1').scrollIntoView()")
    scrolling.tab.locator("article").click(position={"x": 2, "y": 2})
    while not table.evaluate("each => each === document.activeElement"):
        before = scrolling.tab.evaluate("document.activeElement.outerHTML")
        scrolling.tab.keyboard.press("Tab")
        assert scrolling.tab.evaluate("document.activeElement.outerHTML") != before
    scrolling.tab.keyboard.press("ArrowRight")
    scrolling.tab.wait_for_function("each => each.scrollLeft > 0", arg=table.element_handle())


@pytest.mark.parametrize(("button", "box"), [("Search", "__search"), ("Navigation", "__drawer")])
def test_the_keyboard_opens_the_search_and_the_navigation_on_a_narrow_window(browser, service, button, box):
    tab = browser.new_page(viewport=PHONE)
    tab.goto(f"{service}{START}tutorial.html")
    opener = tab.locator("header").get_by_role("button", name=button, exact=True)
    tab.keyboard.press("Tab")
    while not opener.evaluate("each => each === document.activeElement"):
        assert not tab.evaluate("document.activeElement.closest('article')")
        tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.wait_for_function("box => document.getElementById(box).checked", arg=box)
    tab.close()
