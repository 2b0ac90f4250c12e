"""One service for the whole session, in-process, on a real engine; each test has a conversation of its own.

The engine is the quickest one. A module that looks at its containers through Docker's API has the mark `of_docker`.
"""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller
from tests.support.engines import quickest_engine
from tests.support.librechat import SIGNING_KEY
from tests.support.store_check import assert_service_fits


@pytest.fixture(scope="module", autouse=True)
def engine_of_this_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """What services of its own take, and those that it starts."""
    with pytest.MonkeyPatch.context() as patch:
        of_docker = request.node.get_closest_marker("of_docker")
        patch.setenv(
            "PROOFBOX_ENGINE", os.environ.get("PROOFBOX_ENGINE", "docker") if of_docker else quickest_engine()
        )
        yield


@pytest.fixture(scope="session")
def asset_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder below which calls may name assets by URI."""
    return tmp_path_factory.mktemp("assets")


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory, asset_root: Path) -> Settings:
    return Settings(
        engine=quickest_engine(),
        data_dir=tmp_path_factory.mktemp("data"),
        asset_roots=(asset_root,),
        tenant="acme",
        project="reports",
        user="u-17",
        pool_size=1,
        gotenberg=True,
    )


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def service(settings: Settings) -> AsyncIterator[Service]:
    service = build(settings)
    async with running(service):
        yield service
        await assert_service_fits(service)


@pytest.fixture
def take_away() -> Iterator[Callable[[Path], None]]:
    """Takes stored bytes away until the test ends: the service is one for all."""
    taken: list[Path] = []

    def take(blob: Path) -> None:
        blob.rename(blob.with_name(f"{blob.name}.taken"))
        taken.append(blob)

    yield take
    for blob in taken:
        blob.with_name(f"{blob.name}.taken").rename(blob)


@pytest.fixture
def call(service: Service) -> Caller:
    return Caller(service)


@pytest_asyncio.fixture(loop_scope="session")
async def http(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    """The HTTP doors of the same service, without a socket between."""
    transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def librechat(service: Service, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """LibreChat's API of the same service."""
    keys = tmp_path / "librechat.pem"
    keys.write_bytes(SIGNING_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    settings = service.settings.model_copy(update={"librechat": True, "librechat_key_file": keys})
    transport = httpx.ASGITransport(application(replace(service, settings=settings)), raise_app_exceptions=False)
    url = "http://localhost/librechat/v1"
    async with httpx.AsyncClient(transport=transport, base_url=url, timeout=120) as client:
        yield client
