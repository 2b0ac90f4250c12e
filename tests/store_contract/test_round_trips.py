"""How often a call waits for the database: what a call adds to the latency of every user far from it."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from pydantic import SecretStr
from sqlalchemy import make_url

from tests.support.cutting_relay import CuttingRelay
from tests.support.dispatching import joined
from tests.support.pipeline import opened_pipeline

ROUND_TRIPS_MAX = 25
CALLS = 10  # of which the jobs of each second disturb some
FILES = [{"filename": f"{name}.txt", "description": name} for name in "abc"]


def write_promised(run):
    for file in FILES:
        run.write(file["filename"], b"some text")


@pytest_asyncio.fixture
async def relay(postgres_url):
    async with CuttingRelay(make_url(postgres_url.get_secret_value()).port) as relay:
        yield relay


@pytest.fixture
def url(relay, postgres_url):
    port = int(relay.url.rpartition(":")[2])
    relayed = make_url(postgres_url.get_secret_value()).set(host="127.0.0.1", port=port)
    return SecretStr(relayed.render_as_string(hide_password=False))


@pytest.mark.parametrize("kind", ["write", "exec"])
async def test_a_call_of_many_processes_makes_few_round_trips(tmp_path, relay, url, place, kind):
    async with AsyncExitStack() as stack:
        api, worker = [
            await stack.enter_async_context(
                opened_pipeline(tmp_path / role, url=url, shared=True, boot_id=f"boot-{role}")
            )
            for role in ("api", "worker")
        ]
        await stack.enter_async_context(joined(place, api, "api"))
        await stack.enter_async_context(joined(place, worker, "worker"))
        worker.engine.program = write_promised
        counted = []
        for number in range(CALLS):
            before = relay.round_trips
            if kind == "write":
                params = {"path": f"files/{number}.txt", "content": "text", "kind": "file", "channel": "internal"}
                answer = await api.answer("react.write", params, tool_call_id=f"call_{number}")
            else:
                answer = await api.execute(*FILES, tool_call_id=f"call_{number}")
            assert answer["ok"], answer
            counted.append(relay.round_trips - before)
        assert min(counted) <= ROUND_TRIPS_MAX, counted
