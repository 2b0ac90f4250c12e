"""The page of a space in Chromium: live messages, cards, answers, lost connections, hostile texts, many messages."""

import itertools
import json
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, free_port, overflow_px, violations
from tests.console.relay import Relay
from tests.console.served import MortalService
from tests.console.space_seeding import HOSTILE, RTL, Stage, as_json

pytestmark = pytest.mark.docker
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))
BARS = {"type": "bar", "title": "Sales", "unit": "kg", "labels": ["Mon", "Tue", "Wed"],
        "series": [{"name": "Apples", "values": [3, 5, -1]}, {"name": "Pears", "values": [2, 0, 4]}]}  # fmt: skip
LINES = {"type": "line", "labels": ["a", "b", "c"], "series": [{"name": "Highs", "values": [14.5, None, 21]}]}


@pytest.fixture
def stage(service):
    return Stage(service.url)


def opened(open_page, stage, person="ann", **options):
    """The page of a space by a shared link, connected."""
    page = open_page(stage.link(person), **options)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    return page


def card(page, name):
    return page.locator("article", has=page.locator(".call-card", has_text=name)).last


def texts(page):
    return page.locator("article .outside-text").all_inner_texts()


# ---- live ----


def test_what_one_person_writes_another_sees_at_once(open_page, stage):
    ann, ben = opened(open_page, stage, "ann"), opened(open_page, stage, "ben")
    ann.get_by_label("Message", exact=True).fill("Good morning, Ben")
    ann.keyboard.press("Enter")
    for page in (ann, ben):
        expect(page.locator("article", has_text="Good morning, Ben")).to_have_count(1)
    expect(ben.get_by_role("status").filter(has_text="Ann: Good morning, Ben")).to_have_count(1)
    expect(ann.get_by_label("Message", exact=True)).to_have_value("")


def test_arguments_appear_while_they_are_written_and_are_the_record_at_the_end(open_page, stage):
    page = opened(open_page, stage)
    call, text = stage.new_call_id(), as_json({"note": "caf\u00e9 \U0001f600 and more", "count": 3})
    for offset in range(0, len(text) - 5, 3):
        stage.write(call, "show", text[offset : offset + 3], offset)
    shown = card(page, "show")
    expect(shown).to_contain_text("is being written")
    expect(shown).to_contain_text("caf\u00e9 \U0001f600 and more")
    stage.call("show", json.loads(text), call)
    expect(shown).to_contain_text("done")
    expect(shown.locator("dd").filter(has_text="\U0001f600")).to_have_count(2)  # input and output
    expect(page.locator("article")).to_have_count(1)


def test_a_lost_connection_doubles_and_loses_no_text(open_page, stage, service):
    with Relay(service.port) as relay:
        page = open_page(stage.link().replace(stage.url, relay.url))
        page.expected.append("ERR_")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        call, text = stage.new_call_id(), '{"n": "\U0001f600abcdefghij'
        stage.write(call, "show", text[:8])
        expect(card(page, "show")).to_contain_text("\U0001f600a")
        relay.cut()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        stage.write(call, "show", text[8:14], 8)
        stage.say("while you were away")
        relay.mend()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        stage.write(call, "show", text[14:], 14)
        expect(page.locator("article", has_text="while you were away")).to_have_count(1)
        expect(card(page, "show").locator(".values dd, pre")).to_have_text(
            re.compile('^(\U0001f600abcdefghij|.*: "\U0001f600abcdefghij)$')
        )


def test_the_page_goes_on_after_the_service_was_killed(open_page, tmp_path):
    service = MortalService(tmp_path, free_port())
    service.start()
    try:
        stage = Stage(service.url)
        page = opened(open_page, stage)
        page.expected.append("ERR_")
        stage.say("before")
        written = stage.new_call_id()
        stage.write(written, "show", '{"half": "writ')
        waiting = stage.new_call_id()
        stage.call("guarded", {"step": 1}, waiting)
        expect(card(page, "guarded").get_by_role("button", name="Approve")).to_be_visible()
        service.kill()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        service.close()
        service.start()
        stage.say("after")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        expect(page.locator("article", has_text="after")).to_have_count(1)
        expect(page.locator("article", has_text="before")).to_have_count(1)
        expect(card(page, "show")).to_contain_text("abandoned")
        card(page, "guarded").get_by_role("button", name="Approve").click()
        expect(card(page, "guarded")).to_contain_text("done")
        assert stage.result(waiting)["ok"] is True
        expect(page.locator("article")).to_have_count(4)
    finally:
        service.close()


