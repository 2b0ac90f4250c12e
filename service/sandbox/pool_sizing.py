"""How many containers of each flavour should wait: a pure function of recent arrivals and of memory."""

import math
from dataclasses import dataclass, field

from proofbox.service.sandbox.preload import PreloadSet

_MIB = 1024 * 1024
WAITING_BYTES = {
    PreloadSet.BARE: 16 * _MIB,
    PreloadSet.DOCUMENTS: 64 * _MIB,
    PreloadSet.DATA: 96 * _MIB,
    PreloadSet.SCIENCE: 192 * _MIB,
}
"""What a waiting container takes, its share of the engine's processes included; measured with the image."""
_RATE_OVER_S = 60.0  # arrivals of so long ago count a third
# Until one has been measured.
_REFILL_S = {PreloadSet.BARE: 0.3, PreloadSet.DOCUMENTS: 1.0, PreloadSet.DATA: 1.5, PreloadSet.SCIENCE: 3.0}
_REFILL_WEIGHT = 0.3  # of the newest refill in the moving average
# A refill takes longer while calls run, and arrivals come in clusters.
_SPARE = 2.0


@dataclass(frozen=True, slots=True)
class PoolPolicy:
    """The operator's decisions about waiting containers.

    Attributes:
        size: bare ones that wait whatever was asked for lately; 0 turns the pool off.
        reserve: bare ones that wait beside them, for callers that have no other call running.
        most: of all flavours together.
        memory_bytes: what they may take together.
        starts_max: containers starting at one time.
        age_max_s: when a waiting one is replaced by a younger one.
        unused_s: how long a flavour that nobody asks for still has containers.
    """

    size: int
    most: int
    memory_bytes: int
    starts_max: int
    age_max_s: float
    unused_s: float
    reserve: int = 0

    @property
    def reserved(self) -> int:
        """How many bare ones are left to callers that have no other call running: half of what has room at most."""
        if not self.size:
            return 0
        room = min(self.size + self.reserve, self.most, self.memory_bytes // WAITING_BYTES[PreloadSet.BARE])
        return min(self.reserve, room // 2)

    def may_take(self, waiting: int, *, is_only_call: bool) -> bool:
        """Whether a call takes one of the bare ones that wait, or leaves them to others.

        Args:
            waiting: how many there are.
            is_only_call: whether its caller has no other call running.
        """
        return waiting > (0 if is_only_call else self.reserved)


@dataclass(slots=True)
class Demand:
    """What was asked of one flavour lately, and what getting another one takes.

    Attributes:
        refill_s: how long a start takes, a moving average.
        asked: when it was asked for last, on the pool's clock; None if it never was.
    """

    refill_s: float
    asked: float | None = None
    _count: float = 0.0  # of arrivals, older ones counting less

    @classmethod
    def of(cls, flavour: PreloadSet) -> "Demand":
        """Of a flavour that nobody has asked for."""
        return cls(_REFILL_S[flavour])

    def arrived(self, now: float) -> None:
        """A call wants one."""
        self._count = self._decay_count(now) + 1
        self.asked = now

    def refilled(self, took_s: float) -> None:
        """One was started."""
        self.refill_s += _REFILL_WEIGHT * (took_s - self.refill_s)

    def per_s(self, now: float) -> float:
        """Arrivals a second, the newer ones counting more."""
        return self._decay_count(now) / _RATE_OVER_S

    def _decay_count(self, now: float) -> float:
        return 0.0 if self.asked is None else self._count * math.exp((self.asked - now) / _RATE_OVER_S)


@dataclass(slots=True)
class Demands:
    """What was asked of every flavour."""

    of: dict[PreloadSet, Demand] = field(
        default_factory=lambda: {flavour: Demand.of(flavour) for flavour in PreloadSet}
    )

    def wanted(self, policy: PoolPolicy, now: float) -> dict[PreloadSet, int]:
        """How many of each flavour should wait.

        A flavour gets what arrives while one is started, and one beside that as long as it is in use. Where not all
        fit, they get one each in turns: bare first, then those that are asked for most.
        """
        wanted = {flavour: self._count_wanted(flavour, policy, now) for flavour in PreloadSet}
        in_order = sorted(
            PreloadSet, key=lambda flavour: (flavour is not PreloadSet.BARE, -self.of[flavour].per_s(now))
        )
        granted = dict.fromkeys(PreloadSet, 0)
        bytes_left, left = policy.memory_bytes, policy.most if policy.size else 0
        gets_more = True
        while gets_more:
            gets_more = False
            for flavour in in_order:
                if granted[flavour] < wanted[flavour] and left and WAITING_BYTES[flavour] <= bytes_left:
                    granted[flavour] += 1
                    left -= 1
                    bytes_left -= WAITING_BYTES[flavour]
                    gets_more = True
        return granted

    def _count_wanted(self, flavour: PreloadSet, policy: PoolPolicy, now: float) -> int:
        demand = self.of[flavour]
        meanwhile = int(demand.per_s(now) * demand.refill_s * _SPARE)
        if flavour is PreloadSet.BARE:
            return policy.size + policy.reserve + meanwhile
        if demand.asked is None or now - demand.asked > policy.unused_s:
            return 0
        return 1 + meanwhile
