"""Previews over HTTP, with programs in memory: what is refused, and answers that a hostile file could cause."""

import asyncio
import io
import json
import sys
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import httpx
import pytest
from PIL import Image

from proofbox.service.api.app import create_app, release
from proofbox.service.previews.service import SOURCE_BYTES_MAX, Previews
from proofbox.service.previews.turns import WAITING_MAX, Turns
from tests.support.pipeline import opened_pipeline, services_over

URL = "/v1/conversations/conv-1/previews/fi:turn_1.files/"


def png_of(width=20, height=10) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(written, "PNG")
    return written.getvalue()


@pytest.fixture
async def pipeline(tmp_path):
    async with opened_pipeline(tmp_path) as pipeline:
        yield pipeline


@asynccontextmanager
async def opened_client(pipeline, **bounds):
    """A client of an application whose previews have these bounds."""
    services = replace(services_over(pipeline), previews=Previews(pipeline.one_shot, pipeline.artifacts, **bounds))
    transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


@pytest.fixture
async def client(pipeline):
    async with opened_client(pipeline) as client:
        yield client


def answering(pipeline, fields, content):
    """The programs print these fields and write this content."""

    def program(run):
        run.write("result", content)
        run.print(json.dumps(fields) + "\n")

    pipeline.engine.program = program


EMPTY_TABLE = {"sheets": [], "rows": [], "rows_total": 0, "columns_total": 0}
PAGES = {"ok": True, "first": 1, "total": 2, "exact": False}


async def test_pages_are_pictures_and_the_next_page_comes_from_memory(pipeline, client):
    one, two = png_of(20), png_of(30)
    answering(pipeline, {**PAGES, "sizes": [len(one), len(two)]}, one + two)
    await pipeline.save(
        "turn_1/files/a.pptx", mime="application/vnd.openxmlformats-officedocument.presentationml.presentation"
    )
    first = await client.get(URL + "a.pptx")
    assert (first.status_code, first.headers["content-type"], first.content) == (200, "image/png", one)
    described = {name: first.headers[f"preview-{name}"] for name in ("page", "pages", "layout")}
    assert described == {"page": "1", "pages": "2", "layout": "similar"}
    second = await client.get(URL + "a.pptx", params={"page": 2})
    assert (second.content, second.headers["preview-page"]) == (two, "2")
    assert len(pipeline.engine.jobs) == 1
    again = await client.get(URL + "a.pptx", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


async def test_a_preview_is_recorded_in_the_audit_log(pipeline, client):
    content = png_of()
    answering(pipeline, {**PAGES, "sizes": [len(content)]}, content)
    await pipeline.save("turn_1/files/a.pdf", mime="application/pdf")
    await client.get(URL + "a.pdf")
    [line] = pipeline.audit_lines()
    assert (line.call.tool_id, line.call.conversation_id) == ("preview.pdf", "conv-1")


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        ({**PAGES, "sizes": [4]}, b"html"),
        ({**PAGES, "sizes": [64]}, b"<script>".ljust(64, b"\0")),
        ({**PAGES, "sizes": [9_999]}, png_of()),
        ({**PAGES, "sizes": []}, b""),
        ({**PAGES, "sizes": "all"}, png_of()),
        ({**PAGES, "sizes": [len(png_of(5_000, 4))]}, png_of(5_000, 4)),
        ({**PAGES, "sizes": [len(png_of())], "total": "many"}, png_of()),
        ({**PAGES, "sizes": [len(png_of())], "total": 0}, png_of()),
        ({**PAGES, "sizes": [len(png_of())], "total": True}, png_of()),
        ({**PAGES, "sizes": [len(png_of())], "total": 2**53 + 1}, png_of()),
        ([1], png_of()),
        ({"ok": False, "message": ["x"]}, b""),
        ({"ok": False, "message": "it is protected by a password"}, b""),
    ],
)
async def test_an_answer_that_is_not_pictures_is_refused(pipeline, client, fields, content):
    answering(pipeline, fields, content)
    await pipeline.save("turn_1/files/a.pdf", mime="application/pdf")
    answer = await client.get(URL + "a.pdf")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")
    assert answer.json()["detail"].endswith("download the file")


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"rows": [[1]]}', b'{"sheets": [], "rows": [], "rows_total": 0, "evil": 1}']
)
async def test_an_answer_that_is_not_a_table_is_refused(pipeline, client, content):
    answering(pipeline, {"ok": True}, content)
    await pipeline.save("turn_1/files/a.csv", mime="text/csv")
    answer = await client.get(URL + "a.csv")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")


async def test_a_table_shows_hidden_characters_of_its_cells(pipeline, client):
    table = {"sheets": [], "rows": [["a\u202eb"]], "rows_total": 1, "columns_total": 1}
    answering(pipeline, {"ok": True}, json.dumps(table).encode())
    await pipeline.save("turn_1/files/a.csv", mime="text/csv")
    assert (await client.get(URL + "a.csv")).json()["rows"] == [["a\\u202eb"]]


