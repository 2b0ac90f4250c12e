"""How many examples of a property a test tries."""

import os


def examples(count: int) -> int:
    """Scale a number of examples down where only few are wanted (`make test-fast`).

    Args:
        count: The number that the whole suite tries.

    Returns:
        The same, or a tenth of it, but at least 5.
    """
    return max(5, count // 10) if os.environ.get("PROOFBOX_TEST_EXAMPLES") == "few" else count
