"""Every page of the console with long names, on a phone and on a laptop: nothing scrolls sideways or is cut."""

from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, overflow_px, violations
from tests.console.seeding import Seeder, docx_of
from tests.console.space_seeding import Stage

pytestmark = pytest.mark.docker
LAPTOP = {"width": 1280, "height": 800}
PREVIEW_MS = 90_000
WORD = "customer-success-weekly-review-2026-11-26T20-15-00Z"
CONVERSATION, CALL, FILE = (
    f"agent-7f3a9c1e2b-{WORD}-retry-3-of-5",
    f"call_01JDK3N5ZQ-{WORD}",
    f"all_regions_{WORD}.csv",
)
CODE = (
    "import matplotlib.pyplot as plt\n"
    "plt.plot([1, 3]); plt.savefig('files/chart.png', dpi=150)\n"
    f"open('files/{FILE}', 'w').write('\\n'.join(','.join(['a long cell'] * 40) for _ in range(30)))\n"
    "open('files/notes.md', 'w').write('# Notes\\n\\n    ' + 'code_' * 60)\n"
    "print('x' * 400)\n"
)
OF_CONVERSATION = f"#/conversations/{CONVERSATION}"
ADDRESSES = [
    "#/run", "#/calls", f"#/calls/{CONVERSATION}/{CALL}", f"#/calls/{CONVERSATION}/failed-{CALL}",
    "#/calls/nobody/none",
    "#/conversations", f"{OF_CONVERSATION}/timeline", f"{OF_CONVERSATION}/files", f"{OF_CONVERSATION}/sources",
    *(f"{OF_CONVERSATION}/files?path={quote(path, safe='')}" for path in (
        f"fi:turn_1.files/{FILE}", "fi:turn_1.files/chart.png", "fi:turn_1.files/notes.md",
        f"fi:turn_1.user.attachments/{WORD}.docx", "fi:turn_1.files/none.csv",
    )),
    *(f"#/conversations/nobody/{part}" for part in ("timeline", "files", "sources")),
    "#/spaces", "spaces/spc_unknown", "#/operations", "#/keys",
]  # fmt: skip
# What is wider than its place, though nothing there scrolls; labels of icons are meant to be hidden.
CUT = """() => [...document.querySelectorAll("main *")].filter((each) => {
    const style = getComputedStyle(each);
    return each.clientWidth > 1 && each.scrollWidth > each.clientWidth + 1
        && !["auto", "scroll"].includes(style.overflowX)
        && style.display !== "inline" && style.textOverflow !== "ellipsis"
        && !each.closest(".cm-editor, svg, select, input")
        && !each.parentElement.closest(".table-scroll, .preview");
}).map((each) => `${each.tagName} ${each.className}: ${each.textContent.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def named(service):
    """A service that has long names everywhere; its space without a shared link, and with one."""
    seeder = Seeder(service)
    seeder.say(CONVERSATION, f"Look at https://example.com/{WORD}{WORD}{WORD}")
    seeder.attach(CONVERSATION, f"{WORD}.docx", docx_of(WORD))
    seeder.run(CONVERSATION, CALL, CODE, FILE, "chart.png", "notes.md", f"missing_{WORD}.pdf")
    seeder.run(CONVERSATION, f"failed-{CALL}", f"raise ValueError('{WORD}{WORD}')", f"{WORD}.png")
    with Stage(service.url, name=f"{WORD} {WORD}") as stage:
        stage.say(f"https://example.com/{WORD}{WORD}{WORD}")
        stage.call("show", {WORD: WORD, "rows": [{WORD: WORD}] * 60})
        stage.call("ask", {"question": WORD})
        yield service, stage


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_page_fits_and_cuts_nothing(open_page, named, address):
    for scheme in SCHEMES:
        page = open_page(f"{named[0].url}/{address}", scheme, PHONE)
        page.expected.append("404")
        check(page)
        assert violations(page) == []
        page.set_viewport_size(LAPTOP)
        check(page)


@pytest.mark.parametrize("has_link", [True, False])
def test_a_space_fits_and_cuts_nothing(open_page, named, has_link):
    stage = named[1]
    for scheme in SCHEMES:
        page = open_page(stage.link() if has_link else stage.page, scheme, PHONE)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        expect(page.locator("article")).to_have_count(3)
        check(page)
        assert violations(page) == []
        page.set_viewport_size(LAPTOP)
        check(page)


def check(page):
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(".spinner")).to_have_count(0, timeout=PREVIEW_MS)
    assert overflow_px(page) == 0
    assert page.evaluate(CUT) == []
