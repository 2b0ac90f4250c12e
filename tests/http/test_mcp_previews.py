"""Pictures of results that a sandbox scales: a bounded number, one for each caller, and no long waits."""

import asyncio
from dataclasses import replace

import pytest

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.identity import ConversationKey
from proofbox.service.mcp.preview import AT_ONCE, PICTURE_BYTES_MAX, Previews
from tests.http.conftest import LIMITS, PRINCIPAL
from tests.unit.mcp.test_mcp_results import JPEG, png

LARGE = png(1_600, 1).ljust(PICTURE_BYTES_MAX + 1, b"\0")
SOON_S = 0.05
LATE_S = 600.0


def scope_of(key: str) -> ConversationKey:
    return ConversationKey(replace(PRINCIPAL, key_id=key), "c1")


class HeldProgram:
    """A program that scales a picture when the test lets it."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.running = 0
        self._changed = asyncio.Condition()

    async def __call__(self, run) -> None:
        async with self._changed:
            self.running += 1
            self._changed.notify_all()
        await self.go_on.wait()
        run.write("preview.jpg", JPEG)

    async def until_running(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.running == count)


@pytest.fixture
def program(engine) -> HeldProgram:
    engine.program = HeldProgram()
    return engine.program


@pytest.fixture
async def picture(saved):
    return await saved(FilePath("turn_1", Namespace.FILES, "a.png"), LARGE, "image/png")


async def test_a_result_gives_up_its_picture_when_no_place_becomes_free(services, engine, program, picture):
    previews = Previews(services, LIMITS, SOON_S)
    scaling = [asyncio.create_task(previews.find(scope_of(f"k{number}"), picture)) for number in range(AT_ONCE)]
    await program.until_running(AT_ONCE)
    found = await previews.find(scope_of("other"), picture)
    assert found.picture is None
    assert "not shown" in found.note
    assert engine.open_sandboxes == AT_ONCE
    program.go_on.set()
    for preview in [*await asyncio.gather(*scaling), await previews.find(scope_of("other"), picture)]:
        assert (preview.picture.content, "smaller" in preview.note) == (JPEG, True)
    assert engine.open_sandboxes == 0


async def test_one_caller_has_one_place_and_others_have_the_rest(services, engine, program, picture):
    previews = Previews(services, LIMITS, SOON_S)
    first = asyncio.create_task(previews.find(scope_of("loud"), picture))
    await program.until_running(1)
    more = await asyncio.gather(*(previews.find(scope_of("loud"), picture) for _ in range(4)))
    assert ["not shown" in preview.note for preview in more] == [True] * 4
    assert program.running == engine.open_sandboxes == 1
    other = asyncio.create_task(previews.find(scope_of("quiet"), picture))
    await program.until_running(2)
    program.go_on.set()
    assert [preview.picture is not None for preview in await asyncio.gather(first, other)] == [True, True]
    assert len(previews._turns) == 0


async def test_a_request_that_ends_while_it_waits_leaves_its_turn_to_the_next(services, program, picture):
    previews = Previews(services, LIMITS, LATE_S)
    first = asyncio.create_task(previews.find(scope_of("loud"), picture))
    await program.until_running(1)
    waiting = asyncio.create_task(previews.find(scope_of("loud"), picture))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    program.go_on.set()
    assert (await first).picture is not None
    assert (await previews.find(scope_of("loud"), picture)).picture is not None
