"""The events of a call: numbered, followed from anywhere, ended exactly once."""

import asyncio

import pytest

from proofbox.service.calls.events import CallEvent, EndedCalls, EventLog

EVENTS = [CallEvent(1, "queued", "a"), CallEvent(2, "stdout", "b"), CallEvent(3, "result", "c")]


def full_log():
    log = EventLog()
    for event in EVENTS:
        log.append(event.name, event.data)
    return log


async def collected(log, after):
    return [event async for event in log.follow(after)]


@pytest.mark.parametrize(
    ("after", "expected"), [(0, EVENTS), (1, EVENTS[1:]), (2, EVENTS[2:]), (3, []), (99, []), (-5, EVENTS)]
)
async def test_a_log_is_followed_from_where_a_client_stopped(after, expected):
    assert await collected(full_log(), after) == expected


@pytest.mark.parametrize("name", ["result", "error"])
def test_after_a_terminal_event_nothing_is_added(name):
    log = EventLog()
    log.append("stdout", "a")
    assert not log.is_ended
    log.append(name, "b")
    assert log.is_ended
    for late in ("stdout", "result", "error"):
        log.append(late, "late")
    assert asyncio.run(collected(log, 0)) == [CallEvent(1, "stdout", "a"), CallEvent(2, name, "b")]


async def test_many_who_follow_at_different_times_see_the_same_events():
    log = EventLog()
    first = asyncio.create_task(collected(log, 0))
    await asyncio.sleep(0)
    log.append("queued", "a")
    second = asyncio.create_task(collected(log, 0))
    resumed = asyncio.create_task(collected(log, 1))
    await asyncio.sleep(0)
    log.append("stdout", "b")
    log.append("result", "c")
    assert await asyncio.gather(first, second, resumed) == [EVENTS, EVENTS, EVENTS[1:]]
    assert await collected(log, 0) == EVENTS


async def test_events_come_while_the_call_goes_on():
    log = EventLog()
    follower = log.follow(0)
    for event in EVENTS:
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        assert not waiting.done()
        log.append(event.name, event.data)
        assert await waiting == event
    with pytest.raises(StopAsyncIteration):
        await anext(follower)


async def test_who_goes_away_does_not_disturb_the_others():
    log = EventLog()
    gone = asyncio.create_task(collected(log, 0))
    stays = asyncio.create_task(collected(log, 0))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    for event in EVENTS:
        log.append(event.name, event.data)
    assert await stays == EVENTS
    assert gone.cancelled()


def log_of(*pieces):
    log = EventLog()
    for piece in pieces:
        log.append("stdout", piece)
    log.append("result", "the answer, which the store has")
    return log


def test_ended_calls_keep_what_fits_and_forget_the_oldest():
    ended = EndedCalls(bytes_max=10)
    for key, text in (("a", "1234"), ("b", "5678"), ("c", "90")):
        ended.add(key, log_of(text))
    assert [[event.data for event in ended.events_of(key)] for key in "abc"] == [["1234"], ["5678"], ["90"]]
    ended.add("d", log_of("x"))
    assert [[event.data for event in ended.events_of(key)] for key in "abcd"] == [[], ["5678"], ["90"], ["x"]]


def test_a_call_that_said_more_than_all_that_is_remembered_is_not_remembered():
    ended = EndedCalls(bytes_max=10)
    ended.add("a", log_of("12345", "67890", "1"))
    assert ended.events_of("a") == []
    ended.add("b", log_of("fits"))
    assert [event.data for event in ended.events_of("b")] == ["fits"]
