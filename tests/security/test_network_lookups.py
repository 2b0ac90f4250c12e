"""Lookups of names: what one tenant asks for, and leaves, never takes the resolver from others."""

import asyncio
import contextlib

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.egress.policy import NetworkPolicy
from proofbox.service.egress.upstream import Connector
from tests.support.program_proxy import LIMITS, WITHOUT_LIMITS, Program


class StuckNames:
    """A resolver whose names are found when the test says so."""

    def __init__(self):
        self.begun = asyncio.Queue()
        self.running = 0
        self._go_on = asyncio.Event()

    async def __call__(self, host, _port):
        self.running += 1
        self.begun.put_nowait(host)
        try:
            await self._go_on.wait()
        finally:
            self.running -= 1
        raise OSError(host)

    def end(self):
        self._go_on.set()


def opened(policy, tenant):
    fields = {"tool_id": "t", "tool_call_id": "c", "conversation_id": "v", "params": {}}
    request = ToolCallRequest.model_validate({**fields, "network": {"allow": ["*.example.com:443"]}})
    return policy.open(request, lambda _: None, tenant)


def ask(network, name):
    target = f"{name}.example.com:443"
    return asyncio.ensure_future(
        network.serve(Program(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()))
    )


async def leave(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def turn():
    """Lets everything run that can."""
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
async def names():
    found = StuckNames()
    yield found
    found.end()
    await turn()


@pytest.fixture
def policy(names):
    return NetworkPolicy(("*.example.com:443",), LIMITS, Connector(names, ()), WITHOUT_LIMITS)


async def test_a_lookup_that_nobody_waits_for_keeps_its_place_until_it_ends(names, policy):
    network = opened(policy, "acme")
    for number in range(10):
        task = ask(network, f"a{number}")
        await turn()
        await leave([task])
    assert names.running == 2
    left = ask(network, "last")
    names.end()
    await left
    assert names.begun.qsize() == 3


async def test_the_calls_of_a_tenant_leave_room_for_those_of_others(names, policy):
    calls = [opened(policy, "acme") for _ in range(10)]
    tasks = [ask(network, f"a{number}") for number, network in enumerate(calls)]
    await turn()
    assert names.running == 4
    other = ask(opened(policy, "other"), "b")
    await turn()
    assert names.running == 5
    await leave([*tasks, other])


async def test_two_tenants_that_hold_all_they_get_leave_room_for_a_third(names):
    shared = NetworkPolicy(("*.example.com:443",), LIMITS, Connector(names, ()), WITHOUT_LIMITS, lookups=8)
    calls = [opened(shared, tenant) for tenant in ("acme", "other") for _ in range(10)]
    tasks = [ask(network, f"a{number}") for number, network in enumerate(calls) for _ in range(4)]
    await turn()
    assert names.running == 6
    third = ask(opened(shared, "third"), "c")
    await turn()
    assert names.running == 7
    await leave([*tasks, third])


async def test_places_come_back_to_the_tenant(names, policy):
    network = opened(policy, "acme")
    names.end()
    for number in range(20):
        with contextlib.suppress(OSError):
            await ask(network, f"a{number}")
    assert (names.running, names.begun.qsize()) == (0, 20)
