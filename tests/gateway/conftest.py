"""Loops over the real routes, and servers that record what reaches them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.gateway_client import Loop, opened_loop
from tests.support.llm_server import KEY, LlmServer, llm_server
from tests.support.recording_server import RecordingServer, recording_server


@pytest.fixture
async def loop(tmp_path: Path) -> AsyncIterator[Loop]:
    async with opened_loop(tmp_path) as opened:
        yield opened


@pytest.fixture
async def elsewhere() -> AsyncIterator[RecordingServer]:
    async with recording_server() as server:
        yield server


@pytest.fixture
async def llm() -> AsyncIterator[LlmServer]:
    async with llm_server() as server:
        yield server


@pytest.fixture
async def asking(tmp_path: Path, llm: LlmServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Loop]:
    """A loop whose service has the endpoint ``default``."""
    monkeypatch.setenv("LLM_KEY", KEY)
    async with opened_loop(tmp_path, llm_endpoints=llm.settings()) as opened:
        yield opened
