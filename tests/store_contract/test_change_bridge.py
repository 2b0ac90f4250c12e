"""Changes that other processes hear of, although their messages may be lost."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from proofbox.service.concurrency import Changes
from proofbox.service.dispatch.bridge import ChangeBridge
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings


@pytest.fixture
def opened_bridge(nats_settings):
    """Opens a bridge: its changes and its link."""

    @asynccontextmanager
    async def opened(name):
        urls, user = tuple(nats_settings["nats_urls"].split(",")), nats_settings["nats_user"]
        settings = NatsSettings(
            urls, nats_settings["nats_prefix"], name, 3.0, user=user, password=nats_settings["nats_password"]
        )
        changes, link = Changes(), NatsLink(settings)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(link.close)
            await link.open()
            await stack.enter_async_context(ChangeBridge(changes, link).opened())
            await link.client.flush()
            yield changes, link

    return opened


async def wait_until_heard(sender, receiver):
    """Wait until messages pass: a server of the cluster learns a moment later who listens at another one."""
    with receiver.listen("first") as first:
        sender.announce(["first"])
        assert await first.wait(60)


async def test_only_the_listeners_of_a_topic_are_woken(opened_bridge):
    async with opened_bridge("one") as (one, _), opened_bridge("two") as (two, _):
        await wait_until_heard(one, two)
        with two.listen("a") as heard, two.listen("b") as other:
            one.announce(["a"])
            await heard.wait(60)
            one.announce(["a"])
            await heard.wait(60)
            assert not await other.wait(0)


async def test_the_number_of_a_change_does_not_arrive_before_the_change(opened_bridge, monkeypatch):
    monkeypatch.setattr("proofbox.service.dispatch.bridge._BEAT_S", 0.0)
    async with opened_bridge("one") as (one, _), opened_bridge("two") as (two, _):
        await wait_until_heard(one, two)
        with two.listen("a") as heard, two.listen("b") as other:
            for _ in range(20):
                one.announce(["a"])
                await heard.wait(60)
            assert not await other.wait(0)


async def test_all_are_woken_after_a_message_that_was_lost(opened_bridge):
    async with opened_bridge("one") as (one, link), opened_bridge("two") as (two, _):
        await wait_until_heard(one, two)
        with two.listen("a") as heard, two.listen("b") as other:
            one.announce(["a"])
            await heard.wait(60)
            missing = [link.name, 3]  # the third change, whose message did not come
            await link.publish(link.subject("changes"), json.dumps(missing).encode())
            assert await other.wait(60)
            assert await heard.wait(60)


async def test_all_are_woken_when_the_link_is_back(opened_bridge):
    async with opened_bridge("one") as (one, link):
        with one.listen("a") as heard:
            link.client._transport.close()
            assert await heard.wait(60)
            assert link.is_up


async def test_a_process_sends_the_number_of_its_last_change_again_and_again(opened_bridge):
    async with opened_bridge("one") as (one, link):
        messages = asyncio.Queue()

        async def on_message(message):
            messages.put_nowait(json.loads(message.data))

        async with link.listening(link.subject("changes"), on_message):
            await link.client.flush()
            one.announce(["a"])
            while await messages.get() != [link.name, 1, "a"]:
                pass
            assert [await messages.get() for _ in range(2)] == [[link.name, 1]] * 2
