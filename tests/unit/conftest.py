"""What unit tests of several packages share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pipeline import Pipeline, opened_pipeline


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[Pipeline]:
    async with opened_pipeline(tmp_path) as opened:
        yield opened
