"""Chromium, a running service with real sandboxes, and pages that report what a browser complains of.

`make test-console` runs the tests; it installs Chromium, Playwright and axe-core.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.served import Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = Path(os.environ.get("CONSOLE_AXE", ".console/node_modules/axe-core/axe.min.js"))
SCHEMES = ("light", "dark")
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PLACES = [
    pytest.param(scheme, size, id=f"{scheme}-{size['width']}") for scheme in SCHEMES for size in (WIDE, PHONE)
]
"""Both colour schemes at both widths, as parameters `scheme` and `size`."""
_TIMEOUT_MS = 30_000
_WCAG_AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on loopback, which needs no key."""
    with serving(tmp_path_factory.mktemp("service")) as served:
        yield served


@pytest.fixture(scope="session")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that passes on more output than usual."""
    with serving(tmp_path_factory.mktemp("talkative"), PROOFBOX_PASS_ON_BYTES="64000000") as served:
        yield served


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that needs a key."""
    with serving(tmp_path_factory.mktemp("guarded"), needs_key=True) as served:
        yield served


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - other tests run without it

    expect.set_options(timeout=_TIMEOUT_MS)
    program = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Callable[..., "Page"]]:
    """Opens an address in a tab of its own: `open_page(url, scheme="dark", size=PHONE)`.

    The test fails if the page has an error or breaks its content security policy; `page.expected` lists parts of
    messages that the test provokes.
    """
    with contextlib.ExitStack() as stack:
        pages: list[tuple[Any, list[str]]] = []

        def open_page(url: str, scheme: str = "light", size: dict[str, int] = WIDE, **options: Any) -> "Page":
            context = browser.new_context(color_scheme=scheme, viewport=size, accept_downloads=True, **options)
            stack.callback(context.close)
            context.set_default_timeout(_TIMEOUT_MS)
            page: Any = context.new_page()
            page.expected = []
            complaints: list[str] = []
            page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
            page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            pages.append((page, complaints))
            page.goto(url)
            return page

        yield open_page
        for page, complaints in pages:
            unexpected = [each for each in complaints if not any(part in each for part in page.expected)]
            assert unexpected == []


def violations(page: "Page") -> list[str]:
    """What axe finds against WCAG A and AA on the page as it is, as lines of rule, element and reason."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("tags => axe.run(document, {runOnly: tags})", _WCAG_AA)
    return [
        f"{rule['id']}: {node['html'][:160]}: {node['failureSummary']}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def overflow_px(page: "Page") -> int:
    """How far the page is wider than the window; 0 for a page that a phone does not scroll sideways."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
