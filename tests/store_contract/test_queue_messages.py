"""Messages of the queue that are of another release, or of nobody: no worker fails over them."""

import asyncio
import json
import logging

import pytest

from proofbox.service.dispatch.messages import VERSION, decode_event, decode_replay
from tests.support.dispatching import noted, notes, opened_process, submit


def report_of(answer):
    return json.loads(answer.body)["report"]


async def ask(link, what, body=b""):
    answer = json.loads((await link.client.request(f"$JS.API.{what}", body, timeout=10)).data)
    assert "error" not in answer, answer
    return answer


async def replace_message(link, number, body):
    """Put another message in the place of the one that queues a call."""
    await ask(link, f"STREAM.PURGE.{link.stream}", json.dumps({"filter": link.subject("calls", number)}).encode())
    await put(link, number, body)


async def put(link, name, body):
    answer = await link.client.request(link.subject("calls", name), body, timeout=10)
    assert "error" not in json.loads(answer.data)


async def queued(link, count):
    """Waits until the queue has so many messages."""
    while (await ask(link, f"STREAM.INFO.{link.stream}"))["state"]["messages"] != count:  # noqa: ASYNC110 - of a server
        await asyncio.sleep(0.02)


async def submitted(api, name="call-1", **params):
    """A ticket whose call is in the queue, and its number."""
    ticket = await submit(api.calls, name, **params)
    await queued(api.dispatching.link, 1)
    [stored] = await api.store.find(ticket.key.scope.principal, name)
    return ticket, stored.number


async def test_a_message_of_the_next_version_waits_for_a_newer_worker(place, caplog):
    caplog.set_level(logging.WARNING)
    async with opened_process(place, "api") as api:
        ticket, number = await submitted(api)
        link = api.dispatching.link
        await replace_message(link, number, json.dumps({"v": VERSION + 1, "call": number, "how": "new"}).encode())
        async with opened_process(place, "worker"):
            while caplog.text.count("it goes back for a newer worker") < 2:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.01)
            assert report_of(await (await submit(api.calls, "call-2")).answer()) == "ran call-2"  # it takes others
            assert f"call {number}: its message has version {VERSION + 1} and this worker knows {VERSION}" in (
                caplog.text
            )
            assert notes(place.folder, "began") == ["call-2"]
            await queued(link, 1)
            await replace_message(link, number, json.dumps({"v": VERSION, "call": number}).encode())
            assert report_of(await ticket.answer()) == "ran call-1"
            await queued(link, 0)


async def test_a_message_of_the_next_version_is_dropped_when_its_call_has_ended(place):
    async with opened_process(place, "api", queue_s=0.1) as api:
        ticket, number = await submitted(api)
        link = api.dispatching.link
        await replace_message(link, number, json.dumps({"v": VERSION + 1, "call": number}).encode())
        async with opened_process(place, "worker"):
            answer = await ticket.answer()
            assert (answer.http_status, json.loads(answer.body)["code"]) == (503, "queue_timeout")
            await queued(link, 0)
    assert notes(place.folder, "began") == []


@pytest.mark.parametrize("more", [{"v": VERSION, "unknown": {"a": [1]}}, {}])
async def test_unknown_fields_are_ignored_and_the_first_release_had_no_version(place, more):
    async with opened_process(place, "api") as api:
        ticket, number = await submitted(api)
        await replace_message(api.dispatching.link, number, json.dumps({"call": number, **more}).encode())
        async with opened_process(place, "worker"):
            assert report_of(await ticket.answer()) == "ran call-1"


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("not-a-number", b'{"call":1}'),
        ("7", b"\xff\x00 not JSON"),
        ("7", b'{"call":8}'),
        ("7", b"[7]"),
        ("7", b'{"v":"two","call":7}'),
        ("7", b"[" * 100_000),
    ],
)
async def test_a_message_that_names_no_call_is_set_aside_and_no_worker_fails_over_it(place, name, body):
    async with opened_process(place, "all") as process:
        link = process.dispatching.link
        held = await submit(process.calls, "held", hold="go")
        await noted(place.folder, "began")
        await put(link, name, body)
        assert report_of(await (await submit(process.calls)).answer()) == "ran call-1"
        await queued(link, 1)  # the one that runs
        (place.folder / "go").touch()
        assert report_of(await held.answer()) == "ran held"
        dead = f"{place.nats['nats_prefix']}_dead"
        found = await ask(link, f"STREAM.MSG.GET.{dead}", json.dumps({"seq": 1}).encode())
        assert "message-" in found["message"]["subject"]
        assert (await ask(link, f"STREAM.INFO.{dead}"))["state"]["messages"] == 1


async def test_events_of_another_release_hold_up_no_answer(place):
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        ticket, number = await submitted(api, hold="go")
        await noted(place.folder, "began")
        link = api.dispatching.link
        for body in (b"not JSON", b"[]", b'{"event":2}', b'{"id":"x","name":"stdout","data":""}'):
            await link.publish(link.subject("events", number), body)
            await link.publish(link.subject("to", number), body)
            await link.publish(link.subject("changes"), body)
        (place.folder / "go").touch()
        assert report_of(await ticket.answer()) == "ran call-1"


def test_what_cannot_be_read_is_looked_for_in_the_database():
    assert decode_event(b'{"id":1}') is None
    assert decode_replay(b'{"no":"list"}') == []
    assert decode_event(b'{"id":1,"name":"stdout","data":"a","new":true}').data == "a"
