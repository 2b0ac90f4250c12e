"""How much one caller may ask for: requests, calls and bytes a minute, calls at a time, bytes that are kept.

All of it is counted in memory, per API key, or per tenant where there are no keys: a restart forgets it, and a
request costs no write anywhere.
"""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields, replace

from contracts.problems import FieldError
from service.errors import RateLimitedError, StorageQuotaError

Clock = Callable[[], float]
StoredBytes = Callable[[str, str], Awaitable[int]]
"""How many bytes a project of a tenant keeps."""

WINDOW_S = 60
_STORED_KNOWN_S = 30.0
_CALLERS_MAX = 10_000  # of whom is remembered what they used up


@dataclass(frozen=True, slots=True)
class Allowances:
    """Limits of one caller; None leaves the operator's number, 0 is no limit.

    Attributes:
        requests_per_minute: requests of any kind.
        calls_per_minute: tool calls that are asked for.
        upload_bytes_per_minute: bytes of request bodies.
        running_calls: calls that have a place at one time.
        queued_calls: calls that wait for one.
        stored_bytes: bytes of all versions of files and attachments that the project of the tenant keeps.
    """

    requests_per_minute: int | None = None
    calls_per_minute: int | None = None
    upload_bytes_per_minute: int | None = None
    running_calls: int | None = None
    queued_calls: int | None = None
    stored_bytes: int | None = None

    def over(self, own: "Allowances") -> "Allowances":
        """These, but for what ``own`` says otherwise."""
        return replace(self, **{name: value for name, value in asdict(own).items() if value is not None})


NO_LIMITS = Allowances(0, 0, 0, 0, 0, 0)
ALLOWANCE_NAMES = tuple(field.name for field in fields(Allowances))
_RATES = {
    # name of the policy on the wire: which allowance, and in what it is counted there
    "requests": ("requests_per_minute", ""),
    "calls": ("calls_per_minute", ""),
    "uploads": ("upload_bytes_per_minute", ';qu="content-bytes"'),
}


class TokenBucket:
    """So much a minute, all of it at once if nothing was taken for a minute. Debts are allowed, and waited for."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._left = float(per_minute)
        self._at = clock()

    def left(self) -> float:
        """What can be taken now; below 0 after a debt."""
        now = self._clock()
        self._left = min(self.per_minute, self._left + (now - self._at) * self.per_minute / WINDOW_S)
        self._at = now
        return self._left

    def take(self, amount: float) -> None:
        """Takes it, also if it is not there."""
        self._left = self.left() - amount

    def wait_s(self, amount: float) -> float:
        """Until so much can be taken; 0 if it can now."""
        return max(0.0, amount - self.left()) * WINDOW_S / self.per_minute


class CallerMeter:
    """What one caller has used up.

    Args:
        own: the limits that are its own.
        allowed: all its limits.
        clock: a clock that never goes back, in seconds.
    """

    def __init__(self, own: Allowances, allowed: Allowances, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self.set(own, allowed)

    def set(self, own: Allowances, allowed: Allowances) -> None:
        """Gives it other limits; what is used up of those that stay the same stays used up."""
        self.own, self.allowed = own, allowed
        kept, self._buckets = self._buckets, {}
        for name, (allowance, _) in _RATES.items():
            if per_minute := getattr(allowed, allowance):
                known = kept.get(name)
                same = known is not None and known.per_minute == per_minute
                self._buckets[name] = known if same and known else TokenBucket(per_minute, self._clock)

    def take_request(self, *, is_call: bool) -> None:
        """Counts a request, and a call if it asks for one.

        Raises:
            RateLimitedError: one of both is used up; nothing is counted then.
        """
        wanted = ("requests", "calls") if is_call else ("requests",)
        for name in wanted:
            self._must(name, 1)
        for name in wanted:
            if name in self._buckets:
                self._buckets[name].take(1)

    def take_upload(self, size_bytes: int) -> None:
        """Counts bytes of a body: as a whole when they are announced, else as they come.

        A body may be larger than what is left, and the debt is waited for: so no limit makes a body impossible.

        Raises:
            RateLimitedError: earlier bodies have used it up.
        """
        self._must("uploads", 0)
        if "uploads" in self._buckets:
            self._buckets["uploads"].take(size_bytes)

    def _must(self, name: str, amount: int) -> None:
        bucket = self._buckets.get(name)
        if bucket is None or (wait_s := bucket.wait_s(amount)) <= 0:
            return
        allowance = _RATES[name][0]
        told = f"{allowance}: {bucket.per_minute} are allowed and used up"
        raise RateLimitedError(
            f"{told}; come again in {math.ceil(wait_s)} s",
            retry_after_s=wait_s,
            errors=[FieldError(field=allowance, code="rate_limited", message=told)],
        )

    def headers(self) -> dict[str, str]:
        """The fields ``RateLimit-Policy`` and ``RateLimit`` of the IETF's draft; none without a limit."""
        if not self._buckets:
            return {}
        policies, states = [], []
        for name, bucket in self._buckets.items():
            left = bucket.left()
            policies.append(f'"{name}";q={bucket.per_minute};w={WINDOW_S}{_RATES[name][1]}')
            full_s = math.ceil(bucket.wait_s(bucket.per_minute))
            states.append(f'"{name}";r={max(0, math.floor(left))};t={full_s}')
        return {"RateLimit-Policy": ", ".join(policies), "RateLimit": ", ".join(states)}


