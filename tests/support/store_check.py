"""Asserts that the records and files of a service fit each other: for the end of tests with real calls."""

import asyncio
from pathlib import Path
from typing import Any

from proofbox.service.app.bootstrap import Service
from proofbox.service.app.maintenance import opened_check
from proofbox.service.app.settings import Settings
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.check.store_check import StoreCheck

_SETTLED_S = 30


async def assert_stores_fit(artifacts: SqlArtifactStore) -> None:
    """Assert it of open stores of this process whose calls have ended."""
    async with asyncio.timeout(_SETTLED_S):
        while await artifacts._database.read(rows.unfinished_saves):  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
    check = StoreCheck(artifacts._database, artifacts._files, is_idle=False)
    _require_none([each.as_text() async for each in check.run()])


async def assert_service_fits(service: Service) -> None:
    """Assert it of a service of this process whose calls have ended."""
    await assert_stores_fit(service.artifacts)


def findings(data_dir: Path, **settings: Any) -> list[str]:
    """What is wrong in a data folder, and in the database and bucket of the settings; a service may use them."""

    async def check() -> list[str]:
        async with opened_check(Settings(data_dir=data_dir, **settings), lambda _: None) as opened:
            return [each.as_text() async for each in opened.run()]

    return asyncio.run(check())


def assert_data_fits(data_dir: Path, **settings: Any) -> None:
    """Assert that nothing is."""
    _require_none(findings(data_dir, **settings))


def _require_none(found: list[str]) -> None:
    if found:
        raise AssertionError("the check of the stores found:\n" + "\n".join(found))
