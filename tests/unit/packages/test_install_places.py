"""Places to install packages in are shared by tenants, and within a tenant by its keys."""

import asyncio
import time

import pytest

from proofbox.service.access.quotas import Share
from proofbox.service.errors import QueueFullError, QueueTimeoutError
from proofbox.service.packages.places import InstallPlaces
from tests.support.package_index import caller


def later():
    return time.monotonic() + 60


class Line:
    """Calls that want a place, and the order in which they get one."""

    def __init__(self, places):
        self.places = places
        self.got = []
        self._held = {}
        self.tasks = {}

    async def ask(self, tenant, key):
        task = self.tasks[key] = asyncio.create_task(self._enter(tenant, key))
        await asyncio.sleep(0)
        return task

    async def _enter(self, tenant, key):
        self._held[key] = await self.places.enter(later(), caller(tenant, key))
        self.got.append(key)

    async def end(self, key):
        self._held.pop(key).close()
        for _ in range(5):  # the next one passes two lines
            await asyncio.sleep(0)


async def test_a_tenant_with_many_keys_never_has_all_places():
    line = Line(InstallPlaces(3, 40))
    for number in range(10):
        await line.ask("a", f"a{number}")
    assert (line.got, line.places.running_of("a"), line.places.queued_of("a")) == (["a0", "a1"], 2, 8)
    await line.ask("b", "b0")
    assert line.got == ["a0", "a1", "b0"]


async def test_one_place_goes_to_the_tenants_in_turn_and_there_to_the_keys_in_turn():
    line = Line(InstallPlaces(1, 40))
    for key in ("a0", "a1", "a2"):
        await line.ask("a", key)
    for _ in range(2):
        await line.ask("a", "a0")
    for key in ("b0", "b1"):
        await line.ask("b", key)
    for _ in range(6):
        await line.end(line.got[-1])
    assert line.got == ["a0", "b0", "a1", "b1", "a2", "a0", "a0"]
    assert line.places.queued == 0


async def test_however_many_calls_of_a_tenant_wait_there_is_room_in_line_for_another():
    line = Line(InstallPlaces(1, 8))
    for number in range(5):
        await line.ask("a", f"a{number}")
    with pytest.raises(QueueFullError, match="4 calls of the tenant wait to install packages") as refused:
        await line.places.enter(later(), caller("a", "a9"))
    assert refused.value.errors[0].field == "packages"
    for number in range(2):
        await line.ask("b", f"b{number}")
    with pytest.raises(QueueFullError):
        await line.places.enter(later(), caller("b", "b9"))
    await line.ask("c", "c0")
    assert [line.places.queued_of(tenant) for tenant in "abc"] == [4, 2, 1]


async def test_a_key_has_its_share_of_the_places_and_of_the_line():
    line = Line(InstallPlaces(4, 40, {"key a0": Share(1, 1)}.get))
    for _ in range(2):
        await line.ask("a", "a0")
    with pytest.raises(QueueFullError, match="1 calls of yours wait"):
        await line.places.enter(later(), caller("a", "a0"))
    assert line.places.running_of("a") == 1


async def test_who_leaves_or_waits_too_long_leaves_nothing_behind():
    line = Line(InstallPlaces(1, 40))
    await line.ask("a", "a0")
    for tenant in ("a", "b"):  # one waits for its turn in the tenant, one for that of the tenant
        leaving = await line.ask(tenant, f"{tenant}1")
        leaving.cancel()
        await asyncio.wait([leaving])
        with pytest.raises(QueueTimeoutError):
            await line.places.enter(time.monotonic(), caller(tenant, f"{tenant}2"))
    await line.ask("b", "b3")
    await line.end("a0")
    assert (line.got, line.places.running, line.places.queued) == (["a0", "b3"], 1, 0)
    await line.end("b3")
    assert (line.places.running, line.places.queued_of("a"), line.places.queued_of("b")) == (0, 0, 0)
