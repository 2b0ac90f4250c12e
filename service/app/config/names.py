"""The nearest of several names."""

import difflib
from collections.abc import Iterable

_SIMILARITY_MIN = 0.7


def nearest_name(name: str, known: Iterable[str]) -> str:
    """Find the name that another one resembles; empty if there is none.

    Underscores do not count: poolsize is pool_size.
    """
    plain = {candidate.replace("_", ""): candidate for candidate in sorted(known)}
    found = difflib.get_close_matches(name.replace("_", ""), plain, n=1, cutoff=_SIMILARITY_MIN)
    return plain[found[0]] if found else ""
