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