@dataclass(frozen=True, slots=True)
class Share:
    """How many of the places, and of the line before them, one caller may have; 0: no limit of its own."""

    running: int = 0
    queued: int = 0


class Quotas:
    """The meters of all callers.

    Args:
        allowed: the limits of a caller that has none of its own.
        stored_bytes: asked for what a project keeps; None: that is not limited.
        clock: a clock that never goes back, in seconds.
    """

    def __init__(
        self, allowed: Allowances, stored_bytes: StoredBytes | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._allowed = allowed
        self._stored_bytes = stored_bytes
        self._clock = clock
        self._meters: dict[str, CallerMeter] = {}
        self._stored: dict[tuple[str, str], tuple[float, int]] = {}

    def meter(self, caller: str, own: Allowances) -> CallerMeter:
        """What a caller has used up; its limits from now on are the operator's but for its own."""
        meter = self._meters.get(caller)
        if meter is None:
            if len(self._meters) >= _CALLERS_MAX:
                del self._meters[next(iter(self._meters))]
            meter = self._meters[caller] = CallerMeter(own, self._allowed.over(own), self._clock)
        elif meter.own != own:
            meter.set(own, self._allowed.over(own))
        return meter

    def share(self, caller: str) -> Share:
        """What a caller may have of the places and of the line."""
        meter = self._meters.get(caller)
        if meter is None:
            return Share()  # it did not come by a door
        return Share(meter.allowed.running_calls or 0, meter.allowed.queued_calls or 0)

    async def check_storage_quota(self, allowed: Allowances, tenant: str, project: str) -> None:
        """Refuses what would be kept while a project keeps as much as it may.

        What is kept is asked for at most every 30 seconds, so a quota is overrun by what comes in between.

        Raises:
            StorageQuotaError: it does.
            StoreFailedError: the store cannot be asked.
        """
        if not allowed.stored_bytes or self._stored_bytes is None:
            return
        known = self._stored.get((tenant, project))
        if known is None or self._clock() - known[0] > _STORED_KNOWN_S:
            known = (self._clock(), await self._stored_bytes(tenant, project))
            self._stored[tenant, project] = known
        if known[1] >= allowed.stored_bytes:
            raise StorageQuotaError(
                f"stored_bytes: the project keeps {known[1]} bytes, {allowed.stored_bytes} are allowed; "
                "ask the operator for more"
            )
