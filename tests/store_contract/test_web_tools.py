"""The web tools over real pages, a real search endpoint and every store: their blocks, their sources."""

import asyncio
import ipaddress
import json

import pytest

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.react_tools import WebFetchParams, WebSearchParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.observer import CallObserver
from proofbox.service.errors import SidConflictError
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.web.client.fetcher import FetchBounds, HttpPageFetcher
from proofbox.service.web.client.searxng import SearxngSearcher
from proofbox.service.web.client.tls import loaded_when_asked
from proofbox.service.web.fetch_tool import FetchPolicy, WebFetchTool
from proofbox.service.web.page_reader import PageReader, ReadingPolicy
from proofbox.service.web.search_tool import WebSearchTool
from proofbox.service.web.urls import WebUrl
from tests.support.reading_engine import ReadingEngine
from tests.support.web_server import redirect, response, web_server

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1, 512 * MIB, 64, 128 * MIB, 1000, 64 * MIB, 100, 8, MIB, 64 * MIB)
POLICY = CallPolicy(LIMITS, 10, 10, MIB)
ARTICLE = """<html lang="en"><head><title>Tides</title><meta name="date" content="2026-05-01"></head><body>
<nav>Home About Contact</nav><article><h1>How tides work</h1>
<p>The moon pulls the water of the oceans towards itself, and so the sea rises twice a day at most coasts.</p>
<p>At new moon and at full moon the sun helps, and the water rises higher than on all the other days.</p>
</article><footer>Imprint</footer></body></html>"""


@pytest.fixture
async def server():
    async with web_server() as running:
        yield running


@pytest.fixture
async def files(opened_artifacts, tmp_path):
    """The artifact store; the pages wait in its staging folder."""
    async with opened_artifacts(tmp_path / "files") as store:
        yield store


@pytest.fixture
def engine(tmp_path):
    return ReadingEngine(tmp_path / "engine")


async def local(host, port):
    del host, port
    return ["127.0.0.1"]


@pytest.fixture
def fetch(server, engine, files, timeline_store, source_pool, scope_of):
    """Makes a call of web_fetch."""
    bounds = FetchBounds(5, 200_000, frozenset({server.port}), (ipaddress.ip_network("127.0.0.0/8"),))
    turn_files = ConversationFiles(files, timeline_store, AssetFolders(()))
    rehosting = InputResolver(turn_files, source_pool, WorkspaceBounds(0, 0))
    runs = JobRunner(Admission(running_max=1, queue_max=1), rehosting, engine, files, source_pool)
    fetching = WebFetchTool(
        HttpPageFetcher(bounds, local, loaded_when_asked(None)),
        PageReader(runs, ReadingPolicy(POLICY, 60, 30)),
        source_pool,
        Admission(running_max=1, queue_max=1),
        FetchPolicy(20, 5),
    )
    story = DirectTool(WebFetchParams, fetching.run, source_pool)

    async def made(*urls, **fields):
        return await told(story, "web_tools.web_fetch", {"urls": list(urls)}, scope_of(), **fields)

    return made


@pytest.fixture
def search(server, source_pool, scope_of):
    """Makes a call of web_search."""

    async def made(*queries, n=5, path="/search", **fields):
        searcher = (
            SearxngSearcher(WebUrl.parse(server.url(path)), 5, local, loaded_when_asked(None)) if path else None
        )
        story = DirectTool(WebSearchParams, WebSearchTool(searcher, source_pool).run, source_pool)
        params = {"queries": list(queries), "n": n}
        return await told(story, "web_tools.web_search", params, scope_of(), **fields)

    return made


async def told(story, tool_id, params, scope, **fields):
    request = ToolCallRequest.model_validate(
        {
            "tool_id": tool_id,
            "tool_call_id": "w1",
            "conversation_id": scope.conversation_id,
            "turn_id": "turn_1",
            "params": params,
            **fields,
        }
    )
    return await story.prepare(scope, request).run(CallObserver())


def shape(blocks):
    return [(block.type, block.path, block.mime) for block in blocks]


def golden(block):
    """A block without what differs from run to run: times."""
    shown = block.model_dump(mode="json")
    payload = json.loads(shown.pop("text"))
    for holder in (shown, payload):
        if isinstance(holder, dict):
            holder.pop("ts", None)
    return {**shown, "payload": payload}


# ---- web_fetch ----


