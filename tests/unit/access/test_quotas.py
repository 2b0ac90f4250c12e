"""How much a caller may ask for: buckets that refill, debts, and what the headers say of them."""

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.access.quotas import NO_LIMITS, Allowances, PackageAllowance, Quotas, Share, TokenBucket
from proofbox.service.errors import RateLimitedError, StorageQuotaError

LIMITS = Allowances(
    requests_per_minute=120,
    calls_per_minute=6,
    upload_bytes_per_minute=6_000,
    running_calls=2,
    queued_calls=3,
    stored_bytes=1_000,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_minutes_worth_can_be_had_at_once_and_comes_back_bit_by_bit(clock):
    meter = Quotas(LIMITS, clock=clock).meter("k", Allowances())
    for _ in range(6):
        meter.take_request(is_call=True)
    with pytest.raises(RateLimitedError) as refused:
        meter.take_request(is_call=True)
    assert refused.value.message == "calls_per_minute: the limit of 6 is used up; retry in 10 s"
    assert refused.value.retry_after_s == pytest.approx(10)
    assert [error.field for error in refused.value.errors] == ["calls_per_minute"]
    clock.now += 10
    meter.take_request(is_call=True)
    with pytest.raises(RateLimitedError):
        meter.take_request(is_call=True)
    clock.now += 3_600
    for _ in range(6):
        meter.take_request(is_call=True)
    with pytest.raises(RateLimitedError):
        meter.take_request(is_call=True)


def test_a_call_that_is_refused_counts_as_no_request(clock):
    meter = Quotas(LIMITS, clock=clock).meter("k", Allowances())
    for _ in range(10):
        with_room = True
        try:
            meter.take_request(is_call=True)
        except RateLimitedError:
            with_room = False
        assert with_room == (_ < 6)
    assert '"requests";r=114' in meter.headers()["RateLimit"]


def test_a_body_larger_than_what_is_left_is_taken_and_its_debt_waited_for(clock):
    meter = Quotas(LIMITS, clock=clock).meter("k", Allowances())
    meter.take_upload(12_000)
    with pytest.raises(RateLimitedError) as refused:
        meter.take_upload(1)
    assert refused.value.retry_after_s == pytest.approx(60)
    clock.now += 60
    meter.take_upload(1)


def test_the_headers_are_those_of_the_draft(clock):
    meter = Quotas(LIMITS, clock=clock).meter("k", Allowances())
    meter.take_request(is_call=True)
    meter.take_upload(9_000)
    assert meter.headers() == {
        "RateLimit-Policy": '"requests";q=120;w=60, "calls";q=6;w=60, "uploads";q=6000;w=60;qu="content-bytes"',
        "RateLimit": '"requests";r=119;t=1, "calls";r=5;t=10, "uploads";r=0;t=90',
    }


def test_without_limits_nothing_is_refused_and_nothing_said(clock):
    quotas = Quotas(LIMITS, clock=clock)
    meter = quotas.meter("tenant default", NO_LIMITS)
    for _ in range(1_000):
        meter.take_request(is_call=True)
        meter.take_upload(10**9)
    assert meter.headers() == {}
    assert quotas.share("tenant default") == quotas.share("came by no door") == Share(0, 0)


def test_a_limit_of_running_calls_that_follows_from_one_process_is_none_of_all_processes(clock):
    allowed, own = replace(LIMITS, running_calls=3), Allowances()
    for is_set, together in ((False, 0), (True, 3)):
        quotas = Quotas(allowed, clock=clock, has_running_limit=is_set)
        quotas.meter("k", own)
        assert (quotas.share("k").running, quotas.share("k").running_together) == (3, together)


def test_a_key_has_its_own_numbers_and_the_operators_for_the_rest(clock):
    quotas = Quotas(LIMITS, clock=clock)
    meter = quotas.meter("k", Allowances(calls_per_minute=1, queued_calls=0, running_calls=7))
    assert meter.allowed == Allowances(120, 1, 6_000, 7, 0, 1_000)
    assert quotas.share("k") == Share(running=7, queued=0, running_together=7)
    assert quotas.share("other") == Share()
    meter.take_request(is_call=True)
    with pytest.raises(RateLimitedError):
        meter.take_request(is_call=True)
    quotas.meter("other", Allowances()).take_request(is_call=True)


def test_a_change_of_one_limit_keeps_what_is_used_up_of_the_others(clock):
    quotas = Quotas(LIMITS, clock=clock)
    for _ in range(6):
        quotas.meter("k", Allowances()).take_request(is_call=True)
    changed = quotas.meter("k", Allowances(requests_per_minute=0))
    with pytest.raises(RateLimitedError):
        changed.take_request(is_call=True)
    quotas.meter("k", Allowances(calls_per_minute=60)).take_request(is_call=True)


def test_who_is_remembered_is_bounded(clock):
    quotas = Quotas(LIMITS, clock=clock)
    for number in range(10_010):
        quotas.meter(f"k{number}", Allowances())
    assert len(quotas._meters) == 10_000


def test_the_caller_that_is_forgotten_is_the_one_unused_the_longest(clock):
    quotas = Quotas(LIMITS, clock=clock)
    busy = quotas.meter("busy", Allowances())
    busy.take_upload(12_000)
    for number in range(20_000):
        quotas.meter(f"k{number}", Allowances())
        if number % 5_000 == 0:
            assert quotas.meter("busy", Allowances()) is busy
    with pytest.raises(RateLimitedError):
        quotas.meter("busy", Allowances()).take_upload(1)


def test_a_known_meter_has_the_limits_of_its_key(clock):
    quotas = Quotas(LIMITS, clock=clock)
    meter = quotas.meter("k", Allowances(requests_per_minute=1))
    meter.take_request(is_call=False)
    assert quotas.known_meter("k", Allowances()) is meter
    with pytest.raises(RateLimitedError, match="limit of 1 "):
        quotas.known_meter("k", Allowances()).take_request(is_call=False)
    assert quotas.known_meter("new", Allowances(requests_per_minute=2)).allowed.requests_per_minute == 2


async def test_a_project_that_keeps_as_much_as_it_may_is_refused_more(clock):
    asked = []
    kept = 999

    async def stored(tenant: str, project: str) -> int:
        asked.append((tenant, project))
        return kept

    quotas = Quotas(LIMITS, stored, clock)
    await quotas.check_storage_quota(LIMITS, "acme", "books")
    kept = 1_000
    await quotas.check_storage_quota(LIMITS, "acme", "books")
    assert asked == [("acme", "books")], "what was asked a moment ago is not asked again"
    clock.now += 31
    with pytest.raises(StorageQuotaError, match=r"limit 1000 bytes, stored 1000"):
        await quotas.check_storage_quota(LIMITS, "acme", "books")
    await quotas.check_storage_quota(NO_LIMITS, "acme", "books")
    assert len(asked) == 2


def test_no_limits_is_none_of_each():
    # No list of hosts and of packages: all that the operator allows.
    lists = {"network", "packages"}
    expected = {field.name: None if field.name in lists else 0 for field in fields(Allowances)}
    assert {name: getattr(NO_LIMITS, name) for name in expected} == expected


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 50)), max_size=60), st.integers(1, 100))
def test_no_pattern_of_requests_gets_more_than_the_bucket_and_its_refill(steps, per_minute):
    clock = Clock()
    bucket = TokenBucket(per_minute, clock)
    taken, began = 0, clock.now
    for pause, wanted in steps:
        clock.now += pause
        for _ in range(wanted):
            if bucket.wait_s(1) <= 0:
                bucket.take(1)
                taken += 1
        assert taken <= per_minute + (clock.now - began) * per_minute / 60 + 1e-6


def test_limits_of_packages_are_narrowed_by_a_key_and_never_widened():
    quotas = Quotas(Allowances(package_count=60, package_bytes=1_000, package_install_s=120))
    quotas.meter("key 1", Allowances(package_count=5, package_bytes=9_000, packages=("tiny",)))
    quotas.meter("key 2", NO_LIMITS)
    assert quotas.packages("key 1") == PackageAllowance(("tiny",), 5, 1_000, 120)
    assert quotas.packages("key 2") == PackageAllowance(None, 60, 1_000, 120)


def test_a_key_whose_limits_are_not_known_may_ask_for_no_package():
    assert Quotas(NO_LIMITS).packages("key 1").names == ()
    assert Quotas(NO_LIMITS).packages("tenant acme").names is None
