"""When plans fire: once, or by a cron expression in a time zone."""

import functools
import itertools
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from cronsim import CronSim, CronSimError

from proofbox.contracts.gateway.records import LATE_S_MAX
from proofbox.service.gateway.records.port import DuePlan, Firing
from proofbox.service.gateway.runs_port import new_run_id

CRON_CHARACTERS_MAX = 100
AHEAD_S_MAX = 10 * 366 * 86_400
"""How far ahead a plan that fires once may be."""
_CRON_FIELDS = 5
_SHOWN_CHARACTERS_MAX = 50  # of what a model wrote, in a message to it
_REPEATED_MAX = 200
"""Times of a schedule that are skipped at most: those of an hour that a change of the clock repeats."""


class ScheduleRefusedError(Exception):
    """A schedule is refused.

    Attributes:
        field: the parameter that is wrong, such as ``cron``.
        message: what is wrong, and what to do.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


def parse_time(text: str, time_zone: str, now: datetime) -> datetime:
    """Return the time of a plan that fires once, in UTC.

    Args:
        text: a date and time of ISO 8601; without offset it is local time.
        time_zone: the time zone of local time.
        now: the time now.

    Raises:
        ScheduleRefusedError: it is not a time, has passed, or is over ten years ahead.
    """
    shown = text[:_SHOWN_CHARACTERS_MAX]
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=find_time_zone(time_zone))
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError) as exc:
        raise ScheduleRefusedError(
            "run_at", f"'{shown}' is not a date and time; write it as 2030-12-31T23:59:00Z or with an offset"
        ) from exc
    if moment <= now:
        raise ScheduleRefusedError("run_at", f"'{shown}' has passed; give a time in the future, or after_s")
    if (moment - now).total_seconds() > AHEAD_S_MAX:
        raise ScheduleRefusedError("run_at", f"'{shown}' is too far ahead (limit ten years); give an earlier time")
    return moment


def add_seconds(after_s: float, now: datetime) -> datetime:
    """Return the time that many seconds from now.

    Raises:
        ScheduleRefusedError: it is under a second or over ten years.
    """
    if not 1 <= after_s <= AHEAD_S_MAX:
        raise ScheduleRefusedError(
            "after_s", f"give 1 to {AHEAD_S_MAX:,} seconds (got {after_s:g}), or run_at with a date"
        )
    return now + timedelta(seconds=after_s)


def find_time_zone(name: str) -> tzinfo:
    """Return a time zone of the IANA database.

    Raises:
        ScheduleRefusedError: it has no such zone.
    """
    if name == "UTC":
        return UTC
    if name not in _time_zones():
        raise ScheduleRefusedError(
            "time_zone",
            f"there is no time zone '{name[:_SHOWN_CHARACTERS_MAX]}'; give one such as UTC or Europe/Berlin",
        )
    return zoneinfo.ZoneInfo(name)


def next_time(cron: str, time_zone: str, after: datetime) -> datetime | None:
    """Return the first time of a schedule after a moment, in UTC; None if there is none in 50 years.

    Where the clock is changed it follows Debian's cron: what falls into the hour that is skipped comes right after
    it, what falls into the hour that is repeated comes once; ``*`` in minute or hour counts hours as they pass.

    Raises:
        ScheduleRefusedError: the schedule or the time zone is wrong.
    """
    # The first pass through a repeated hour can come before a moment of the second one.
    return next((moment for moment in _times(cron, time_zone, after) if moment > after), None)


def newest_time(cron: str, time_zone: str, until: datetime) -> datetime | None:
    """Return the last time of a schedule up to a moment, in UTC; None if there is none in 50 years.

    Raises:
        ScheduleRefusedError: the schedule or the time zone is wrong.
    """
    # The simulator returns times before its start, in whole minutes.
    start = until + timedelta(minutes=1)
    return next((moment for moment in _times(cron, time_zone, start, reverse=True) if moment <= until), None)


def decide_firing(plan: DuePlan, now: datetime) -> Firing:
    """Decide what becomes of a plan whose time has come.

    However many of its times have passed, it fires once, for the newest one; unless that is over 24 hours ago.

    Raises:
        ScheduleRefusedError: its time zone is not known any more.
    """
    at, following = datetime.fromisoformat(plan.next_run), None
    if plan.cron is not None:
        zone = plan.time_zone or "UTC"
        at = max(at, newest_time(plan.cron, zone, now) or at)
        following = next_time(plan.cron, zone, now)
    late_s = max((now - at).total_seconds(), 0.0)
    return Firing(
        at=utc_text(at),
        late_s=round(late_s, 3),
        following=None if following is None else utc_text(following),
        run_id=None if late_s > LATE_S_MAX else new_run_id(),
    )


def utc_text(moment: datetime) -> str:
    """A time in UTC as records have it: RFC 3339, milliseconds, ``Z``."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _times(cron: str, time_zone: str, start: datetime, **options: Any) -> Iterator[datetime]:
    zone = find_time_zone(time_zone)
    # The simulator also knows a field for seconds; plans are at least a minute apart.
    if len(cron) > CRON_CHARACTERS_MAX or len(cron.split()) != _CRON_FIELDS:
        raise ScheduleRefusedError(
            "cron", f"give five fields, at most {CRON_CHARACTERS_MAX} characters, such as '30 8 * * MON-FRI'"
        )
    try:
        simulated = CronSim(cron, start.astimezone(zone), **options)
    except CronSimError as exc:
        raise ScheduleRefusedError(
            "cron", f"'{cron}': {exc}; write minute, hour, day, month and weekday, such as '30 8 * * MON-FRI'"
        ) from exc
    return (moment.astimezone(UTC) for moment in itertools.islice(simulated, _REPEATED_MAX))


@functools.cache
def _time_zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())