async def test_the_blocks_of_web_fetch_block_for_block(server, fetch):
    server.answers["/tides"] = response(ARTICLE.encode())
    url = server.url("/tides")
    answer = await fetch(url, notes="Looking it up.")
    common = {"turn_id": "turn_1", "mime": "application/json", "call_id": "w1", "meta": {"tool_call_id": "w1"}}
    assert answer.ok
    assert answer.blocks[0].text == "Looking it up."
    assert [golden(block) for block in answer.blocks[1:]] == [
        {
            "type": "react.tool.call",
            "author": "react",
            "path": "tc:turn_1.w1.call",
            "payload": {"tool_id": "web_tools.web_fetch", "tool_call_id": "w1", "params": {"urls": [url]}},
            **common,
        },
        {
            "type": "react.tool.result",
            "author": "proofbox",
            "path": "tc:turn_1.w1.result",
            "payload": {
                "artifact_path": "tc:turn_1.w1.result",
                "mime": "application/json",
                "kind": "file",
                "visibility": "internal",
                "tool_call_id": "w1",
                "tool_id": "web_tools.web_fetch",
                "sources_used": [1],
            },
            **common,
        },
        {
            "type": "react.tool.result",
            "author": "proofbox",
            "path": "tc:turn_1.w1.result",
            "payload": {
                url: {
                    "content": "# How tides work\n\n"
                    "The moon pulls the water of the oceans towards itself, and so the sea rises twice a day at "
                    "most coasts.\n\n"
                    "At new moon and at full moon the sun helps, and the water rises higher than on all the other "
                    "days.",
                    "title": "Tides",
                    "sid": 1,
                    "mime": "text/html",
                    "language": "en",
                    "published": "2026-05-01",
                }
            },
            **common,
        },
    ]
    assert answer.ret == json.loads(answer.blocks[-1].text)


async def test_a_fetched_page_is_a_source_under_its_canonical_address(server, fetch, source_pool, scope_of):
    server.answers["/tides?a=1"] = response(ARTICLE.encode())
    first = await fetch(server.url("/tides?a=1").replace("http", "HTTP") + "#part")
    again = await fetch(server.url("/tides?a=1"), tool_call_id="w2")
    [row] = await source_pool.rows(scope_of())
    assert (row.sid, row.source_type, row.url, row.title) == (1, "web", server.url("/tides?a=1"), "Tides")
    assert row.text.startswith("# How tides work\n\nThe moon pulls")
    assert [next(iter(answer.ret.values()))["sid"] for answer in (first, again)] == [1, 1]


async def test_a_page_that_fails_does_not_fail_the_others(server, fetch):
    server.answers["/tides"] = response(ARTICLE.encode())
    server.answers["/paper"] = response(b"%PDF-1.7", "application/pdf")
    urls = [server.url("/paper"), "http://10.0.0.1/", server.url("/tides"), server.url("/none"), "no address"]
    answer = await fetch(*urls)
    told = {url: entry.get("error", {}).get("code") for url, entry in answer.ret.items()}
    codes = ["unsupported_type", "url_not_allowed", None, "http_status", "url_not_allowed"]
    assert answer.ok
    assert told == dict(zip(urls, codes, strict=True))


async def test_no_page_at_all_is_a_refusal_that_says_why(server, fetch):
    answer = await fetch(server.url("/none"))
    assert (answer.ok, answer.error.code) == (False, "fetch_failed")
    assert shape(answer.blocks) == [
        ("react.tool.call", "tc:turn_1.w1.call", "application/json"),
        ("react.notice", "tc:turn_1.w1.notice", "application/json"),
        ("react.tool.result", "tc:turn_1.w1.result", "application/json"),
    ]
    error = json.loads(answer.blocks[-1].text)["error"]
    assert error["urls"][server.url("/none")]["error"]["code"] == "http_status"
    assert "managed" not in answer.blocks[-1].text


async def test_pages_share_the_room_of_the_block_fairly(server, fetch, source_pool, scope_of):
    server.answers["/short"] = response(b"a short one", "text/plain")
    for name in "ab":
        server.answers[f"/{name}"] = response(f'{name}\n"\u20ac'.encode() * 20_000, "text/plain")
    answer = await fetch(*(server.url(f"/{name}") for name in ("a", "short", "b")))
    a, short, b = (entry["content"] for entry in answer.ret.values())
    text = answer.blocks[-1].text
    rows = await source_pool.rows(scope_of())
    assert short == "a short one"
    assert abs(len(a) - len(b)) <= 2
    assert a.endswith("\n...[truncated]")
    assert TEXT_BYTES_MAX - 100 < len(text.encode()) <= TEXT_BYTES_MAX
    assert [len(row.text) for row in rows] == [80_000, 11, 80_000]


