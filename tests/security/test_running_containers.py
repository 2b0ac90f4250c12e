"""Running sandboxes, as the engine sees them from outside, and what an answer says of them."""

import asyncio
import json

import pytest
import pytest_asyncio
from cis_docker import CHECKS, DOCUMENT, document

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.sandbox_engine import service_name
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def container(private_docker, tmp_path_factory):
    """What the engine says of a container whose program runs."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), pool_size=0, engine_host=private_docker.host)
    service = build(settings)
    label = f"label=proofbox.service={service_name(settings)}"
    async with running(service):
        call = Caller(service)
        ticket = await call.submit("print('runs', flush=True)\nimport time\ntime.sleep(100)")
        async for event in await call.follow():
            if event.name == "stdout":
                break
        [found] = (await asyncio.to_thread(private_docker.docker, "ps", "-q", "--filter", label)).stdout.split()
        [told] = json.loads((await asyncio.to_thread(private_docker.docker, "inspect", found)).stdout)
        await service.calls.cancel(service.principal, call.last_id, call.conversation)
        await ticket.answer()
        yield told


@pytest.mark.parametrize("check", [check for check in CHECKS if check.holds], ids=lambda check: check.number)
def test_a_running_sandbox_keeps_the_recommendation(check, container):
    assert check.holds(container), check.title


def test_the_page_on_the_benchmark_is_what_is_checked():
    assert DOCUMENT.read_text() == document()
