"""How figures are summed up: percentiles of calls, and ratios of two sides with their spread over the rounds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the quartiles around it.

    Attributes:
        median: half of the values are below.
        low: a quarter of them is below.
        high: three quarters of them are.
    """

    median: float
    low: float
    high: float


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which ``percent`` of all lie, between two neighbours in proportion.

    Raises:
        ValueError: no values, or a percentage outside of 0 to 100.
    """
    if not values or not 0 <= percent <= 100:  # noqa: PLR2004 - percent
        raise ValueError(f"percentile {percent} of {len(values)} values: values and 0 to 100 are needed")
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def spread(values: Sequence[float]) -> Spread:
    """The median and the quartiles of one value or more."""
    return Spread(percentile(values, 50), percentile(values, 25), percentile(values, 75))


def ratio_of_medians(above: Sequence[Sequence[float]], below: Sequence[Sequence[float]]) -> Spread:
    """For each round the median of one side over that of the other, then the spread of those ratios.

    A round's two sides were measured one after the other: what slows the machine for a while slows both, and
    their ratio stays. So ratios are taken within a round, never between medians of the whole run.

    Raises:
        ValueError: the sides have not as many rounds.
    """
    return ratio([statistics.median(turn) for turn in above], [statistics.median(turn) for turn in below])


def ratio(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of the ratios of two sides that have one figure in each round.

    Raises:
        ValueError: the sides have not as many rounds.
    """
    return spread([one / other for one, other in zip(above, below, strict=True)])