async def test_markup_is_only_opened_by_the_program_in_the_sandbox(server, fetch, engine):
    server.answers["/json"] = response(b'{"a": 1}', "application/json")
    server.answers["/tides"] = response(ARTICLE.encode("utf-16"), "text/html")
    plain = await fetch(server.url("/json"))
    assert (plain.ret[server.url("/json")]["content"], engine.jobs) == ('{"a": 1}', [])
    both = await fetch(server.url("/json"), server.url("/tides"), tool_call_id="w2")
    assert "The moon pulls" in both.ret[server.url("/tides")]["content"]
    assert [[page["url"] for page in job["pages"]] for job in engine.jobs] == [[server.url("/tides")]]


@pytest.mark.parametrize(
    "writes",
    [
        b"",
        b"[]",
        b'{"pages": 7}',
        b'{"pages": []}',
        b'{"pages": [null]}',
        b'{"pages": [{"title": 1, "text": "x"}]}',
        b'{"pages": [{"title": "t", "text": " \\u0000 "}]}',
        b"[" * 100_000,
    ],
)
async def test_an_answer_that_a_page_forged_is_an_error_of_that_page(server, fetch, engine, writes):
    server.answers["/tides"] = response(ARTICLE.encode())
    engine.writes = writes
    answer = await fetch(server.url("/tides"))
    error = json.loads(answer.blocks[-1].text)["error"]["urls"][server.url("/tides")]["error"]
    assert error["code"] == "unreadable_page"


async def test_what_a_forged_answer_says_is_cleaned_and_bounded(server, fetch, engine, source_pool, scope_of):
    server.answers["/tides"] = response(ARTICLE.encode())
    page = {"title": "a\x1b[2J\nb", "text": "x\x00\ud800y" + "z" * 200_000, "language": "<b>", "date": "soon"}
    engine.writes = json.dumps({"pages": [page, page]}).encode()
    entry = (await fetch(server.url("/tides"))).ret[server.url("/tides")]
    [row] = await source_pool.rows(scope_of())
    assert sorted(entry) == ["content", "mime", "sid", "title"]
    assert entry["title"] == "a[2J b"
    assert row.text.startswith("x?yzzz")
    assert len(row.text) == 100_000


async def test_a_sandbox_that_dies_is_told_for_each_page_that_needed_it(server, fetch, engine):
    server.answers["/tides"] = response(ARTICLE.encode())
    server.answers["/text"] = response(b"words", "text/plain")
    engine.dies = True
    answer = await fetch(server.url("/tides"), server.url("/text"))
    assert answer.ret[server.url("/text")]["content"] == "words"
    assert answer.ret[server.url("/tides")]["error"]["code"] == "unreadable_page"


async def test_a_redirect_keeps_the_source_that_was_asked_for_and_says_where_the_page_is(server, fetch):
    server.answers["/old"] = redirect("/new")
    server.answers["/new"] = response(b"words", "text/plain")
    entry = (await fetch(server.url("/old"))).ret[server.url("/old")]
    assert (entry["content"], entry["url"], entry["sid"]) == ("words", server.url("/new"), 1)


async def test_a_conflict_of_the_callers_own_sources_stops_the_call_before_anything_is_fetched(server, fetch):
    server.answers["/text"] = response(b"words", "text/plain")
    await fetch(server.url("/text"))
    row = {"sid": 1, "source_type": "web", "url": "https://other.example/"}
    with pytest.raises(SidConflictError):
        await fetch(server.url("/text"), sources_pool=[row])
    assert len(server.requests) == 1


async def test_sources_of_the_call_keep_their_ids_and_pages_get_the_next(server, fetch):
    server.answers["/text"] = response(b"words", "text/plain")
    row = {"sid": 7, "source_type": "web", "url": "https://other.example/"}
    answer = await fetch(server.url("/text"), sources_pool=[row])
    assert answer.ret[server.url("/text")]["sid"] == 8


# ---- web_search ----


def found(*names):
    rows = [{"url": f"https://{n}.example/", "title": n.title(), "content": f"About {n}."} for n in names]
    return response(json.dumps({"query": "q", "results": rows}).encode(), "application/json")


