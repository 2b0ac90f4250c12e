"""Places of lookups: what tenants share, whoever holds how many."""

import asyncio

import pytest

from proofbox.service.egress.lookups import CallPlaces, TenantShares


async def turn():
    """Lets everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def taken(shares, tenant, count):
    """The lookups of a tenant that have a place, of so many that ask; and those that wait."""
    tasks = [asyncio.ensure_future(shares.take(tenant)) for _ in range(count)]
    await turn()
    return [task for task in tasks if task.done()], [task for task in tasks if not task.done()]


async def leave(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_two_tenants_that_take_all_they_get_leave_places_for_a_third_and_a_fourth():
    shares = TenantShares(8)
    counts, waiting = [], []
    for tenant in ("a", "b", "c", "d"):
        got, waits = await taken(shares, tenant, 10)
        counts.append(len(got))
        waiting += waits
    assert counts == [4, 2, 1, 1]
    await leave(waiting)


async def test_a_place_that_comes_back_goes_to_the_tenant_with_the_fewest():
    shares = TenantShares(2)
    await taken(shares, "a", 1)
    await taken(shares, "b", 1)
    _, of_a = await taken(shares, "a", 3)
    _, of_c = await taken(shares, "c", 1)
    shares.give_back("b")
    await turn()
    assert of_c[0].done()
    assert not any(task.done() for task in of_a)
    await leave(of_a)


async def test_tenants_that_wait_take_turns():
    shares = TenantShares(1)
    await taken(shares, "a", 1)
    order = []

    async def look_up(tenant):
        await shares.take(tenant)
        order.append(tenant)
        shares.give_back(tenant)

    waiting = [asyncio.ensure_future(look_up(tenant)) for tenant in ("b", "b", "b", "c", "d")]
    await turn()
    shares.give_back("a")
    await asyncio.gather(*waiting)
    assert order[:3] == ["b", "c", "d"]


async def test_who_leaves_the_line_takes_no_place():
    shares = TenantShares(1)
    await taken(shares, "a", 1)
    _, waiting = await taken(shares, "b", 2)
    await leave(waiting)
    shares.give_back("a")
    got, _ = await taken(shares, "c", 1)
    assert len(got) == 1


async def test_who_is_cancelled_as_a_place_comes_gives_it_back():
    shares = TenantShares(1)
    await taken(shares, "a", 1)
    _, [waiting] = await taken(shares, "b", 1)
    shares.give_back("a")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    got, _ = await taken(shares, "c", 1)
    assert len(got) == 1


async def test_a_call_that_waits_for_its_tenant_gives_its_own_place_back_when_it_leaves():
    shares = TenantShares(1)
    await taken(shares, "a", 1)
    places = CallPlaces(1, shares.of("b"))
    waiting = asyncio.ensure_future(places.take())
    await turn()
    await leave([waiting])
    shares.give_back("a")
    await places.take()
    places.give_back()
    await places.take()
