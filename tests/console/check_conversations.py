"""The views of conversations: list, timeline, files with versions and differences, sources."""

import io
import itertools
import re
import zipfile
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, overflow_px, violations
from tests.console.relay import Relay
from tests.console.seeding import (
    HOSTILE_HTML,
    HOSTILE_ID,
    HOSTILE_NAME,
    Seeder,
    docx_of,
    pptx_of,
    xlsx_of,
)

pytestmark = pytest.mark.docker
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))
FULL = "seeded-report"
PREVIEW_MS = 90_000


@pytest.fixture(scope="module")
def seeder(service):
    return Seeder(service)


@pytest.fixture(scope="module")
def full(service, seeder):
    """The address of a conversation with messages, calls, versions and documents."""
    seeder.say(FULL, "Make the totals.")
    seeder.attach(FULL, "deck.pptx", pptx_of("One", "Two"))
    seeder.attach(FULL, "letter.docx", docx_of("A letter"))
    seeder.attach(FULL, "book.xlsx", xlsx_of("First", "Second"))
    seeder.attach(FULL, HOSTILE_NAME, b"a,b\n1,2\n")
    seeder.attach(FULL, "page.html", HOSTILE_HTML.encode())
    for number in (12, 13):
        seeder.run(
            FULL, f"total-{number}", f"open('files/t.csv','w').write('month,total\\nJan,{number}\\n')", "t.csv"
        )
    return f"{service.url}/#/conversations/{FULL}"


@pytest.fixture(scope="module")
def thousand(service, seeder):
    for number in range(1_000):
        seeder.say(f"run-{number:04d}", "hello")
    return f"{service.url}/#/conversations"


def rows(page):
    return page.locator("tbody tr")


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
@pytest.mark.parametrize("part", ["timeline", "files", "sources", "files?path=fi:turn_1.files/t.csv"])
def test_every_part_of_a_conversation_fits_and_is_accessible(open_page, full, scheme, size, part):
    page = open_page(f"{full}/{part}", scheme, size)
    expect(page.get_by_role("heading", name=FULL, level=1)).to_be_visible()
    expect(page.locator(".panel").first).to_be_visible()
    expect(page.locator(".spinner")).to_have_count(0, timeout=PREVIEW_MS)
    assert violations(page) == []
    assert overflow_px(page) == 0


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_a_thousand_conversations_come_page_by_page_and_are_filtered(open_page, thousand, scheme, size):
    page = open_page(thousand, scheme, size)
    expect(rows(page)).to_have_count(100)
    expect(page.get_by_text("100 conversations loaded")).to_be_visible()
    for count in range(200, 1_100, 100):
        page.get_by_role("button", name="Load more").click()
        expect(rows(page)).not_to_have_count(count - 100)
    page.get_by_placeholder("Filter by id").fill("run-0001")
    while page.get_by_role("button", name="Load more").count():
        page.get_by_role("button", name="Load more").click()
        expect(page.locator(".list-foot .spinner")).to_have_count(0)
    expect(rows(page)).to_have_count(1)
    assert violations(page) == []
    assert overflow_px(page) == 0
    rows(page).get_by_role("link").click()
    expect(page.get_by_role("heading", name="run-0001", level=1)).to_be_visible()


def test_the_timeline_shows_blocks_beside_what_the_model_reads_with_tokens(open_page, full):
    page = open_page(f"{full}/timeline")
    first = page.get_by_role("article", name="Block 1", exact=True)
    expect(first.locator(".entry-block")).to_contain_text("Make the totals.")
    expect(first.locator(".entry-text")).to_contain_text("[USER MESSAGE]")
    expect(first.locator(".entry-text")).to_contain_text(re.compile(r"\d+ tokens"))
    expect(page.locator(".timeline-head")).to_contain_text(re.compile(r"\d+ blocks, [\d,]+ tokens"))
    page.get_by_role("button", name="Model", exact=True).click()
    expect(page.locator(".entry-block")).to_have_count(0)
    page.get_by_role("button", name="Blocks", exact=True).click()
    expect(page.locator(".entry-text")).to_have_count(0)


def test_a_block_leads_to_its_call(open_page, full):
    page = open_page(f"{full}/timeline")
    page.get_by_role("link", name="call", exact=True).first.click()
    expect(page.locator(".call-head .badge", has_text="Succeeded")).to_be_visible()


def test_versions_of_a_file_are_compared_line_by_line(open_page, full):
    page = open_page(f"{full}/files?path=fi:turn_1.files/t.csv")
    expect(page.get_by_role("heading", name="2 versions")).to_be_visible()
    expect(page.locator(".cells")).to_contain_text("13", timeout=PREVIEW_MS)
    page.get_by_role("button", name="Changes").click()
    expect(page.locator(".diff .removed")).to_contain_text("Jan,12", timeout=PREVIEW_MS)
    expect(page.locator(".diff .added")).to_contain_text("Jan,13")
    expect(page.get_by_text("1 line added, 1 line removed")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="1", exact=True).click()
    expect(page.get_by_text("This is the first version")).to_be_visible()
    page.get_by_role("button", name="Preview", exact=True).click()
    expect(page.locator(".cells")).to_contain_text("12", timeout=PREVIEW_MS)


