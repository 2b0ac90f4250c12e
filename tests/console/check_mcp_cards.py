"""A real MCP server asks a person: its card in Chromium, the answer, and the end of the call."""

import json

import anyio.from_thread
import pytest
from playwright.sync_api import expect

from tests.console.conftest import violations
from tests.console.served import serving
from tests.console.space_seeding import Stage, card, opened
from tests.support.mcp_servers import desk, sdk_server

pytestmark = pytest.mark.docker
_BEYOND = 9_007_199_254_740_993  # 2**53 + 1


@pytest.fixture(scope="module")
def server():
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(sdk_server(desk())) as server,
    ):
        yield server


@pytest.fixture(scope="module")
def service(tmp_path_factory, server):
    settings = {
        "PROOFBOX_GATEWAY_NETWORKS": '["127.0.0.0/8"]',
        "PROOFBOX_GATEWAY_PORTS": json.dumps([server.port]),
        "PROOFBOX_POOL_SIZE": "0",
    }
    with serving(tmp_path_factory.mktemp("service"), **settings) as served:
        yield served


@pytest.fixture
def stage(service, server):
    server.messages.clear()
    with Stage(service.url, servers=[server.entry(elicitation="space")]) as stage:
        yield stage


def test_a_server_asks_a_person_answers_and_the_call_goes_on(open_page, stage, server):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("desk__pay", {"to": "bob"}, call)
    assert stage.wait(call)["kind"] == "elicitation"
    shown = card(page, "desk__pay")
    expect(shown).to_contain_text("How much?")
    expect(shown).to_contain_text("bob")
    assert violations(page) == []
    shown.get_by_label("Amount").fill("much")
    shown.get_by_role("button", name="Accept").click()
    expect(shown.locator(".field-error")).to_contain_text("Write a number")
    shown.get_by_label("Amount").fill(str(_BEYOND))
    shown.get_by_role("button", name="Accept").press("Enter")  # the card has just grown: a click may do nothing
    expect(shown.locator(".badge", has_text="done")).to_be_visible()
    expect(shown).to_contain_text("Answered by Ann")
    assert stage.result(call)["ret"] == {"result": f"paid {_BEYOND} to bob"}
    assert server.called == ["pay", "pay"]


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Cancel", "cancel")])
def test_a_person_may_refuse_what_a_server_asks_for(open_page, stage, button, action):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("desk__pay", {"to": "bob"}, call)
    card(page, "desk__pay").get_by_role("button", name=button).click()
    expect(card(page, "desk__pay").locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(call)["ret"] == {"result": f"not paid: {action}"}


def test_an_approval_comes_before_the_server_is_called(open_page, service, server):
    server.messages.clear()
    entry = server.entry(elicitation="space", requiresApproval=["pay"])
    with Stage(service.url, servers=[entry]) as stage:
        page = opened(open_page, stage)
        call = stage.new_call_id()
        stage.call("desk__pay", {"to": "bob"}, call)
        shown = card(page, "desk__pay")
        expect(shown).to_contain_text("asks for approval")
        assert server.called == []
        shown.get_by_role("button", name="Approve").focus()
        page.keyboard.press("Enter")
        expect(shown.get_by_label("Amount")).to_be_visible()
        expect(shown).to_be_focused()  # one card took the place of another
        shown.get_by_label("Amount").fill("7")
        page.keyboard.press("Enter")
        expect(shown.locator(".badge", has_text="done")).to_be_visible()
        assert stage.result(call)["ret"] == {"result": "paid 7 to bob"}
