"""The marker of what takes many seconds: the image has no configuration of pytest."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line("markers", "slow: takes many seconds; `make tests-slow` runs it")