def test_events_that_are_gone_are_read_again(open_page, stage):
    """A stream that says `reset`: the messages are read again, and none is doubled."""
    page = open_page("about:blank")
    asked = []

    def follow(route):
        asked.append(route.request.url)
        if len(asked) == 2:  # as a service answers that has no events before 900 any more
            route.fulfill(content_type="text/event-stream", body='id: 3\nevent: reset\ndata: {"last": 3}\n\n')
        elif len(asked) == 1:
            stage.say("first")
            route.fulfill(content_type="text/event-stream", body='id: 2\nevent: reset\ndata: {"last": 2}\n\n')
        else:
            route.continue_()

    page.route("**/events*", follow)
    page.goto(stage.link())
    expect(page.locator("article", has_text="first")).to_have_count(1)
    stage.say("second")
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    expect(page.locator("article", has_text="second")).to_have_count(1)
    expect(page.locator("article", has_text="first")).to_have_count(1)
    expect(page.locator("article")).to_have_count(2)
    assert "after=9223372036854775807" in asked[0]
    assert "after=2" in asked[1]


def test_members_that_join_and_leave_and_states_of_runs_are_shown(open_page, stage):
    page = opened(open_page, stage)
    members = page.locator(".members")
    expect(members).to_contain_text("3 members")
    body = {"type": "human", "handle": "cleo", "display_name": "Cleo"}
    stage.sent("PUT", "/v1/entities/cleo", json=body)
    stage.sent("PUT", f"{stage.where}/members/cleo")
    expect(members).to_contain_text("@cleo")
    stage.sent("DELETE", f"{stage.where}/members/cleo")
    expect(members).to_contain_text("3 members")
    stage.call("ask_anything", {})
    expect(members).to_contain_text("waiting tool")


# ---- cards ----


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


