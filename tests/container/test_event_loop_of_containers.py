"""A real container is taken, used and replaced without blocking the event loop."""

import asyncio

import pytest

from proofbox.service.sandbox.preload import PreloadSet
from tests.support.loop_watch import watched_loop

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

CODE = """
for number in range(20):
    open(f"{number}.txt", "w").write("text " * 1_000)
open("large.bin", "wb").write(bytes(3_000_000))
print(1)
"""
CONTRACT = [
    {"glob": "*.txt", "description": "texts", "min_count": 20},
    {"filename": "large.bin", "description": "bytes", "visibility": "internal"},
]
REFILLED_WITHIN_S = 120
# The reading end of a pipe, and a file that was only locked: they close at once.
QUICK = {
    "posix.close in sandbox/engine.py:_discard > sandbox/engine.py:_hang_up > sandbox/oci/transport.py:close",
    (
        "posix.close in storage/audit_signing.py:_round > storage/audit_signing.py:_lock_records "
        "> storage/audit_head_files.py:locked"
    ),
}


async def refilled(service):
    async with asyncio.timeout(REFILLED_WITHIN_S):
        while service.engine.pool.waiting(PreloadSet.BARE) < 1:  # noqa: ASYNC110 - the pool tells nobody when it is full
            await asyncio.sleep(0.05)


async def test_a_call_and_the_next_container_block_nothing(call, service):
    await call(CODE, CONTRACT)
    await refilled(service)
    with watched_loop() as seen:
        response = await call(CODE, CONTRACT)
        await refilled(service)
    assert (response.ok, response.sandbox.acquired) == (True, "warm")
    assert [each for each in sorted(set(seen)) if each not in QUICK] == []
