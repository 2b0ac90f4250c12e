"""A call goes on while somebody asks for it, and for a grace time after."""

import pytest

from proofbox.service.calls.clients import CallClients
from tests.support.clock import FakeClock

GRACE_S = 120.0


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def abandoned():
    """When the call was abandoned, in seconds from the beginning."""
    return []


@pytest.fixture
def clients(clock, abandoned):
    began = clock.time()
    clients = CallClients(GRACE_S, lambda: abandoned.append(clock.time() - began), clock.call_later)
    clients.join()
    return clients


@pytest.mark.usefixtures("clients")
def test_a_call_that_somebody_waits_for_is_never_abandoned(clock, abandoned):
    clock.advance(10_000)
    assert abandoned == []


def test_a_call_is_abandoned_once_after_the_grace_time_of_a_lost_connection(clients, clock, abandoned):
    clients.leave()
    clock.advance(GRACE_S - 1)
    assert abandoned == []
    clock.advance(1)
    clients.join()
    clients.leave()
    clock.advance(10_000)
    assert abandoned == [GRACE_S]


def test_a_connection_that_joins_ends_the_grace_time_and_its_loss_begins_it_anew(clients, clock, abandoned):
    clients.leave()
    clock.advance(GRACE_S - 1)
    clients.join()
    clock.advance(10_000)
    clients.leave()
    clock.advance(GRACE_S - 1)
    assert abandoned == []
    clock.advance(1)
    assert abandoned == [GRACE_S - 1 + 10_000 + GRACE_S]


def test_the_grace_time_begins_when_the_last_of_several_connections_is_lost(clients, clock, abandoned):
    clients.join()
    clients.leave()
    clock.advance(10_000)
    assert abandoned == []
    clients.leave()
    clock.advance(GRACE_S)
    assert abandoned == [10_000 + GRACE_S]


def test_asking_how_it_stands_starts_the_grace_time_anew(clients, clock, abandoned):
    clients.leave()
    for _ in range(5):
        clock.advance(GRACE_S - 1)
        clients.restart_grace()
    assert abandoned == []
    clock.advance(GRACE_S)
    assert abandoned == [5 * (GRACE_S - 1) + GRACE_S]


def test_asking_how_it_stands_begins_no_grace_time_while_somebody_waits(clients, clock, abandoned):
    clients.restart_grace()
    clock.advance(10_000)
    assert abandoned == []


def test_a_call_that_is_kept_goes_on_whoever_leaves(clients, clock, abandoned):
    clients.leave()
    clients.disarm()
    clients.join()
    clients.leave()
    clients.restart_grace()
    clock.advance(10_000)
    assert abandoned == []


def test_without_a_grace_time_a_call_is_abandoned_at_once(clock, abandoned):
    clients = CallClients(0, lambda: abandoned.append(clock.time()), clock.call_later)
    clients.join()
    clients.leave()
    assert abandoned == [clock.time()]
