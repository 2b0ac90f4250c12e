"""The view that runs programs and renders documents, with real sandboxes."""

import itertools
import re
import zipfile
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from tests.console.conftest import PHONE, SCHEMES, WIDE, overflow_px, violations
from tests.console.relay import Relay

pytestmark = pytest.mark.docker
EVERY_PLACE = list(itertools.product(SCHEMES, (WIDE, PHONE)))
SHIFTS = """() => {
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifts += entry.value;
  }).observe({type: "layout-shift", buffered: false});
}"""


def write(page, code, promises=()):
    """Write a program and its contract into the form."""
    editor = page.get_by_label("Python program")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(code)
    while page.get_by_role("button", name=re.compile("Remove promise")).count():
        page.get_by_role("button", name=re.compile("Remove promise")).first.click()
    for name in promises:
        page.get_by_role("button", name="Promise a file").click()
        page.get_by_label("File or pattern").last.fill(name)


def state(page, text):
    return page.locator(".call-head .badge", has_text=text)


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_the_first_program_runs_and_shows_promises_files_phases_and_report(open_page, service, scheme, size):
    page = open_page(service.url, scheme, size)
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(state(page, "Succeeded")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("4 months, the best is Apr with 180")
    expect(page.locator(".file")).to_have_count(2)
    expect(page.locator(".file .badge.good")).to_have_count(2)
    expect(page.get_by_role("list", name="Phases of the call").get_by_text("Run")).to_be_visible()
    expect(page.get_by_label("Report")).to_contain_text("Produced files:")
    page.locator(".file", has_text="sales.png").get_by_role("button", name="Preview").click()
    expect(page.get_by_alt_text(re.compile("sales.png"))).to_be_visible()
    assert page.evaluate("document.querySelector('.preview img').naturalWidth") > 600
    assert violations(page) == []
    assert overflow_px(page) == 0


def test_all_files_of_a_call_are_saved_as_one_archive(open_page, service):
    page = open_page(service.url)
    page.get_by_label("Python program").click()
    page.keyboard.press("Control+Enter")
    with page.expect_download() as saved:
        page.get_by_role("button", name="All as zip").click()
    with zipfile.ZipFile(saved.value.path()) as archive:
        assert archive.read("turn_1/files/sales.csv").startswith(b"month,total\n")
        assert "turn_1/files/sales.png" in archive.namelist()


def test_tables_and_pages_are_shown_as_the_service_draws_them(open_page, service):
    page = open_page(service.url)
    code = (
        "import pandas as pd\nfrom reportlab.pdfgen.canvas import Canvas\n"
        "cities = pd.DataFrame({'city': ['Rome', 'Oslo'], 'n': [3, 4]})\n"
        "cities.to_excel('files/t.xlsx', sheet_name='Cities', index=False)\n"
        "pdf = Canvas('files/two.pdf')\n"
        "pdf.drawString(90, 700, 'one')\npdf.showPage()\npdf.drawString(90, 700, 'two')\npdf.showPage()\n"
        "pdf.save()\nopen('files/page.html', 'w').write('<h1>Shown</h1><script>alert(1)</script>')"
    )
    write(page, code, ["t.xlsx", "two.pdf", "page.html"])
    page.keyboard.press("Control+Enter")
    expect(page.locator(".file")).to_have_count(3)
    for name in ("t.xlsx", "two.pdf", "page.html"):
        page.locator(".file", has_text=name).get_by_role("button", name="Preview").click()
    expect(page.get_by_role("cell", name="Oslo")).to_be_visible()
    pdf = page.locator(".file", has_text="two.pdf")
    expect(pdf.get_by_alt_text(re.compile("Page 1"))).to_be_visible()
    pdf.get_by_role("button", name="Next page").click()
    expect(pdf.get_by_alt_text(re.compile("Page 2"))).to_be_visible()
    document = page.locator(".file", has_text="page.html")
    expect(document.locator("pre.source")).to_contain_text("<h1>Shown</h1>")
    document.get_by_role("button", name="Picture").click()
    expect(document.get_by_alt_text(re.compile("Page 1"))).to_be_visible()
    assert violations(page) == []


def test_a_promise_that_is_not_kept_is_shown_with_its_reason(open_page, service):
    page = open_page(service.url)
    write(page, "print('nothing')", ["table.csv"])
    page.keyboard.press("Control+Enter")
    expect(state(page, "Failed")).to_be_visible()
    row = page.locator(".file", has_text="table.csv")
    expect(row.locator(".badge.bad")).to_have_text("missing file")
    expect(page.get_by_role("button", name="All as zip")).to_have_count(0)
    assert violations(page) == []


def test_a_check_of_the_contract_decides(open_page, service):
    page = open_page(service.url)
    write(page, "open('files/t.csv', 'w').write('a,b\\n1,2\\n')", ["t.csv"])
    page.get_by_label("Add a check").select_option("min rows")
    page.get_by_label("min rows", exact=True).fill("5")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".file .badge.bad")).to_have_text("artifact invalid")
    page.get_by_role("button", name="JSON", exact=True).click()
    expect(page.get_by_label("Contract as JSON")).to_have_value(re.compile(r'"min_rows": 5'))
    page.get_by_label("Contract as JSON").fill('[{"filename": "t.csv", "description": "t", "min_rows": 1}]')
    page.keyboard.press("Control+Enter")
    expect(state(page, "Succeeded")).to_be_visible()


