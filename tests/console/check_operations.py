"""The views of operations and keys: what everybody sees, and what needs a scope."""

import itertools
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, overflow_px, violations

pytestmark = pytest.mark.docker
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))


def enter(open_page, guarded, view, **options):
    """Opens a view of the service that needs a key, with its key."""
    page = open_page(f"{guarded.url}/#/{view}", **options)
    page.expected += ["401", "403"]
    page.get_by_label("API key").fill(guarded.key)
    page.get_by_role("button", name="Continue").click()
    return page


@pytest.fixture(scope="module")
def called(service):
    """A call that succeeded and one that failed."""
    service.call("print(1)", "ops", "good-call")
    service.call("raise ValueError('no')", "ops", "bad-call")
    return service


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_operations_show_slots_pool_and_calls_everywhere(open_page, called, scheme, size):
    page = open_page(f"{called.url}/#/operations", scheme, size)
    expect(page.locator(".tile")).to_have_count(4)
    expect(page.locator(".tile", has_text="Running")).to_contain_text(re.compile(r"\d+of \d+ slots"))
    expect(page.get_by_role("region", name=re.compile("Containers of the warm pool"))).to_contain_text("documents")
    expect(page.get_by_role("link", name="bad-call")).to_be_visible()
    assert violations(page) == []
    assert overflow_px(page) == 0


def test_errors_of_the_hour_are_counted_by_code_and_lead_to_their_calls(open_page, called):
    page = open_page(f"{called.url}/#/operations")
    page.get_by_role("button", name=re.compile("^Errors")).click()
    expect(page.get_by_role("link", name="good-call")).to_have_count(0)
    expect(page.locator(".facts.above")).to_contain_text("nonzero_exit")
    page.get_by_role("link", name="bad-call").click()
    expect(page.locator(".call-head .badge", has_text="Failed")).to_be_visible()


def test_a_call_that_runs_is_open_and_then_done(open_page, service):
    body = {
        "tool_id": "exec_tools.execute_code_python", "tool_call_id": "long-call", "conversation_id": "ops",
        "turn_id": "turn_1", "params": {"explore": True}, "code": "import time\ntime.sleep(60)",
    }  # fmt: skip
    httpx.post(f"{service.url}/v1/tool-calls", json=body, headers={"Prefer": "respond-async"}, trust_env=False)
    page = open_page(f"{service.url}/#/operations")
    page.get_by_role("button", name=re.compile("^Open")).click()
    expect(page.get_by_role("row", name=re.compile("long-call"))).to_contain_text("open")
    httpx.delete(f"{service.url}/v1/tool-calls/long-call", trust_env=False)
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("button", name=re.compile("^Errors")).click()
    expect(page.get_by_role("row", name=re.compile("long-call"))).to_contain_text("cancelled")


def test_without_the_scope_the_state_of_the_service_is_explained_and_own_calls_are_shown(open_page, guarded):
    guarded.call("print(1)", "mine", "my-call")
    page = enter(open_page, guarded, "operations")
    expect(page.get_by_text("metrics:read")).to_be_visible()
    expect(page.get_by_role("link", name="my-call")).to_be_visible()
    assert violations(page) == []


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_a_key_sees_itself_its_scopes_and_limits(open_page, guarded, scheme, size):
    page = enter(open_page, guarded, "keys", scheme=scheme, size=size)
    expect(page.locator(".pairs")).to_contain_text(guarded.key.split("_")[1])
    expect(page.locator(".scopes li", has_text="metrics:read")).to_contain_text("may not")
    expect(page.locator(".limit", has_text="calls per minute")).to_contain_text("of 600")
    expect(page.get_by_text("keys:read").last).to_be_visible()
    assert violations(page) == []
    assert overflow_px(page) == 0


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_who_may_sees_the_keys_and_no_secret(open_page, service, scheme, size):
    secret = service.add_key("listed-key")
    page = open_page(f"{service.url}/#/keys", scheme, size)
    rows = page.get_by_role("row", name=re.compile("listed-key"))
    while not rows.count():
        page.get_by_role("button", name="Refresh").click()
        page.wait_for_timeout(200)
    expect(rows.first).to_contain_text("works")
    assert secret.split("_")[2] not in page.content()
    assert violations(page) == []
    assert overflow_px(page) == 0