async def test_a_format_without_preview_runs_nothing_and_names_the_way_out(pipeline, client):
    await pipeline.save("turn_1/files/a.zip", mime="application/zip")
    answer = await client.get(URL + "a.zip")
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "preview: application/zip has none; download the file",
    )
    assert pipeline.engine.jobs == []


async def test_a_file_that_is_too_large_is_refused_by_its_size(pipeline, client):
    artifact = await pipeline.save("turn_1/files/a.pdf", bytes(SOURCE_BYTES_MAX + 1), "application/pdf")
    answer = await client.get(URL + "a.pdf")
    assert answer.status_code == 422
    assert f"limit {SOURCE_BYTES_MAX} bytes, got {artifact.size_bytes}" in answer.json()["detail"]


@pytest.mark.parametrize("query", [{"page": 0}, {"page": 10_001}, {"version": 0}])
async def test_a_page_that_cannot_be_is_refused(pipeline, client, query):
    await pipeline.save("turn_1/files/a.pdf", mime="application/pdf")
    assert (await client.get(URL + "a.pdf", params=query)).status_code == 422


async def test_a_preview_of_a_version_that_does_not_exist_is_not_found(pipeline, client):
    await pipeline.save("turn_1/files/a.pdf", mime="application/pdf")
    answer = await client.get(URL + "a.pdf", params={"version": 2})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")


async def test_a_sandbox_that_is_lost_is_a_message(pipeline, client):
    pipeline.engine.is_lost_at = "run"
    await pipeline.save("turn_1/files/a.pdf", mime="application/pdf")
    answer = await client.get(URL + "a.pdf")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")


async def test_a_difference_counts_lines_and_shows_hidden_characters(pipeline, client):
    text = "--- version 1\n+++ version 2\n@@ -1 +1 @@\n-a\n+b\u202e\n"
    answering(pipeline, {"ok": True, "added": 1, "removed": 1, "truncated": True}, text.encode())
    for content in (b"a\n", b"b\n"):
        await pipeline.save("turn_1/files/a.txt", content)
    found = (await client.get("/v1/conversations/conv-1/differences/fi:turn_1.files/a.txt")).json()
    assert (found["added"], found["removed"], found["truncated"]) == (1, 1, True)
    assert found["text"] == text.replace("\u202e", "\\u202e")


@pytest.mark.parametrize("sheets", [[], ["x" * 300] * 4], ids=["empty", "names"])
async def test_tables_in_memory_count_their_sheets_and_themselves(pipeline, sheets):
    answering(pipeline, {"ok": True}, json.dumps({**EMPTY_TABLE, "sheets": sheets}).encode())
    size_bytes = 1_000 + sum(100 + 4 * len(name) for name in sheets)
    async with opened_client(pipeline, cache_bytes_max=2 * size_bytes) as client:
        for number in (1, 2, 3):
            await pipeline.save(f"turn_1/files/{number}.csv", str(number).encode(), "text/csv")
        for number in (1, 2, 2, 3, 3, 1):
            assert (await client.get(f"{URL}{number}.csv")).status_code == 200
    assert len(pipeline.engine.jobs) == 4


async def test_the_names_of_sheets_are_cut(pipeline, client):
    answering(pipeline, {"ok": True}, json.dumps({**EMPTY_TABLE, "sheets": ["x" * 1_000_000]}).encode())
    await pipeline.save("turn_1/files/a.csv", mime="text/csv")
    assert (await client.get(URL + "a.csv")).json()["sheets"] == ["x" * 300]


def waiting_for(pipeline, let_end):
    """The programs wait for an event, then answer an empty table; the event that one has begun."""
    began = asyncio.Event()

    async def program(run):
        began.set()
        await let_end.wait()
        run.write("result", json.dumps(EMPTY_TABLE).encode())
        run.print('{"ok": true}\n')

    pipeline.engine.program = program
    return began


async def test_previews_of_a_caller_that_wait_are_bounded(pipeline, client):
    let_end = asyncio.Event()
    waiting_for(pipeline, let_end)
    for number in range(WAITING_MAX + 2):
        await pipeline.save(f"turn_1/files/{number}.csv", str(number).encode(), "text/csv")
    sent = [asyncio.create_task(client.get(f"{URL}{number}.csv")) for number in range(WAITING_MAX + 2)]
    ended, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED, timeout=60)
    [refused] = [task.result() for task in ended]
    let_end.set()
    answers = [(await task).status_code for task in sent]
    assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
    assert "(limit 8, got 9)" in refused.json()["detail"]
    assert int(refused.headers["retry-after"]) in {1, 2}
    assert sorted(answers) == [200] * (WAITING_MAX + 1) + [429]


