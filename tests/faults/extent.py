"""How much is tried: a choice in `make test`, everything in `make faults`."""

import os
from collections.abc import Iterable
from itertools import product

WHOLE = os.environ.get("PROOFBOX_FAULTS") == "all"


def pairs(first: Iterable[str], second: Iterable[str], chosen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All pairs, or those that `make test` has time for."""
    every = list(product(first, second))
    assert set(chosen) <= set(every)
    return every if WHOLE else chosen
