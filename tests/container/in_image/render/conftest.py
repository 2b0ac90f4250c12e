"""The marker of what takes many seconds, and the short version: the image has no configuration of pytest."""

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-rows", type=int, help="leave out the rows of each table after so many")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", "slow: takes many seconds; `make tests-slow` runs it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is not asked for."""
    most = config.getoption("--first-rows")
    if most is None:
        return
    rows = Counter[str]()
    kept = []
    for item in items:
        table = item.nodeid.partition("[")[0]
        rows[table] += 1
        if rows[table] <= most:
            kept.append(item)
    items[:] = kept