def attachment(full, name):
    return f"{full}/files?path={quote(f'fi:turn_1.user.attachments/{name}', safe='')}"


def width_of_picture(page):
    expect(page.locator(".preview img")).to_be_visible(timeout=PREVIEW_MS)
    return page.evaluate("document.querySelector('.preview img').naturalWidth")


def test_slides_are_pictures_that_can_be_turned(open_page, full):
    page = open_page(attachment(full, "deck.pptx"))
    assert width_of_picture(page) == 1_100
    expect(page.get_by_text("1 of 2")).to_be_visible()
    page.get_by_role("button", name="Next page").click()
    expect(page.get_by_text("2 of 2")).to_be_visible()
    expect(page.get_by_alt_text("Page 2 of 2")).to_be_visible()
    expect(page.get_by_text("The layout is similar")).to_be_visible()
    assert violations(page) == []


def test_a_letter_is_a_picture(open_page, full):
    page = open_page(attachment(full, "letter.docx"))
    assert width_of_picture(page) > 800


def test_sheets_of_a_workbook_are_tables(open_page, full):
    page = open_page(attachment(full, "book.xlsx"))
    expect(page.locator(".cells")).to_contain_text("cell of First", timeout=PREVIEW_MS)
    page.get_by_role("button", name="Second").click()
    expect(page.locator(".cells")).to_contain_text("cell of Second", timeout=PREVIEW_MS)


def test_html_is_source_or_a_picture_and_never_runs(open_page, full):
    page = open_page(attachment(full, "page.html"))
    expect(page.locator("pre.source")).to_contain_text("<script>window.hit=1")
    page.get_by_role("button", name="Picture", exact=True).click()
    assert width_of_picture(page) > 800
    assert page.locator("iframe").count() == 0
    assert page.evaluate("window.hit") is None


def test_a_hostile_name_is_text_with_its_marks_shown(open_page, full, service):
    page = open_page(f"{full}/files")
    expect(page.get_by_role("link", name=re.compile(r"<svg onload=window.hit=1>\\u202egpj\.csv"))).to_be_visible()
    page.goto(attachment(full, HOSTILE_NAME))
    expect(page.locator(".cells")).to_contain_text("1", timeout=PREVIEW_MS)
    page.goto(f"{service.url}/#/conversations/{quote(HOSTILE_ID, safe='')}/timeline")
    expect(page.get_by_role("heading", name=HOSTILE_ID, level=1)).to_be_visible()
    page.expected.append("400")
    expect(page.get_by_role("alert")).to_contain_text("unsafe_path")
    assert page.evaluate("window.hit") is None
    assert page.locator("main img, main svg[onload]").count() == 0


def test_all_files_come_as_one_archive(open_page, full):
    page = open_page(f"{full}/files")
    with page.expect_download() as download:
        page.get_by_role("button", name="All as zip").click()
    assert download.value.suggested_filename == f"{FULL}.zip"
    with zipfile.ZipFile(io.BytesIO(Path(download.value.path()).read_bytes())) as archive:
        assert "turn_1/files/t.csv" in archive.namelist()


def test_sources_lead_to_their_files(open_page, full):
    page = open_page(f"{full}/sources")
    expect(page.get_by_text("[[S:10001]]")).to_be_visible()
    page.get_by_role("link", name=re.compile("deck.pptx")).click()
    expect(page.get_by_role("heading", name=re.compile("deck.pptx"))).to_be_visible()


def test_a_conversation_is_deleted_only_after_its_id_was_typed(open_page, service, seeder):
    seeder.say("to-delete", "x")
    page = open_page(f"{service.url}/#/conversations/to-delete/timeline")
    page.get_by_role("button", name="Delete", exact=True).click()
    button = page.get_by_role("button", name="Delete for good")
    expect(button).to_be_disabled()
    page.get_by_label(re.compile("Type to-delete")).fill("to-delete")
    assert violations(page) == []
    button.click()
    expect(page.get_by_text("The conversation is deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="Conversations", level=1)).to_be_visible()


@pytest.mark.parametrize(
    ("part", "text"),
    [("timeline", "The timeline is empty"), ("files", "No files"), ("sources", "No sources")],
)
def test_an_unknown_conversation_is_empty_and_names_what_would_be_there(open_page, service, part, text):
    page = open_page(f"{service.url}/#/conversations/nobody/{part}")
    expect(page.get_by_text(text)).to_be_visible()
    assert violations(page) == []


def test_a_file_that_does_not_exist_is_a_problem_with_its_code(open_page, full):
    page = open_page(f"{full}/files?path=fi:turn_1.files/none.csv")
    page.expected.append("404")
    expect(page.get_by_role("alert")).to_contain_text("unknown_artifact")


def test_a_lost_connection_is_a_problem_that_can_be_tried_again(open_page, service, full):
    with Relay(service.port) as relay:
        page = open_page(full.replace(service.url, relay.url) + "/files")
        page.expected.append("ERR_")
        expect(rows(page).first).to_be_visible()
        relay.cut()
        page.get_by_role("link", name="Sources").click()
        expect(page.get_by_role("alert")).to_contain_text("no_connection")
        relay.mend()
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("[[S:10001]]")).to_be_visible()
