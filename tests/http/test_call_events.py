import asyncio

import pytest

from tests.support.calls import result

ROUTE = "/v1/tool-calls/held1/events"
C1 = {"conversation_id": "c1"}


@pytest.fixture
async def call(calls, client, call_body):
    """A call that runs and has told three things."""
    call_body["tool_call_id"] = "held1"
    await client.post("/v1/tool-calls", json=call_body, headers={"Prefer": "respond-async"})
    call = await calls.made("held1")
    await calls.tell(call, "queued", '{"position":0}')
    await calls.tell(call, "started", '{"acquired":"warm"}')
    await calls.tell(call, "stdout", '{"text":"a\\nb","truncated":false}')
    return call


def frames(text: str) -> list[dict[str, str]]:
    """Events as a client reads them, comments left out."""
    return [
        dict(line.split(": ", 1) for line in frame.splitlines())
        for frame in text.split("\n\n")
        if frame and not frame.startswith(":")
    ]


async def test_events_come_in_order_and_the_stream_ends_with_the_answer(client, calls, call):
    await calls.end(call, result("at last"))
    answer = await client.get(ROUTE, params=C1)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-accel-buffering"] == "no"
    assert frames(answer.text) == [
        {"id": "1", "event": "queued", "data": '{"position":0}'},
        {"id": "2", "event": "started", "data": '{"acquired":"warm"}'},
        {"id": "3", "event": "stdout", "data": '{"text":"a\\nb","truncated":false}'},
        {"id": "4", "event": "result", "data": call.answer.body},
    ]


async def test_data_of_several_lines_cannot_break_out_of_its_event(client, calls, call):
    await calls.tell(call, "stderr", "one\r\ntwo\rid: 99\n\nevent: error\u2028x")
    await calls.end(call, result(None))
    answer = await client.get(ROUTE, params={**C1, "after": 3})
    assert answer.text.split("\n\n")[0] == (
        "id: 4\nevent: stderr\ndata: one\ndata: two\ndata: id: 99\ndata: \ndata: event: error\u2028x"
    )


@pytest.mark.parametrize(
    ("headers", "after", "expected"),
    [
        ({}, None, ["1", "2", "3", "4"]),
        ({"Last-Event-ID": "2"}, None, ["3", "4"]),
        ({}, "3", ["4"]),
        ({"Last-Event-ID": "3"}, "1", ["4"]),
    ],
)
async def test_a_stream_goes_on_after_a_known_event(client, calls, call, headers, after, expected):
    await calls.end(call, result(None))
    params = C1 if after is None else {**C1, "after": after}
    answer = await client.get(ROUTE, params=params, headers=headers)
    assert [frame["id"] for frame in frames(answer.text)] == expected


@pytest.mark.parametrize("headers", [{"Last-Event-ID": "-1"}, {"Last-Event-ID": "x"}, {"Last-Event-ID": "9" * 30}])
@pytest.mark.usefixtures("call")
async def test_an_event_id_that_is_none_is_refused(client, headers):
    answer = await client.get(ROUTE, params=C1, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


async def test_events_of_an_unknown_call_are_a_problem_and_no_stream(client):
    answer = await client.get(ROUTE, params=C1)
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_call")
    assert answer.headers["content-type"] == "application/problem+json"


async def _line(lines, wanted: str) -> str:
    async for line in lines:
        if line.startswith(wanted):
            return line
    raise AssertionError(f"the stream ended without '{wanted}'")


async def test_a_silent_stream_shows_that_it_is_alive_and_goes_on(web, calls, call):
    async with web.stream("GET", ROUTE, params=C1) as answer:
        lines = answer.aiter_lines()
        assert await _line(lines, "id: 3") == "id: 3"
        assert await _line(lines, ":") == ": keep-alive"
        assert await _line(lines, ":") == ": keep-alive"
        await calls.end(call, result("after the silence"))
        assert await _line(lines, "event: ") == "event: result"
        rest = [line async for line in lines]
    assert [line for line in rest if line and not line.startswith("data: ")] == []


async def test_a_client_that_connects_again_misses_nothing_and_sees_nothing_twice(web, calls, call):
    seen = []
    async with web.stream("GET", ROUTE, params=C1) as answer:
        lines = answer.aiter_lines()
        seen += [await _line(lines, "id: ") for _ in range(3)]
    await calls.tell(call, "stdout", '{"text":"while away","truncated":false}')
    ending = asyncio.create_task(calls.end(call, result(None)))
    async with web.stream("GET", ROUTE, params=C1, headers={"Last-Event-ID": "3"}) as answer:
        seen += [line async for line in answer.aiter_lines() if line.startswith("id: ")]
    await ending
    assert seen == ["id: 1", "id: 2", "id: 3", "id: 4", "id: 5"]


async def test_two_clients_can_watch_one_call(web, calls, call):
    watching = [asyncio.create_task(web.get(ROUTE, params=C1)) for _ in range(2)]
    await calls.end(call, result(None))
    answers = [await watch for watch in watching]
    assert [[frame["id"] for frame in frames(answer.text)] for answer in answers] == [["1", "2", "3", "4"]] * 2


async def test_a_stream_whose_client_went_away_follows_the_call_no_more(web, calls, call):
    async with web.stream("GET", ROUTE, params=C1) as answer:
        await _line(answer.aiter_lines(), "id: 3")
        assert calls.followers == 1
    await calls.until(lambda: calls.followers == 0)
    assert call.status == "running"
