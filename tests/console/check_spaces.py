"""The page of a space in Chromium: live messages, lost connections, texts of others, writing, shared links."""

import contextlib
import json
import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.console.conftest import overflow_px, violations
from tests.console.relay import Relay
from tests.console.served import EVERY_SCOPE, MortalService
from tests.console.space_seeding import HOSTILE, RTL, Stage, as_json, card, opened

pytestmark = pytest.mark.docker


@pytest.fixture
def stage(service):
    with Stage(service.url) as stage:
        yield stage


def texts(page):
    return page.locator("article .outside-text").all_text_contents()


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


def test_a_text_appears_while_an_agent_writes_it(open_page, stage):
    page = opened(open_page, stage)
    call = stage.new_call_id()
    draft = page.get_by_role("article", name="A text that is being written")
    stage.write(call, "send_message", '{"text": "Dinner is \U0001f600')
    expect(draft).to_contain_text("Dinner is \U0001f600")
    stage.write(call, "send_message", " read", len('{"text": "Dinner is \U0001f600'))
    expect(draft).to_contain_text("Dinner is \U0001f600 read")
    stage.call("send_message", {"text": "Dinner is \U0001f600 ready"}, call)
    expect(draft).to_have_count(0)
    expect(page.locator("article")).to_have_text([re.compile("Dinner is \U0001f600 ready$")])


def test_a_lost_connection_doubles_and_loses_no_text(open_page, stage, service):
    with Relay(service.port) as relay:
        page = open_page(stage.link().replace(stage.url, relay.url))
        page.expected.append("ERR_")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        call, text = stage.new_call_id(), '{"n": "\U0001f600abcdefghij'
        stage.write(call, "show", text[:9])
        expect(card(page, "show")).to_contain_text("\U0001f600a")
        relay.cut()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        stage.write(call, "show", text[9:14], 9)
        stage.say("while you were away")
        relay.mend()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        stage.write(call, "show", text[14:], 14)
        expect(card(page, "show").locator("dd, pre")).to_have_text(re.compile("\U0001f600abcdefghij$"))
        expect(page.locator("article", has_text="while you were away")).to_have_count(1)
        stage.call("show", {"n": "\U0001f600abcdefghij"}, call)
        expect(card(page, "show").locator("details", has_text="Input").locator("dd")).to_have_text(
            "\U0001f600abcdefghij"
        )


def test_the_page_goes_on_after_the_service_was_killed(open_page, tmp_path):
    service = MortalService(tmp_path)
    with contextlib.closing(service):
        service.start()
        with Stage(service.url) as stage:
            page = opened(open_page, stage)
            page.expected.append("ERR_")
            stage.say("before")
            stage.write(stage.new_call_id(), "show", '{"half": "writ')
            waiting = stage.new_call_id()
            stage.call("guarded", {"step": 1}, waiting)
            expect(card(page, "guarded").get_by_role("button", name="Approve")).to_be_visible()
            service.kill()
            expect(page.get_by_text("Connection lost")).to_be_visible()
            service.start()
            stage.say("after")
            expect(page.get_by_text("Live", exact=True)).to_be_visible()
            expect(page.locator("article", has_text="after")).to_have_count(1)
            expect(page.locator("article", has_text="before")).to_have_count(1)
            expect(card(page, "show")).to_contain_text("abandoned")
            card(page, "guarded").get_by_role("button", name="Approve").click()
            expect(card(page, "guarded").locator(".badge", has_text="done")).to_be_visible()
            assert stage.result(waiting)["ok"] is True
            expect(page.locator("article")).to_have_count(4)


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


# ---- texts of others ----


@pytest.fixture
def hostile(service):
    """A space whose name, and the name of a person, attack the page."""
    ben = {"type": "human", "handle": "ben", "display_name": f"{HOSTILE}{RTL}"}
    with Stage(service.url, name=f"{HOSTILE}{RTL}") as stage:
        stage.sent("PUT", "/v1/entities/ben", json=ben)
        yield stage
        stage.sent("PUT", "/v1/entities/ben", json={**ben, "display_name": "Ben"})


def test_hostile_texts_are_text(open_page, hostile):
    links = "javascript:alert(1) http://ok.example/a?b=1. https://bank.example@evil.example data:text/html,x"
    hostile.say(f"{HOSTILE} {RTL} {links} [x](javascript:alert(1))")
    hostile.call("show", {HOSTILE: f"{HOSTILE} javascript:alert(1)", "rtl": RTL})
    hostile.call("ask", {"question": HOSTILE})
    page = opened(open_page, hostile)
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
        const count = (records) => {
            for (const each of records) window.changed += each.addedNodes.length + each.removedNodes.length;
        };
        const whole = {childList: true, subtree: true};
        new MutationObserver(count).observe(document.querySelector(".messages-inner"), whole);
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
    token = page.evaluate(f"sessionStorage.getItem('proofbox.space-token.{stage.space}')")
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


def test_a_link_can_be_left(open_page, guarded):
    with Stage(guarded.url, guarded.add_key("spaces", *EVERY_SCOPE)) as stage:
        page = opened(open_page, stage)
        page.expected.append("401")
        page.get_by_role("button", name="Leave this link").click()
        assert violations(page) == []
        page.get_by_role("dialog").get_by_role("button", name="Leave").click()
        expect(page.get_by_role("heading", name="You have left the link")).to_be_visible()
        expect(page.get_by_role("main")).to_be_focused()
        assert violations(page) == []
        assert page.evaluate("Object.values(sessionStorage).join()").find("pbs_") == -1
        assert page.get_by_text("Kitchen").count() == 0
        page.reload()
        expect(page.get_by_role("heading", name="Paste your key")).to_be_visible()


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


def test_the_link_of_a_removed_person_shows_that_it_has_ended(open_page, stage):
    page = opened(open_page, stage)
    page.expected.append("404")
    stage.sent("DELETE", f"{stage.where}/members/ann")
    expect(page.get_by_role("heading", name="This link does not work any more")).to_be_visible()
    page.reload()
    expect(page.get_by_role("button", name="Open the space with a key")).to_be_visible()
