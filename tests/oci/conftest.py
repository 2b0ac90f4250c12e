"""One service on the engine oci for the whole session, in-process."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from service.main import Service, build, running
from service.settings import Settings
from tests.docker.calling import Caller


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    service = build(Settings(engine="oci", data_dir=tmp_path_factory.mktemp("data"), pool_size=1))
    async with running(service):
        yield service


@pytest.fixture
def call(service: Service) -> Caller:
    return Caller(service)
