"""When plans fire: cron over changes of the clock, single times, and what becomes of times that have passed."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.gateway.records.port import DuePlan
from proofbox.service.gateway.records.schedules import (
    ScheduleRefusedError,
    add_seconds,
    decide_firing,
    newest_time,
    next_time,
    parse_time,
    utc_text,
)

NOW = datetime(2026, 7, 4, 12, 0, 30, tzinfo=UTC)
BERLIN = "Europe/Berlin"


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron, zone, after, count):
    found = []
    for _ in range(count):
        after = next_time(cron, zone, after)
        found.append(after.strftime("%m-%d %H:%M"))
    return found


def test_a_schedule_is_in_its_time_zone_in_summer_and_winter():
    assert times("30 8 * * MON-FRI", BERLIN, at("2026-07-03T00:00"), 2) == ["07-03 06:30", "07-06 06:30"]
    assert times("30 8 * * *", BERLIN, at("2026-12-01T00:00"), 1) == ["12-01 07:30"]
    assert times("30 8 * * *", "UTC", at("2026-07-03T08:30"), 1) == ["07-04 08:30"]


def test_a_time_that_the_clock_skips_comes_right_after_it():
    # 29 March 2026, 02:00 is 03:00 in Berlin.
    assert times("30 2 * * *", BERLIN, at("2026-03-28T00:00"), 3) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]


def test_a_time_that_the_clock_repeats_comes_once():
    # 25 October 2026, 03:00 is 02:00 again in Berlin: 02:30 is at 00:30 and 01:30 UTC.
    assert times("30 2 * * *", BERLIN, at("2026-10-24T12:00"), 2) == ["10-25 00:30", "10-26 01:30"]
    # Set in the second pass: the first 02:30 has been, so the next one is a day later.
    assert times("30 2 * * *", BERLIN, at("2026-10-25T01:10"), 1) == ["10-26 01:30"]


def test_stars_count_the_hours_that_pass():
    found = times("0 * * * *", BERLIN, at("2026-10-24T23:30"), 4)
    assert found == ["10-25 00:00", "10-25 01:00", "10-25 02:00", "10-25 03:00"]


def test_the_newest_time_is_the_last_one_up_to_now():
    assert newest_time("0 7 * * *", BERLIN, at("2026-07-04T05:00")) == at("2026-07-04T05:00")
    assert newest_time("0 7 * * *", BERLIN, at("2026-07-04T04:59")) == at("2026-07-03T05:00")
    assert newest_time("*/5 * * * *", "UTC", NOW) == at("2026-07-04T12:00")


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "*/10 * * * * *",
        "60 * * * *",
        "* * 31 2 *",
        "* * * * * * *",
        "@daily",
        "1#2/3 * * * *",
        "* * * * 1#2/3",
        "a b c d e",
        "² * * * *",
        f"{'1,' * 60}1 * * * *",
    ],
)
def test_a_schedule_that_cannot_be_read_or_is_under_a_minute_apart_is_refused(cron):
    with pytest.raises(ScheduleRefusedError) as refused:
        next_time(cron, "UTC", NOW)
    assert refused.value.field == "cron"


@given(st.text("0123456789*/-,#LW MON", max_size=30))
def test_any_text_is_a_schedule_or_refused(cron):
    try:
        found = next_time(cron, BERLIN, NOW)
    except ScheduleRefusedError:
        return
    assert found is None or found > NOW


@pytest.mark.parametrize("zone", ["", "Mars/Base", "../../etc/passwd", "America", "europe/berlin", "right/UTC"])
def test_an_unknown_time_zone_is_refused(zone):
    with pytest.raises(ScheduleRefusedError, match="no time zone") as refused:
        next_time("* * * * *", zone, NOW)
    assert refused.value.field == "time_zone"


def test_a_single_time_has_an_offset_or_is_local():
    assert parse_time("2026-07-05T08:00:00+02:00", "UTC", NOW) == at("2026-07-05T06:00")
    assert parse_time("2026-07-05T08:00:00Z", BERLIN, NOW) == at("2026-07-05T08:00")
    assert parse_time("2026-07-05T08:00", BERLIN, NOW) == at("2026-07-05T06:00")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tomorrow", "not a date and time"),
        ("0001-01-01T00:00:00+23:59", "not a date and time"),
        ("2026-07-04T12:00:30Z", "has passed"),
        ("2040-01-01T00:00:00Z", "too far ahead"),
    ],
)
def test_a_single_time_is_in_the_next_ten_years(text, message):
    with pytest.raises(ScheduleRefusedError, match=message):
        parse_time(text, "UTC", NOW)


@pytest.mark.parametrize("seconds", [0, -1, 0.5, 1e300])
def test_seconds_are_between_one_and_ten_years(seconds):
    with pytest.raises(ScheduleRefusedError) as refused:
        add_seconds(seconds, NOW)
    assert refused.value.field == "after_s"
    assert add_seconds(1, NOW) == NOW + timedelta(seconds=1)


def due(next_run, cron=None):
    return DuePlan(1, "plan_1", "helper", cron, None if cron is None else "UTC", next_run)


def test_a_plan_that_fires_once_has_no_time_after_it():
    firing = decide_firing(due("2026-07-04T12:00:30.000Z"), NOW)
    assert (firing.late_s, firing.following) == (0.0, None)
    assert firing.run_id.startswith("run_")


def test_all_times_that_have_passed_are_one_firing_for_the_newest():
    firing = decide_firing(due("2026-07-01T07:00:00.000Z", "0 7 * * *"), NOW)
    assert (firing.at, firing.late_s) == ("2026-07-04T07:00:00.000Z", 5 * 3_600 + 30)
    assert firing.following == "2026-07-05T07:00:00.000Z"
    assert firing.run_id is not None


def test_a_time_over_24_hours_ago_makes_no_run():
    day = timedelta(hours=24)
    assert decide_firing(due(utc_text(NOW - day)), NOW).run_id is not None
    assert decide_firing(due(utc_text(NOW - day - timedelta(milliseconds=1))), NOW).run_id is None
    weekly = decide_firing(due("2026-07-01T07:00:00.000Z", "0 7 * * WED"), NOW)
    assert (weekly.run_id, weekly.at, weekly.following) == (
        None,
        "2026-07-01T07:00:00.000Z",
        "2026-07-08T07:00:00.000Z",
    )