async def test_a_preview_waits_for_its_turn_for_a_bounded_time(pipeline):
    let_end = asyncio.Event()
    waiting_for(pipeline, let_end)
    for number in (1, 2):
        await pipeline.save(f"turn_1/files/{number}.csv", str(number).encode(), "text/csv")
    async with opened_client(pipeline, turns=Turns(wait_s=0.05)) as client:
        sent = [asyncio.create_task(client.get(f"{URL}{number}.csv")) for number in (1, 2)]
        ended, _ = await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        [late] = [task.result() for task in ended]
        let_end.set()
        assert sorted([(await task).status_code for task in sent]) == [200, late.status_code]
    assert (late.status_code, late.json()["code"]) == (503, "queue_timeout")
    assert len(pipeline.engine.jobs) == 1


@pytest.mark.parametrize("route", ["previews", "differences"])
async def test_a_preview_ends_when_its_client_has_gone(pipeline, client, route):
    began = waiting_for(pipeline, asyncio.Event())
    for content in (b"1", b"2"):
        await pipeline.save("turn_1/files/a.csv", content, "text/csv")
    path = f"/v1/conversations/conv-1/{route}/fi:turn_1.files/a.csv"
    messages = iter([{"type": "http.request"}])

    async def receive():
        if (message := next(messages, None)) is not None:
            return message
        await began.wait()
        return {"type": "http.disconnect"}

    async def send(_message):
        pass

    request = client.build_request("GET", path)
    scope = {
        "type": "http",
        "method": "GET",
        "path": request.url.path,
        "raw_path": request.url.raw_path,
        "query_string": b"",
        "headers": [],
    }
    async with asyncio.timeout(10):
        await client._transport.app(scope, receive, send)
    answering(pipeline, {"ok": True}, json.dumps(EMPTY_TABLE).encode())
    assert (await client.get(URL + "a.csv")).status_code == 200


HOSTILE_COUNTS = [-5, True, 10**4_000, 2**53 + 1, 1.0, "1", None]


@pytest.mark.parametrize("count", HOSTILE_COUNTS, ids=lambda count: repr(count)[:9])
@pytest.mark.parametrize("name", ["rows_total", "columns_total"])
async def test_a_table_whose_totals_are_no_counts_is_refused(pipeline, client, name, count):
    answering(pipeline, {"ok": True}, json.dumps({**EMPTY_TABLE, name: count}).encode())
    await pipeline.save("turn_1/files/a.csv", mime="text/csv")
    answer = await client.get(URL + "a.csv")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")


@pytest.mark.parametrize("count", HOSTILE_COUNTS, ids=lambda count: repr(count)[:9])
@pytest.mark.parametrize("name", ["added", "removed"])
async def test_a_difference_whose_counts_are_no_counts_is_refused(pipeline, client, name, count):
    answering(pipeline, {"ok": True, "added": 1, "removed": 1, name: count}, b"")
    for content in (b"a\n", b"b\n"):
        await pipeline.save("turn_1/files/a.txt", content)
    answer = await client.get("/v1/conversations/conv-1/differences/fi:turn_1.files/a.txt")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")
    assert answer.json()["detail"] == "difference: the program gave no counts; download both versions"


@contextmanager
def functions_of_the_loop():
    """The names of the functions that are called in this thread, which is the one of the event loop."""
    called = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code.co_name) if event == "call" else None)
    try:
        yield called
    finally:
        sys.setprofile(before)


async def test_the_event_loop_reads_no_result_and_escapes_no_text_of_a_difference(pipeline, client):
    answering(pipeline, {"ok": True, "added": 1, "removed": 1}, "\u202e".encode() * 1_000)
    for content in (b"a\n", b"b\n"):
        await pipeline.save("turn_1/files/a.txt", content)
    with functions_of_the_loop() as called:
        answer = await client.get("/v1/conversations/conv-1/differences/fi:turn_1.files/a.txt")
    assert answer.json()["text"] == "\\u202e" * 1_000
    assert "run_preview_program" in called
    assert not called & {"read_bytes", "visible_text"}


async def test_the_tag_of_a_preview_names_its_content_format_page_and_release(pipeline, client):
    answering(pipeline, {"ok": True}, json.dumps(EMPTY_TABLE).encode())
    for name, mime in (("a.csv", "text/csv"), ("a.tsv", "text/tab-separated-values"), ("a.zip", "application/zip")):
        artifact = await pipeline.save(f"turn_1/files/{name}", mime=mime)
    tag = (await client.get(URL + "a.csv")).headers["etag"]
    assert tag == f'"{artifact.sha256}-csv-1-{release()}"'
    of_csv = {"If-None-Match": tag}
    assert (await client.get(URL + "a.csv", headers=of_csv)).status_code == 304
    assert (await client.get(URL + "a.tsv", headers=of_csv)).status_code == 200
    refused = await client.get(URL + "a.zip", headers={"If-None-Match": "*"})
    assert (refused.status_code, refused.json()["code"]) == (422, "no_preview")
