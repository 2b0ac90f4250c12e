"""How many containers of each flavour should wait, by what was asked for and by memory."""

from dataclasses import replace

import pytest

from proofbox.service.sandbox.pool_sizing import WAITING_BYTES, Demands, PoolPolicy
from proofbox.service.sandbox.preload import PreloadSet

BARE, DOCUMENTS, DATA = PreloadSet.BARE, PreloadSet.DOCUMENTS, PreloadSet.DATA
MIB = 1024 * 1024
POLICY = PoolPolicy(size=8, most=32, memory_bytes=4096 * MIB, starts_max=2, age_max_s=1800, unused_s=600)


def demands(*arrivals: tuple[PreloadSet, float]) -> Demands:
    asked = Demands()
    for flavour, when in sorted(arrivals, key=lambda arrival: arrival[1]):
        asked.of[flavour].arrived(when)
    return asked


def wanted(asked: Demands, now: float, policy: PoolPolicy = POLICY) -> tuple[int, int, int]:
    """How many bare ones, of documents and of data."""
    found = asked.wanted(policy, now)
    return found[BARE], found[DOCUMENTS], found[DATA]


def every(seconds: float, flavour: PreloadSet, until: float) -> list[tuple[PreloadSet, float]]:
    return [(flavour, number * seconds) for number in range(int(until / seconds))]


def test_before_any_call_only_bare_ones_wait():
    assert wanted(Demands(), 0) == (8, 0, 0)


def test_a_flavour_is_kept_from_its_first_call_until_nobody_has_asked_for_it_for_long():
    asked = demands((DATA, 100))
    assert [wanted(asked, now)[2] for now in (100, 400, 700, 701)] == [1, 1, 1, 0]


def test_a_flavour_that_is_asked_for_often_has_more_and_loses_them_again():
    asked = demands(*every(0.25, DATA, 120))
    assert [wanted(asked, now)[2] for now in (120, 180, 240, 480)] == [11, 4, 2, 1]


def test_bare_ones_grow_with_arrivals_and_are_never_fewer_than_the_operators_number():
    asked = demands(*every(0.1, BARE, 60))
    assert [wanted(asked, now)[0] for now in (60, 120, 600)] == [11, 9, 8]


def test_what_takes_longer_to_start_is_kept_in_larger_number():
    asked = demands(*every(1, DOCUMENTS, 120))
    before = wanted(asked, 120)[1]
    for _ in range(20):
        asked.of[DOCUMENTS].refilled(4.0)
    assert (before, wanted(asked, 120)[1]) == (2, 7)


@pytest.mark.parametrize(
    ("memory_mib", "counts"),
    [(0, (0, 0, 0)), (16, (1, 0, 0)), (100, (2, 1, 0)), (176, (1, 1, 1)), (192, (2, 1, 1)), (4096, (8, 1, 1))],
)
def test_memory_is_dealt_out_in_turns_and_never_exceeded(memory_mib, counts):
    asked = demands((DOCUMENTS, 0), (DOCUMENTS, 0), (DATA, 0))
    found = asked.wanted(replace(POLICY, memory_bytes=memory_mib * MIB), 1)
    assert (found[BARE], found[DOCUMENTS], found[DATA]) == counts
    assert sum(WAITING_BYTES[flavour] * count for flavour, count in found.items()) <= memory_mib * MIB


def test_of_two_flavours_the_one_that_is_asked_for_more_goes_first():
    small = replace(POLICY, memory_bytes=(16 + 96) * MIB)
    assert wanted(demands((DOCUMENTS, 0), (DOCUMENTS, 0), (DATA, 0)), 1, small) == (3, 1, 0)
    assert wanted(demands((DOCUMENTS, 0), (DATA, 0), (DATA, 0)), 1, small) == (1, 0, 1)


def test_bare_ones_come_before_any_other_however_much_that_is_asked_for():
    asked = demands(*every(1, DATA, 60))
    assert wanted(asked, 60, replace(POLICY, memory_bytes=100 * MIB)) == (6, 0, 0)


def test_no_more_wait_than_the_operators_most():
    asked = demands(*every(0.05, DATA, 60), *every(0.05, BARE, 60))
    assert wanted(asked, 60, replace(POLICY, most=10)) == (5, 0, 5)


def test_a_pool_of_size_zero_keeps_nothing_whatever_is_asked_for():
    asked = demands(*every(0.1, DATA, 60), *every(0.1, BARE, 60))
    assert wanted(asked, 60, replace(POLICY, size=0)) == (0, 0, 0)


@pytest.mark.parametrize(
    ("size", "reserve", "most", "memory_mib", "reserved"),
    [
        (8, 2, 32, 4096, 2),
        (8, 0, 32, 4096, 0),
        (0, 2, 32, 4096, 0),
        (2, 2, 32, 4096, 2),
        (1, 4, 32, 4096, 2),
        (8, 2, 3, 4096, 1),
        (8, 2, 32, 48, 1),
        (8, 2, 32, 16, 0),
    ],
)
def test_the_reserve_is_what_the_operator_sets_and_at_most_half_of_what_has_room(
    size, reserve, most, memory_mib, reserved
):
    policy = replace(POLICY, size=size, reserve=reserve, most=most, memory_bytes=memory_mib * MIB)
    assert policy.reserved == reserved


@pytest.mark.parametrize(
    ("waiting", "is_only_call", "takes"),
    [(3, False, True), (2, False, False), (2, True, True), (1, True, True), (0, True, False), (0, False, False)],
)
def test_only_a_caller_with_nothing_running_takes_what_is_reserved(waiting, is_only_call, takes):
    assert replace(POLICY, reserve=2).may_take(waiting, is_only_call=is_only_call) is takes


def test_the_reserve_waits_beside_what_the_operator_wants_to_wait():
    assert wanted(Demands(), 0, replace(POLICY, reserve=2)) == (10, 0, 0)
