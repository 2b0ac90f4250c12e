"""How much is tried: a choice when the tests are run by themselves, everything in `make faults`."""

import os
from collections.abc import Iterable
from itertools import product

WHOLE = os.environ.get("PROOFBOX_TEST_FAULTS") == "all"


def pairs(first: Iterable[str], second: Iterable[str], chosen: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """All pairs, or a choice of them."""
    every = list(product(first, second))
    assert set(chosen) <= set(every)
    return every if WHOLE else chosen