def test_a_form_refuses_wrong_values_beside_their_fields_and_sends_right_ones(open_page, stage):
    page = opened(open_page, stage)
    page.expected.append("422")
    call = stage.new_call_id()
    stage.call("ask", {"question": "Where do you stay?"}, call)
    form = card(page, "ask").locator("form.answer")
    form.get_by_role("button", name="Submit").click()
    expect(form.locator(".field-error")).to_have_text(["This is required"] * 3 + ["At least 1 entries are needed"])
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
    form.get_by_role("button", name="Add an entry of Guests").click()
    form.get_by_label("Guests 1").fill("Ann")
    form.get_by_role("button", name="Submit").click()
    expect(form.get_by_label("City")).to_have_attribute("aria-invalid", "true")
    expect(form.locator(".field", has_text="City").locator(".field-error")).to_contain_text("oslo")
    assert violations(page) == []
    form.get_by_label("City").fill("Oslo")
    form.get_by_label("Mail").fill("ann@example.com")
    form.get_by_role("button", name="Submit").click()
    expect(card(page, "ask").locator(".badge", has_text="done")).to_be_visible()
    assert stage.result(call)["ret"] == {
        "city": "Oslo", "nights": 3, "price": 99.5, "meals": "breakfast", "quiet": False, "guests": ["Ann"],
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
    ben.route("**/result", held.append)
    card(ben, "guarded").get_by_role("button", name="Deny").click()
    card(ann, "guarded").get_by_role("button", name="Approve").click()
    expect(card(ann, "guarded").locator(".badge", has_text="done")).to_be_visible()
    held[0].continue_()
    expect(card(ben, "guarded").get_by_role("alert")).to_contain_text("already_answered")
    expect(card(ben, "guarded").locator(".badge", has_text="done")).to_be_visible()
    expect(card(ann, "guarded").get_by_role("alert")).to_have_count(0)
    assert stage.result(call)["ok"] is True


# ---- texts of others ----


def test_hostile_texts_are_text(open_page, service):
    stage = Stage(service.url, name=f"{HOSTILE}{RTL}")
    stage.sent(
        "PUT", "/v1/entities/ben", json={"type": "human", "handle": "ben", "display_name": f"{HOSTILE}{RTL}"}
    )
    try:
        links = "javascript:alert(1) http://ok.example/a?b=1. https://bank.example@evil.example data:text/html,x"
        stage.say(f"{HOSTILE} {RTL} {links} [x](javascript:alert(1))")
        stage.call("show", {f"{HOSTILE}": f"{HOSTILE} javascript:alert(1)", "rtl": RTL})
        schema_texts = {"question": HOSTILE}
        stage.call("ask", schema_texts)
        page = opened(open_page, stage)
        expect(page.locator("article")).to_have_count(3)
        assert page.evaluate("window.hit") is None
        assert page.locator("main img, main script, main iframe").count() == 0
        said = page.locator("article").first
        assert [link.get_attribute("href") for link in said.locator("a").all()] == ["http://ok.example/a?b=1"]
        expect(said.locator("a")).to_have_attribute("rel", re.compile("noopener noreferrer"))
        assert said.locator("a").inner_text() == "http://ok.example/a?b=1"
        expect(said).to_contain_text(HOSTILE)
        assert "\u202e" not in page.locator("body").inner_text()
        expect(said).to_contain_text("bill\\u202egpj.exe")
        expect(page.get_by_role("heading", level=1)).to_have_text(f"{HOSTILE}bill\\u202egpj.exe")
        assert violations(page) == []
    finally:
        stage.sent("PUT", "/v1/entities/ben", json={"type": "human", "handle": "ben", "display_name": "Ben"})


def test_a_text_of_a_megabyte_opens_in_parts(open_page, stage):
    """As a service would send it that has no limit of its own."""
    stage.say("short")
    page = open_page("about:blank")

    def lengthen(route):
        answer = route.fetch()
        body = answer.json()
        body["items"][0]["text"] = "word " * 200_000
        route.fulfill(response=answer, json=body)

    page.route("**/messages?*", lengthen)
    page.goto(stage.link())
    said = page.locator("article")
    said.get_by_role("button", name="Show more (1,000,000 characters)").click()
    expect(said).to_contain_text("The first 100,000 characters of 1,000,000 characters")
    assert len(said.locator(".outside-text").inner_text()) <= 100_000
    assert overflow_px(page) == 0


def test_a_value_that_is_too_large_for_a_card_is_a_file(open_page, stage):
    stage.call("show", {"text": "x" * 300_000})
    page = opened(open_page, stage)
    expect(card(page, "show")).to_contain_text("too many for a card")
    with page.expect_download() as download:
        card(page, "show").get_by_role("button", name=re.compile("Download .*result.json")).click()
    assert len(json.loads(download.value.path().read_text())["text"]) == 300_000


def test_a_thousand_messages_are_drawn_once_each(open_page, stage):
    page = opened(open_page, stage)
    field = page.get_by_label("Message", exact=True)
    for number in range(1_000):
        stage.say(f"message {number}")
        if number == 500:
            field.press_sequentially("typed meanwhile")
    expect(page.locator("article", has_text="message 999")).to_be_visible()
    expect(page.locator("article")).to_have_count(1_000)
    expect(field).to_have_value("typed meanwhile")
    page.evaluate("""() => {
        window.changed = 0;
        const count = (records) => { for (const each of records) window.changed += each.addedNodes.length + each.removedNodes.length; };
        new MutationObserver(count).observe(document.querySelector(".messages-inner"), {childList: true, subtree: true});
    }""")
    stage.say("one more")
    expect(page.locator("article", has_text="one more")).to_be_visible()
    assert page.evaluate("window.changed") == 1  # the new message, and no other was touched


def test_earlier_messages_come_when_they_are_asked_for(open_page, stage):
    for number in range(130):
        stage.say(f"message {number}.")
    page = opened(open_page, stage)
    expect(page.locator("article")).to_have_count(100)
    expect(page.locator("article", has_text="message 129.")).to_be_in_viewport()
    page.get_by_role("button", name="Show earlier messages").click()
    expect(page.locator("article")).to_have_count(130)
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)
    assert texts(page) == [f"message {number}." for number in range(130)]
    page.locator(".messages").evaluate("each => { each.scrollTop = 0; }")
    page.get_by_role("button", name="Newest").click()
    expect(page.locator("article", has_text="message 129.")).to_be_in_viewport()


# ---- writing ----


def test_a_handle_is_completed_by_the_keyboard_and_an_unknown_one_is_named(open_page, stage):
    page = opened(open_page, stage)
    field = page.get_by_label("Message", exact=True)
    field.press_sequentially("Hello @b")
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_text([re.compile("@ben")])
    assert violations(page) == []
    page.keyboard.press("Tab")
    expect(field).to_have_value("Hello @ben ")
    field.press_sequentially("and @nobody")
    page.keyboard.press("Enter")
    said = page.locator("article", has_text="Hello @ben and @nobody")
    expect(said.locator(".mention")).to_have_text("@ben")
    expect(page.get_by_text("No member has the handle @nobody.")).to_be_visible()


def test_a_reply_shows_what_it_answers(open_page, stage):
    stage.say("Who cooks?")
    page = opened(open_page, stage)
    page.get_by_role("button", name="Reply to Ben").click()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.get_by_label("Message", exact=True).fill("I do")
    page.get_by_role("button", name="Send").click()
    reply = page.locator("article", has_text="I do")
    expect(reply.get_by_role("button", name="Ben: Who cooks?")).to_be_visible()