def test_a_form_that_cannot_be_sent_names_the_promise(open_page, service):
    page = open_page(service.url)
    write(page, "print(1)", [""])
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.get_by_role("alert")).to_contain_text("Promise 1: the file name is empty")


def test_a_request_that_the_service_refuses_shows_its_problem(open_page, service):
    page = open_page(service.url)
    page.expected.append("422")
    page.get_by_text("Arguments and limits").click()
    page.get_by_label("Memory, MiB").fill("1")
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(state(page, "Not answered")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("limits.memory_bytes")


def test_ten_megabytes_of_output_stream_without_a_shift_of_the_layout(open_page, talkative):
    page = open_page(talkative.url)
    write(page, "for i in range(100_000):\n    print(f'{i:06}', 'x' * 92)\nprint('the end')")
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.get_by_role("log", name="Output, live")).to_be_visible()
    page.evaluate(SHIFTS)
    expect(page.get_by_role("log")).to_contain_text("the end", timeout=120_000)
    shifted = page.evaluate("window.shifts")
    expect(state(page, "Succeeded")).to_be_visible()
    assert shifted < 0.01
    assert page.evaluate("document.querySelector('.output').textContent.length") <= 130_000
    expect(page.locator(".output-foot")).to_contain_text("The end of 10.0 MB")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save all").click()
    content = saved.value.path().read_text()
    assert len(content) == 100_000 * 100 + len("the end\n")
    assert content.startswith("000000 x")


def test_of_output_that_the_service_does_not_pass_on_the_end_is_shown_and_the_gap_is_named(open_page, service):
    page = open_page(service.url)
    write(page, "for i in range(30_000):\n    print(f'{i:06}', 'x' * 92)\nprint('the end')")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("log")).to_contain_text("the end")
    expect(page.get_by_role("log")).to_contain_text("1.9 MB were not passed on")


