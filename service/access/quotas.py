"""Quotas of a caller: requests, calls and uploaded bytes per minute, concurrent calls, stored bytes.

Usage is counted in memory, per API key, or per tenant without keys: a restart resets it, and a request writes
nothing.
"""

import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields, replace

from proofbox.contracts.problems import FieldError
from proofbox.service.access.api_keys import ApiKey
from proofbox.service.errors import RateLimitedError, StorageQuotaError
from proofbox.service.identity import KEY_CALLER

Clock = Callable[[], float]
StoredBytes = Callable[[str, str], Awaitable[int]]
"""Returns the stored bytes of a project of a tenant."""

WINDOW_S = 60
_STORED_KNOWN_S = 30.0
_CALLERS_MAX = 10_000  # whose usage is in memory


@dataclass(frozen=True, slots=True)
class Allowances:
    """Limits of one caller; None: the operator's limit, 0: no limit.

    Attributes:
        requests_per_minute: all requests.
        calls_per_minute: tool calls.
        upload_bytes_per_minute: bytes of request bodies.
        running_calls: calls that run at the same time.
        queued_calls: calls that wait for a slot.
        stored_bytes: bytes of all versions of files and attachments of the project.
        network: hosts and ports that programs may connect to, within those of the operator.
        package_count: packages of one call, with what they need; never more than the operator's.
        package_bytes: bytes of the packages of one call; never more than the operator's.
        package_install_s: seconds for installing the packages of one call; never more than the operator's.
        packages: names of packages that calls may ask for, within those of the operator.
    """

    requests_per_minute: int | None = None
    calls_per_minute: int | None = None
    upload_bytes_per_minute: int | None = None
    running_calls: int | None = None
    queued_calls: int | None = None
    stored_bytes: int | None = None
    network: tuple[str, ...] | None = None
    package_count: int | None = None
    package_bytes: int | None = None
    package_install_s: int | None = None
    packages: tuple[str, ...] | None = None

    @classmethod
    def of_key(cls, key: ApiKey) -> "Allowances":
        """Return the limits that a key has of its own."""
        return cls(**key.limits, network=key.network, packages=key.packages)

    def over(self, own: "Allowances") -> "Allowances":
        """Return these limits, replaced by those that ``own`` sets; those of packages only become less."""
        changed = {name: value for name, value in asdict(own).items() if value is not None}
        for name in _NARROWED & changed.keys():
            given = [value for value in (getattr(self, name), changed[name]) if value]
            changed[name] = min(given, default=0)
        return replace(self, **changed)


_NARROWED = frozenset({"package_count", "package_bytes", "package_install_s"})
"""Limits of which a key has at most those of the operator, because what they bound is on the service's disk."""
NO_LIMITS = Allowances(0, 0, 0, 0, 0, 0, None, 0, 0, 0)
ALLOWANCE_NAMES = tuple(field.name for field in fields(Allowances) if field.name not in {"network", "packages"})
"""The limits that are numbers."""
_RATES = {
    # name of the policy on the wire: which allowance, and in what it is counted there
    "requests": ("requests_per_minute", ""),
    "calls": ("calls_per_minute", ""),
    "uploads": ("upload_bytes_per_minute", ';qu="content-bytes"'),
}


