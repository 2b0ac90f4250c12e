"""Makes the pictures of README and docs: `make screenshots` writes them to docs/pictures.

A picture has 256 colours, so that the repository stays small.
"""

import io
import re
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.console.conftest import PHONE
from tests.console.seeding import Seeder, pptx_of

pytestmark = pytest.mark.docker
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
SIZE = {"width": 1360, "height": 850}
_PAUSE_MS = 400  # until transitions and previews have ended


def save(page, name):
    page.mouse.move(0, 0)
    page.wait_for_timeout(_PAUSE_MS)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    PICTURES.mkdir(exist_ok=True)
    picture.quantize(256, dither=Image.Dither.NONE).save(PICTURES / f"{name}.png", optimize=True)


def run_example(page):
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.locator(".call-head .badge", has_text="Succeeded")).to_be_visible()
    page.locator(".file", has_text="sales.png").get_by_role("button", name="Preview").click()
    expect(page.get_by_alt_text(re.compile("sales.png"))).to_be_visible()
    page.evaluate("window.scrollTo(0, 0)")


def test_a_run(open_page, service):
    page = open_page(service.url, "light", SIZE)
    run_example(page)
    save(page, "console-run")


def test_a_run_on_a_phone_in_the_dark(open_page, service):
    page = open_page(service.url, "dark", PHONE)
    run_example(page)
    page.locator(".call-head").scroll_into_view_if_needed()
    save(page, "console-phone")


@pytest.fixture(scope="module")
def report(service):
    """The address of a conversation about a report."""
    seeder = Seeder(service)
    rows = "".join(f"2026-{month:02d},{120 + month * 7}\n" for month in range(1, 10))
    name = "quarterly-report"
    seeder.say(name, "Make a report of the quarter: totals by month as CSV, and a slide deck.")
    seeder.attach(name, "sales.csv", f"month,total\n{rows}".encode())
    seeder.attach(name, "deck.pptx", pptx_of("Results of the quarter", "Outlook"))
    code = "import shutil\nshutil.copy('turn_1/attachments/sales.csv', 'files/totals.csv')\nprint('9 months')"
    seeder.run(name, "totals", code, "totals.csv")
    edit = "text = open('files/totals.csv').read()\nopen('files/totals.csv', 'w').write(text.replace('127', '129'))"
    seeder.run(name, "corrected-totals", edit, "totals.csv")
    seeder.run(name, "chart", "raise SystemExit('no data for October')", "chart.png")
    return f"{service.url}/#/conversations/{name}"


def test_a_timeline(open_page, report):
    page = open_page(f"{report}/timeline", "light", SIZE)
    expect(page.get_by_role("article").first).to_be_visible()
    save(page, "console-timeline")


def test_changes_of_a_file_in_the_dark(open_page, report):
    page = open_page(f"{report}/files?path=fi:turn_1.files/totals.csv", "dark", SIZE)
    page.get_by_role("button", name="Changes").click()
    expect(page.locator(".diff")).to_be_visible(timeout=90_000)
    save(page, "console-changes")


@pytest.mark.usefixtures("report")
def test_operations(open_page, service):
    page = open_page(f"{service.url}/#/operations", "light", SIZE)
    expect(page.get_by_role("link", name="corrected-totals")).to_be_visible()
    save(page, "console-operations")
