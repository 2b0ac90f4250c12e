"""The cards of a space in Chromium: approvals, forms, elicitations, charts, pictures, and the answers to them."""

import itertools
import re

import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, overflow_px, violations
from tests.console.space_seeding import HOSTILE, Stage, card, opened

pytestmark = pytest.mark.docker
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))
BARS = {"type": "bar", "title": "Sales", "unit": "kg", "labels": ["Mon", "Tue", "Wed"],
        "series": [{"name": "Apples", "values": [3, 5, -1]}, {"name": "Pears", "values": [2, 0, 4]}]}  # fmt: skip
LINES = {"type": "line", "labels": ["a", "b", "c"], "series": [{"name": "Highs", "values": [14.5, None, 21]}]}


@pytest.fixture
def stage(service):
    with Stage(service.url) as stage:
        yield stage


def test_an_approval_runs_the_tool(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("guarded", {"amount": 12}, call)
    shown = card(page, "guarded")
    expect(shown).to_contain_text("asks for approval")
    expect(shown).to_contain_text("waits for an answer")
    expect(shown.get_by_role("timer")).to_contain_text("left")
    expect(shown.locator("dd")).to_have_text("12")
    shown.get_by_label("Reason").fill("within the budget")
    shown.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    expect(shown.locator(".badge", has_text="done")).to_be_visible()
    expect(shown).to_contain_text("Answered by Ann")
    expect(shown.get_by_role("button", name="Approve")).to_have_count(0)
    assert stage.result(call)["ret"] == {"amount": 12}


def test_a_denial_reaches_the_agent_with_its_reason(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    stage.call("guarded", {}, call)
    card(page, "guarded").get_by_label("Reason").fill("too dear")
    card(page, "guarded").get_by_role("button", name="Deny").click()
    expect(card(page, "guarded").locator(".badge", has_text="denied")).to_be_visible()
    answer = stage.result(call)
    assert (answer["error"]["code"], "too dear" in answer["error"]["message"]) == ("denied", True)


def test_a_card_that_appears_does_not_take_the_place_of_the_one_under_the_pointer(open_page, stage):
    for number in range(20):
        stage.say(f"line {number}")
    page = opened(open_page, stage)
    stage.call("guarded", {"amount": 1})
    approve = page.locator(".call-card").first.get_by_role("button", name="Approve")
    expect(approve).to_be_enabled()
    approve.hover()
    place = approve.bounding_box()
    second = stage.new_call_id()
    stage.call("guarded", {"amount": 2}, second)
    expect(page.get_by_role("button", name="Approve")).to_have_count(2)
    expect(page.get_by_role("button", name="Newest")).to_be_visible()
    assert approve.bounding_box() == place
    page.get_by_role("button", name="Newest").click()
    newest = card(page, "guarded").get_by_role("button", name="Approve")
    expect(newest).to_be_disabled()
    newest.click(force=True)  # it has just moved: the click does nothing
    expect(newest).to_be_enabled()
    assert stage.wait(second) is not None
    newest.click()
    expect(card(page, "guarded").locator(".badge", has_text="done")).to_be_visible()


def test_arguments_that_are_nested_too_deeply_leave_the_page_usable(open_page, stage):
    stage.write(stage.new_call_id(), "show", "[" * 16_000)
    page = opened(open_page, stage)
    expect(card(page, "show")).to_contain_text("[[[[")
    stage.write(stage.new_call_id(), "show", '{"a": ' + "[" * 12_000)
    expect(page.locator(".call-card", has_text="show")).to_have_count(2)
    stage.say("still here")
    expect(page.get_by_text("still here", exact=True)).to_be_visible()


def test_a_form_refuses_wrong_values_beside_their_fields_and_sends_right_ones(open_page, stage):
    page = opened(open_page, stage)
    page.expected.append("422")
    call = stage.new_call_id()
    stage.call("ask", {"question": "Where do you stay?"}, call)
    form = card(page, "ask").locator("form.answer")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".field-error")).to_have_text(["This is required"] * 4)
    form.get_by_label("City").fill("x")
    form.get_by_label("Nights").fill("2.5")
    form.get_by_label("Price").fill("-3")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".field-error").filter(has_text="At least 2 characters")).to_be_visible()
    expect(form.locator(".field-error").filter(has_text="whole number")).to_be_visible()
    expect(form.locator(".field-error").filter(has_text="above 0")).to_be_visible()
    expect(form.get_by_label("City")).to_be_focused()
    form.get_by_label("City").fill("oslo")  # only the service knows the pattern
    form.get_by_label("Nights").fill("3")
    form.get_by_label("Price").fill("99.5")
    form.get_by_label("Meals").select_option("breakfast")
    form.get_by_label("Quiet room").select_option("No")
    form.get_by_label("Guests 1").fill("Ann")
    form.get_by_role("button", name="Add an entry of Guests").click()
    form.get_by_role("button", name="Add an entry of Guests").click()
    expect(form.get_by_role("button", name="Add an entry of Guests")).to_be_disabled()
    form.get_by_label("Guests 2").fill("Ben")
    form.get_by_role("button", name="Remove entry 3 of Guests").click()
    form.get_by_role("button", name="Submit").click()
    expect(form.get_by_label("City")).to_have_attribute("aria-invalid", "true")
    expect(form.locator(".field", has_text="City").locator(".field-error")).to_contain_text("oslo")
    assert violations(page) == []
    form.get_by_label("City").fill("Oslo")
    form.get_by_label("Mail").fill("ann@example.com")
    form.get_by_role("button", name="Submit").click()
    expect(card(page, "ask").locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(call)["ret"] == {
        "city": "Oslo", "nights": 3, "price": 99.5, "meals": "breakfast", "quiet": False, "guests": ["Ann", "Ben"],
        "contact": {"mail": "ann@example.com"},
    }  # fmt: skip


def test_a_question_without_a_schema_takes_json_and_can_be_cancelled(open_page, stage):
    page = opened(open_page, stage)
    first, second = stage.new_call_id(), stage.new_call_id()
    stage.call("ask_anything", {"question": "Which?"}, first)
    field = card(page, "ask_anything").get_by_label("Answer, as JSON")
    field.fill('{"a": [1, tru')
    card(page, "ask_anything").get_by_role("button", name="Submit").click()
    expect(card(page, "ask_anything").locator(".field-error")).to_contain_text("not JSON")
    field.fill('{"a": [1, true, null]}')
    card(page, "ask_anything").get_by_role("button", name="Submit").click()
    expect(card(page, "ask_anything").locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(first)["ret"] == {"a": [1, True, None]}
    stage.call("ask_anything", {}, second)
    card(page, "ask_anything").get_by_role("button", name="Cancel").click()
    expect(card(page, "ask_anything").locator(".badge", has_text="cancelled")).to_be_visible()
    assert stage.result(second)["error"]["code"] == "user_cancelled"


def test_an_elicitation_sends_action_and_content(open_page, stage):
    page = opened(open_page, stage)
    first, second = stage.new_call_id(), stage.new_call_id()
    stage.call("elicit", {}, first)
    shown = card(page, "elicit")
    expect(shown).to_contain_text("The server asks for your table")
    expect(shown.get_by_label("action")).to_have_count(0)
    shown.get_by_label("Table").fill("7")
    shown.get_by_role("button", name="Accept").click()
    expect(shown.locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(first)["ret"] == {"action": "accept", "content": {"table": 7}}
    stage.call("elicit", {}, second)
    card(page, "elicit").get_by_role("button", name="Decline").click()
    expect(card(page, "elicit").locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(second)["ret"] == {"action": "decline"}


def test_charts_are_drawn_and_have_their_numbers_as_a_table(open_page, stage):
    stage.call("chart", BARS)
    stage.call("chart", LINES)
    stage.call("chart", {"type": "bar", "labels": HOSTILE, "series": [{"values": ["x", None]}, 7]})
    page = opened(open_page, stage)
    bars, lines, broken = page.locator(".call-card").all()
    expect(bars.get_by_role("img")).to_have_attribute("aria-label", re.compile("Bar chart: Sales; Apples, Pears"))
    assert bars.locator("rect.bar").count() == 6 + 2  # and the key of the legend
    bars.get_by_text("Numbers").click()
    expect(bars.locator("tbody tr").last).to_have_text(re.compile(r"Wed\s*-1\s*4"))
    assert lines.locator("circle.point").count() == 2
    assert lines.locator("path.line").get_attribute("d").count("M") == 2  # a gap where no number is
    expect(broken.locator("svg[role=img]")).to_have_count(0)
    expect(broken).to_contain_text(HOSTILE)


def test_a_picture_comes_by_a_signed_link(open_page, stage):
    stage.draw()
    page = opened(open_page, stage)
    picture = card(page, "draw").get_by_role("img", name=re.compile("Picture of draw"))
    expect(picture).to_be_visible()
    assert picture.evaluate("each => [each.naturalWidth, each.naturalHeight]") == [60, 40]
    with page.expect_download() as download:
        card(page, "draw").get_by_role("button", name="Download blue.png").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")


def test_other_cards_are_json_that_opens_and_closes(open_page, stage):
    stage.call("show", {"rows": [{"n": each} for each in range(200)]})
    page = opened(open_page, stage)
    shown = card(page, "show")
    output = shown.locator("details", has_text="Output")
    expect(output).to_have_attribute("open", "")
    output.get_by_role("button", name=re.compile("Show more")).click()
    expect(output).to_contain_text('"n": 199')
    output.locator("summary").click()
    expect(output.locator("pre")).to_be_hidden()


def test_a_question_that_nobody_answers_expires_before_the_eyes_of_the_reader(open_page, stage):
    page = opened(open_page, stage)
    stage.call("ask_shortly", {})
    expect(card(page, "ask_shortly").locator(".badge", has_text="expired")).to_be_visible()
    expect(card(page, "ask_shortly").get_by_role("button", name="Submit")).to_have_count(0)


def test_of_two_browsers_that_answer_at_once_one_is_told(open_page, stage):
    ann, ben = opened(open_page, stage, "ann"), opened(open_page, stage, "ben")
    ben.expected.append("409")
    call = stage.new_call_id()
    stage.call("guarded", {}, call)
    held = []
    ben.route("**/result", lambda route: held.append(route))  # noqa: PLW0108 - Playwright takes no method of a list
    card(ben, "guarded").get_by_role("button", name="Deny").click()
    card(ann, "guarded").get_by_role("button", name="Approve").click()
    expect(card(ann, "guarded").locator(".badge", has_text="done")).to_be_visible()
    held[0].continue_()
    expect(card(ben, "guarded").get_by_role("alert")).to_contain_text("already_answered")
    expect(card(ben, "guarded").locator(".badge", has_text="done")).to_be_visible()
    expect(card(ann, "guarded").get_by_role("alert")).to_have_count(0)
    assert stage.result(call)["ok"] is True


@pytest.fixture(scope="module")
def full(service):
    """A space with every kind of card."""
    with Stage(service.url, name="Every card") as stage:
        stage.say(f"Please look at the numbers, @{stage.agent}: https://example.com/numbers?of=today")
        stage.call("show", {"city": "Oslo", "celsius": 14.5, "tags": ["dry", "mild"]})
        stage.call("chart", BARS)
        stage.call("chart", LINES)
        stage.draw()
        stage.write(stage.new_call_id(), "show", '{"being": "written')
        stage.call("guarded", {"amount": 12, "to": "Ann"})
        stage.call("elicit", {})
        stage.call("ask", {"question": "Where do you stay?"})
        yield stage


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_every_card_fits_everywhere_and_is_accessible(open_page, full, scheme, size):
    page = opened(open_page, full, scheme=scheme, size=size)
    expect(page.locator("article")).to_have_count(9)
    show = "each => each.forEach(one => { one.style.contentVisibility = 'visible'; })"
    page.locator("article").evaluate_all(show)
    page.locator(".picture-frame").scroll_into_view_if_needed()
    expect(page.get_by_role("img", name=re.compile("Picture of draw"))).to_be_visible()
    assert violations(page) == []
    assert overflow_px(page) == 0
    assert page.locator(".messages").evaluate("each => each.scrollWidth - each.clientWidth") == 0
