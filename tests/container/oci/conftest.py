"""One service on the engine oci for the whole session, in-process."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller
from tests.support.engines import can_run_oci

# Needs root: where there is none, the engine oci cannot be used either.
collect_ignore_glob = [] if can_run_oci() else ["test_*.py"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    service = build(Settings(engine="oci", data_dir=tmp_path_factory.mktemp("data"), pool_size=1))
    async with running(service):
        yield service


@pytest.fixture
def call(service: Service) -> Caller:
    return Caller(service)