def test_output_and_errors_arrive_while_the_program_runs_and_it_can_be_cancelled(open_page, service):
    page = open_page(service.url)
    write(page, "import sys, time\nprint('begun', flush=True)\nprint('careful', file=sys.stderr)\ntime.sleep(300)")
    page.keyboard.press("Control+Enter")
    output = page.get_by_role("log", name="Output, live")
    expect(output).to_contain_text("begun")
    expect(output.locator(".err")).to_contain_text("careful")
    expect(state(page, "Running")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Cancel").click()
    expect(state(page, "Cancelled")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("begun")


def test_a_lost_connection_is_shown_and_no_output_is_lost_or_doubled(open_page, service):
    with Relay(service.port) as relay:
        page = open_page(relay.url)
        page.expected.extend(["ERR_", "net::"])
        write(page, "import time\nfor i in range(40):\n    print('line', i, flush=True)\n    time.sleep(0.25)")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("log", name="Output, live")).to_contain_text("line 3")
        relay.cut()
        expect(page.get_by_text("Connection lost, trying again")).to_be_visible()
        assert violations(page) == []
        relay.mend()
        expect(page.get_by_text("Connection lost, trying again")).to_have_count(0)
        expect(state(page, "Succeeded")).to_be_visible()
        assert page.get_by_role("log").inner_text().split("\n")[:40] == [f"line {i}" for i in range(40)]


def test_a_run_goes_on_while_another_view_is_shown(open_page, service):
    page = open_page(service.url)
    write(page, "import time\ntime.sleep(5)\nprint('finished')")
    page.keyboard.press("Control+Enter")
    expect(state(page, "Running")).to_be_visible()
    page.get_by_role("link", name="Keys").click()
    page.get_by_role("link", name="Run").click()
    expect(page.get_by_role("log")).to_contain_text("finished")
    expect(page.get_by_label("Python program")).to_contain_text("time.sleep(5)")


def test_a_call_has_an_address_that_shows_it_again(open_page, service):
    service.call("print('stored')", "addressed", "call_a")
    page = open_page(f"{service.url}/#/calls/addressed/call_a")
    expect(state(page, "Succeeded")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("stored")
    assert violations(page) == []


def test_an_unknown_call_is_a_problem_with_its_code(open_page, service):
    page = open_page(f"{service.url}/#/calls/addressed/call_x")
    page.expected.append("404")
    expect(page.get_by_role("alert")).to_contain_text("unknown_call")


def test_input_files_are_sent_and_found_by_name(open_page, service):
    page = open_page(service.url)
    write(page, "print(open('points.csv').read().upper())")
    page.get_by_label("Input files").set_input_files(
        [{"name": "points.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n"}]
    )
    expect(page.get_by_text("turn_1/attachments/points.csv")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("log")).to_contain_text("A,B")
    page.get_by_role("button", name="Delete points.csv").click()
    expect(page.get_by_text("turn_1/attachments/points.csv")).to_have_count(0)


@pytest.mark.parametrize(("scheme", "size"), EVERY_PLACE)
def test_a_document_is_rendered(open_page, service, scheme, size):
    page = open_page(service.url, scheme, size)
    page.get_by_role("button", name="Document").click()
    page.get_by_text("Options").click()
    page.get_by_label("Theme").fill("brand")
    page.get_by_role("button", name=re.compile("^Render")).click()
    expect(state(page, "Succeeded")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download report.pdf").click()
    assert saved.value.path().read_bytes().startswith(b"%PDF-")
    assert violations(page) == []
    assert overflow_px(page) == 0


HOSTILE_NAME = "<img src=x onerror=alert(1)>\u202efdp.txt"
HOSTILE_PAGE = "<script>parent.owned = 1; top.owned = 1</script><img src=x onerror='top.owned = 1'>"


def test_a_hostile_name_and_a_hostile_page_are_text(open_page, service):
    page = open_page(service.url)
    code = (
        f"open({'files/' + HOSTILE_NAME!r}, 'w').write('x')\n"
        f"open('files/page.html', 'w').write({HOSTILE_PAGE!r})\n"
        f"print({HOSTILE_PAGE!r}, '\\x1b[31mred\\x1b[0m')"
    )
    write(page, code, ["page.html", "*.txt"])
    page.keyboard.press("Control+Enter")
    expect(page.locator(".file")).to_have_count(2)
    expect(page.locator(".file", has_text="\\u202e")).to_have_count(1)
    expect(page.get_by_role("log")).to_contain_text("<script>")
    expect(page.get_by_role("log")).to_contain_text("red")
    row = page.locator(".file", has_text="page.html")
    row.get_by_role("button", name="Preview").click()
    expect(row.locator("pre.source")).to_contain_text("<script>parent.owned")
    assert page.evaluate("window.owned") is None
    assert page.locator("iframe, .file img, object, embed").count() == 0


def answer_events(page, *bodies):
    """Answer requests for events with these bodies, the last one for ever; the list of their queries."""
    queries = []

    def answer(route):
        queries.append(urlsplit(route.request.url).query)
        body = bodies[min(len(queries), len(bodies)) - 1]
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route(re.compile(r"/v1/tool-calls/[^/]+/events"), answer)
    return queries


def test_an_event_that_is_not_json_is_a_message_and_is_not_requested_again(open_page, service):
    page = open_page(service.url)
    queries = answer_events(page, "id: 1\nevent: queued\ndata: {\n\n")
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.get_by_text("An event is not JSON; a proxy may have changed it")).to_be_visible()
    assert len(queries) == 1


def test_an_event_without_an_id_does_not_move_the_place_to_go_on_from(open_page, service):
    page = open_page(service.url)
    line = 'event: stdout\ndata: {"text": "once", "truncated": false}\n\n'
    error = '{"status": 500, "code": "internal", "title": "x", "detail": "ended by the test"}'
    queries = answer_events(page, f"id: 5\n{line}{line}", f"id: 6\nevent: error\ndata: {error}\n\n")
    page.get_by_role("button", name=re.compile("^Run")).click()
    expect(page.get_by_text("ended by the test")).to_be_visible()
    assert ["after=5" in query for query in queries] == [False, True]