class TokenBucket:
    """A token bucket with the size of one minute. It may become negative; the debt delays later requests."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._left = float(per_minute)
        self._at = clock()

    def left(self) -> float:
        """Return the tokens; below 0 after a debt."""
        now = self._clock()
        self._left = min(self.per_minute, self._left + (now - self._at) * self.per_minute / WINDOW_S)
        self._at = now
        return self._left

    def take(self, amount: float) -> None:
        """Take tokens, also if there are fewer."""
        self._left = self.left() - amount

    def wait_s(self, amount: float) -> float:
        """Return the time until so many tokens are there; 0 if they are now."""
        return max(0.0, amount - self.left()) * WINDOW_S / self.per_minute


class CallerMeter:
    """The usage of one caller.

    Args:
        own: the limits of its key.
        allowed: all its limits.
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, own: Allowances, allowed: Allowances, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        self.set(own, allowed)

    def set(self, own: Allowances, allowed: Allowances) -> None:
        """Change the limits; the usage of unchanged limits stays."""
        self.own, self.allowed = own, allowed
        previous, self._buckets = self._buckets, {}
        for name, (allowance, _) in _RATES.items():
            if per_minute := getattr(allowed, allowance):
                known = previous.get(name)
                same = known is not None and known.per_minute == per_minute
                self._buckets[name] = known if same and known else TokenBucket(per_minute, self._clock)

    def used(self) -> dict[str, int]:
        """Return how much of each limit per minute is used now, by the names of `Allowances`."""
        return {
            _RATES[name][0]: max(0, math.ceil(bucket.per_minute - bucket.left()))
            for name, bucket in self._buckets.items()
        }

    def take_request(self, *, is_call: bool) -> None:
        """Count a request, and a call if it is one.

        Raises:
            RateLimitedError: a limit is used up; nothing is counted then.
        """
        wanted = ("requests", "calls") if is_call else ("requests",)
        for name in wanted:
            self._require(name, 1)
        for name in wanted:
            if name in self._buckets:
                self._buckets[name].take(1)

    def take_call(self) -> None:
        """Count a call of a request that was counted already.

        Raises:
            RateLimitedError: the limit is used up; nothing is counted then.
        """
        self._require("calls", 1)
        if "calls" in self._buckets:
            self._buckets["calls"].take(1)

    def take_upload(self, size_bytes: int) -> None:
        """Count bytes of a body: all of them if its length is declared, else as they arrive.

        A body may exceed the rest of the limit, and the debt delays later ones: no limit makes a body impossible.

        Raises:
            RateLimitedError: earlier bodies have used up the limit.
        """
        self._require("uploads", 0)
        if "uploads" in self._buckets:
            self._buckets["uploads"].take(size_bytes)

    def _require(self, name: str, amount: int) -> None:
        bucket = self._buckets.get(name)
        if bucket is None or (wait_s := bucket.wait_s(amount)) <= 0:
            return
        allowance = _RATES[name][0]
        message = f"{allowance}: the limit of {bucket.per_minute} is used up"
        raise RateLimitedError(
            f"{message}; retry in {math.ceil(wait_s)} s",
            retry_after_s=wait_s,
            errors=[FieldError(field=allowance, code="rate_limited", message=message)],
        )

    def headers(self) -> dict[str, str]:
        """Return the headers ``RateLimit-Policy`` and ``RateLimit`` of the IETF draft; none without a limit."""
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
    """How many calls of one caller may run and wait; 0: no limit of its own.

    Attributes:
        running: in this process.
        queued: of all processes together, if there are many.
        running_together: in all processes together; only a limit that somebody set, not the one that follows from
            the slots of a process.
    """

    running: int = 0
    queued: int = 0
    running_together: int = 0


@dataclass(frozen=True, slots=True)
class PackageAllowance:
    """What a caller's calls may install, within what the operator allows.

    Attributes:
        names: names of packages that calls may ask for; None: those that the operator allows.
        count_max: packages of one call; 0: no limit of its own.
        bytes_max: bytes of the packages of one call; 0: no limit of its own.
        time_s: time for installing the packages of one call; 0: no limit of its own.
    """

    names: tuple[str, ...] | None = None
    count_max: int = 0
    bytes_max: int = 0
    time_s: int = 0