def test_a_message_whose_answer_was_lost_is_sent_once(open_page, stage):
    page = opened(open_page, stage)
    page.expected.append("ERR_")

    def lose(route):
        route.fetch()
        route.abort()

    page.route("**/messages", lose)
    page.get_by_label("Message", exact=True).fill("only once")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("The service did not answer")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_value("only once")
    page.unroute("**/messages")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    expect(page.locator("article", has_text="only once")).to_have_count(1)


# ---- keys and links ----


def test_a_shared_link_opens_its_space_and_nothing_else(open_page, stage, guarded):
    page = opened(open_page, stage)
    assert page.url == stage.page
    assert page.get_by_role("navigation").count() == 0
    page.reload()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    assert page.evaluate("Object.values(localStorage).join() + document.cookie").find("pbs_") == -1
    token = page.evaluate("Object.values(sessionStorage)[0]")
    assert (
        httpx.get(
            f"{stage.url}/v1/tools", headers={"Authorization": f"Bearer {token}"}, trust_env=False
        ).status_code
        == 403
    )
    other = open_page(f"{guarded.url}/spaces/{stage.space}?token={token}")
    other.expected.append("401")
    expect(other.get_by_role("heading", name="Paste your key")).to_be_visible()


def test_a_link_that_does_not_work_says_so(open_page, stage):
    page = open_page(f"{stage.page}#token=pbs_bm90.dmFsaWQ")
    page.expected.append("401")
    expect(page.get_by_role("heading", name="This link does not work any more")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Open the space with a key").click()
    expect(page.get_by_role("heading", name="Kitchen")).to_be_visible()


def test_the_list_leads_to_a_space_and_a_key_without_an_own_person_chooses_one(open_page, stage):
    page = open_page(f"{stage.url}/#/spaces")
    expect(page.get_by_role("link", name="Kitchen").first).to_be_visible()
    assert violations(page) == []
    page.goto(stage.page)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    page.get_by_label("You act as").select_option("Ben")
    page.get_by_label("Message", exact=True).fill("as Ben")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name=re.compile("^Ben,"))).to_contain_text("as Ben")
    page.get_by_role("link", name="Spaces").first.click()
    expect(page.get_by_role("heading", name="Spaces", level=1)).to_be_visible()


def test_a_link_is_made_in_the_page(open_page, stage):
    page = open_page(stage.page)
    page.get_by_role("button", name="Share").click()
    page.get_by_label("Person").select_option("Ben")
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_label("Link").input_value()
    shared = open_page(link)
    expect(shared.get_by_text("Live", exact=True)).to_be_visible()
    expect(shared.locator(".members li", has_text="Ben")).to_contain_text("you")


def test_with_a_key_of_a_person_the_page_acts_as_that_person(open_page, guarded):
    page = open_page(f"{guarded.url}/spaces/spc_unknown")
    page.expected += ["401", "404"]
    page.get_by_label("API key").fill(guarded.key)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown_space")


def test_an_archived_space_is_read_only(open_page, stage):
    stage.say("the last word")
    stage.sent("DELETE", stage.where)
    page = open_page(stage.link())
    expect(page.get_by_text("This space is archived")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_have_count(0)


# ---- everywhere ----


@pytest.fixture(scope="module")
def full(service):
    """A space with every kind of card."""
    stage = Stage(service.url, name="Every card")
    stage.say(f"Please look at the numbers, @{stage.agent}: https://example.com/numbers?of=today")
    stage.call("show", {"city": "Oslo", "celsius": 14.5, "tags": ["dry", "mild"]})
    stage.call("chart", BARS)
    stage.call("chart", LINES)
    stage.draw()
    stage.write(stage.new_call_id(), "show", '{"being": "written')
    stage.call("guarded", {"amount": 12, "to": "Ann"})
    stage.call("elicit", {})
    stage.call("ask", {"question": "Where do you stay?"})
    return stage


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_every_card_fits_everywhere_and_is_accessible(open_page, full, scheme, size):
    page = opened(open_page, full, scheme=scheme, size=size)
    expect(page.locator("article")).to_have_count(9)
    expect(page.get_by_role("img", name=re.compile("Picture of draw"))).to_be_attached()
    page.evaluate(
        "for (const each of document.querySelectorAll('article')) each.style.contentVisibility = 'visible'"
    )
    assert violations(page) == []
    assert overflow_px(page) == 0
    assert page.locator(".messages").evaluate("each => each.scrollWidth - each.clientWidth") == 0
