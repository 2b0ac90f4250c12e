"""How the gateway stops."""

from dataclasses import replace

import pytest

from tests.support.talking import opened_talk


class FailingPart:
    """A part that fails as it stops."""

    def __init__(self):
        self.was_asked = False

    async def stop(self):
        self.was_asked = True
        raise RuntimeError("it failed before")


@pytest.fixture
async def talk(tmp_path):
    async with opened_talk(tmp_path) as opened:
        yield opened


async def test_a_part_that_fails_lets_the_others_stop(talk):
    first, last = FailingPart(), FailingPart()
    await replace(talk.pipeline.gateway, plans=first, spaces=last).stop()
    assert (first.was_asked, last.was_asked) == (True, True)