class Quotas:
    """The usage of all callers.

    Args:
        allowed: the limits of a caller without limits of its own.
        stored_bytes: returns the stored bytes of a project; None: no storage quota.
        clock: a monotonic clock, in seconds.
        has_running_limit: whether somebody set ``allowed.running_calls``; else it follows from the slots of this
            process.
    """

    def __init__(
        self,
        allowed: Allowances,
        stored_bytes: StoredBytes | None = None,
        clock: Clock = time.monotonic,
        *,
        has_running_limit: bool = False,
    ) -> None:
        self._allowed = allowed
        self._has_running_limit = has_running_limit
        self._stored_bytes = stored_bytes
        self._clock = clock
        self._meters: dict[str, CallerMeter] = {}
        self._stored: dict[tuple[str, str], tuple[float, int]] = {}

    def meter(self, caller: str, own: Allowances) -> CallerMeter:
        """Return the usage of a caller, with the limits of its key over the operator's."""
        meter = self.known_meter(caller, own)
        if meter.own != own:
            meter.set(own, self._allowed.over(own))
        return meter

    def known_meter(self, caller: str, own: Allowances) -> CallerMeter:
        """Return the usage of a caller, and leave its limits as they are; ``own``: those of a new caller."""
        # The order of the meters is that of their last use, so the one that is removed was unused the longest.
        meter = self._meters.pop(caller, None)
        if meter is None:
            if len(self._meters) >= _CALLERS_MAX:
                del self._meters[next(iter(self._meters))]
            meter = CallerMeter(own, self._allowed.over(own), self._clock)
        self._meters[caller] = meter
        return meter

    def share(self, caller: str) -> Share:
        """Return how many calls of a caller may run and wait."""
        meter = self._meters.get(caller)
        if meter is None:
            return Share()  # not an HTTP request
        running = meter.allowed.running_calls or 0
        is_set = self._has_running_limit or meter.own.running_calls is not None
        return Share(running, meter.allowed.queued_calls or 0, running if is_set else 0)

    def network(self, caller: str) -> tuple[str, ...] | None:
        """Return the hosts that a caller's programs are limited to; None: to those of the operator.

        A key whose limits are not known has none: it may be one without a network.
        """
        meter = self._meters.get(caller)
        if meter is None:
            return () if caller.startswith(KEY_CALLER) else None
        return meter.allowed.network

    def packages(self, caller: str) -> PackageAllowance:
        """Return what a caller's calls may install.

        A key whose limits are not known may ask for none: it may be one without packages.
        """
        meter = self._meters.get(caller)
        if meter is None:
            return PackageAllowance(() if caller.startswith(KEY_CALLER) else None)
        allowed = meter.allowed
        return PackageAllowance(
            allowed.packages, allowed.package_count or 0, allowed.package_bytes or 0, allowed.package_install_s or 0
        )

    def forget_stored_bytes(self, tenant: str, project: str) -> None:
        """Query the stored bytes of a project anew at the next request: some were deleted."""
        self._stored.pop((tenant, project), None)

    async def check_storage_quota(self, allowed: Allowances, tenant: str, project: str) -> None:
        """Refuse a request of a project that has used up its storage quota.

        Stored bytes are queried at most every 30 seconds; uploads in between may exceed the quota.

        Raises:
            StorageQuotaError: the quota is used up.
            StoreFailedError: the store failed.
        """
        if not allowed.stored_bytes:
            return
        stored = await self.stored_bytes(tenant, project)
        if stored is not None and stored >= allowed.stored_bytes:
            raise StorageQuotaError(
                f"stored_bytes: the quota of the project is used up (limit {allowed.stored_bytes} bytes, "
                f"stored {stored}); ask the operator for more"
            )

    async def stored_bytes(self, tenant: str, project: str) -> int | None:
        """Return the stored bytes of a project, as of the last 30 seconds; None where they are not counted.

        Raises:
            StoreFailedError: the store failed.
        """
        if self._stored_bytes is None:
            return None
        known = self._stored.get((tenant, project))
        if known is None or self._clock() - known[0] > _STORED_KNOWN_S:
            known = (self._clock(), await self._stored_bytes(tenant, project))
            self._stored[tenant, project] = known
        return known[1]
