"""Calls of web_fetch from the request to the stored answer: pages of the test, read in a sandbox in memory."""

import json

import pytest

from proofbox.contracts.codes import WebCode
from proofbox.service.sandbox.port import ProcessOutcome
from proofbox.service.web.port import FetchedPage, WebFailedError
from proofbox.service.web.urls import WebUrl
from tests.support.pipeline import SCOPE

FETCH = "web_tools.web_fetch"
PAGE = "https://example.com/a"
OTHER = "https://example.com/b"


def reads(*rows):
    """A page reader that answers those rows."""

    def program(run):
        run.files[json.loads(run.job.code)["target"]] = json.dumps({"pages": rows}).encode()

    return program


@pytest.fixture(autouse=True)
def pages(pipeline):
    for url in (PAGE, OTHER):
        pipeline.web.pages[url] = FetchedPage(WebUrl.parse(url), "text/html", "utf-8", b"<p>markup</p>")
    pipeline.engine.program = reads({"title": "Tides", "text": "The moon pulls.", "language": "en"})


async def test_a_page_is_read_in_a_sandbox_and_becomes_a_source(pipeline):
    answer = await pipeline.answer(FETCH, {"urls": [PAGE]})
    entry = answer["ret"][PAGE]
    assert (entry["title"], entry["content"], entry["sid"], entry["language"]) == (
        "Tides",
        "The moon pulls.",
        1,
        "en",
    )
    assert list(pipeline.engine.inputs[0].values()) == [b"<p>markup</p>"]
    assert (answer["sandbox"]["engine"], (await pipeline.sources.sids(SCOPE))) == ("fake", frozenset({1}))
    assert (await pipeline.audit()).limits.wall_s == 60


async def test_a_page_that_cannot_be_read_fails_alone(pipeline):
    pipeline.engine.program = reads({"title": "Tides", "text": "The moon pulls."}, {"error": "it is empty"})
    answer = await pipeline.answer(FETCH, {"urls": [PAGE, OTHER]})
    assert answer["ret"][OTHER] == {
        "error": {"code": "unreadable_page", "message": "the page cannot be read: it is empty"}
    }
    assert answer["ret"][PAGE]["content"] == "The moon pulls."


async def test_plain_text_needs_no_sandbox(pipeline):
    pipeline.web.pages[PAGE] = FetchedPage(WebUrl.parse(PAGE), "text/plain", None, b"as it is")
    answer = await pipeline.answer(FETCH, {"urls": [PAGE]})
    assert (answer["ret"][PAGE]["content"], answer["sandbox"], pipeline.engine.jobs) == ("as it is", None, [])


async def test_a_page_that_cannot_be_fetched_is_reported_in_its_place(pipeline):
    pipeline.web.pages[OTHER] = WebFailedError(WebCode.FETCH_TIMEOUT, "too slow")
    answer = await pipeline.answer(FETCH, {"urls": [PAGE, OTHER]})
    assert answer["ret"][OTHER]["error"]["code"] == "fetch_timeout"


@pytest.mark.parametrize("step", ["put", "run", "collect"])
async def test_a_lost_sandbox_leaves_every_page_unread(pipeline, step):
    pipeline.engine.is_lost_at = step
    answer = await pipeline.answer(FETCH, {"urls": [PAGE]})
    assert (answer["ok"], answer["error"]["code"]) == (False, "fetch_failed")


async def test_a_reader_that_a_page_took_over_is_not_trusted(pipeline):
    def program(run):
        run.files[json.loads(run.job.code)["target"]] = b'{"pages": 7}'
        return ProcessOutcome(exit_code=0)

    pipeline.engine.program = program
    answer = await pipeline.answer(FETCH, {"urls": [PAGE]})
    assert (answer["ok"], answer["error"]["code"]) == (False, "fetch_failed")


async def test_a_full_disk_at_a_fetched_page_is_store_full(pipeline):
    pipeline.artifacts.full_names = ["fetched-1"]
    answer = await pipeline.answer(FETCH, {"urls": [PAGE]})
    assert (answer["status"], answer["code"]) == (507, "store_full")
