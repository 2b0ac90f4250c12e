"""Answers of persons in the page of a space: numbers, inputs that were shown, focus, empty values; pictures."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, WIDE, overflow_px, violations
from tests.console.space_seeding import Stage, card, opened

pytestmark = pytest.mark.docker
BEYOND = 9_007_199_254_740_993  # 2**53 + 1: a double has only its neighbours
EMPTY_SCHEMA = {
    "type": "object",
    "required": ["note", "tags", "account"],
    "properties": {
        "note": {"type": "string", "title": "Note"},
        "tags": {"type": ["array", "null"], "title": "Tags", "items": {"type": "string"}},
        "account": {"enum": [BEYOND, BEYOND + 1], "title": "Account"},
        "more": {"title": "More"},
    },
}


@pytest.fixture
def stage(service):
    with Stage(service.url) as stage:
        yield stage


def approve(shown):
    return shown.get_by_role("button", name="Approve")


def done(shown):
    return shown.locator(".badge", has_text="done")


# ---- what is approved is what runs ----


def test_a_card_shows_the_numbers_that_run(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    params = {"amount": BEYOND, "share": 100.0, "small": 1e-07, "rows": [{"id": BEYOND}]}
    stage.call("guarded", params, call)
    shown = card(page, "guarded")
    expect(shown.locator("dd")).to_have_text([str(BEYOND), "100.0", "1e-07", f'[{{"id":{BEYOND}}}]'])
    shown.get_by_role("button", name="JSON").click()
    expect(shown.locator("pre")).to_contain_text(f'"amount": {BEYOND},')
    approve(shown).click()
    expect(done(shown)).to_be_visible()
    assert stage.result(call)["ret"] == params
    expect(shown.locator("details", has_text="Output").locator("dd").first).to_have_text(str(BEYOND))


def test_a_long_input_is_approved_only_when_all_of_it_was_shown(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("guarded", {"first": "a" * 3_000 + "END1", "second": "b\n" * 60 + "END2"}, call)
    shown = card(page, "guarded")
    expect(shown.locator(".note")).to_contain_text("Not all of the input is shown: 1,0")
    expect(shown).not_to_contain_text("END2")
    expect(approve(shown)).to_be_disabled()
    expect(shown.get_by_role("button", name="Deny")).to_be_enabled()
    approve(shown).focus()
    page.keyboard.press("Enter")
    assert violations(page) == []
    shown.get_by_role("button", name=re.compile("Show more")).first.click()
    expect(shown).to_contain_text("END1")
    expect(shown.locator(".note")).to_be_visible()
    assert stage.wait(call) is not None
    shown.get_by_role("button", name="Show all").click()
    expect(shown).to_contain_text("END2")
    expect(shown.locator(".note")).to_have_count(0)
    expect(shown).to_be_focused()
    shown.get_by_role("button", name="Show less").first.click()
    expect(approve(shown)).to_be_enabled()
    approve(shown).click()
    expect(done(shown)).to_be_visible()
    assert stage.result(call)["ok"] is True


def test_an_input_that_is_too_large_for_a_card_cannot_be_approved_in_the_page(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("guarded", {"text": "c" * 300_000}, call)
    shown = card(page, "guarded")
    expect(shown).to_contain_text("too many for a card")
    expect(shown.locator(".note")).to_contain_text("it cannot be approved here")
    expect(shown.get_by_role("button", name="Deny")).to_be_enabled()
    expect(approve(shown)).to_be_disabled()
    approve(shown).focus()
    page.keyboard.press("Enter")
    shown.get_by_role("button", name="Deny").click()
    expect(shown.locator(".badge", has_text="denied")).to_be_visible()
    assert stage.result(call)["error"]["code"] == "denied"


def test_an_input_that_is_nested_too_deeply_cannot_be_approved_in_the_page(open_page, stage):
    """As a service would send it that has no limit of its own."""
    call = stage.new_call_id()
    stage.call("guarded", {"amount": 1, "more": [0]}, call)
    page = open_page("about:blank")

    def deepen(route):
        answer = route.fetch()
        body = answer.text()
        assert '"more":[0]' in body
        route.fulfill(response=answer, body=body.replace('"more":[0]', f'"more":{"[" * 210}0{"]" * 210}'))

    page.route("**/messages?*", deepen)
    page.goto(stage.link())
    shown = card(page, "guarded")
    expect(shown).to_contain_text("nested too deeply")
    expect(shown.locator(".note")).to_contain_text("it cannot be approved here")
    expect(approve(shown)).to_be_disabled()
    shown.get_by_role("button", name="Deny").click()
    expect(shown.locator(".badge", has_text="denied")).to_be_visible()
    assert stage.result(call)["error"]["code"] == "denied"


# ---- the keyboard ----


def test_the_focus_stays_at_a_card_that_was_answered(open_page, stage):
    page = opened(open_page, stage)
    for tool, button in (("guarded", "Deny"), ("ask_anything", "Cancel"), ("elicit", "Decline")):
        stage.call(tool, {})
        shown = card(page, tool)
        shown.get_by_role("button", name=button).focus()
        page.keyboard.press("Enter")
        expect(shown.get_by_role("button", name=button)).to_have_count(0)
        expect(shown).to_be_focused()
        expect(shown).to_have_attribute("aria-label", re.compile(f"^{tool} by .*: (denied|cancelled|done)$"))


def test_an_answer_of_another_person_takes_no_focus_that_is_elsewhere(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("guarded", {}, call)
    expect(approve(card(page, "guarded"))).to_be_visible()
    page.get_by_label("Message", exact=True).focus()
    where = f"{stage.where}/messages/{stage.wait(call)['message_id']}/result"
    stage.sent("POST", where, json={"result": {"approved": True}, "entity_id": "ben"})
    expect(done(card(page, "guarded"))).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_the_focus_stays_in_a_list_whose_entry_is_removed(open_page, stage):
    page = opened(open_page, stage)
    stage.call("ask", {})
    form = card(page, "ask").locator("form.answer")
    form.get_by_role("button", name="Remove entry 1 of Guests").focus()
    page.keyboard.press("Enter")
    expect(form.get_by_role("button", name="Add an entry of Guests")).to_be_focused()


# ---- empty values ----


def test_an_empty_text_and_no_list_can_be_sent(open_page, service):
    tool = {"name": "ask_empty", "executionType": "space", "resultSchema": EMPTY_SCHEMA,
            "display": {"customUI": "form"}}  # fmt: skip
    with Stage(service.url, tools=[tool]) as stage:
        page = opened(open_page, stage)
        for tags in (None, []):
            call = stage.new_call_id()
            stage.call("ask_empty", {}, call)
            form = card(page, "ask_empty").locator("form.answer")
            expect(form).to_contain_text("No list (null) is sent")
            if tags is not None:
                form.get_by_role("button", name="Send an empty list").click()
                expect(form).to_contain_text("An empty list is sent")
            form.get_by_label("Account").select_option(str(BEYOND))
            form.get_by_label("More").fill(json.dumps({"n": BEYOND}))
            form.get_by_role("button", name="Submit").click()
            expect(form.locator(".field-error")).to_have_text(["This is required"])
            assert violations(page) == []
            form.get_by_role("button", name="Send it empty").click()
            expect(form.get_by_label("Note")).to_be_focused()
            expect(form.get_by_label("Note")).to_have_attribute("placeholder", "An empty text is sent")
            form.get_by_role("button", name="Submit").click()
            expect(done(card(page, "ask_empty"))).to_be_visible()
            assert stage.result(call)["ret"] == {
                "note": "", "tags": tags, "account": BEYOND, "more": {"n": BEYOND},
            }  # fmt: skip


# ---- pictures ----


def test_a_picture_is_loaded_when_it_is_near_and_moves_nothing(open_page, stage):
    stage.draw()
    for number in range(40):
        stage.say(f"line {number}\n" * 4)
    page = open_page("about:blank", size=PHONE)
    loaded = []
    page.on("request", lambda request: loaded.append(request.url) if "/artifacts/" in request.url else None)
    page.goto(stage.link())
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.locator("article")).to_have_count(41)
    expect(page.locator("article").last).to_be_in_viewport()
    assert loaded == []
    frame = page.locator(".picture-frame")
    page.locator("article").first.scroll_into_view_if_needed()
    place = frame.bounding_box()
    expect(frame.get_by_role("img")).to_be_visible()
    assert len(loaded) >= 1
    assert (frame.bounding_box()["width"], frame.bounding_box()["height"]) == (place["width"], place["height"])
    assert overflow_px(page) == 0


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("shape", [(300, 2_000), (3_000, 900), (900, 900), (3, 3_000)])
def test_a_picture_of_any_shape_fits_on_a_card(open_page, stage, size, shape):
    """Of a tool whose output states the size of its picture, as those of image models do."""
    stage.draw(*shape)
    page = open_page("about:blank", size=size)

    def state_size(route):
        answer = route.fetch()
        body = answer.json()
        body["items"][0]["tool"]["output"]["artifacts"][0].update(width=shape[0], height=shape[1])
        route.fulfill(response=answer, json=body)

    page.route("**/messages?*", state_size)
    page.goto(stage.link())
    frame = page.locator(".picture-frame")
    place = frame.bounding_box()
    expect(frame.get_by_role("img")).to_be_visible()
    assert frame.bounding_box()["height"] == place["height"] <= min(420, 0.6 * size["height"])
    if min(shape) > 3:  # a line would be too thin to be seen
        assert place["width"] / place["height"] == pytest.approx(shape[0] / shape[1], rel=0.02)
    hidden = frame.evaluate("each => [each.scrollWidth - each.clientWidth, each.scrollHeight - each.clientHeight]")
    assert hidden == [0, 0]
    assert overflow_px(page) == 0