async def test_the_blocks_of_web_search_block_for_block(server, search):
    server.answers["/search?q=best%20restaurants&format=json"] = found("alba", "bistro")
    answer = await search("best restaurants")
    assert answer.ok
    assert shape(answer.blocks) == [
        ("react.tool.call", "tc:turn_1.w1.call", "application/json"),
        ("react.tool.result", "tc:turn_1.w1.result", "application/json"),
        ("react.tool.result", "tc:turn_1.w1.result", "application/json"),
    ]
    assert [golden(block)["payload"] for block in answer.blocks] == [
        {
            "tool_id": "web_tools.web_search",
            "tool_call_id": "w1",
            "params": {"queries": ["best restaurants"], "n": 5},
        },
        {
            "artifact_path": "tc:turn_1.w1.result",
            "mime": "application/json",
            "kind": "file",
            "visibility": "internal",
            "tool_call_id": "w1",
            "tool_id": "web_tools.web_search",
            "sources_used": [1, 2],
        },
        [
            {"sid": 1, "title": "Alba", "url": "https://alba.example/", "text": "About alba."},
            {"sid": 2, "title": "Bistro", "url": "https://bistro.example/", "text": "About bistro."},
        ],
    ]


async def test_results_of_several_queries_are_merged_and_every_page_is_there_once(server, search):
    server.answers["/search?q=a&format=json"] = found("one", "two", "three")
    server.answers["/search?q=b&format=json"] = found("two", "four", "five")
    answer = await search("a", "b", "a", n=2)
    assert [row["url"] for row in answer.ret] == [f"https://{n}.example/" for n in ("one", "two", "four")]
    assert len(server.requests) == 2


async def test_what_a_page_says_is_not_lost_to_what_a_search_shows_of_it(
    server, fetch, search, source_pool, scope_of
):
    server.answers["/text"] = response(b"all that the page says", "text/plain")
    await fetch(server.url("/text"))
    row = {"url": server.url("/text"), "title": "Found", "content": "all that"}
    server.answers["/search?q=a&format=json"] = response(
        json.dumps({"results": [row]}).encode(), "application/json"
    )
    answer = await search("a", tool_call_id="w2")
    [stored] = await source_pool.rows(scope_of())
    assert (answer.ret[0]["sid"], stored.text) == (1, "all that the page says")


async def test_without_an_engine_the_setting_is_named(search):
    answer = await search("a", path="")
    assert (answer.ok, answer.error.code) == (False, "search_not_configured")
    assert "PROOFBOX_WEB_SEARCH_URL" in answer.error.message


async def sleeps(writer):
    del writer
    await asyncio.sleep(30)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (response(b"no json", "application/json"), "search_failed"),
        (response(b"[]", "application/json"), "search_failed"),
        (response(b'{"results": 7}', "application/json"), "search_failed"),
        (response(b"", status="403 Forbidden"), "search_failed"),
        (response(b"", status="500 Oh"), "search_failed"),
        (redirect("/elsewhere"), "search_failed"),
        (response(b"x" * (5 * MIB), "application/json"), "search_failed"),
        (sleeps, "fetch_timeout"),
    ],
)
async def test_an_engine_that_cannot_be_used_is_a_typed_refusal(server, search, answer, code):
    server.answers["/search?q=a&format=json"] = answer
    response_ = await search("a")
    assert (response_.ok, response_.error.code) == (False, code)


async def test_a_query_that_fails_costs_the_others_nothing(server, search):
    server.answers["/search?q=b&format=json"] = found("one")
    answer = await search("a", "b")
    assert (answer.ok, [row["sid"] for row in answer.ret]) == (True, [1])
    assert "Failed queries: 1" in answer.report


async def test_odd_results_are_left_out_and_no_result_is_an_answer(server, search):
    rows = [7, {}, {"url": "javascript:alert(1)"}, {"url": 7}, {"url": "https://ok.example", "title": None}]
    server.answers["/search?q=a&format=json"] = response(json.dumps({"results": rows}).encode(), "application/json")
    server.answers["/search?q=b&format=json"] = found()
    some, none = await search("a"), await search("b", tool_call_id="w2")
    assert some.ret == [{"sid": 1, "title": "", "url": "https://ok.example/"}]
    assert (none.ok, none.ret) == (True, [])


async def test_many_long_results_stay_within_the_block(server, search):
    rows = [{"url": f"https://{n}.example/", "title": "t" * 900, "content": "c" * 3_000} for n in range(50)]
    for query in "abcdefgh":
        own = [{**row, "url": row["url"] + query} for row in rows]
        server.answers[f"/search?q={query}&format=json"] = response(
            json.dumps({"results": own}).encode(), "text/json"
        )
    answer = await search(*"abcdefgh", n=50)
    assert len(answer.blocks[-1].text.encode()) <= TEXT_BYTES_MAX
    assert all(len(row["text"]) > 20 for row in answer.ret)
    assert len(answer.ret) > 40
