"""Loops over the real routes, and servers that record what reaches them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway_client import Loop, opened_loop
from tests.support.recording_server import RecordingServer, recording_server


@pytest.fixture
async def loop(tmp_path: Path) -> AsyncIterator[Loop]:
    async with opened_loop(tmp_path) as opened:
        yield opened


@pytest.fixture
async def elsewhere() -> AsyncIterator[RecordingServer]:
    async with recording_server() as server:
        yield server
