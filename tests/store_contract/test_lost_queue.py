"""A stream or a consumer that is deleted while the service runs: it is created again, and no call is lost."""

import asyncio
import json

import pytest

from proofbox.service.dispatch.streams import WORKERS
from tests.support.dispatching import notes, opened_process, submit


async def ask(link, what):
    answer = json.loads((await link.client.request(f"$JS.API.{what}", b"", timeout=10)).data)
    assert "error" not in answer
    return answer


async def report_of(ticket):
    return json.loads((await ticket.answer()).body)["report"]


async def is_mended(dispatching):
    while await dispatching.find_away():  # noqa: ASYNC110 - of a server
        await asyncio.sleep(0.02)


async def test_a_consumer_that_was_deleted_is_created_again(place):
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        assert await report_of(await submit(api.calls)) == "ran call-1"
        link = api.dispatching.link
        await ask(link, f"CONSUMER.DELETE.{link.stream}.{WORKERS}")
        assert await report_of(await submit(api.calls, "call-2")) == "ran call-2"


@pytest.mark.slow
async def test_streams_that_were_deleted_are_created_again_and_their_calls_run(place):
    async with opened_process(place, "api") as api:
        lost = await submit(api.calls, "call-1")
        link = api.dispatching.link
        await stored_messages(link, 1)
        for stream in ("calls", "dead"):
            await ask(link, f"STREAM.DELETE.{place.nats['nats_prefix']}_{stream}")
        later = await submit(api.calls, "call-2")
        async with opened_process(place, "worker"):
            assert [await report_of(ticket) for ticket in (lost, later)] == ["ran call-1", "ran call-2"]
            await link.set_aside(1, {"call": 1})
            await ask(link, f"STREAM.DELETE.{place.nats['nats_prefix']}_calls")
            assert await report_of(await submit(api.calls, "call-3")) == "ran call-3"
    assert sorted(notes(place.folder, "began")) == ["call-1", "call-2", "call-3"]


async def stored_messages(link, count):
    """Waits until the queue has so many messages."""
    while (await ask(link, f"STREAM.INFO.{link.stream}"))["state"]["messages"] != count:  # noqa: ASYNC110 - of a server
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("what", ["CONSUMER.DELETE.{stream}.workers", "STREAM.DELETE.{stream}"])
async def test_a_process_without_its_queue_tells_that_and_mends_it(place, what):
    async with opened_process(place, "api") as api:
        link = api.dispatching.link
        assert await api.dispatching.find_away() == {}
        await ask(link, what.format(stream=link.stream))
        lost = f"the stream {link.stream} or its consumer was lost; it is created again"
        assert await api.dispatching.find_away() == {"nats": f"{lost}; calls are accepted and wait"}
        await is_mended(api.dispatching)
        await ask(link, f"CONSUMER.INFO.{link.stream}.{WORKERS}")


async def test_a_call_that_left_the_queue_can_come_again_at_once(place):
    async with opened_process(place, "api") as one, opened_process(place, "api") as other:
        link = one.dispatching.link
        await link.queue(7)
        await link.queue(7)  # it is there
        await stored_messages(link, 1)
        await ask(link, f"STREAM.PURGE.{link.stream}")
        await other.dispatching.link.queue(7)
        await stored_messages(link, 1)
